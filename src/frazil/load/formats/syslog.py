"""Syslog: one message per line, by RFC 5424 or RFC 3164, as daemons send them or write them.

    <34>1 2026-09-21T14:00:00.5Z host app 77 ID7 [sd@1 k="v"] text       RFC 5424
    <34>Sep 21 14:00:00 host app[77]: text                               RFC 3164
    Sep 21 14:00:00 host app[77]: text                                   as in /var/log/syslog
    2026-09-21T14:00:00.5+02:00 host app[77]: text                       as rsyslog writes files

A line without priority has no severity and no facility. RFC 3164 has neither year nor time zone:
the time is UTC, and in the year that ends at most a day after the file was last modified. A line
that is none of these is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa

from frazil.load.formats.blocks import JSON_TEXT, Block, RowError, row_error
from frazil.load.formats.lines import LineChunk
from frazil.load.formats.times import NS_PER_S, nanoseconds_of
from frazil.load.formats.typed_cast import cast_rows, check_columns

SEVERITIES = (
    ("emerg", 21),
    ("alert", 19),
    ("crit", 18),
    ("err", 17),
    ("warning", 13),
    ("notice", 10),
    ("info", 9),
    ("debug", 5),
)
"""Text and number of each severity, as OpenTelemetry's data model maps them."""
PRIORITY_MAX = 191
NIL = "-"
BOM = "\ufeff"
ROWS_MAX = 8192
YEARS_BACK = 8
"""Until the last leap year, at most: for February 29."""

SYSLOG_SCHEMA = pa.schema(
    [
        pa.field("time", pa.timestamp("us", tz="UTC")),
        pa.field("severity_number", pa.int32()),
        pa.field("severity_text", pa.string()),
        pa.field("host_name", pa.string()),
        pa.field("service_name", pa.string()),
        pa.field("body", pa.string()),
        pa.field("syslog.facility", pa.int32()),
        pa.field("syslog.procid", pa.string()),
        pa.field("syslog.msgid", pa.string()),
        pa.field("attributes", JSON_TEXT),
    ]
)
"""`attributes` has the structured data: `syslog.<id>.<name>`, a text, or an array if a name occurs
more than once."""

PRIORITY = re.compile(r"<(0|[1-9][0-9]{0,2})>")
VERSION = re.compile(r"([1-9][0-9]{0,2}) (?=[0-9-])")
HEADER = re.compile(r"(\S+) ([!-~]+) ([!-~]+) ([!-~]+) ([!-~]+) (?=[\[-])")
"""Timestamp, host, application, process, message id; then structured data."""
TIME_5424 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
ELEMENT = re.compile(
    r'\[([!#-<>-\\^-~]+)((?: [!#-<>-\\^-~]+="[^"\\\]]*(?:\\.[^"\\\]]*)*")*)\]', re.DOTALL
)
PARAMETER = re.compile(r' ([!#-<>-\\^-~]+)="([^"\\\]]*(?:\\.[^"\\\]]*)*)"', re.DOTALL)
ESCAPED = re.compile(r'\\(["\\\]])')
LOCAL_TIME = re.compile(r"([A-Z][a-z]{2}) ([ 0-3]?[0-9]) ([0-2][0-9]):([0-5][0-9]):([0-5][0-9]) ")
FILE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)) ", re.ASCII
)
HOST = re.compile(r"([!-~]*[!-9;-~])(?: |$)")
TAG = re.compile(r"([^\s:\[\]]+)(?:\[([^\]\s]*)\])?:(?: |$)")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogMessage:
    """A message. What it does not say is None."""

    time_us: int | None = None
    severity: int | None = None
    facility: int | None = None
    host: str | None = None
    application: str | None = None
    process: str | None = None
    message_id: str | None = None
    text: str | None = None
    data: dict[str, str | list[str]] = field(default_factory=dict)


class NotSyslog(ValueError):
    """Why a line is no syslog message."""


def read_syslog(
    chunks: Iterator[LineChunk], schema: pa.Schema, modified_ms: int
) -> Iterator[Block]:
    """Yield all messages, as rows with the types of a table. Empty lines are none."""
    check_columns(SYSLOG_SCHEMA, schema)
    latest = latest_time(modified_ms)
    for chunk in chunks:
        messages: list[SyslogMessage] = []
        lines: list[int] = []
        errors: list[RowError] = []
        for number, line in enumerate(chunk.data.split(b"\n")[:-1], chunk.first_line):
            if line and line != b"\r":
                try:
                    messages.append(parse_syslog(line.removesuffix(b"\r").decode(), latest))
                    lines.append(number)
                except UnicodeDecodeError as error:
                    errors.append(row_error(number, "", f"byte {error.start + 1} is not UTF-8"))
                except NotSyslog as error:
                    errors.append(row_error(number, "", f"not a syslog message: {error}"))
            if len(messages) == ROWS_MAX:
                yield _block(messages, lines, errors, schema)
                messages, lines, errors = [], [], []
        yield _block(messages, lines, errors, schema)


def latest_time(modified_ms: int) -> datetime:
    """Return the last moment that a time without year may mean, in a file modified then."""
    return datetime.fromtimestamp(modified_ms // 1000, UTC) + timedelta(days=1)


def parse_syslog(line: str, latest: datetime) -> SyslogMessage:
    """Parse a line. Raises `NotSyslog`."""
    severity = facility = None
    at = 0
    priority = PRIORITY.match(line)
    if priority is not None:
        number = int(priority[1])
        if number > PRIORITY_MAX:
            raise NotSyslog(f"priority {number} is above {PRIORITY_MAX}")
        facility, severity = divmod(number, 8)
        at = priority.end()
        version = VERSION.match(line, at)
        if version is not None:
            if version[1] != "1":
                raise NotSyslog(f"version {version[1]} is not 1")
            return _parse_5424(line, version.end(), severity, facility)
    return _parse_3164(line, at, severity, facility, latest)


def _parse_5424(line: str, at: int, severity: int, facility: int) -> SyslogMessage:
    header = HEADER.match(line, at)
    if header is None:
        raise NotSyslog("after the version come time, host, application, process, id and data")
    time_us = None
    if header[1] != NIL:
        if TIME_5424.fullmatch(header[1]) is None:
            raise NotSyslog("the time is not one of RFC 5424")
        time_us = _microseconds(header[1])
    at = header.end()
    data: dict[str, str | list[str]] = {}
    if line.startswith(NIL, at):
        at += 1
    else:
        while (element := ELEMENT.match(line, at)) is not None:
            _add_parameters(data, element[1], element[2])
            at = element.end()
    if at < len(line) and line[at] != " ":
        raise NotSyslog("its structured data is damaged")
    text = line[at + 1 :].removeprefix(BOM)
    return SyslogMessage(
        time_us=time_us,
        severity=severity,
        facility=facility,
        host=_present(header[2]),
        application=_present(header[3]),
        process=_present(header[4]),
        message_id=_present(header[5]),
        text=text or None,
        data=data,
    )


def _add_parameters(data: dict[str, str | list[str]], element: str, parameters: str) -> None:
    for name, escaped in PARAMETER.findall(parameters):
        value = ESCAPED.sub(r"\1", escaped) if "\\" in escaped else escaped
        key = f"syslog.{element}.{name}"
        before = data.get(key)
        if before is None:
            data[key] = value
        elif isinstance(before, list):
            before.append(value)
        else:
            data[key] = [before, value]


def _parse_3164(
    line: str, at: int, severity: int | None, facility: int | None, latest: datetime
) -> SyslogMessage:
    local = LOCAL_TIME.match(line, at)
    if local is not None:
        time_us = _in_year(local, latest)
        at = local.end()
    else:
        full = FILE_TIME.match(line, at)
        if full is None:
            raise NotSyslog("it does not begin with a priority and a time, nor with a time")
        time_us = _microseconds(full[1])
        at = full.end()
    host = HOST.match(line, at)
    if host is None:
        raise NotSyslog("there is no host after the time")
    at = host.end()
    tag = TAG.match(line, at)
    if tag is not None:
        at = tag.end()
    return SyslogMessage(
        time_us=time_us,
        severity=severity,
        facility=facility,
        host=_present(host[1]),
        application=None if tag is None else tag[1],
        process=None if tag is None else tag[2] or None,
        text=line[at:] or None,
    )


def _microseconds(text: str) -> int:
    nanoseconds = nanoseconds_of(text)
    if nanoseconds is None:
        raise NotSyslog("there is no such time")
    return nanoseconds // 1000


def _in_year(found: re.Match[str], latest: datetime) -> int:
    """Return the last time with this month and day that is not after `latest`."""
    if found[1] not in MONTHS:
        raise NotSyslog(f"{found[1]} is not a month")
    month, day = MONTHS.index(found[1]) + 1, int(found[2])
    hour, minute, second = int(found[3]), int(found[4]), int(found[5])
    for year in range(latest.year, latest.year - YEARS_BACK - 1, -1):
        try:
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            continue  # February 29, or no time at all
        if moment <= latest:
            return int(moment.timestamp()) * (NS_PER_S // 1000)
    raise NotSyslog("there is no such time")


def _present(text: str) -> str | None:
    return None if text == NIL else text


def _block(
    messages: list[SyslogMessage], lines: list[int], errors: list[RowError], schema: pa.Schema
) -> Block:
    columns: dict[str, Any] = {
        "time": [each.time_us for each in messages],
        "severity_number": [_severity(each, 1) for each in messages],
        "severity_text": [_severity(each, 0) for each in messages],
        "host_name": [each.host for each in messages],
        "service_name": [each.application for each in messages],
        "body": [each.text for each in messages],
        "syslog.facility": [each.facility for each in messages],
        "syslog.procid": [each.process for each in messages],
        "syslog.msgid": [each.message_id for each in messages],
        "attributes": [
            msgspec.json.encode(each.data).decode() if each.data else None for each in messages
        ],
    }
    arrays = {
        name: pa.array(values, pa.string() if name == "attributes" else _type_of(name))
        for name, values in columns.items()
    }
    block = cast_rows(arrays, len(messages), schema, 0)
    misfits = (replace(error, line=lines[error.line]) for error in block.errors)
    kept = [lines[index] for index in block.lines]
    return Block(rows=block.rows, lines=kept, errors=(*errors, *misfits))


def _type_of(name: str) -> pa.DataType:
    return SYSLOG_SCHEMA.field(name).type


def _severity(message: SyslogMessage, part: int) -> str | int | None:
    return None if message.severity is None else SEVERITIES[message.severity][part]
