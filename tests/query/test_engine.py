"""SQL over pieces: tables, views, functions, EXPLAIN."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import Malformed, TooLarge, Unavailable, Unknown
from frazil.hot import Piece
from frazil.model.arrow import TABLES
from frazil.query import Engine
from tests.query.build import BEGIN_US, engine_over, log, piece_of

LOGS = [
    log(0, attributes=[("code", "200"), ("http.method", "GET")], trace_id="a1"),
    log(30, attributes=[("http.method", "PUT")], body='{"user": {"id": 7}, "tags": ["x"]}'),
    log(61, service_name="cart", body="Payment refused: connection timeout", trace_id="a1"),
    log(90, service_name="cart", body=None, body_type="empty", severity_number=17),
]
POINTS: list[dict[str, Any]] = [
    {"metric_name": "cpu", "metric_type": "gauge", "value_double": 0.5, "time": BEGIN_US},
    {"metric_name": "cpu", "metric_type": "gauge", "value_int": 2, "time": BEGIN_US},
    {"metric_name": "hits", "metric_type": "sum", "value_int": 9, "is_monotonic": True},
    {"metric_name": "lag", "metric_type": "histogram", "count": 3, "bucket_counts": [1, 2]},
    {"metric_name": "lag", "metric_type": "exponential_histogram", "count": 4, "scale": 1},
    {"metric_name": "gc", "metric_type": "summary", "count": 5, "sum": 1.5},
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    pieces = {
        "logs": [piece_of("logs", LOGS[:2]), piece_of("logs", LOGS[2:])],
        "metrics": [piece_of("metrics", POINTS)],
        "dead_letters": [piece_of("dead_letters", [{"topic": "otlp_logs", "payload": b"x"}])],
    }
    with engine_over(pieces) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT count(*) FROM logs", [(4,)]),
        (
            "SELECT service_name, count(*) FROM logs GROUP BY 1 ORDER BY 1",
            [("cart", 2), ("web", 2)],
        ),
        (
            "SELECT attributes['http.method'] FROM logs ORDER BY time",
            [("GET",), ("PUT",), (None,), (None,)],
        ),
        ("SELECT _offset FROM logs WHERE attributes['code'] = '200'", [(0,)]),
        ("SELECT l.attributes['nope'] FROM logs l LIMIT 1", [(None,)]),
        ("SELECT get_json_object(body, '$.user.id') FROM logs WHERE _offset = 30", [("7",)]),
        ("SELECT get_json_object(body, '$.tags[0]') FROM logs WHERE _offset = 30", [("x",)]),
        ("SELECT _offset FROM logs WHERE matches(body, 'payment AND (timeout OR x)')", [(61,)]),
        ("SELECT count(*) FROM logs WHERE matches(body, 'NOT payment')", [(2,)]),
        ("SELECT count(*) FROM logs WHERE matches(body, 'NOT payment') IS NULL", [(1,)]),
        ("SELECT percentile(severity_number, 0.5) FROM logs", [(9.0,)]),
        ("SELECT percentile(_offset, 0.25) FROM logs WHERE service_name = 'web'", [(7.5,)]),
        ("SELECT lower(encode(CAST('x' AS BYTEA), 'hex')), to_hex(255)", [("78", "ff")]),
        ("SELECT body FROM logs WHERE trace_id = 'a1' AND service_name = 'web'", [("line 0",)]),
        ("SELECT count(*) FROM logs WHERE time > now() - INTERVAL '1 hour'", [(3,)]),
        ("SELECT current_date = DATE '2026-09-21', now() = current_timestamp", [(True, True)]),
        ("SELECT topic, payload FROM dead_letters", [("otlp_logs", b"x")]),
        ("SELECT count(*) FROM spans", [(0,)]),
        ("SELECT 1 WHERE false", []),
        (
            "SELECT a._offset, b._offset FROM logs a JOIN logs b ON a.trace_id = b.trace_id "
            "WHERE a._offset < b._offset",
            [(0, 61)],
        ),
        ("WITH x AS (SELECT service_name AS s FROM logs) SELECT count(DISTINCT s) FROM x", [(2,)]),
        ("SELECT repeat(service_name, 2) FROM logs WHERE _offset = 0", [("webweb",)]),
        (
            "SELECT body FROM logs WHERE body ~ 'con+e' AND body ILIKE '%TIMEOUT'",
            [(LOGS[2]["body"],)],
        ),
        ("SELECT count(*) FROM logs a, logs b", [(16,)]),
        ("SELECT unnest([1, 2])", [(1,), (2,)]),
    ],
)
def test_queries_return_the_expected_rows(
    engine: Engine, text: str, expected: list[tuple[Any, ...]]
) -> None:
    assert engine.sql(text).fetchall() == expected


@pytest.mark.parametrize("width", ["'1 minute'", "INTERVAL '1 minute'", "'60 seconds'"])
def test_time_buckets_are_aligned_to_1970(engine: Engine, width: str) -> None:
    """The width is a text or an interval."""
    rows = engine.sql(
        f"SELECT time_bucket({width}, time) AS t, count(*) FROM logs GROUP BY 1 ORDER BY 1"
    ).fetchall()
    begin = datetime.datetime(2026, 9, 21, 14, 13, tzinfo=datetime.UTC)
    minute = datetime.timedelta(minutes=1)
    assert rows == [(begin, 2), (begin + minute, 2)]


@pytest.mark.parametrize(
    ("view", "column", "expected"),
    [
        ("gauges", "value", [0.5, 2.0]),
        ("sums", "value", [9.0]),
        ("histograms", "bucket_counts", [[1, 2]]),
        ("exponential_histograms", "scale", [1]),
        ("summaries", "sum", [1.5]),
    ],
)
def test_a_view_has_one_metric_type(
    engine: Engine, view: str, column: str, expected: list[Any]
) -> None:
    assert engine.sql(f"SELECT {column} FROM {view} ORDER BY 1").fetchall() == [
        (value,) for value in expected
    ]


def test_a_view_has_only_the_columns_of_its_type(engine: Engine) -> None:
    with pytest.raises(Unknown, match="no column quantiles in gauges"):
        engine.sql("SELECT quantiles FROM gauges")


def test_show_and_describe_list_tables_and_columns(engine: Engine) -> None:
    tables = {row[2] for row in engine.sql("SHOW TABLES").fetchall() if row[1] == "public"}
    views = {"gauges", "sums", "histograms", "exponential_histograms", "summaries", "entry_spans"}
    assert tables == {
        *TABLES,
        *views,
        "snapshots",
        "statement_audit",
        "copy_history",
        "pipe_history",
    }
    described = engine.sql("DESCRIBE logs").fetchall()
    assert [row[0] for row in described] == TABLES["logs"].names
    assert len(engine.sql("SHOW COLUMNS FROM spans").fetchall()) == len(TABLES["spans"])


def test_rows_that_arrive_during_a_query_are_not_in_its_result() -> None:
    """The next query sees them."""
    shown: dict[str, tuple[Piece, ...]] = {"logs": (piece_of("logs", [log(0)]),)}
    with engine_over({}) as engine:
        engine._tiers._snapshot = lambda: shown
        result = engine.sql("SELECT count(*) FROM logs")
        shown = {"logs": (*shown["logs"], piece_of("logs", [log(1)]))}
        assert result.fetchall() == [(1,)]
        assert engine.sql("SELECT count(*) FROM logs").fetchall() == [(2,)]


def test_explain_shows_where_a_query_runs_and_what_it_reads(engine: Engine) -> None:
    text = "SELECT body FROM logs WHERE service_name = 'cart'"
    for word in ("EXPLAIN", "EXPLAIN ANALYZE"):
        rows = engine.sql(f"{word} {text}").fetchall()
        assert rows[0] == ("place", "in a worker process")
        kind, told = rows[1]
        assert kind == "pieces"
        assert told.splitlines() == [
            "logs: reads 1 of 2 pieces, 2 of 4 rows",
            "  skips 1: without the service",
        ]
        assert len(rows) > 2


def test_explain_shows_in_which_order_pieces_are_read(engine: Engine) -> None:
    rows = engine.sql("EXPLAIN SELECT * FROM logs ORDER BY time DESC LIMIT 7").fetchall()
    assert rows[1] == ("order", "pieces from the newest on, until 7 rows are found")


def test_functions_take_arguments_from_columns(engine: Engine) -> None:
    text = "SELECT matches(body, service_name || '*') FROM logs WHERE body IS NOT NULL"
    assert len(engine.sql(text).fetchall()) == 3
    with pytest.raises(Malformed, match="a word is missing"):
        engine.sql("SELECT matches(body, '') FROM logs").fetchall()
    with pytest.raises(Malformed, match="the JSON path 'x' does not begin"):
        engine.sql("SELECT get_json_object('{}', 'x')").fetchall()


def test_too_many_searches_from_a_column_are_rejected() -> None:
    rows = [log(at) for at in range(100)]
    text = "SELECT count(*) FROM logs WHERE matches(body, body)"
    with (
        engine_over({"logs": [piece_of("logs", rows)]}) as engine,
        pytest.raises(TooLarge, match="100 distinct second arguments"),
    ):
        engine.sql(text).fetchall()


def test_results_have_the_column_types_of_the_table(engine: Engine) -> None:
    """Also in a worker process."""
    for text in ("SELECT * FROM logs", "SELECT a.* FROM logs a, (SELECT 1) b"):
        found = engine.sql(text).arrow()
        assert [field.type for field in found.schema] == [field.type for field in TABLES["logs"]]
        assert isinstance(found, pa.Table)
        assert found.num_rows == 4


def test_a_closed_engine_rejects_queries() -> None:
    """Open results end with an error."""
    with engine_over({"logs": [piece_of("logs", LOGS)]}) as engine:
        result = engine.sql("SELECT * FROM logs")
    with pytest.raises(Unavailable, match="closed"):
        engine.sql("SELECT 1")
    with pytest.raises(Unavailable, match="closed"):
        result.fetchall()


@pytest.mark.parametrize(
    ("text", "kind", "rows"),
    [
        ("SELECT CASE WHEN body IS NULL THEN 1 ELSE body END FROM logs", pa.string(), ["line 0"]),
        ("SELECT max(_row) FROM logs UNION ALL SELECT 'x'", pa.string(), ["0", "x"]),
        ("SELECT coalesce(_row, 1.5) FROM logs", pa.float64(), [0.0]),
    ],
)
def test_values_of_several_types_get_their_common_type(
    text: str, kind: pa.DataType, rows: list[object]
) -> None:
    """The schema of a result is known before its rows, and is theirs."""
    with engine_over({"logs": [piece_of("logs", [log(0)])]}) as engine:
        result = engine.sql(text)
        assert result.schema.types == [kind]
        assert sorted(row[0] for row in result.fetchall()) == rows
