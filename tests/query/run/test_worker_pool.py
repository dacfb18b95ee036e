"""Worker processes: reuse, replacement, shutdown and the rows they get."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import TooLarge, Unavailable
from frazil.model import MiB
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.plan.plan import TableScans
from frazil.query.plan.predicates import Predicate
from frazil.query.plan.pruning import prune
from frazil.query.run.fork_client import FORK_SERVER, ForkServer
from frazil.query.run.fork_server import IDLE_S
from frazil.query.run.part_cache import PartCache
from frazil.query.run.references import references_of
from frazil.query.scan.tiers import TierRows
from frazil.settings import QueryConfig
from tests.query.build import BEGIN_US, batch_of, engine_over, log, piece_of, shared

ROOT = Path(__file__).parents[3]
JOIN = "SELECT count(*) FROM logs a JOIN logs b ON a._offset = b._offset"


@pytest.fixture
def engine() -> Iterator[Engine]:
    config = QueryConfig(apart_idle_ms=100)
    with engine_over({"logs": [piece_of("logs", [log(at) for at in range(9)])]}, config) as opened:
        yield opened


def idle(engine: Engine) -> list[int]:
    """Return the idle workers."""
    return [worker._pid for worker in engine._workers._idle]


def wait_for(what: Any) -> bool:
    """Wait some seconds for a condition."""
    pause = threading.Event()
    return any(what() or pause.wait(0.05) for _ in range(200))


def has_loaded() -> bool:
    """Fork a worker that is not used: the reply tells whether the fork server has loaded."""
    forked = FORK_SERVER.fork()
    forked.channel.close()
    os.close(forked.descriptor)
    return FORK_SERVER._is_loaded


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_worker_is_reused_and_one_is_kept(engine: Engine) -> None:
    """Further ones end when they are idle."""
    assert engine.sql(JOIN).fetchall() == [(9,)]
    first = idle(engine)
    assert engine.sql(JOIN).fetchall() == [(9,)]
    with pytest.raises(Exception, match="no column x"):
        engine.sql("SELECT x FROM logs a JOIN logs b USING (_offset)")
    assert idle(engine) == first
    assert len(first) == 1
    with engine.sql(JOIN), engine.sql(JOIN) as second:
        second.fetchall()
    assert wait_for(lambda: len(idle(engine)) == 1)


def test_a_killed_worker_is_replaced(engine: Engine) -> None:
    """Its query fails, and the next one gets a new worker."""
    result = engine.sql(
        "SELECT a._offset * b._row FROM logs a, logs b, logs c, logs d, logs e, logs f"
    )
    (worker,) = [result._run._worker]  # type: ignore[attr-defined]
    os.kill(worker._pid, signal.SIGSEGV)
    with pytest.raises(TooLarge, match="its worker process ended"):
        result.fetchall()
    assert engine.sql(JOIN).fetchall() == [(9,)]


def test_a_worker_killed_while_idle_fails_no_query(engine: Engine) -> None:
    """The system may kill it; the next query gets another one."""
    assert engine.sql(JOIN).fetchall() == [(9,)]
    (pid,) = idle(engine)
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: is_gone(pid))
    assert engine.sql(JOIN).fetchall() == [(9,)]
    assert idle(engine) != [pid]


def test_an_early_worker_is_replaced_once_workers_share_what_is_loaded(engine: Engine) -> None:
    """It has memory of its own for what the fork server has loaded meanwhile."""
    assert wait_for(lambda: FORK_SERVER.is_loaded)
    assert engine.sql(JOIN).fetchall() == [(9,)]
    (worker,) = engine._workers._idle
    assert engine.sql(JOIN).fetchall() == [(9,)]
    assert engine._workers._idle == [worker]
    worker.is_early = True
    assert engine.sql(JOIN).fetchall() == [(9,)]
    assert engine._workers._idle == []
    assert wait_for(lambda: is_gone(worker._pid))
    assert engine.sql(JOIN).fetchall() == [(9,)]
    (worker,) = engine._workers._idle
    assert not worker.is_early


def test_a_fork_server_that_died_is_started_again(engine: Engine) -> None:
    """Its workers end with it."""
    assert engine.sql(JOIN).fetchall() == [(9,)]
    (pid,) = idle(engine)
    assert FORK_SERVER._process is not None
    FORK_SERVER._process.kill()
    FORK_SERVER._process.wait()
    assert wait_for(lambda: is_gone(pid))
    assert engine.sql(JOIN).fetchall() == [(9,)]


def test_a_fork_server_that_hangs_is_replaced(engine: Engine) -> None:
    assert engine.sql(JOIN).fetchall() == [(9,)]
    (pid,) = idle(engine)
    hanging = FORK_SERVER._process
    assert hanging is not None
    pause = threading.Event()  # it loads when no worker was asked for during some time
    assert any(has_loaded() or pause.wait(2 * IDLE_S) for _ in range(100))
    os.kill(hanging.pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: is_gone(pid))
    assert engine.sql(JOIN).fetchall() == [(9,)]
    assert FORK_SERVER._process is not hanging
    assert hanging.poll() is not None


def test_a_query_whose_fork_server_dies_may_be_retried(engine: Engine) -> None:
    """It is not to blame."""
    many = ", ".join(f"logs t{number}" for number in range(20))
    result = engine.sql(f"SELECT sum(t0._row) FROM {many}")
    assert FORK_SERVER._process is not None
    FORK_SERVER._process.kill()
    with pytest.raises(Unavailable, match="retry"):
        result.fetchall()
    assert engine.sql(JOIN).fetchall() == [(9,)]


def test_closing_a_result_early_ends_its_worker(engine: Engine) -> None:
    result = engine.sql("SELECT sum(a._row) FROM logs a, logs b, logs c, logs d, logs e, logs f")
    pid = result._run._worker._pid  # type: ignore[attr-defined]
    result.close()
    assert wait_for(lambda: is_gone(pid))
    assert idle(engine) == []


def test_rows_that_are_copied_are_limited() -> None:
    config = QueryConfig(apart_bytes_max=1000)
    rows = [log(at) for at in range(1000)]
    with engine_over({"logs": [piece_of("logs", rows)]}, config) as engine:
        with pytest.raises(TooLarge, match=r"query\.apart_bytes_max"):
            engine.sql(JOIN)
        old = "WHERE a.time < '2020-01-01' AND b.time < '2020-01-01'"
        assert engine.sql(f"{JOIN} {old}").fetchall() == [(0,)]


def test_rows_in_shared_memory_are_not_copied() -> None:
    """They are mapped, however many there are; small batches beside them are copied."""
    rows = [log(at) for at in range(1000)]
    known = shared(piece_of("logs", rows))
    piece = replace(known, batches=(*known.batches, batch_of("logs", [log(1000)])), row_count=1001)
    with engine_over({"logs": [piece]}, QueryConfig(apart_bytes_max=4000)) as engine:
        text = "SELECT count(*), count(DISTINCT _offset), max(_offset) FROM logs"
        assert engine.sql(text).fetchall() == [(1001, 1001, 1000)]


def test_a_piece_without_matching_rows_is_no_part_of_a_count() -> None:
    """Rows that are copied are filtered first; none may be left."""
    pieces = [piece_of("logs", [log(1)], is_known=False), shared(piece_of("logs", [log(2)]))]
    with engine_over({"logs": pieces}) as engine:
        text = "SELECT service_name, count(*) FROM logs WHERE service_name = '{}' GROUP BY 1"
        assert engine.sql(text.format("nobody")).fetchall() == []
        assert engine.sql(text.format("web")).fetchall() == [("web", 2)]


def test_a_server_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ForkServer()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Unavailable, match="cannot start a process for queries"):
        server.fork()


def test_all_queries_together_are_limited_in_memory() -> None:
    """The one with the most memory is ended, the others go on."""
    rows = [log(at, body=f"{at} " * 200) for at in range(2000)]
    config = QueryConfig(memory_bytes_max=1024 * MiB, workers_memory_bytes_max=96 * MiB)
    with engine_over({"logs": [shared(piece_of("logs", rows), 400)]}, config) as engine:
        small = engine.sql("SELECT _offset FROM logs WHERE _offset = 7")
        with pytest.raises(TooLarge, match=r"query\.workers_memory_bytes_max"):
            engine.sql("SELECT body || CAST(random() AS VARCHAR) FROM logs ORDER BY 1").fetchall()
        assert len(small.fetchall()) == 400


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
    scans = {"logs": TableScans(count=1, conditions=conditions, columns=names)}
    pruned = {"logs": prune([TierRows(pieces=(piece,))], conditions)}
    with references_of(pruned, scans, TABLES, 1 << 20) as (refs, files):
        sent = [os.dup(file) for file in files]
        (scan,) = PartCache(TABLES).scans(refs, sent, TABLES)["logs"]
    batches = [batch for part in scan.pieces for batch in part.batches]
    found = pa.Table.from_batches(batches, TABLES["logs"])
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


def test_a_fork_server_whose_engine_is_closed_while_it_loads_ends_quietly() -> None:
    program = """
        import socket
        from frazil.query.run import fork_server

        ours, theirs = socket.socketpair()
        fork_server.warm = ours.close
        fork_server.main(theirs.detach())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
