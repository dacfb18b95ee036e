"""Records from lines: text with an optional key, or JSON as `frazil consume` prints it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from frazil.errors import Malformed, TooLarge
from frazil.model import MiB

LINE_BYTES_MAX = 64 * MiB
STDIN = "-"
FIELDS = ("key", "key_hex", "value", "value_hex", "headers", "partition", "time")
IGNORED = ("topic", "offset")
"""What a line of `frazil consume` has in addition."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRecord:
    """A record to send."""

    key: bytes | None = None
    value: bytes | None = None
    """None deletes the key from a compacted topic."""
    headers: list[Header] = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


LineParser = Callable[[bytes], InputRecord | None]
"""Returns the record of a line, None if the line has none. Raises `Malformed`."""


def read_input(path: str) -> IO[bytes]:
    """Open a file, or standard input."""
    import sys

    if path == STDIN:
        return sys.stdin.buffer
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise Malformed(f"{path} cannot be read: {error.strerror}") from None


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends."""
    while line := file.readline(LINE_BYTES_MAX + 1):
        if len(line) > LINE_BYTES_MAX:
            raise TooLarge(f"a line is longer than {LINE_BYTES_MAX // MiB} MiB; split it")
        yield line.removesuffix(b"\n")


def text_parser(key_separator: str | None) -> LineParser:
    """Return a parser of lines that are values, or key and value around a separator."""
    if key_separator is None:
        return lambda line: InputRecord(value=line)
    separator = key_separator.encode()

    def parse(line: bytes) -> InputRecord:
        key, found, value = line.partition(separator)
        if not found:
            raise Malformed(f"no key: the line does not contain {key_separator!r}")
        return InputRecord(key=key, value=value)

    return parse


def json_record(line: bytes) -> InputRecord | None:
    """Parse a JSON object. A key or value that is no text is sent as JSON; a blank line is none."""
    if not line.strip():
        return None
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise Malformed(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise Malformed('not a JSON object; write {"key": …, "value": …}')
    unknown = sorted(set(fields) - {*FIELDS, *IGNORED})
    if unknown:
        raise Malformed(f"unknown field {unknown[0]!r}; known are {', '.join(FIELDS)}")
    if "value" not in fields and "value_hex" not in fields:
        raise Malformed("no value; a value of null deletes the key from a compacted topic")
    partition = fields.get("partition")
    if partition is not None and (type(partition) is not int or partition < 0):
        raise Malformed(f"partition {partition!r} is not a number of a partition")
    return InputRecord(
        key=_bytes(fields, "key"),
        value=_bytes(fields, "value"),
        headers=_headers(fields.get("headers")),
        partition=partition,
        timestamp_ms=_timestamp_ms(fields.get("time")),
    )


def _bytes(fields: dict[str, Any], name: str) -> bytes | None:
    """Return the bytes of `key` or `key_hex`."""
    digits = fields.get(f"{name}_hex")
    if digits is not None:
        if fields.get(name) is not None:
            raise Malformed(f"both {name} and {name}_hex; write one of them")
        try:
            return bytes.fromhex(digits)
        except (TypeError, ValueError):
            raise Malformed(f"{name}_hex is not a text of hexadecimal digits") from None
    value = fields.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def _headers(value: Any) -> list[Header]:
    """Parse an object of texts, or a list of objects with name and value, which may repeat."""
    if value is None:
        return []
    if isinstance(value, dict):
        value = [{"name": name, "value": each} for name, each in value.items()]
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Malformed('headers must be an object, or a list of {"name": …, "value": …}')
    headers: list[Header] = []
    for each in value:
        name = each.get("name")
        if not isinstance(name, str):
            raise Malformed(f"header {each!r} has no name")
        headers.append((name, _bytes(each, "value")))
    return headers


def _timestamp_ms(value: Any) -> int | None:
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise Malformed(f"time {value!r} is not a time; write 2026-11-16T10:00:00Z") from None
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)
