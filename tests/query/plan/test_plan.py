"""What is read from DataFusion's plans, and the check that every scan was counted."""

from __future__ import annotations

import re
from pathlib import Path

import datafusion
import pytest

from frazil.model.arrow import TABLES
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan import plan as plan_module
from frazil.query.plan.plan import QueryPlan, TableScans, plan_of
from frazil.query.plan.planner import _session
from frazil.query.plan.session import read
from frazil.query.scan.table_rows import ParquetScan, TableRows
from tests.query.build import BEGIN_US, log, part_of, piece_of
from tests.query.in_process import InProcess

GOLDEN = Path(__file__).parent / "golden" / "plans.txt"
"""Blocks of a query, what is read from its plan, and the plan as DataFusion prints it. After an
upgrade of DataFusion, read the differences, then delete the file and run the test: it writes it."""

TEXTS = [
    "SELECT time, body FROM logs WHERE service_name = 'web' AND time > now() - INTERVAL '1 hour'",
    "SELECT time, body FROM public.logs ORDER BY time DESC LIMIT 5 OFFSET 2",
    "SELECT service_name, count(*) FROM logs GROUP BY 1 HAVING count(*) > 2",
    "SELECT service_name, sum(_row) FROM logs GROUP BY 1",
    "SELECT service_name, count(*) FROM logs WHERE random() > 0.5 GROUP BY 1",
    "SELECT uuid(), rand() FROM logs",
    "SELECT body FROM logs WHERE severity_number > (SELECT avg(severity_number) FROM logs)",
    "SELECT body FROM logs WHERE trace_id IN (SELECT trace_id FROM spans WHERE name = 'x')",
    "SELECT l.body FROM logs l JOIN spans s ON l.trace_id = s.trace_id",
    "SELECT body FROM logs UNION ALL SELECT name FROM spans",
    "SELECT body FROM logs UNION SELECT body FROM logs WHERE false",
    "SELECT * FROM (VALUES (1), (2)) AS t(x)",
    "SELECT 1",
    "SELECT body FROM logs WHERE false",
    "SELECT body || body || body FROM logs WHERE body ~ 'a+' OR body SIMILAR TO 'b%'",
    "SELECT body FROM logs WHERE regexp_like(body, 'a{9}') AND body !~* service_name",
    "SELECT severity_number, count(*) FROM logs GROUP BY CUBE (severity_number, flags)",
    "SELECT body FROM logs GROUP BY GROUPING SETS ((body), ())",
    "SELECT body, row_number() OVER (ORDER BY time) FROM logs",
    "SELECT unnest(make_array(1, 2)), body FROM logs",
    "SELECT repeat(body, 9), upper(attributes['k']) FROM logs",
    "SELECT DISTINCT service_name FROM logs",
    "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT * FROM n",
    "SELECT * FROM generate_series(1, 5)",
    "SELECT value FROM gauges WHERE metric_name = 'm'",
    "SELECT table_name FROM information_schema.tables",
    "EXPLAIN SELECT body FROM logs",
    "EXPLAIN ANALYZE SELECT body FROM logs",
    "DESCRIBE logs",
]


def summary_of(plan: QueryPlan) -> str:
    scans = ", ".join(f"{table} {scan.count}" for table, scan in plan.scans.items())
    return (
        f"scans: {scans or 'none'}; other leaves: {plan.other_leaf_count}; "
        f"top n: {plan.top_n is not None}; count query: {plan.count_query is not None}; "
        f"explain: {plan.is_explain}"
    )


def test_plans_are_printed_as_we_read_them() -> None:
    """Decisions depend on DataFusion's printed plans, so an upgrade that prints differently must
    fail here, and another version must be looked at."""
    context = SingleQueryContext(BEGIN_US)
    session = _session(TABLES, context)
    blocks = [f"DataFusion {datafusion.__version__}"]
    for text in TEXTS:
        frame = read(session, text)
        printed = frame.optimized_logical_plan().display_indent()
        blocks.append("\n".join([text, summary_of(plan_of(session, frame, TABLES)), printed]))
    golden = "\n\n".join(blocks) + "\n"
    if not GOLDEN.exists():
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(golden, encoding="utf-8")
        pytest.fail(f"{GOLDEN} was missing and has been written; read it and run again")
    assert golden == GOLDEN.read_text(encoding="utf-8")


def test_leaves_are_counted_per_input_of_a_table() -> None:
    scans = {
        "logs": TableScans(count=2, conditions={}, columns=None),
        "spans": TableScans(count=1, conditions={}, columns=None),
    }
    plan = QueryPlan(
        scans=scans,
        other_leaf_count=1,
        top_n=None,
        count_query=None,
        is_explain=False,
        schema=b"",
    )
    files = ParquetScan(root="/", paths=("a",))
    batch = piece_of("logs", [log(0)]).batches[0]
    assert plan.leaf_count({}) == 4
    assert plan.leaf_count({"logs": TableRows(batches=[batch])}) == 4
    assert plan.leaf_count({"logs": TableRows(scans=[files, files])}) == 6
    assert plan.leaf_count({"logs": TableRows(batches=[batch], scans=[files, files])}) == 8


@pytest.fixture(scope="module")
def worker() -> InProcess:
    return InProcess({"logs": [part_of("logs", [log(at) for at in range(9)])]})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT body FROM logs",
        "SELECT count(*) FROM logs",
        "SELECT service_name, count(*) FROM logs GROUP BY 1",
        "SELECT body FROM logs ORDER BY time LIMIT 3",
        "SELECT body FROM logs WHERE severity_number < (SELECT max(severity_number) FROM logs)",
        "SELECT body FROM logs WHERE body ~ service_name",
    ],
)
def test_a_scan_that_was_not_counted_is_an_error(
    worker: InProcess, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If DataFusion printed scans in another way, tables would be read without their rows."""
    monkeypatch.setattr(plan_module, "_LEAF", re.compile("(?P<table>SomeOtherName)"))
    with pytest.raises(AssertionError, match=r"but was planned for 0; this is a bug"):
        worker.sql(text)
    monkeypatch.undo()
    worker.sql(text)


def test_a_missed_subquery_is_an_error(worker: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """One scan was counted and two run: rows that only the second needs may be pruned."""
    text = "SELECT body FROM logs WHERE _offset = (SELECT max(_offset) FROM logs WHERE _row = 0)"
    assert worker.sql(text)["body"].to_pylist() == ["line 8"]
    pattern = r"^ {2,4}TableScan: (?P<table>\S+)"
    monkeypatch.setattr(plan_module, "_LEAF", re.compile(pattern, re.MULTILINE))
    with pytest.raises(AssertionError, match="scans 2 inputs but was planned for 1"):
        worker.sql(text)
