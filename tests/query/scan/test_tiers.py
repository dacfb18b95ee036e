"""Hot tier and lake give one answer: every row once, whatever happens at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frazil.errors import Rejected, Unavailable
from frazil.hot import HotConfig, VisiblePieces
from frazil.lake import LakeConfig, LakeView
from frazil.model.arrow import TABLES
from frazil.query import Engine, QueryConfig
from tests.query.both_tiers import CLOCK, ROWS, World, both_tiers

COUNT = "SELECT count(*), count(DISTINCT _offset), min(_offset), max(_offset) + 1 FROM logs"

JOIN = (
    "SELECT count(*), count(DISTINCT l._offset) FROM logs l "
    "JOIN spans s ON l._offset = s._offset AND l._row = s._row"
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with both_tiers(tmp_path / "data") as world:
        yield world


def whole(offsets: int) -> list[tuple[int, int, int, int]]:
    """What COUNT says of so many requests."""
    return [(ROWS * offsets, offsets, 0, offsets)]


def test_a_row_is_there_once_on_its_way(world: World) -> None:
    """Shown by the hot tier, then committed, then sealed, then evicted: always one answer."""
    world.add(10)
    world.show()
    assert world.ask(COUNT) == whole(10)
    world.flush()
    assert world.ask(COUNT) == whole(10)
    world.seal()
    assert world.ask(COUNT) == whole(10)
    assert world.tier.evict_below("otlp_logs", 10) == 1
    assert world.ask(COUNT) == whole(10)
    assert world.ask("SELECT count(*) FROM spans") == [(10 * ROWS,)]


def test_values_of_a_map_in_both_tiers(world: World) -> None:
    """Parts of a map are counted over both tiers, which the engine joins as a union."""
    world.add(2)
    world.flush()
    world.add(2)
    world.show()
    value = "coalesce(attributes['k'], event_name)"
    for text in (
        f"SELECT count(DISTINCT {value}) FROM logs",
        "SELECT count(DISTINCT attributes['k']) FROM logs",
        f"SELECT count(DISTINCT {value}) FROM logs WHERE attributes['k'] IS NULL",
        "SELECT count(DISTINCT resource_attributes['k']) FROM logs WHERE service_name <> ''",
    ):
        assert world.ask(text) == [(4 * ROWS if value in text else 0,)]


def test_the_boundary_lies_within_a_piece(world: World) -> None:
    """A piece of which the lake holds some rows counts from where the lake ends."""
    world.add(10)
    world.flush()
    world.add(7)
    world.show()
    (piece,) = world.tier.pieces("logs")
    assert (piece.offset_begin, piece.offset_end) == (0, 17)
    assert world.ask(COUNT) == whole(17)
    told = "\n".join(row[1] for row in world.ask(f"EXPLAIN {COUNT}"))
    assert "reads 1 of 1 pieces and 1 of 1 files, 51 of 51 rows" in told
    assert "lake: snapshot" in told


def test_the_lake_may_be_ahead(world: World) -> None:
    """The hot tier has not even read what is in the tables already."""
    world.add(10)
    world.flush()
    assert world.ask(COUNT) == whole(10)


def test_a_view_of_before_is_right(world: World) -> None:
    """Nobody has told the queries of the last commit: they take its rows from the hot tier."""
    world.add(5)
    world.flush()
    world.add(5)
    world.show()
    while world.appender.append():
        pass
    assert world.ask(COUNT) == whole(10)
    world.view.refresh()
    assert world.ask(COUNT) == whole(10)


@pytest.mark.parametrize("is_before", [True, False])
def test_a_commit_lands_while_a_query_begins(world: World, is_before: bool) -> None:
    """Right before or right after the hot rows are taken, with eviction and all: one answer."""
    world.add(4)
    world.flush()
    world.add(4)
    world.show()

    def all_at_once() -> None:
        world.flush()
        world.seal()
        assert world.tier.evict_below("otlp_logs", world.view.held("logs", "otlp_logs", 0)) == 1

    def snapshot() -> VisiblePieces:
        if is_before:
            all_at_once()
        shown = world.tier.visible_pieces()
        if not is_before:
            all_at_once()
        return shown

    world.engine._tiers._snapshot = snapshot
    assert world.ask(COUNT) == whole(8)


def test_dead_letters_have_their_own_boundary(world: World) -> None:
    """Those of both tiers, each once, also when rounds without any lie between."""
    for _ in range(3):
        world.add_bad()
        world.add(2)
        world.show()
        assert world.ask("SELECT count(*) FROM dead_letters") == [(world.counts["bad"],)]
        world.flush()
        assert world.ask("SELECT count(*) FROM dead_letters") == [(world.counts["bad"],)]
    world.add(2)
    world.add_bad()
    world.show()
    assert world.ask("SELECT count(DISTINCT _offset), count(*) FROM dead_letters") == [(4, 4)]


def test_every_column_of_both_tiers_is_the_same(world: World) -> None:
    """One schema, one value, wherever a row lies."""
    world.add(4)
    world.add_bad()
    world.show()
    asked = {
        table: f"SELECT * FROM {table} ORDER BY _offset, _row"
        for table in ("logs", "spans", "dead_letters")
    }
    hot = {table: world.engine.sql(text).arrow() for table, text in asked.items()}
    world.flush()
    for table, text in asked.items():
        cold = world.engine.sql(text).arrow()
        assert cold.schema.names == hot[table].schema.names
        assert cold.schema.types == hot[table].schema.types
        assert cold.to_pylist() == hot[table].to_pylist()


def test_a_process_apart_reads_both(world: World) -> None:
    """A join runs elsewhere, over the same rows."""
    world.add(6)
    world.flush()
    world.add(3)
    world.show()
    assert world.ask(JOIN) == [(9 * ROWS, 9)]


@pytest.mark.parametrize("order", ["DESC", "ASC"])
def test_the_first_rows_by_time(world: World, order: str) -> None:
    """From many files and pieces, as from all rows at once."""
    for _ in range(5):
        world.add(2)
        world.flush()
    world.add(2)
    world.show()
    text = f"SELECT _offset, _row FROM logs ORDER BY time {order}, _offset, _row"
    assert world.ask(f"{text} LIMIT 4") == world.ask(text)[:4]


def test_counts_of_both_tiers(world: World) -> None:
    """Counted by file and piece, kept, and added up: the same as counting every row."""
    for _ in range(3):
        world.add(3)
        world.flush()
    world.add(2)
    world.show()
    text = "SELECT service_name, severity_number, count(*) AS n FROM logs GROUP BY 1, 2"
    plain = "SELECT service_name, severity_number, count(time) AS n FROM logs GROUP BY 1, 2"
    assert world.ask(text) == world.ask(plain) == world.ask(text)
    world.flush()
    assert world.ask(text) == world.ask(plain)
    many = "SELECT _offset, count(*) FROM logs GROUP BY 1 ORDER BY 1"
    assert world.ask(many) == [(offset, ROWS) for offset in range(11)]


def test_only_what_the_lake_holds_is_evicted(tmp_path: Path) -> None:
    """Above the cap the oldest go that queries get from the lake, and nothing else; what has to
    stay is told."""
    small = HotConfig(seal_bytes=1, memory_bytes_max=1 << 30, disk_bytes_max=2)
    with both_tiers(tmp_path / "data", small) as world:
        world.add(5)
        world.show()
        world.seal()
        assert world.tier.disk_trouble is not None
        assert "the lake does not have these rows yet" in world.tier.disk_trouble
        assert world.ask(COUNT) == whole(5)
        while world.appender.append():
            pass
        world.tier.seal()
        assert world.tier.pieces("logs"), "committed, but no query would see it there"
        assert world.ask(COUNT) == whole(5)
        world.view.refresh()
        world.tier.seal()
        assert world.tier.disk_trouble is None
        assert world.tier.pieces("logs") == ()
        assert world.ask(COUNT) == whole(5)


@pytest.mark.parametrize("text", [COUNT, "SELECT body FROM logs", JOIN])
def test_a_file_that_is_gone_is_no_short_answer(world: World, text: str) -> None:
    """The engine takes it for one without rows. Nobody else may."""
    world.add(3)
    world.flush()
    cold = world.view.pin().tables["logs"]
    (Path(cold.root) / cold.files[0].path).unlink()
    with pytest.raises(Unavailable, match="is missing"):
        world.ask(text)


def test_a_damaged_file_is_named(world: World) -> None:
    """Whatever way the query takes."""
    world.add(3)
    world.flush()
    cold = world.view.pin().tables["logs"]
    (Path(cold.root) / cold.files[0].path).write_bytes(b"PAR1" + bytes(100))
    for text in ("SELECT service_name, count(*) FROM logs GROUP BY 1", "SELECT body FROM logs"):
        with pytest.raises(Unavailable, match="a data file cannot be read"):
            world.ask(text)


def test_no_text_names_a_file(world: World) -> None:
    """Files of the lake are read because a table has them, and in no other way."""
    world.add(3)
    world.flush()
    cold = world.view.pin().tables["logs"]
    path = cold.files[0].path
    for name in (f"lake://logs-0/{path}", f"file://{cold.root}{path}", cold.root + path):
        for text in (
            f"SELECT * FROM '{name}'",
            f'SELECT * FROM "{name}"',
            f"SELECT count(*) FROM logs, '{name}' AS other",
            f"SELECT * FROM read_parquet('{name}')",
            f"CREATE EXTERNAL TABLE other STORED AS PARQUET LOCATION '{name}'",
            f"COPY (SELECT * FROM logs) TO '{name}'",
        ):
            with pytest.raises(Rejected):
                world.ask(text)
    assert world.ask(COUNT) == whole(3)


def test_a_lake_that_cannot_be_read_is_no_short_answer(tmp_path: Path) -> None:
    """Its rows may be in no other place."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").write_bytes(b"this is no database, whatever its name is")
    view = LakeView(LakeConfig(), tmp_path)
    with Engine.open(dict, TABLES, QueryConfig(), CLOCK, view) as engine:
        with pytest.raises(Unavailable, match="does not answer"):
            engine.sql("SELECT count(*) FROM logs")
        assert engine.sql("SELECT 1").fetchall() == [(1,)]


def test_never_a_wrong_count(world: World) -> None:
    """Several ask all the time, while rows come, are committed, sealed and evicted."""
    world.add(1)
    world.show()
    done = threading.Event()
    known = [1]
    """Requests that are visible for certain; more may be."""

    def ask() -> int:
        asked = 0
        while not done.is_set():
            least = known[0]
            ((rows, offsets, first, end),) = world.ask(COUNT)
            assert (rows, offsets, first) == (ROWS * end, end, 0)
            assert end >= least
            by_service = world.ask("SELECT service_name, count(*) FROM spans GROUP BY 1")
            total = sum(count for _, count in by_service)
            assert total % ROWS == 0 and total >= ROWS * least
            asked += 1
        return asked

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            for turn in range(12):
                world.add(3)
                if turn % 3:
                    world.show()
                    known[0] = world.counts["logs"] // ROWS
                world.flush()
                known[0] = world.counts["logs"] // ROWS
                if turn % 2:
                    world.seal()
                for topic, table in (("otlp_logs", "logs"), ("otlp_spans", "spans")):
                    world.tier.evict_below(topic, world.view.held(table, topic, 0))
        finally:
            done.set()
        assert min(future.result() for future in asking) > 2
