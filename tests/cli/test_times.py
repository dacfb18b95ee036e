"""Times on the command line."""

from __future__ import annotations

import pytest

from frazil.cli.times import moment
from frazil.errors import Malformed
from tests.sim.clock import SimClock

NOW = SimClock(wall_ms=1_790_000_000_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", "2026-09-21T14:11:50+00:00"),
        ("1.5h", "2026-09-21T12:43:20+00:00"),
        ("2w", "2026-09-07T14:13:20+00:00"),
        ("2026-09-21", "2026-09-21T00:00:00+00:00"),
        ("2026-09-21T10:00", "2026-09-21T10:00:00+00:00"),
        ("2026-09-21T10:00:00+02:00", "2026-09-21T10:00:00+02:00"),
    ],
)
def test_a_time_is_an_age_or_a_date(text: str, expected: str) -> None:
    """A date without a zone is UTC."""
    assert moment(text, NOW).isoformat() == expected


@pytest.mark.parametrize("text", ["", "yesterday", "15", "-5m", "9" * 30 + "w"])
def test_an_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(Malformed):
        moment(text, NOW)
