"""A tail: every row that fits once, in order; what is skipped is counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Unavailable, Unknown
from frazil.hot import Piece
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.telemetry.logs import COLUMNS, conditions_of, log_rows
from frazil.query.telemetry.tail import Tail
from frazil.settings import QueryConfig
from tests.query.build import FixedClock, engine_over, log, piece_of

Row = dict[str, Any]
Key = tuple[int, int, int]

_rounds = st.lists(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=6),
    min_size=1,
    max_size=8,
)
"""What comes in each round: requests, each with its partition, how many rows, whether it fits."""


class Growing:
    """A table that grows request by request; a tail sees what lies below the watermarks."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.watermarks: dict[int, int] = {0: 0}

    def take(self, partition: int, count: int, fits: bool) -> list[Row]:
        offset = self.watermarks.get(partition, 0)
        self.watermarks[partition] = offset + 1
        number = len(self.rows)
        new = [
            log(
                0,
                _log_partition=partition,
                _offset=offset,
                _row=row,
                ingest_time=number + row,
                service_name="web" if fits else "cart",
            )
            for row in range(count)
        ]
        self.rows += new
        return new


class Listed:
    """Answers what a tail asks by going through a list: it reads only the offsets in its SQL."""

    def __init__(self, table: Growing) -> None:
        self._table = table
        self.error: Exception | None = None

    def __call__(self, sql: str) -> pa.Table:
        if self.error is not None:
            raise self.error
        stretches = re.findall(
            r"_log_partition = (\d+) AND _offset >= (\d+) AND _offset < (\d+)", sql
        )
        found = [
            row
            for row in self._table.rows
            for partition, begin, end in stretches
            if row["_log_partition"] == int(partition)
            and int(begin) <= row["_offset"] < int(end)
            and ("'web'" not in sql or row["service_name"] == "web")
        ]
        if sql.startswith("SELECT count(*)"):
            return pa.table({"count": [len(found)]})
        (limit,) = re.findall(r"LIMIT (\d+)$", sql)
        newest = sorted(found, key=lambda row: row["ingest_time"], reverse=True)[: int(limit)]
        return pa.Table.from_pylist(newest, TABLES["logs"])


def keys(rows: Sequence[Row]) -> list[Key]:
    return [(row["_log_partition"], row["_offset"], row["_row"]) for row in rows]


@given(_rounds, st.integers(1, 5), st.booleans(), st.sets(st.integers(0, 7)))
@settings(deadline=None)
def test_each_row_is_returned_once(
    rounds: Any, limit: int, is_filtered: bool, failing: set[int]
) -> None:
    """Shown, or counted as skipped, in the round in which it came; a failed round is made up for in
    the next one."""
    table = Growing()
    for partition, count, fits in rounds[0]:
        table.take(partition, count, fits)
    ask = Listed(table)
    conditions = ["service_name = 'web'"] if is_filtered else []
    tail = Tail("logs", conditions, start=table.watermarks, limit=limit)
    waiting: list[Row] = []
    for number, requests in enumerate(rounds[1:]):
        for partition, count, fits in requests:
            new = table.take(partition, count, fits)
            waiting += [row for row in new if fits or not is_filtered]
        ask.error = Unavailable("not now") if number in failing else None
        if ask.error is not None and tail.watermarks != table.watermarks:
            with pytest.raises(Unavailable):
                tail.poll(ask, table.watermarks)
            continue
        caught = tail.poll(ask, table.watermarks)
        shown = [] if caught is None else caught.rows.to_pylist()
        skipped = 0 if caught is None else caught.skipped_count
        assert keys(shown) == keys(waiting[-limit:])
        assert skipped == max(len(waiting) - limit, 0)
        waiting = []
        assert tail.watermarks == table.watermarks


@given(_rounds, st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_with_the_real_engine(rounds: Any, limit: int) -> None:
    """The same rows as by going through a list."""
    table = Growing()
    pieces: dict[str, tuple[Piece, ...]] = {"logs": ()}
    with Engine.open(lambda: pieces, TABLES, QueryConfig(), FixedClock()) as engine:
        conditions = conditions_of(filters={"service_name": "web"}, min_severity="INFO")
        tails = [
            Tail("logs", conditions, start=table.watermarks, columns=columns, limit=limit)
            for columns in (COLUMNS, "*")
        ]
        for requests in rounds:
            for partition, count, fits in requests:
                offset = table.watermarks.get(partition, 0)
                new = table.take(partition, count, fits)
                pieces["logs"] += (_piece(new, partition, offset),)
            wanted = tails[0].next_sql(table.watermarks)
            listed = None if wanted is None else Listed(table)(wanted)
            for tail in tails:
                caught = tail.poll(lambda sql: engine.sql(sql).arrow(), table.watermarks)
                assert (caught is None) == (listed is None)
                if caught is not None and listed is not None:
                    found = log_rows(caught.rows.to_pylist(maps_as_pydicts="lossy"))
                    places = [(r.place.partition, r.place.offset, r.place.row) for r in found]
                    assert places == keys(listed.to_pylist()[:limit][::-1])


def _piece(rows: list[Row], partition: int, offset: int) -> Piece:
    piece = piece_of("logs", rows)
    return replace(piece, partition=partition, offset_begin=offset, offset_end=offset + 1)


def test_a_tail_reads_new_pieces_only() -> None:
    """Whatever the table holds; that is what makes one cheap."""
    rows = [log(at, _offset=at) for at in range(20)]
    pieces = [_piece([row], 0, row["_offset"]) for row in rows]
    tail = Tail("logs", start={0: 17})
    with engine_over({"logs": pieces}) as engine:
        sql = tail.next_sql({0: 19})
        (_, read, *_) = engine.sql(f"EXPLAIN {sql}").arrow()["plan"].to_pylist()
        assert "reads 3 of 20 pieces" in read  # bounds are inclusive: 19 itself may be read
        assert "from elsewhere in the log" in read


def test_a_poll_without_new_rows_returns_none() -> None:
    """Also when watermarks go back, as those of another node might."""
    tail = Tail("logs", start={0: 5})
    assert tail.next_sql({0: 5}) is None
    assert tail.next_sql({0: 3}) is None
    assert tail.next_sql({0: 6}) is not None


def test_tables_without_a_tail_are_refused() -> None:
    with pytest.raises(Unknown, match="logs, spans, metrics"):
        Tail("dead_letters", start={})
    with pytest.raises(Unknown, match="no column 1; DROP"):
        Tail("logs", start={}, columns="time, 1; DROP")
