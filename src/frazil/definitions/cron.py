"""Cron: five fields that say at which minutes something is due, in UTC.

    minute  hour  day of month  month  day of week
    0-59    0-23  1-31          1-12   0-7, where 0 and 7 are Sunday

A field is `*`, a value, a range `1-5`, either with a step `*/15`, or a list of these. Months and
days of the week have names (`jan`, `mon`). If neither day of month nor day of week begins with `*`,
a day counts that matches one of them, as in every cron.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from frazil.errors import Malformed

FIELDS = ("minute", "hour", "day of month", "month", "day of week")
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
NAMES: tuple[Mapping[str, int], ...] = (
    {},
    {},
    {},
    {name: number for number, name in enumerate(_MONTHS, 1)},
    {name: number for number, name in enumerate(_WEEKDAYS)},
)
GAP_DAYS_MAX = 41 * 366
"""Between two due days: 29 February on a given weekday is at most 40 years away."""
ANY_TIME = datetime(2024, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSchedule:
    """The minutes at which something is due."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    is_either_day: bool
    """Whether a day counts that matches `days` or `weekdays`, and need not match both."""

    def next_after_ms(self, time_ms: int) -> int:
        """Return the first due time after a time, both in milliseconds since 1970."""
        found = self.next_after(EPOCH + timedelta(milliseconds=time_ms))
        assert found is not None, "parse_cron refuses what is never due"
        return (found - EPOCH) // _MS

    def next_after(self, time: datetime) -> datetime | None:
        """Return the first due time after a time; None if there is none."""
        begin = time.replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = begin.replace(hour=0, minute=0)
        for _ in range(GAP_DAYS_MAX):
            if self._is_due_on(day):
                earliest = (begin.hour, begin.minute) if day.date() == begin.date() else (0, 0)
                for hour in self.hours:
                    for minute in self.minutes:
                        if (hour, minute) >= earliest:
                            return day.replace(hour=hour, minute=minute)
            day += timedelta(days=1)
        return None

    def _is_due_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        matches = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return any(matches) if self.is_either_day else all(matches)


@lru_cache(maxsize=256)
def parse_cron(text: str) -> CronSchedule:
    """Parse five fields. `Malformed` says which field is wrong, and what can be written there."""
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise Malformed(
            f"{text!r} has {len(fields)} fields; cron has five: {', '.join(FIELDS)}, such as "
            "'0 3 * * *' for 03:00 UTC of every day"
        )
    minutes, hours, days, months, weekdays = (
        _values(field, index) for index, field in enumerate(fields)
    )
    schedule = CronSchedule(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(value % 7 for value in weekdays),
        is_either_day=not fields[2].startswith("*") and not fields[4].startswith("*"),
    )
    if schedule.next_after(ANY_TIME) is None:
        raise Malformed(f"{text!r} is never due: no such day exists")
    return schedule


def _values(field: str, index: int) -> set[int]:
    values: set[int] = set()
    for part in field.lower().split(","):
        values.update(_part(part, index))
    return values


def _part(part: str, index: int) -> range:
    low, high = BOUNDS[index]
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span != "*":
        low = _value(first, index)
        high = _value(last, index) if dash else low
        if low > high:
            raise Malformed(f"{FIELDS[index]} {span!r} begins after its end; write two ranges")
        if slash and not dash:
            raise Malformed(f"{FIELDS[index]} {part!r}: a step follows * or a range, such as */15")
    if not slash:
        return range(low, high + 1)
    if not (step.isascii() and step.isdecimal()) or not 1 <= int(step[:9]) <= BOUNDS[index][1]:
        raise Malformed(
            f"{FIELDS[index]} {part!r}: the step must be a number from 1 to {BOUNDS[index][1]}"
        )
    return range(low, high + 1, int(step))


def _value(text: str, index: int) -> int:
    low, high = BOUNDS[index]
    if text in NAMES[index]:
        return NAMES[index][text]
    if not (text.isascii() and text.isdecimal()) or not low <= int(text[:9]) <= high:
        names = f", or {', '.join(NAMES[index])}" if NAMES[index] else ""
        raise Malformed(
            f"{FIELDS[index]} {text!r} is not a number from {low} to {high}{names}; there are also "
            "*, ranges 1-5, steps */15 and lists 1,2"
        )
    return int(text)
