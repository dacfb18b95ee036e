"""Syslog: what is written by RFC 5424 and RFC 3164 is read back; anything else is an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.load.formats.syslog import MONTHS, NotSyslog, SyslogMessage, latest_time, parse_syslog

MODIFIED = datetime(2026, 9, 21, 14, tzinfo=UTC)
LATEST = latest_time(int(MODIFIED.timestamp()) * 1000)
NAME = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
ID = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters='="]'),
    min_size=1,
    max_size=32,
)
TEXT = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=60)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.timedeltas(timedelta(days=1), timedelta(days=84_000)).map(lambda age: EPOCH + age)
OFFSETS = st.integers(-14 * 60, 14 * 60)
TAG = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":[]"), min_size=1
)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


@given(
    number=st.integers(0, 191),
    moment=TIMES,
    offset=OFFSETS,
    names=st.tuples(NAME, NAME, NAME, NAME),
    elements=st.dictionaries(ID, st.lists(st.tuples(ID, TEXT), max_size=4), max_size=3),
    text=TEXT,
    has_mark=st.booleans(),
)
def test_rfc_5424(
    number: int,
    moment: datetime,
    offset: int,
    names: tuple[str, str, str, str],
    elements: dict[str, list[tuple[str, str]]],
    text: str,
    has_mark: bool,
) -> None:
    local = moment + timedelta(minutes=offset)
    sign = "-" if offset < 0 else "+"
    zone = f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}" if offset else "Z"
    time = f"{local:%Y-%m-%dT%H:%M:%S}.{local.microsecond:06}{zone}"
    data = "".join(
        "[" + name + "".join(f' {key}="{escaped(value)}"' for key, value in pairs) + "]"
        for name, pairs in elements.items()
    )
    mark = "\ufeff" if has_mark else ""
    line = f"<{number}>1 {time} {' '.join(names)} {data or '-'} {mark}{text}"
    wanted: dict[str, str | list[str]] = {}
    for name, pairs in elements.items():
        for key in dict(pairs):
            values = [value for other, value in pairs if other == key]
            wanted[f"syslog.{name}.{key}"] = values[0] if len(values) == 1 else values
    host, application, process, message_id = (None if each == "-" else each for each in names)
    found = parse_syslog(line, LATEST)
    # `a.b` of one element and `b` of another are one key: the values are the same, not the form.
    if len({(name, key) for name, pairs in elements.items() for key, _ in pairs}) == len(wanted):
        assert found.data == wanted
    assert found == SyslogMessage(
        time_us=(moment - EPOCH) // timedelta(microseconds=1),
        severity=number % 8,
        facility=number // 8,
        host=host,
        application=application,
        process=process,
        message_id=message_id,
        text=(text if has_mark else text.removeprefix("\ufeff")) or None,
        data=found.data,
    )


@given(
    number=st.none() | st.integers(0, 191),
    age=st.timedeltas(timedelta(0), timedelta(days=365)),
    tag=st.none() | TAG,
    process=st.none() | st.integers(1, 99999),
    text=st.text(st.characters(min_codepoint=97, max_codepoint=122), max_size=20),
)
def test_rfc_3164(
    number: int | None, age: timedelta, tag: str | None, process: int | None, text: str
) -> None:
    """The year is the last one in which the file can have the line."""
    moment = (LATEST - age).replace(microsecond=0)
    if (moment.month, moment.day) == (2, 29):
        return
    priority = "" if number is None else f"<{number}>"
    time = f"{MONTHS[moment.month - 1]} {moment.day:>2} {moment:%H:%M:%S}"
    before = "" if tag is None else f"{tag}{'' if process is None else f'[{process}]'}: "
    found = parse_syslog(f"{priority}{time} host {before}{text}", LATEST)
    assert found == SyslogMessage(
        time_us=int(moment.timestamp()) * 1_000_000,
        severity=None if number is None else number % 8,
        facility=None if number is None else number // 8,
        host="host",
        application=tag,
        process=None if tag is None or process is None else str(process),
        text=text or None,
    )


def test_other_spellings() -> None:
    leap = latest_time(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1000)
    day = int(datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC).timestamp()) * 1_000_000
    assert parse_syslog("Feb 29 01:02:03 h last message repeated 2 times", leap) == SyslogMessage(
        time_us=day, host="h", text="last message repeated 2 times"
    )
    written = parse_syslog("2026-09-21T16:00:00.5+02:00 h kernel: [ 1.2] up", LATEST)
    assert written.time_us == int(MODIFIED.timestamp()) * 1_000_000 + 500_000
    assert (written.application, written.text) == ("kernel", "[ 1.2] up")
    assert parse_syslog("<0>1 - - - - - -", LATEST) == SyslogMessage(severity=0, facility=0)


@pytest.mark.parametrize(
    "line",
    [
        "an error: happened",
        "<192>1 - - - - - -",
        "<013>1 - - - - - -",
        "<13>2 - - - - - -",
        "<13>1 2026-13-01T00:00:00Z h a p m - text",
        "<13>1 2026-09-21T00:00:00 h a p m - text",
        "<13>1 2026-09-21 h a p m - text",
        "<13>1 - h a p m text",
        '<13>1 - h a p m [x y="1" text',
        '<13>1 - h a p m [x y="]"] text',
        '<13>1 - h a p m [x y="1"]text',
        "<13>Sep 31 00:00:00 h a: text",
        "<13>Xyz 21 00:00:00 h a: text",
        "<13>Sep 21 00:00:00 app: text",
        "<13>Sep 21 24:00:00 h a: text",
        "Sep 21 14:00:00 ",
        '{"message": "json"}',
    ],
)
def test_anything_else_is_an_error(line: str) -> None:
    with pytest.raises(NotSyslog):
        parse_syslog(line, LATEST)
