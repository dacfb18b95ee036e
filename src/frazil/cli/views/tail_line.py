"""One record of `frazil tail`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.cli.terminal.cells import text_of
from frazil.cli.terminal.colors import DIM, GREEN, RED, Colors
from frazil.cli.terminal.severity import WORD_COLUMNS, paint_severity, severity_word
from frazil.cli.terminal.text_width import padded, safe, shortened, width
from frazil.cli.terminal.units import brief_time, duration_text

TIME_BEGIN = len("2026-11-16 ")
"""The date is printed on a line of its own."""
TRACE_CHARS = 16
SERVICE_COLUMNS = 14

Part = tuple[str, tuple[str, ...]]
"""Escaped text and its colors."""


def log_line(row: Mapping[str, Any], columns: int | None, paint: Colors) -> str:
    """Time, severity, service, body, then attributes."""
    number = row.get("severity_number") or 0
    word = severity_word(number, row.get("severity_text"))
    body = safe(row.get("body") or row.get("event_name") or "")
    front = paint_severity(padded(word, WORD_COLUMNS), number, paint)
    rest: list[Part] = [(body, ()), (_attributes(row), (DIM,))]
    return _line(row, front, WORD_COLUMNS, rest, columns, paint)


def span_line(row: Mapping[str, Any], columns: int | None, paint: Colors) -> str:
    """Time, whether it failed, service, name, duration, then attributes."""
    is_error = row.get("status_code") == "ERROR"
    front = paint("✗", RED) if is_error else paint("✓", GREEN)
    duration = duration_text(row.get("duration_nano") or 0)
    name = safe(row.get("name") or "")
    message = safe(row.get("status_message") or "") if is_error else ""
    rest: list[Part] = [(f"{name} {duration}", ()), (message, (RED,)), (_attributes(row), (DIM,))]
    return _line(row, front, 1, rest, columns, paint)


def _line(
    row: Mapping[str, Any],
    front: str,
    front_columns: int,
    parts: Sequence[Part],
    columns: int | None,
    paint: Colors,
) -> str:
    time = brief_time(row.get("time_unix_nano") or row.get("observed_time_unix_nano") or 0)
    time = time[TIME_BEGIN:]
    service = row.get("service_name") or "-"
    padded_service = safe(service)
    padded_service = padded(padded_service, max(SERVICE_COLUMNS, width(padded_service)))
    line = f"{paint(time, DIM)} {front} {paint.service(padded_service, service)}"
    room = None
    if columns is not None:
        room = columns - width(time) - front_columns - width(padded_service) - 2
    for text, codes in parts:
        if not text:
            continue
        if room is not None:
            if room < 2:
                break
            text = shortened(text, room - 1)
            room -= width(text) + 1
        line += f" {paint(text, *codes)}"
    return line


def _attributes(row: Mapping[str, Any]) -> str:
    texts = [f"trace={row['trace_id'][:TRACE_CHARS]}"] if row.get("trace_id") else []
    pairs = dict(row.get("attributes") or {})
    texts += [f"{name}={text_of(value)}" for name, value in pairs.items()]
    return safe(" ".join(texts))
