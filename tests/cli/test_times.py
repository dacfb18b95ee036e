"""Times on the command line."""

from __future__ import annotations

import pytest

from frazil.cli.times import moment
from frazil.errors import Malformed
from tests.sim.clock import SimClock

NOW = SimClock(wall_ms=1_790_000_000_000)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("90s", "2026-09-21T14:11:50+00:00"),
        ("1.5h", "2026-09-21T12:43:20+00:00"),
        ("2w", "2026-09-07T14:13:20+00:00"),
        ("2026-09-21", "2026-09-21T00:00:00+00:00"),
        ("2026-09-21T10:00", "2026-09-21T10:00:00+00:00"),
        ("2026-09-21T10:00:00+02:00", "2026-09-21T10:00:00+02:00"),
    ],
)
def test_what_they_mean(text: str, wanted: str) -> None:
    """A while ago, or a date, which is UTC if it does not say."""
    assert moment(text, NOW).isoformat() == wanted


@pytest.mark.parametrize("text", ["", "yesterday", "15", "-5m", "9" * 30 + "w"])
def test_what_means_nothing(text: str) -> None:
    """Is refused with what to write instead, or why."""
    with pytest.raises(Malformed):
        moment(text, NOW)
