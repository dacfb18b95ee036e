"""What may be planned and run in this process."""

from __future__ import annotations

import pytest

from frazil.query.plan.isolation import is_plain, isolation_reason

TABLES = frozenset({"logs", "spans"})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM logs WHERE time > now() - INTERVAL '5 minutes' ORDER BY time DESC LIMIT 100",
        "SELECT service_name, count(*), percentile(duration_nano, 0.99) FROM spans GROUP BY 1",
        "SELECT trace_id FROM logs WHERE trace_id IN (" + "'0123456789abcdef', " * 1000 + "'')",
        "SELECT a FROM (SELECT b AS a FROM logs) WHERE a IN (SELECT c FROM spans)",
        "SELECT 1 UNION ALL SELECT 2",
        "EXPLAIN SELECT * FROM logs",
        "SHOW TABLES",
    ],
)
def test_small_texts_are_planned_in_this_process(text: str) -> None:
    assert is_plain(text, TABLES)


@pytest.mark.parametrize(
    "text",
    [
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT * FROM logs JOIN spans USING (trace_id)",
        "SELECT count(*) FROM logs GROUP BY CUBE (a, b)",
        "SELECT sum(a) OVER (ORDER BY b) FROM logs",
        "SELECT " + "a + " * 65 + "1 FROM logs",
        "SELECT * FROM logs a0" + "".join(f", logs a{n}" for n in range(1, 10)),
        "SELECT 1" + " UNION ALL SELECT 1" * 4,
        "SELECT " + "1, " * 2049 + "1",
        "SELECT '" + "x" * 70_000 + "'",
    ],
)
def test_texts_that_may_grow_during_planning_are_isolated(text: str) -> None:
    """Texts with a large count of any kind."""
    assert not is_plain(text, TABLES)


@pytest.mark.parametrize(
    "plan",
    [
        "Projection: logs.body\n  TableScan: logs projection=[body]",
        "Aggregate: groupBy=[[logs.a]], aggr=[[count(Int64(1)), max(logs.b)]]\n  TableScan: logs",
        'Filter: logs.body ~ Utf8("a.*b") AND logs.c = Utf8("d")\n  TableScan: logs',
        "Filter: matches(logs.a, logs.x) AND lower(logs.a) || logs.b = logs.c\n  TableScan: logs",
    ],
)
def test_steady_plans_run_in_this_process(plan: str) -> None:
    assert isolation_reason(plan) is None


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("Inner Join: a.x = b.x\n  TableScan: a\n  TableScan: b", "may multiply rows"),
        ("Cross Join:\n  TableScan: a\n  TableScan: b", "may multiply rows"),
        ("RecursiveQuery: is_distinct=false", "may multiply rows"),
        ("Unnest: lists[a]\n  TableScan: a", "may multiply rows"),
        ("WindowAggr: windowExpr=[[sum(a)]]\n  TableScan: a", "may multiply rows"),
        ("SomethingNew\n  TableScan: a", "may multiply rows"),
        ('Filter: a = Utf8("\nInner Join:")', "may multiply rows"),
        ("Projection: repeat(a, Int64(9))\n  TableScan: a", "repeat may take long"),
        ("Projection: some_new_function(a)\n  TableScan: a", "some_new_function"),
        ("Projection: " + "a || " * 7 + "b\n  TableScan: a", "concatenates text"),
        ("Aggregate: groupBy=[[CUBE (a, b)]], aggr=[[]]\n  TableScan: a", "many grouping sets"),
        ('Filter: a ~ Utf8("x{9}")\n  TableScan: a', "regular expression"),
        ("Filter: a ~ b\n  TableScan: a", "regular expression"),
        ('Filter: a ~ Utf8("' + r"\w" * 9 + '")\n  TableScan: a', "regular expression"),
        ('Filter: a SIMILAR TO Utf8("' + "x" * 1100 + '")\n  TableScan: a', "regular expression"),
    ],
)
def test_other_plans_are_isolated(plan: str, reason: str) -> None:
    """Plans that may multiply rows or text, and all that are not known to be steady."""
    assert reason in str(isolation_reason(plan))
