"""Log lines on standard error: colored text on a terminal, one JSON object per line elsewhere."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from frazil import tracing

CHATTY = ("pyiceberg", "py4j")
KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
"""Attributes of every log record; all others are fields of ours."""

RESET, DIM = "\x1b[0m", "\x1b[2m"
COLORS = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[1;31m"}


def log_to_stderr() -> None:
    """Log to standard error. For verbs that keep running."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter_for(sys.stderr, has_colors="NO_COLOR" not in os.environ))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)


def formatter_for(stream: TextIO, *, has_colors: bool) -> logging.Formatter:
    """Return the text formatter for a terminal, else the JSON formatter."""
    return TextFormatter(has_colors=has_colors) if stream.isatty() else JsonFormatter()


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record, with the ids of the current span."""
    fields = {name: value for name, value in record.__dict__.items() if name not in KNOWN}
    span = tracing.ids()
    if span is not None:
        fields["trace_id"], fields["span_id"] = span
    return fields


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger` and `event`, then the fields. Event texts are constant, so that
    they can be searched for."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in fields_of(record).items():
            line[f"fact_{name}" if name in line else name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Local time of day, the level from warning up, the event, then fields as key=value."""

    def __init__(self, *, has_colors: bool) -> None:
        super().__init__()
        self._has_colors = has_colors

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        color = COLORS.get(record.levelname, "")
        event = record.getMessage()
        if color:
            event = f"{record.levelname.lower()}: {event}"
        fields = " ".join(f"{name}={_quoted(v)}" for name, v in fields_of(record).items())
        parts = [self._dim(time), self._colored(event, color)]
        line = "  ".join([*parts, self._dim(fields)] if fields else parts)
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{RESET}" if color and self._has_colors else text

    def _dim(self, text: str) -> str:
        return self._colored(text, DIM)


def _quoted(value: object) -> str:
    """Return a value on one line, in quotes unless it is a single word."""
    text = str(value)
    is_word = text and text.isprintable() and not set(text) & set(' "=')
    return text if is_word else json.dumps(text, ensure_ascii=False)
