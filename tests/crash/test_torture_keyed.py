"""Keyed tables are the fold of their log after every crash, and the run would notice if not."""

from __future__ import annotations

from tests.torture.__main__ import run_keyed, run_keyed_mutants


def test_keyed_tables() -> None:
    report = run_keyed(100, 1)
    assert report.is_valid, report.as_json()


def test_mutants_are_noticed() -> None:
    report = run_keyed_mutants(200, 1)
    assert report.is_valid, report.as_json()
