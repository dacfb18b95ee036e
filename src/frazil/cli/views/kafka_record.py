"""One record of `frazil consume`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from frazil.cli.kafka.receiving import ReceivedRecord
from frazil.cli.terminal.colors import BOLD, DIM, Colors
from frazil.cli.terminal.text_width import safe
from frazil.cli.terminal.units import brief_time
from frazil.model import NS_PER_MS

NULL = "null"
DUMP_BYTES_MAX = 512
"""Bytes of a binary value that a terminal gets."""
DUMP_LINE_BYTES = 16

RecordFormatter = Callable[[ReceivedRecord], bytes]


def json_line(record: ReceivedRecord) -> bytes:
    """Return a JSON object on one line. What is not UTF-8 is in `key_hex` and `value_hex`."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "time": None if record.timestamp_ms is None else _iso_time(record.timestamp_ms),
        **_field("key", record.key),
        **_field("value", record.value),
        "headers": [{"name": name, **_field("value", each)} for name, each in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _iso_time(timestamp_ms: int) -> str:
    return brief_time(timestamp_ms * NS_PER_MS).replace(" ", "T") + "Z"


def _field(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    text = _text(value)
    return {f"{name}_hex": value.hex()} if text is None else {name: text}


def _text(value: bytes) -> str | None:
    """Return UTF-8 as text; None if it is something else."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def raw_lines(key_separator: str | None) -> RecordFormatter:
    """Return a formatter of values as they are, each with a line end; keys before a separator."""
    return _joined(key_separator, lambda value: value)


def hex_lines(key_separator: str | None) -> RecordFormatter:
    """Return a formatter of values in hexadecimal digits."""
    return _joined(key_separator, lambda value: value.hex().encode())


def _joined(key_separator: str | None, encode: Callable[[bytes], bytes]) -> RecordFormatter:
    separator = None if key_separator is None else key_separator.encode()

    def part(value: bytes | None) -> bytes:
        return NULL.encode() if value is None else encode(value)

    def line(record: ReceivedRecord) -> bytes:
        key = b"" if separator is None else part(record.key) + separator
        return key + part(record.value) + b"\n"

    return line


def pretty_lines(paint: Colors) -> RecordFormatter:
    """Return a formatter for people: where and when, key and headers, then the value below."""

    def lines(record: ReceivedRecord) -> bytes:
        front = f"{record.topic}/{record.partition} {record.offset}"
        if record.timestamp_ms is not None:
            front += f"  {brief_time(record.timestamp_ms * NS_PER_MS)}"
        head = paint(safe(front), DIM)
        if record.key is not None:
            head += f"  {paint('key', DIM)} {paint(_short(record.key), BOLD)}"
        for name, value in record.headers:
            shown = NULL if value is None else _short(value)
            head += f"  {paint(safe(name) + '=' + shown, DIM)}"
        text = "\n".join([head, *_value_lines(record.value, paint)])
        return text.encode(errors="replace") + b"\n"

    return lines


def _short(value: bytes) -> str:
    text = _text(value)
    return f"0x{value.hex()}" if text is None else safe(text)


def _value_lines(value: bytes | None, paint: Colors) -> Iterator[str]:
    if value is None:
        yield paint(NULL, DIM)
        return
    text = _text(value)
    if text is None or "\0" in text:
        yield from _dump(value, paint)
        return
    yield from map(safe, (_pretty(text) or text).splitlines() or [""])


def _pretty(text: str) -> str | None:
    """Return JSON with indentation; None if it is no object or list."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _dump(value: bytes, paint: Colors) -> Iterator[str]:
    """Yield bytes in hexadecimal digits, and as text beside them."""
    for begin in range(0, min(len(value), DUMP_BYTES_MAX), DUMP_LINE_BYTES):
        piece = value[begin : begin + DUMP_LINE_BYTES]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
        digits = f"{piece.hex(' '):<{3 * DUMP_LINE_BYTES}}"
        yield f"{paint(f'{begin:08x}', DIM)}  {digits} {paint(shown, DIM)}"
    if len(value) > DUMP_BYTES_MAX:
        rest = len(value) - DUMP_BYTES_MAX
        yield paint(f"… {rest:,} more bytes; --format hex prints all", DIM)
