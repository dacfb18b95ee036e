"""A short run on a full disk; `make torture KIND=full_disk` fills larger ones for longer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.torture.node.full_disk import ROWS, DiskTorture, run
from tests.torture.report import Report


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program takes a small disk and gives it back: every acknowledged row is there."""
    monkeypatch.setenv("FULL_DISK_SIZES", "100")
    monkeypatch.setenv("FULL_DISK_MINUTES", "0.5")
    report = run(1, 3)
    if report.skipped:
        pytest.skip(report.skipped)
    assert report.is_valid, report.as_json()


@pytest.mark.parametrize(
    ("found", "anomalies"),
    [
        ({"a": (ROWS, ROWS)}, {}),
        ({"a": (ROWS, ROWS), "m": (ROWS, ROWS)}, {}),
        ({}, {"lost": 1}),
        ({"a": (ROWS + 1, ROWS)}, {"duplicate": 1}),
        ({"a": (ROWS, ROWS - 1)}, {"duplicate": 1}),
        ({"a": (ROWS - 1, ROWS - 1)}, {"hole": 1}),
        ({"a": (ROWS, ROWS), "r": (ROWS, ROWS)}, {"refused": 1}),
    ],
)
def test_its_checks_find_anomalies(
    found: dict[str, tuple[int, int]], anomalies: dict[str, int]
) -> None:
    """The request `a` was acknowledged, `m` had no answer, and `r` was refused."""
    load: Any = SimpleNamespace(acknowledged={"a"}, maybe={"m"})
    node: Any = None
    torture = DiskTorture(Path(), node, load, Report("full_disk", 1))
    torture._judge("SQL", found)
    assert torture.verdict.counts == Counter(anomalies)
