"""Severities: words for the numbers that log records have."""

from __future__ import annotations

from frazil.errors import Malformed

SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Each stands for four numbers, from 1 on."""
SEVERITY_UNKNOWN = "UNSPECIFIED"
NUMBERS_PER_SEVERITY = 4


def least_number(severity: str) -> int:
    """The first of the numbers that a word stands for."""
    if severity.upper() not in SEVERITIES:
        raise Malformed(f"{severity} is no severity; use one of {', '.join(SEVERITIES)}")
    return NUMBERS_PER_SEVERITY * SEVERITIES.index(severity.upper()) + 1


def severity_of(number: int) -> str:
    """The word for a severity's number."""
    place = (number - 1) // NUMBERS_PER_SEVERITY
    return SEVERITIES[place] if 0 <= place < len(SEVERITIES) else SEVERITY_UNKNOWN


def _word() -> str:
    cases = " ".join(
        f"WHEN severity_number BETWEEN {least_number(word)} "
        f"AND {least_number(word) + NUMBERS_PER_SEVERITY - 1} THEN '{word}'"
        for word in SEVERITIES
    )
    return f"CASE {cases} ELSE '{SEVERITY_UNKNOWN}' END"


MORE = {"severity": _word()}
"""What has a name in questions about logs and is no column: the word for `severity_number`."""
