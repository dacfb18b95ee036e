"""Conversions and limits of a Result."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator

import pyarrow as pa
import pytest

from frazil.errors import TooLarge, Unavailable
from frazil.query import Engine
from frazil.query.engine import limited
from frazil.results import Limits
from frazil.settings import QueryConfig
from tests.query.build import engine_over, log, piece_of


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    rows = [log(at, attributes=[("k", str(at))]) for at in range(30)]
    config = QueryConfig(rows_max=100, concurrency_max=2, queue_timeout_ms=50)
    with engine_over({"logs": [piece_of("logs", rows)]}, config) as opened:
        yield opened


def test_a_result_is_an_arrow_stream(engine: Engine) -> None:
    """Batches as they arrive, one table, or the Arrow C stream."""
    text = "SELECT _offset AS n, body FROM logs ORDER BY n"
    schema = pa.schema([pa.field("n", pa.int64(), False), ("body", pa.string())])
    assert engine.sql(text).schema == schema
    batches = list(engine.sql(text))
    assert sum(batch.num_rows for batch in batches) == 30
    table = engine.sql(text).arrow()
    assert table == pa.Table.from_batches(batches)
    assert pa.RecordBatchReader.from_stream(engine.sql(text)).read_all() == table
    assert pa.table(engine.sql(text)) == table


def test_fetchall_returns_tuples(engine: Engine) -> None:
    """Maps are dicts; two columns of one name are two columns."""
    text = "SELECT _offset, attributes, a._row, b._row FROM logs a, (SELECT 5 AS _row) b LIMIT 1"
    assert engine.sql(text).fetchall() == [(0, {"k": "0"}, 0, 5)]
    assert engine.sql("SELECT 1 WHERE false").fetchall() == []


@pytest.mark.parametrize(("method", "library"), [("df", "pandas"), ("pl", "polars")])
def test_dataframes_of_other_libraries(engine: Engine, method: str, library: str) -> None:
    """Without the library, the error says what to install."""
    result = engine.sql("SELECT _offset FROM logs")
    try:
        importlib.import_module(library)
    except ImportError:
        with pytest.raises(Unavailable, match=f"pip install {library}"):
            getattr(result, method)()
        result.close()
    else:
        assert len(getattr(result, method)()) == 30


def test_a_notebook_shows_the_first_twenty_rows(engine: Engine) -> None:
    """Escaped; the rows can still be read."""
    result = engine.sql("SELECT '<b>' || body AS x, NULL AS y, chr(27) AS z FROM logs")
    shown = result._repr_html_()
    assert shown.count("<tr>") == 21
    assert "&lt;b&gt;line 0" in shown
    assert "<b>" not in shown
    assert "\x1b" not in shown
    assert "the first 20 rows" in shown
    assert len(result.fetchall()) == 30
    assert "line 0" not in engine.sql("SELECT repeat('x', 9000) AS x")._repr_html_()


def test_maps_and_numbers_in_a_notebook(engine: Engine) -> None:
    shown = engine.sql("SELECT attributes, _offset FROM logs LIMIT 1")._repr_html_()
    assert '<td style="text-align:left;vertical-align:top">k: 0</td>' in shown
    assert '<td style="text-align:right;vertical-align:top">0</td>' in shown


def test_a_wide_result_is_cut_in_a_notebook(engine: Engine) -> None:
    """Columns and cell lengths are limited."""
    columns = ", ".join(f"{n} AS c{n}" for n in range(50))
    shown = engine.sql(f"SELECT {columns}")._repr_html_()
    assert "c39" in shown
    assert "c40" not in shown
    assert "40 of 50 columns" in shown
    assert len(engine.sql("SELECT repeat('x', 9000) AS x")._repr_html_()) < 1000


def test_rows_are_limited(engine: Engine) -> None:
    """Iteration sets `is_cut`; methods that return all rows raise."""
    text = "SELECT 1 FROM logs a, logs b"
    with engine.sql(text) as result:
        assert sum(batch.num_rows for batch in result) == 100
        assert result.is_cut
    for whole in ("arrow", "fetchall"):
        with pytest.raises(TooLarge, match="more than 100 rows"):
            getattr(engine.sql(text), whole)()
    with pytest.raises(Exception, match="rows_max"):
        pa.RecordBatchReader.from_stream(engine.sql(text)).read_all()


@pytest.mark.parametrize(("rows_max", "is_cut"), [(29, True), (30, False), (31, False), (1, True)])
def test_a_result_of_exactly_the_limit_is_whole(
    engine: Engine, rows_max: int, is_cut: bool
) -> None:
    result = engine.sql("SELECT 1 FROM logs", limits=Limits(rows_max=rows_max))
    assert sum(batch.num_rows for batch in result) == min(rows_max, 30)
    assert result.is_cut is is_cut


def test_a_query_cannot_raise_the_engine_limit(engine: Engine) -> None:
    config = QueryConfig(rows_max=100, timeout_ms=500)
    asked = limited(config, Limits(rows_max=1000, timeout_ms=7, memory_bytes_max=None))
    assert (asked.rows_max, asked.timeout_ms) == (100, 7)
    assert asked.memory_bytes_max == config.memory_bytes_max


def test_a_finished_result_frees_its_slot(engine: Engine) -> None:
    """Read to the end, closed, left by `with`, or garbage collected."""
    for _ in range(5):
        engine.sql("SELECT 1").fetchall()
        engine.sql("SELECT 1").close()
        with engine.sql("SELECT 1 FROM logs a, logs b"):
            pass
        engine.sql("SELECT 1")
        gc.collect()
    with pytest.raises(Exception, match="no column x"):
        engine.sql("SELECT x FROM logs")
    one, two = engine.sql("SELECT 1"), engine.sql("SELECT 2")
    assert (one.fetchall(), two.fetchall()) == ([(1,)], [(2,)])


def test_repr_lists_the_columns(engine: Engine) -> None:
    assert (
        repr(engine.sql("SELECT _offset, body FROM logs")) == "Result(_offset int64, body string)"
    )
