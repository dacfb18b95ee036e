"""A short torture of COPY INTO a keyed table."""

from __future__ import annotations

from tests.torture.load.keyed import run


def test_rows_are_written_once_whenever_it_is_killed() -> None:
    report = run(cycles=3, seed=5)
    assert report.is_valid, report.as_json()
