"""Pruning skips pieces that cannot change the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frazil.hot import Piece
from frazil.query import Engine
from frazil.query.plan.predicates import Conditions, Predicate
from frazil.query.plan.pruning import prune
from frazil.query.scan.tiers import TierRows
from tests.query.build import BEGIN_US, engine_over, log, piece_of

SERVICES = ("web", "cart", "db")
SECONDS = 40
"""Time range of the rows."""


def stamp(at: float) -> str:
    return f"to_timestamp_micros({BEGIN_US + int(at * 1_000_000)})"


ROWS = st.builds(
    log,
    st.integers(0, SECONDS),
    service_name=st.sampled_from(SERVICES),
    trace_id=st.sampled_from([None, "a1", "b2", "c3"]),
    span_id=st.sampled_from([None, "s1", "s2"]),
    severity_number=st.integers(1, 4),
    time_unix_nano=st.one_of(
        st.integers(0, SECONDS).map(lambda at: (BEGIN_US + at * 1_000_000) * 1000), st.just(0)
    ),
)


@st.composite
def rows_in_pieces(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Rows in pieces. Each row has a number of its own; `time` and `time_unix_nano` agree unless
    the latter was not sent."""
    pieces = draw(st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=6))
    for number, row in enumerate(row for piece in pieces for row in piece):
        row["_offset"] = number
        if row["time_unix_nano"]:
            row["time"] = row["time_unix_nano"] // 1000
    return pieces


MOMENTS = st.integers(-2, SECONDS + 2)
SIGNS = st.sampled_from(["<", "<=", "=", ">=", ">", "<>"])
ATOMS = st.one_of(
    st.builds(lambda sign, at: f"{{0}}time {sign} {stamp(at)}", SIGNS, MOMENTS),
    st.builds(lambda sign, at: f"{stamp(at)} {sign} {{0}}time", SIGNS, MOMENTS),
    st.builds(
        lambda low, high: f"{{0}}time BETWEEN {stamp(low)} AND {stamp(high)}", MOMENTS, MOMENTS
    ),
    st.builds(
        lambda sign, at: f"{{0}}time_unix_nano {sign} {(BEGIN_US + at * 1_000_000) * 1000}",
        SIGNS,
        MOMENTS,
    ),
    st.builds(
        lambda sign, at: f"{{0}}time {sign} now() - INTERVAL '{3600 - at} seconds'", SIGNS, MOMENTS
    ),
    st.builds("{{0}}service_name {} '{}'".format, SIGNS, st.sampled_from([*SERVICES, "x"])),
    st.sampled_from(
        [
            "{0}service_name IN ('web', 'cart')",
            "{0}service_name NOT IN ('web', 'db')",
            "{0}service_name NOT IN ('web', 'b', 'c', 'd', 'e')",
            "{0}service_name IN ('cart', 'b', 'c', 'd', 'e')",
            "{0}service_name LIKE 'c%'",
            "{0}trace_id = 'a1'",
            "{0}trace_id IN ('a1', 'zz')",
            "{0}trace_id IS NULL",
            "{0}trace_id <> 'b2'",
            "{0}span_id = 's1'",
            "{0}severity_number > 2",
            "coalesce({0}trace_id, 'a1') = 'a1'",
            "CAST({0}time AS DATE) = '2026-09-21'",
            "date_trunc('minute', {0}time) = '2026-09-21T14:13:00Z'",
            "true",
            "NULL",
        ]
    ),
)
WHERES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(" AND ".join).map("({})".format),
        st.tuples(inner, inner).map(" OR ".join).map("({})".format),
        inner.map("NOT ({})".format),
        inner.map("({}) IS NOT TRUE".format),
    ),
    max_leaves=5,
)
SHAPES = st.sampled_from(
    [
        "SELECT _offset FROM logs WHERE {one}",
        "SELECT count(*), min(_offset), max(time) FROM logs WHERE {one}",
        "SELECT service_name, count(*) FROM logs WHERE {one} GROUP BY 1 HAVING max(time) > {t}",
        "SELECT o FROM (SELECT _offset AS o, time, service_name, trace_id, span_id, "
        "severity_number, time_unix_nano FROM logs WHERE {one}) WHERE {two}",
        "SELECT _offset FROM logs WHERE {one} UNION ALL SELECT _offset FROM logs WHERE {two}",
        "SELECT _offset FROM logs WHERE {one} AND time >= (SELECT min(time) FROM logs)",
        "SELECT time, _offset FROM logs WHERE {one} ORDER BY time DESC, _offset LIMIT 3",
        "SELECT _offset FROM logs WHERE {one} ORDER BY time, _offset LIMIT 4 OFFSET 1",
        "SELECT DISTINCT trace_id FROM logs WHERE {one}",
        "SELECT CASE WHEN {one} THEN 1 ELSE 0 END AS c, _offset FROM logs WHERE {two}",
        "SELECT l._offset, r._offset FROM logs l JOIN logs r ON l.trace_id = r.trace_id "
        "WHERE {left} AND {right}",
        "SELECT l._offset, r._offset FROM logs l LEFT JOIN logs r ON l.trace_id = r.trace_id "
        "AND {right} WHERE {left}",
        "SELECT l._offset, r._offset FROM logs l FULL JOIN logs r ON l.trace_id = r.trace_id "
        "WHERE {left} OR {right}",
        "SELECT _offset FROM logs WHERE {one} AND trace_id IN "
        "(SELECT trace_id FROM logs WHERE {two})",
        "SELECT l._offset FROM logs l WHERE NOT EXISTS (SELECT 1 FROM logs r "
        "WHERE l.trace_id = r.trace_id AND {right}) AND {left}",
        "WITH a AS (SELECT * FROM logs WHERE {one}), b AS (SELECT * FROM a WHERE {two}) "
        "SELECT a._offset, b.service_name FROM a, b WHERE a._offset = b._offset",
        "SELECT _offset, row_number() OVER (ORDER BY _offset) FROM logs WHERE {one}",
    ]
)


class Both:
    """Two engines over the same rows: one with statistics of its pieces, one without."""

    def __init__(
        self, known: Engine, blind: Engine, shown: list[dict[str, tuple[Piece, ...]]]
    ) -> None:
        self.known = known
        self.blind = blind
        self._shown = shown

    def show(self, pieces: list[list[dict[str, Any]]]) -> None:
        for shown, is_known in zip(self._shown, (True, False), strict=True):
            shown["logs"] = tuple(piece_of("logs", rows, is_known=is_known) for rows in pieces)


@pytest.fixture(scope="module")
def engines() -> Iterator[Both]:
    shown: list[dict[str, tuple[Piece, ...]]] = [{}, {}]
    with engine_over({}) as known, engine_over({}) as blind:
        known._tiers._snapshot = lambda: shown[0]
        blind._tiers._snapshot = lambda: shown[1]
        yield Both(known, blind, shown)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=rows_in_pieces(), shape=SHAPES, one=WHERES, two=WHERES, at=MOMENTS)
def test_pruning_never_changes_a_result(
    engines: Both, pieces: list[list[dict[str, Any]]], shape: str, one: str, two: str, at: int
) -> None:
    engines.show(pieces)
    text = shape.format(
        one=one.format(""),
        two=two.format(""),
        left=one.format("l."),
        right=two.format("r."),
        t=stamp(at),
    )
    known, blind = (engine.sql(text).fetchall() for engine in (engines.known, engines.blind))
    assert sorted(known, key=repr) == sorted(blind, key=repr)


def kept(pieces: list[Piece], conditions: Conditions) -> list[int]:
    found = prune([TierRows(pieces=tuple(pieces))], conditions).pieces
    return [number for number, piece in enumerate(pieces) if piece in found]


PIECES = [
    piece_of("logs", [log(0, trace_id="a1"), log(9, service_name="cart")]),
    piece_of("logs", [log(10, trace_id="b2"), log(19)]),
    piece_of("logs", [log(20, trace_id="a1", service_name="db")]),
    piece_of("logs", [log(15)], is_known=False),
    piece_of("logs", []),
]


def at_ns(seconds: int) -> int:
    return (BEGIN_US + seconds * 1_000_000) * 1000


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"time": Predicate(low=at_ns(10))}, [1, 2, 3]),
        ({"time": Predicate(low=at_ns(9))}, [0, 1, 2, 3]),
        ({"time": Predicate(high=at_ns(10))}, [0, 1, 3]),
        ({"time": Predicate(low=at_ns(10), high=at_ns(19))}, [1, 3]),
        ({"time": Predicate(low=at_ns(30))}, [3]),
        ({"time_unix_nano": Predicate(low=at_ns(20))}, [2, 3]),
        ({"time_unix_nano": Predicate(high=at_ns(1))}, [0, 1, 2, 3]),
        ({"service_name": Predicate(values=frozenset({"cart"}))}, [0, 3]),
        ({"service_name": Predicate(values=frozenset({"web", "db"}))}, [0, 1, 2, 3]),
        ({"trace_id": Predicate(values=frozenset({"a1"}))}, [0, 2, 3]),
        ({"trace_id": Predicate(values=frozenset({"zz"}))}, [3]),
        ({"body": Predicate(values=frozenset({"zz"}))}, [0, 1, 2, 3]),
        ({"body": Predicate(values=frozenset())}, []),
    ],
)
def test_pieces_that_may_match_are_read(conditions: Conditions, expected: list[int]) -> None:
    """Also pieces without statistics."""
    assert kept(PIECES, conditions) == expected


def test_explain_shows_why_pieces_are_skipped() -> None:
    conditions = {
        "time": Predicate(low=at_ns(10)),
        "service_name": Predicate(values=frozenset({"web"})),
        "trace_id": Predicate(values=frozenset({"a1"})),
    }
    assert prune([TierRows(pieces=tuple(PIECES))], conditions).describe("logs").splitlines() == [
        "logs: reads 1 of 5 pieces, 1 of 6 rows",
        "  skips 1: outside the time range",
        "  skips 1: without the trace_id",
        "  skips 1: without the service",
        "  skips 1: no row can match",
    ]
