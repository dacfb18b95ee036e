"""Only the needed columns are registered, and results stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from frazil.model.arrow import LOGS
from frazil.query import Engine
from frazil.query.plan.plan import TableScans
from frazil.query.plan.projection import narrow_columns
from tests.query.build import engine_over, log, piece_of

ALL = list(LOGS.names)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    rows = [log(at, _row=9 - at, severity_number=at, host_name=f"h{at % 3}") for at in range(9)]
    with engine_over({"logs": [piece_of("logs", rows)]}) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "read", "expected"),
    [
        ("SELECT body FROM logs", ["body"], ["body"]),
        ("SELECT count(*) FROM logs", [], ["_log_partition"]),
        ("SELECT Count ( * ), BODY FROM logs", ["body"], ["body"]),
        ("SELECT severity_number * 2 FROM logs", ["severity_number"], ["severity_number"]),
        ("SELECT x FROM (SELECT body AS x, flags FROM logs)", ["body"], ["flags", "body"]),
        ('SELECT "body" FROM logs -- *', ["body"], ["body"]),
        ("SELECT '*', body FROM logs", ["body"], ["body"]),
        ("SELECT * FROM logs", ["body"], ALL),
        ("SELECT l.* FROM logs l", ["body"], ALL),
        ("SELECT body FROM (SELECT DISTINCT * FROM logs)", ["body"], ALL),
        ("SELECT body FROM (SELECT flags, * FROM logs ORDER BY 3 LIMIT 1)", ["body"], ALL),
        ("SELECT body FROM (FROM logs)", ["body"], ALL),
        ("SELECT body FROM (SELECT body FROM logs UNION ALL FROM logs)", ["body"], ALL),
        ("WITH a AS (SELECT 1) FROM logs", ["body"], ALL),
        ("SELECT extract(hour FROM time) FROM logs", ["time"], ["time"]),
        ("SELECT body FROM (TABLE logs)", ["body"], ALL),
        ("SELECT body FROM logs, information_schema.columns", ["body"], ALL),
        ("SELECT value FROM gauges", ["body"], ALL),
    ],
)
def test_columns_a_text_may_refer_to_are_registered(
    text: str, read: list[str], expected: list[str]
) -> None:
    """Columns that are read or named; all columns for `*`."""
    scans = TableScans(count=1, conditions={}, columns=tuple(read))
    assert narrow_columns(LOGS, scans, text) == expected


def test_a_plan_without_known_columns_gets_all() -> None:
    assert (
        narrow_columns(
            LOGS, TableScans(count=1, conditions={}, columns=None), "SELECT body FROM logs"
        )
        == ALL
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT count(*) FROM logs", [(9,)]),
        ("SELECT severity_number * 2 FROM logs WHERE body = 'line 4'", [(8,)]),
        ("SELECT s FROM (SELECT body AS b, severity_number AS s FROM logs) WHERE s > 7", [(8,)]),
        ("SELECT body FROM (SELECT * FROM logs ORDER BY 3 LIMIT 1)", [("line 8",)]),
        ("SELECT count(*) FROM (SELECT DISTINCT * FROM logs)", [(9,)]),
        (
            "SELECT max(severity_number) FROM logs UNION ALL SELECT min(_row) FROM logs",
            [(8,), (1,)],
        ),
        (
            "SELECT count(*) FROM information_schema.columns WHERE table_name = 'logs'",
            [(len(ALL),)],
        ),
    ],
)
def test_results_equal_those_over_all_columns(
    engine: Engine, text: str, expected: list[tuple[Any, ...]]
) -> None:
    """Also if columns are named but not read, or referred to by position."""
    assert sorted(engine.sql(text).fetchall()) == sorted(expected)
