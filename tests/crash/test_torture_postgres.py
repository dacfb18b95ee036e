"""A short run of `make torture KIND=postgres`."""

from __future__ import annotations

import pytest

from tests.torture.postgres.run import run


def test_a_few_kills() -> None:
    """Nothing is lost, twice or out of order after kills of connector, node and Postgres."""
    report = run(cycles=4, seed=7)
    if report.skipped:
        pytest.skip(report.skipped)
    assert report.is_valid, report.as_json()
