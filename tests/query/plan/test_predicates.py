"""Predicates read from plans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from frazil.model.arrow import TABLES
from frazil.query.plan.plan import QueryPlan, TopN
from frazil.query.plan.planner import Planner
from frazil.query.plan.predicates import Predicate, is_never
from frazil.query.plan.pruning import time_window
from frazil.query.sql.dialect import translate

NOW_US = 1_790_000_000_000_000
DAY_NS = 86_400_000_000_000
NEW_YEAR_NS = 1_767_225_600_000_000_000
"""2026-01-01, UTC."""


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    yield Planner(TABLES)


def plan_of(planner: Planner, text: str) -> QueryPlan:
    plan = planner.plan(translate(text), NOW_US)
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("time >= '2026-01-01'", NEW_YEAR_NS, None),
        ("time > '2026-01-01'", NEW_YEAR_NS, None),
        ("'2026-01-01' <= time", NEW_YEAR_NS, None),
        ("time < TIMESTAMP '2026-01-01'", None, NEW_YEAR_NS),
        ("time = '2026-01-01T00:00:00Z'", NEW_YEAR_NS, NEW_YEAR_NS),
        ("time > '2026-01-01T02:00:00+02:00'", NEW_YEAR_NS, None),
        ("time > DATE '2026-01-01'", NEW_YEAR_NS, None),
        ("time > to_timestamp(1767225600)", NEW_YEAR_NS, None),
        ("time > to_timestamp_micros(1767225600000000)", NEW_YEAR_NS, None),
        ("time > CAST('2026-01-01' AS TIMESTAMP)", NEW_YEAR_NS, None),
        ("time BETWEEN '2026-01-01' AND '2026-01-02'", NEW_YEAR_NS, NEW_YEAR_NS + DAY_NS),
        ("time > now() - INTERVAL '5 minutes'", NOW_US * 1000 - 300_000_000_000, None),
        ("time > current_timestamp", NOW_US * 1000, None),
        ("NOT time < '2026-01-01'", NEW_YEAR_NS, None),
        ("CAST(time AS DATE) = '2026-01-01'", NEW_YEAR_NS - DAY_NS, NEW_YEAR_NS + 2 * DAY_NS),
        ("CAST(time AS TIMESTAMP(9)) > '2026-01-01'", NEW_YEAR_NS, None),
        ("date_part('year', time) = 2026", NEW_YEAR_NS, NEW_YEAR_NS + 365 * DAY_NS),
        ("time_unix_nano >= 5000", 5000, None),
        ("time_unix_nano = 5999", 5000, 5999),
        ("time_unix_nano BETWEEN 5000 AND 6000", 5000, 6000),
        # The engine reads a number as seconds, and compares numbers.
        ("CAST(time_unix_nano AS TIMESTAMP) > '2026-01-01'", 1_767_225_000, None),
        ("time > '2026-01-01' AND body = 'x'", NEW_YEAR_NS, None),
        ("time > '2026-01-01' OR time > '2026-01-02'", NEW_YEAR_NS, None),
        # These tell nothing.
        ("time_unix_nano < 5000", None, None),
        ("time_unix_nano >= 0 AND time_unix_nano < 9", None, None),
        ("to_timestamp(time_unix_nano) > '2026-01-01'", None, None),
        ("time > '2026-01-01' OR body = 'x'", None, None),
        ("time <> '2026-01-01'", None, None),
        ("ingest_time > '2026-01-01'", None, None),
        ("time + INTERVAL '1 day' > ingest_time", None, None),
        ("time NOT BETWEEN '2026-01-01' AND '2026-01-02'", None, None),
        ("abs(date_part('hour', time)) > 3", None, None),
    ],
)
def test_time_filters_give_bounds(
    planner: Planner, where: str, low: int | None, high: int | None
) -> None:
    """Never narrower than the filter."""
    plan = plan_of(planner, f"SELECT body FROM logs WHERE {where}")
    assert time_window(plan.scans["logs"].conditions) == Predicate(low=low, high=high)


@pytest.mark.parametrize(
    ("where", "column", "values"),
    [
        ("service_name = 'a'", "service_name", {"a"}),
        ("'a' = service_name", "service_name", {"a"}),
        ("service_name IN ('a', 'b', 'c', 'd', 'e')", "service_name", set("abcde")),
        ("service_name = 'a' OR service_name = 'b'", "service_name", {"a", "b"}),
        ("service_name IN ('a', 'b') AND service_name IN ('b', 'c')", "service_name", {"b"}),
        ("trace_id = 'a' AND span_id = 'b'", "span_id", {"b"}),
        ("(trace_id = 'a' AND body = 'x') OR trace_id = 'b'", "trace_id", {"a", "b"}),
        ("NOT (service_name <> 'a')", "service_name", {"a"}),
        ("service_name = 'a' OR body = 'x'", "service_name", None),
        ("service_name <> 'a'", "service_name", None),
        ("service_name NOT IN ('a', 'b')", "service_name", None),
        ("service_name NOT IN ('a', 'b', 'c', 'd', 'e')", "service_name", None),
        ("lower(service_name) = 'a'", "service_name", None),
        ("service_name LIKE 'a%'", "service_name", None),
        ("service_name = host_name", "service_name", None),
        ("coalesce(trace_id, 'x') = 'a'", "trace_id", None),
    ],
)
def test_equality_and_in_give_values(
    planner: Planner, where: str, column: str, values: set[str] | None
) -> None:
    plan = plan_of(planner, f"SELECT body FROM logs WHERE {where}")
    found = plan.scans["logs"].conditions.get(column, Predicate()).values
    assert found == (None if values is None else frozenset(values))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SELECT * FROM (SELECT service_name AS s FROM logs) x WHERE x.s = 'a'", {"a"}),
        (
            "SELECT * FROM (SELECT host_name AS service_name FROM logs) WHERE service_name = 'a'",
            None,
        ),
        (
            "SELECT l.body FROM logs AS l WHERE l.service_name = 'a' AND l.attributes['k'] = 'v'",
            {"a"},
        ),
        ("WITH x AS (SELECT * FROM logs) SELECT * FROM x WHERE service_name = 'a'", {"a"}),
        ("SELECT body FROM logs WHERE service_name = 'a' UNION ALL SELECT body FROM logs", None),
        (
            "SELECT body FROM logs WHERE service_name = 'a' UNION ALL "
            "SELECT body FROM logs WHERE service_name = 'b'",
            {"a", "b"},
        ),
        (
            "SELECT a.body FROM logs a JOIN logs b ON a.trace_id = b.trace_id "
            "WHERE a.service_name = 'a' AND b.service_name = 'b'",
            {"a", "b"},
        ),
        (
            "SELECT a.body FROM logs a LEFT JOIN logs b ON a.trace_id = b.trace_id "
            "AND b.service_name = 'b'",
            None,
        ),
        ("SELECT * FROM (SELECT * FROM logs LIMIT 5) WHERE service_name = 'a'", None),
        (
            "SELECT service_name, count(*) FROM logs GROUP BY 1 HAVING service_name = 'a'",
            {"a"},
        ),
        (
            "SELECT body FROM logs WHERE service_name = 'a' "
            "AND time > (SELECT max(time) FROM logs)",
            None,
        ),
        ("SELECT body FROM datafusion.public.logs WHERE service_name = 'a'", {"a"}),
        ("EXPLAIN SELECT body FROM logs WHERE service_name = 'a'", {"a"}),
    ],
)
def test_predicates_reach_the_scan(planner: Planner, text: str, values: set[str] | None) -> None:
    """Through aliases, subqueries and views; several scans are combined."""
    conditions = plan_of(planner, text).scans["logs"].conditions
    found = conditions.get("service_name", Predicate()).values
    assert found == (None if values is None else frozenset(values))


@pytest.mark.parametrize(
    "where", ["time > NULL", "service_name IN ('a') AND service_name IN ('b')"]
)
def test_contradictions_read_nothing(planner: Planner, where: str) -> None:
    scans = plan_of(planner, f"SELECT body FROM logs WHERE {where}").scans
    assert all(is_never(scan.conditions) for scan in scans.values())


def test_a_filter_on_a_view_prunes_its_table(planner: Planner) -> None:
    plan = plan_of(planner, "SELECT value FROM gauges WHERE service_name = 'a'")
    assert plan.scans["metrics"].conditions["service_name"].values == frozenset({"a"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM logs ORDER BY time DESC LIMIT 10", ("logs", True, 10, 3)),
        ("SELECT l.time FROM spans, logs l ORDER BY l.time LIMIT 1", None),
        ("SELECT body, time FROM logs ORDER BY time LIMIT 5", ("logs", False, 5, 1)),
        ("SELECT body FROM logs ORDER BY time DESC LIMIT 5", ("logs", True, 5, None)),
        ("SELECT time AS t FROM logs ORDER BY t DESC LIMIT 5 OFFSET 2", ("logs", True, 5, 0)),
        (
            "SELECT * FROM logs WHERE body = 'x' ORDER BY time DESC, _offset LIMIT 3",
            ("logs", True, 3, 3),
        ),
        ("SELECT * FROM logs ORDER BY body, time LIMIT 10", None),
        ("SELECT * FROM logs ORDER BY ingest_time LIMIT 10", None),
        ("SELECT * FROM logs ORDER BY time", None),
        ("SELECT * FROM logs LIMIT 10", None),
        ("SELECT DISTINCT time FROM logs ORDER BY time LIMIT 10", None),
        ("SELECT time, count(*) FROM logs GROUP BY 1 ORDER BY 1 LIMIT 10", None),
        ("SELECT ingest_time AS time FROM logs ORDER BY time LIMIT 1", None),
        ("SELECT * FROM (SELECT * FROM logs LIMIT 9) ORDER BY time LIMIT 3", None),
        ("SELECT * FROM (SELECT * FROM logs ORDER BY time LIMIT 9) WHERE body = 'x'", None),
    ],
)
def test_top_n_queries_are_recognised(
    planner: Planner, text: str, expected: tuple[str, bool, int, int | None] | None
) -> None:
    found = plan_of(planner, text).top_n
    if expected is None:
        assert found is None
    else:
        table, is_descending, row_count, time_column = expected
        assert found == TopN(
            table=table, is_descending=is_descending, row_count=row_count, time_column=time_column
        )
