"""Limits of time, memory and concurrency; cancellation."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frazil.errors import FrazilError, Malformed, Overloaded, TooLarge, Unavailable
from frazil.model import MiB
from frazil.query import Engine
from frazil.query.functions.register import SingleQueryContext
from frazil.query.plan.session import open_session
from frazil.results import CancelToken, Limits, Result
from frazil.settings import QueryConfig
from tests.query.build import engine_over, log, piece_of, shared

ENDLESS_SCAN = "SELECT count(*) FROM logs WHERE matches(body, 'x') OR body ~ 'a.*(b|c)+.*d$'"
ENDLESS_JOIN = "SELECT sum(a._offset * b._offset) FROM logs a, logs b, logs c"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """Return the same rows many times, so that queries take a while."""
    rows = [log(at, body=f"abcabc {at} " * 20, trace_id=f"{at:032x}") for at in range(2000)]
    many = shared(piece_of("logs", rows, is_known=False), 2000)
    config = QueryConfig(memory_bytes_max=64 * MiB, concurrency_max=2, queue_timeout_ms=20)
    with engine_over({"logs": [many]}, config) as opened:
        yield opened


class Reader(threading.Thread):
    """Reads a result in a thread and keeps its rows or error."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self._result = result
        self.error: FrazilError | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result.fetchall()
        except FrazilError as error:
            self.error = error


@pytest.mark.parametrize("text", [ENDLESS_SCAN, ENDLESS_JOIN])
def test_a_query_can_be_cancelled_from_another_thread(engine: Engine, text: str) -> None:
    """A waiting reader gets the error at once, and so does every later read."""
    result = engine.sql(text)
    reader = Reader(result)
    reader.join(0.2)
    assert reader.is_alive()
    result.cancel()
    reader.join(1)
    assert not reader.is_alive()
    assert isinstance(reader.error, Unavailable)
    assert "cancelled" in str(reader.error)
    assert result.fetchall() == []


def test_a_query_can_be_cancelled_before_its_first_row(engine: Engine) -> None:
    for text in (ENDLESS_SCAN, ENDLESS_JOIN):
        result = engine.sql(text)
        result.cancel()
        with pytest.raises(Unavailable, match="cancelled"):
            result.fetchall()


@pytest.mark.parametrize("text", [ENDLESS_SCAN, ENDLESS_JOIN])
def test_a_timeout_ends_a_query(engine: Engine, text: str) -> None:
    """The error names the limit."""
    with pytest.raises(TooLarge, match=r"longer than query.timeout_ms \(300 ms\)"):
        engine.sql(text, limits=Limits(timeout_ms=300)).fetchall()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT body, trace_id, time, attributes FROM logs ORDER BY body || trace_id",
        "SELECT max(time) FROM logs GROUP BY body || CAST(random() AS VARCHAR)",
        "SELECT count(DISTINCT body || CAST(random() AS VARCHAR)) FROM logs",
        "SELECT array_agg(body) FROM logs",
        "SELECT a.body FROM logs a JOIN logs b ON a.trace_id = b.trace_id ORDER BY b.body",
        "SELECT length(repeat(body, 1000000)) FROM logs",
        "SELECT array_agg(a.body || b.body) FROM logs a, logs b",
    ],
)
def test_the_memory_limit_ends_a_query(engine: Engine, text: str) -> None:
    """The error names the limit; a single allocation that is too large ends the worker."""
    with pytest.raises(TooLarge, match=r"query\.memory_bytes_max|needs too much memory at once"):
        engine.sql(text).fetchall()


def test_concurrent_queries_are_limited(engine: Engine) -> None:
    """The error has a retry delay."""
    with engine.sql(ENDLESS_SCAN), engine.sql("SELECT 1"):
        with pytest.raises(Overloaded, match="2 queries are running") as caught:
            engine.sql("SELECT 1")
        assert caught.value.retry_after_ms > 0
    assert engine.sql("SELECT 1").fetchall() == [(1,)]


def test_closing_the_engine_ends_its_queries() -> None:
    pieces = {"logs": [piece_of("logs", [log(at) for at in range(2000)])]}
    with engine_over(pieces) as engine:
        readers = [Reader(engine.sql(ENDLESS_JOIN)), Reader(engine.sql(ENDLESS_JOIN))]
    for reader in readers:
        reader.join(5)
        assert isinstance(reader.error, Unavailable)


def test_the_engine_still_works_after_cancelled_queries(engine: Engine) -> None:
    assert engine.sql("SELECT count(*) FROM logs").fetchall() == [(4_000_000,)]
    assert engine.sql("SELECT count(*) FROM (VALUES (1), (2)) x").fetchall() == [(2,)]


def test_a_cancelled_token_cancels_work_attached_later() -> None:
    """A cancel between planning and running is not lost."""
    cancelled = []

    class Work:
        def cancel(self, error: FrazilError) -> None:
            cancelled.append(error)

    cancel_token = CancelToken()
    cancel_token.attach(Work())
    error, other = Unavailable("one"), Unavailable("two")
    cancel_token.cancel(error)
    cancel_token.cancel(other)
    with pytest.raises(Unavailable, match="one"):
        cancel_token.attach(Work())
    assert cancelled == [error, error]


def test_functions_stop_when_their_query_is_cancelled() -> None:
    scene = SingleQueryContext(0)
    session = open_session(MiB, scene)
    assert session.sql("SELECT matches('a', 'a')").to_pydict()
    scene.error = Unavailable("stopped here")
    with pytest.raises(Exception, match="stopped here"):
        session.sql("SELECT matches('a', 'a')").to_pydict()


def test_limits_of_zero_are_rejected() -> None:
    with pytest.raises(Malformed, match=r"query\.rows_max is 0; it must be at least 1"):
        QueryConfig(rows_max=0)
