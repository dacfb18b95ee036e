"""What the program says on standard error while it works."""

from __future__ import annotations

import logging

CHATTY = ("pyiceberg", "py4j")


class _Facts(logging.Formatter):
    """A line: time, level, message, and the facts behind it."""

    KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        facts = {k: v for k, v in record.__dict__.items() if k not in self.KNOWN}
        line = super().format(record)
        return line + "".join(f" {name}={value!r}" for name, value in facts.items())


def log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Facts("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
