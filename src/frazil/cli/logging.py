"""What the program says on standard error while it works.

JSON, an object a line, for programs; lines with colours for people at a terminal.
"""

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
"""What every record has; the rest of it are facts."""

RESET, DIM = "\x1b[0m", "\x1b[2m"
COLOURS = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[1;31m"}


def log_to_stderr() -> None:
    """For a verb that goes on and on."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter_for(sys.stderr, has_colours="NO_COLOR" not in os.environ))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)


def formatter_for(stream: TextIO, *, has_colours: bool) -> logging.Formatter:
    """Lines for people at a terminal, JSON for everybody else."""
    return TextFormatter(has_colours=has_colours) if stream.isatty() else JsonFormatter()


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """What is known besides the message, with the span that it was said in."""
    facts = {name: value for name, value in record.__dict__.items() if name not in KNOWN}
    inside = tracing.ids()
    if inside is not None:
        facts["trace_id"], facts["span_id"] = inside
    return facts


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger` and `event`, then the facts. The event is always the same text for
    the same thing, so that it can be searched for."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in facts_of(record).items():
            line[f"fact_{name}" if name in line else name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """The time of day here, the level if it is worth a look, the event, facts as key=value."""

    def __init__(self, *, has_colours: bool) -> None:
        super().__init__()
        self._has_colours = has_colours

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        colour = COLOURS.get(record.levelname, "")
        event = record.getMessage()
        if colour:
            event = f"{record.levelname.lower()}: {event}"
        facts = " ".join(f"{name}={_shown(v)}" for name, v in facts_of(record).items())
        parts = [self._dim(time), self._painted(event, colour)]
        line = "  ".join([*parts, self._dim(facts)] if facts else parts)
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line

    def _painted(self, text: str, colour: str) -> str:
        return f"{colour}{text}{RESET}" if colour and self._has_colours else text

    def _dim(self, text: str) -> str:
        return self._painted(text, DIM)


def _shown(value: object) -> str:
    """As it is, with quotes where it would not be one word; one line in any case."""
    text = str(value)
    is_one = text and text.isprintable() and not set(text) & set(' "=')
    return text if is_one else json.dumps(text, ensure_ascii=False)
