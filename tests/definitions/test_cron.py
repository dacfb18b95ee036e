"""Cron: the next due minute is the first one that matches, and what is wrong is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.definitions import parse_cron
from frazil.errors import Malformed

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
LOOKED_AT = timedelta(days=3)
"""How far the model looks for an earlier minute."""


@st.composite
def parts(draw: st.DrawFn, low: int, high: int) -> str:
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, high))
    return draw(
        st.sampled_from(["*", f"*/{step}", str(first), f"{first}-{last}", f"{first}-{last}/{step}"])
    )


FIELDS = [st.lists(parts(*bounds), min_size=1, max_size=3) for bounds in BOUNDS]


def matches(field: list[str], value: int, low: int) -> bool:
    """Whether a value is one of a field's, by trying each part."""
    for part in field:
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin, end = (low, 99) if span == "*" else (int(first), int(last or first))
        if begin <= value <= end and (value - begin) % int(step or 1) == 0:
            return True
    return False


def is_due(fields: list[list[str]], time: datetime) -> bool:
    minute, hour, day, month, weekday = fields
    number = time.isoweekday()
    on_day = matches(day, time.day, 1)
    on_weekday = matches(weekday, number, 0) or (number == 7 and matches(weekday, 0, 0))
    is_either = not day[0].startswith("*") and not weekday[0].startswith("*")
    return (
        matches(minute, time.minute, 0)
        and matches(hour, time.hour, 0)
        and matches(month, time.month, 1)
        and (on_day or on_weekday if is_either else on_day and on_weekday)
    )


@given(
    fields=st.tuples(*FIELDS).map(list),
    minute=st.integers(0, 6 * 366 * 1440),
    second=st.integers(0, 59),
)
def test_the_next_time_is_the_first_that_matches(
    fields: list[list[str]], minute: int, second: int
) -> None:
    """Every minute in between is tried by a model that knows nothing of sets."""
    text = " ".join(",".join(field) for field in fields)
    begin = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(minutes=minute, seconds=second)
    try:
        found = parse_cron(text).next_after(begin)
    except Malformed as error:
        assert "never due" in str(error)
        return
    assert found is not None and found > begin and is_due(fields, found)
    time = begin.replace(second=0) + timedelta(minutes=1)
    while time < min(found, begin + LOOKED_AT):
        assert not is_due(fields, time), f"{text} after {begin}: {time} is before {found}"
        time += timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "begin", "wanted"),
    [
        ("0 3 * * *", "2026-11-18 03:00", "2026-11-19 03:00"),
        ("*/15 * * * *", "2026-11-18 03:00:01", "2026-11-18 03:15"),
        ("0 0 1 * mon", "2026-11-18", "2026-11-23"),  # a day matches one of both
        ("0 0 */1 * MON", "2026-11-18", "2026-11-23"),
        ("0 0 1,15 * *", "2026-11-18", "2026-12-01"),
        ("30 6 29 feb *", "2026-11-18", "2028-02-29 06:30"),
        ("0 12 * * 7", "2026-11-18", "2026-11-22 12:00"),
        ("59 23 31 dec *", "2026-12-31 23:59", "2027-12-31 23:59"),
    ],
)
def test_examples(text: str, begin: str, wanted: str) -> None:
    found = parse_cron(text).next_after(datetime.fromisoformat(begin).replace(tzinfo=UTC))
    assert found == datetime.fromisoformat(wanted).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * * *", "has 4 fields; cron has five"),
        ("@daily", "has 1 fields"),
        ("60 * * * *", "minute '60' is not a number from 0 to 59"),
        ("* 24 * * *", "hour '24'"),
        ("* * 0 * *", "day of month '0' is not a number from 1 to 31"),
        ("* * * 13 *", "month '13' is not a number from 1 to 12, or jan, feb"),
        ("* * * * 8", "day of week '8'"),
        ("* * * * fri-mon", "begins after its end"),
        ("5/15 * * * *", "a step follows"),
        ("*/0 * * * *", "the step must be a number from 1"),
        ("*/x * * * *", "the step must be"),
        ("1,,2 * * * *", "minute '' is not"),
        ("-1 * * * *", "minute '' is not"),
        ("\u0661 * * * *", "is not a number from 0 to 59"),
        ("0 0 31 2,4 *", "never due"),
    ],
)
def test_what_is_wrong_is_named(text: str, why: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_cron(text)
    assert why in str(refused.value)
