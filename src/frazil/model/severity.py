"""The severity number of a log record that was sent with a severity text only."""

from __future__ import annotations

SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Each covers four numbers, starting at 1."""
NUMBERS_PER_SEVERITY = 4

_SHORT_NAMES = {
    f"{name}{'' if step == 0 else step + 1}".lower(): NUMBERS_PER_SEVERITY * index + step + 1
    for index, name in enumerate(SEVERITIES)
    for step in range(NUMBERS_PER_SEVERITY)
}
NUMBERS = _SHORT_NAMES | {
    "verbose": 5,
    "information": 9,
    "informational": 9,
    "notice": 10,
    "warning": 13,
    "err": 17,
    "severe": 17,
    "crit": 18,
    "alert": 19,
    "critical": 21,
    "emerg": 21,
    "emergency": 21,
}
"""Texts in lower case -> number: the short names of OpenTelemetry, and the names of syslog, Windows
events and common libraries as its data model maps them."""


def severity_number_of(text: str) -> int:
    """Return the number of a text, in any case; 0 if it names no severity."""
    return NUMBERS.get(text.strip().lower(), 0)
