"""`ORDER BY time LIMIT n` reads few pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.query import Engine
from frazil.query.run.executor import _Query
from tests.query.build import engine_over, log, part_of, piece_of
from tests.query.in_process import InProcess

PIECES = st.lists(
    st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(["web", "cart"])), min_size=1, max_size=8
    ),
    min_size=3,
    max_size=14,
)


def rows_in(pieces: list[list[tuple[int, str]]]) -> list[list[dict[str, Any]]]:
    number = iter(range(1000))
    return [
        [{**log(at, service_name=service), "_offset": next(number)} for at, service in piece]
        for piece in pieces
    ]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with engine_over({}) as opened:
        yield opened


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=PIECES,
    columns=st.sampled_from(["time, _offset", "_offset", "body, time AS t, _offset"]),
    where=st.sampled_from(["", "WHERE service_name = 'cart'", "WHERE _offset < 3"]),
    order=st.sampled_from(["time DESC, _offset", "time, _offset DESC"]),
    limit=st.integers(1, 12),
    skip=st.integers(0, 3),
)
def test_few_pieces_give_the_result_of_all(
    engine: Engine,
    pieces: list[list[tuple[int, str]]],
    columns: str,
    where: str,
    order: str,
    limit: int,
    skip: int,
) -> None:
    """However pieces overlap, with and without `time` in the result."""
    rows = rows_in(pieces)
    shown = {"logs": tuple(piece_of("logs", piece) for piece in rows)}
    engine._tiers._snapshot = lambda: shown
    head = f"SELECT {columns} FROM logs {where} ORDER BY {order} LIMIT {limit} OFFSET {skip}"
    everything = [row for piece in rows for row in piece]
    if "cart" in where:
        everything = [row for row in everything if row["service_name"] == "cart"]
    elif where:
        everything = [row for row in everything if row["_offset"] < 3]
    sign = -1 if "time DESC" in order else 1
    everything.sort(key=lambda row: (sign * row["time"], -sign * row["_offset"]))
    expected = [row["_offset"] for row in everything[skip : skip + limit]]
    assert [row[-1] for row in engine.sql(head).fetchall()] == expected


def test_only_the_newest_pieces_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    start = _Query.start

    def counting(self: Any, plan: Any, rows: Any) -> Any:
        read.append(len(rows["logs"].batches))
        return start(self, plan, rows)

    monkeypatch.setattr(_Query, "start", counting)
    worker = InProcess({"logs": [part_of("logs", [log(at)]) for at in range(100)]})
    found = worker.sql("SELECT body FROM logs ORDER BY time DESC LIMIT 2")
    assert found["body"].to_pylist() == ["line 99", "line 98"]
    assert read == [2]
    worker.sql("SELECT * FROM logs ORDER BY time LIMIT 9")
    assert read[1:] == [2, 8, 32]


def test_pieces_that_tie_with_the_last_row_are_read() -> None:
    """The second sort column decides between rows of the same time."""
    pieces = [
        piece_of("logs", [log(6, _offset=11)]),
        piece_of("logs", [log(5, _offset=10)]),
        piece_of("logs", [log(5, _offset=0)]),
        piece_of("logs", [log(4, _offset=1)]),
    ]
    text = "SELECT _offset, time FROM logs ORDER BY time {}, _offset {} LIMIT 2"
    with engine_over({"logs": pieces}) as engine:
        found = engine.sql(text.format("DESC", "")).fetchall()
        assert [row[0] for row in found] == [11, 0]
        found = engine.sql(text.format("", "DESC")).fetchall()
        assert [row[0] for row in found] == [1, 10]
