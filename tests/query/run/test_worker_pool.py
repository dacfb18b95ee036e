"""Worker processes: reuse, replacement, shutdown and the rows they get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import TooLarge, Unavailable
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.plan.plan import TableScans
from frazil.query.plan.predicates import Predicate
from frazil.query.plan.pruning import prune
from frazil.query.run.shared_memory import matching_rows, memory_file, read_rows
from frazil.query.scan.tiers import TierRows
from frazil.settings import QueryConfig
from tests.query.build import BEGIN_US, batch_of, engine_over, log, piece_of

ROOT = Path(__file__).parents[3]
JOIN = "SELECT count(*) FROM logs a JOIN logs b ON a._offset = b._offset"


@pytest.fixture
def engine() -> Iterator[Engine]:
    config = QueryConfig(apart_idle_ms=100)
    with engine_over({"logs": [piece_of("logs", [log(at) for at in range(9)])]}, config) as opened:
        yield opened


def idle(engine: Engine) -> list[int]:
    """Return the idle workers."""
    return [worker._process.pid for worker in engine._workers._idle]


def wait_for(what: Any) -> bool:
    """Wait some seconds for a condition."""
    pause = threading.Event()
    return any(what() or pause.wait(0.05) for _ in range(200))


def test_a_worker_is_reused_and_ends_when_idle(engine: Engine) -> None:
    assert engine.sql(JOIN).fetchall() == [(9,)]
    first = idle(engine)
    assert engine.sql(JOIN).fetchall() == [(9,)]
    with pytest.raises(Exception, match="no column x"):
        engine.sql("SELECT x FROM logs a JOIN logs b USING (_offset)")
    assert idle(engine) == first
    assert len(first) == 1
    assert wait_for(lambda: not idle(engine) and not engine._workers._ending)
    with pytest.raises(ProcessLookupError):
        os.kill(first[0], 0)


def test_a_killed_worker_is_replaced(engine: Engine) -> None:
    """Its query fails, and the next one gets a new worker."""
    result = engine.sql(
        "SELECT a._offset * b._row FROM logs a, logs b, logs c, logs d, logs e, logs f"
    )
    (worker,) = [result._run._worker]  # type: ignore[attr-defined]
    os.kill(worker._process.pid, signal.SIGSEGV)
    with pytest.raises(TooLarge, match="worker process ended with code"):
        result.fetchall()
    assert engine.sql(JOIN).fetchall() == [(9,)]


def test_a_worker_killed_while_idle_fails_no_query() -> None:
    """The system may kill it; the next query gets another one."""
    with engine_over({"logs": [piece_of("logs", [log(at) for at in range(9)])]}) as engine:
        assert engine.sql(JOIN).fetchall() == [(9,)]
        (worker,) = engine._workers._idle
        worker._process.kill()
        worker._process.wait()
        assert engine.sql(JOIN).fetchall() == [(9,)]
        assert idle(engine) != [worker._process.pid]


def test_closing_a_result_early_ends_its_worker(engine: Engine) -> None:
    result = engine.sql("SELECT sum(a._row) FROM logs a, logs b, logs c, logs d, logs e, logs f")
    process = result._run._worker._process  # type: ignore[attr-defined]
    result.close()
    assert process.wait(10) != 0
    assert idle(engine) == []


def test_rows_sent_to_a_worker_are_limited() -> None:
    config = QueryConfig(apart_bytes_max=1000)
    rows = [log(at) for at in range(1000)]
    with engine_over({"logs": [piece_of("logs", rows)]}, config) as engine:
        with pytest.raises(TooLarge, match=r"query\.apart_bytes_max"):
            engine.sql(JOIN)
        old = "WHERE a.time < '2020-01-01' AND b.time < '2020-01-01'"
        assert engine.sql(f"{JOIN} {old}").fetchall() == [(0,)]


def test_a_worker_that_cannot_start_is_an_error(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Unavailable, match="cannot start a worker process"):
        engine.sql(JOIN)
    assert engine.sql("SELECT count(*) FROM logs").fetchall() == [(9,)]


ROWS = st.lists(
    st.builds(
        log,
        st.integers(0, 20),
        service_name=st.sampled_from(["web", "cart"]),
        trace_id=st.sampled_from([None, "a", "b"]),
        attributes=st.lists(st.tuples(st.text("kl", max_size=2), st.text(max_size=3)), max_size=2),
        body=st.none() | st.text(max_size=5),
    ),
    max_size=20,
)


@given(
    rows=ROWS,
    columns=st.none() | st.sets(st.sampled_from(TABLES["logs"].names), max_size=5),
    low=st.integers(0, 20),
    service=st.sampled_from(["web", "cart", "x"]),
)
def test_matching_rows_and_columns_reach_the_worker(
    rows: list[dict[str, Any]], columns: set[str] | None, low: int, service: str
) -> None:
    """Other columns are blank."""
    piece = piece_of("logs", rows, is_known=False)
    conditions = {
        "time": Predicate(low=(BEGIN_US + low * 1_000_000) * 1000),
        "service_name": Predicate(values=frozenset({service})),
    }
    names = None if columns is None else tuple(sorted(columns))
    scans = TableScans(count=1, conditions=conditions, columns=names)
    light = matching_rows(prune([TierRows(pieces=(piece,))], conditions), scans, TABLES["logs"])
    with memory_file({"logs": light, "spans": []}, 1 << 20) as (file, places):
        arrived = read_rows(os.dup(file), places, TABLES)
    assert arrived["spans"] == []
    found = pa.Table.from_batches(arrived["logs"], TABLES["logs"])
    found.validate(full=True)
    kept = [row for row in rows if row["_offset"] >= low and row["service_name"] == service]
    expected = pa.Table.from_batches([batch_of("logs", kept)])
    assert found.num_rows == expected.num_rows
    for name in TABLES["logs"].names if columns is None else columns:
        assert found[name].to_pylist() == expected[name].to_pylist()


PROGRAM = """
import sys, threading
from contextlib import suppress
from frazil.errors import Unavailable
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import QueryConfig
from tests.query.build import log, piece_of
rows = [log(at, body="abc def " * 20) for at in range(2000)]
pieces = {"logs": (piece_of("logs", rows),)}
engine = Engine.open(lambda: pieces, TABLES, QueryConfig(), SystemClock())
text = sys.argv[1]
if sys.argv[2] == "read":
    engine.sql(text).fetchall()
elif sys.argv[2] == "open":
    result = engine.sql(text)
else:
    result = engine.sql(text)
    def read():
        with suppress(Unavailable):
            list(result)
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(0.1)
"""


@pytest.mark.parametrize("way", ["read", "open", "reading"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM logs WHERE matches(body, 'abc')",
        "SELECT sum(a._offset) FROM logs a, logs b WHERE a._offset < 10",
    ],
)
def test_a_program_may_exit_without_closing_the_engine(text: str, way: str) -> None:
    """It exits cleanly in any state of its queries, and leaves no process behind."""
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), text, way]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
