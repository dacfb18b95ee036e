"""Ask: how a question becomes SQL. Values are written as literals here, and nowhere else."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import Malformed

Ask = Callable[[str], pa.Table]
"""Runs one query and gives its rows."""

MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A stretch of time: from `since` on, and before `until`. None is without end."""

    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    def conditions(self, column: str = "time") -> list[str]:
        found = []
        if self.since is not None:
            found.append(f"{column} >= {moment(self.since)}")
        if self.until is not None:
            found.append(f"{column} < {moment(self.until)}")
        return found


ALWAYS = Range()


def moment(when: datetime.datetime) -> str:
    """A time as SQL has it."""
    if when.tzinfo is None:
        raise Malformed(f"{when.isoformat()} has no time zone; say which, as in datetime.UTC")
    return f"to_timestamp_micros({(when - EPOCH) // MICROSECOND})"


def text(value: str) -> str:
    """A text as SQL has it; a quote in it is doubled, which ends nothing."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Sequence[str]) -> str:
    return ", ".join(map(text, values))


def column(name: str, columns: Sequence[str], attributes: str = "attributes") -> str:
    """A column by its name; any other name is the key of an attribute."""
    if name in columns:
        return f'"{name}"'
    return f"{attributes}[{text(name)}]"


def equals(filters: Mapping[str, str], columns: Sequence[str]) -> list[str]:
    """One condition per filter: a column, or an attribute, has exactly this text."""
    return [f"{column(name, columns)} = {text(value)}" for name, value in filters.items()]


def where(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def whole(number: int, name: str, largest: int) -> int:
    """A number that goes into SQL as it is, within bounds."""
    if not 1 <= number <= largest:
        raise Malformed(f"{name} is {number}; it must be 1 to {largest}")
    return number
