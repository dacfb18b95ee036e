"""Severity: names of severity numbers."""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.model import NUMBERS_PER_SEVERITY, SEVERITIES

SEVERITY_UNKNOWN = "UNSPECIFIED"


def least_number(severity: str) -> int:
    """Return the lowest number of a severity."""
    if severity.upper() not in SEVERITIES:
        raise Malformed(f"{severity} is not a severity; use one of {', '.join(SEVERITIES)}")
    return NUMBERS_PER_SEVERITY * SEVERITIES.index(severity.upper()) + 1


def severity_of(number: int) -> str:
    """Return the name of a severity number."""
    index = (number - 1) // NUMBERS_PER_SEVERITY
    return SEVERITIES[index] if 0 <= index < len(SEVERITIES) else SEVERITY_UNKNOWN


def _case_sql() -> str:
    cases = " ".join(
        f"WHEN severity_number BETWEEN {least_number(name)} "
        f"AND {least_number(name) + NUMBERS_PER_SEVERITY - 1} THEN '{name}'"
        for name in SEVERITIES
    )
    return f"CASE {cases} ELSE '{SEVERITY_UNKNOWN}' END"


COMPUTED = {"severity": _case_sql()}
"""Fields of logs that are not columns -> SQL."""
