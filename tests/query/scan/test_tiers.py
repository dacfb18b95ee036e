"""Hot tier and lake together have every row once, whatever happens at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from frazil.errors import Rejected, Unavailable
from frazil.hot import VisiblePieces
from frazil.lake import LakeView
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import HotConfig, LakeConfig, QueryConfig
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
    """Return the expected row of COUNT for a number of requests."""
    return [(ROWS * offsets, offsets, 0, offsets)]


def test_every_row_appears_once_on_its_way_to_the_lake(world: World) -> None:
    """Visible in the hot tier, then committed, sealed and evicted."""
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


def test_a_busy_worker_unmaps_files_that_were_evicted(world: World) -> None:
    """Until then they take memory, and their space on the disk."""
    text = "SELECT max(body) FROM logs"
    world.add(10)
    world.show()
    world.seal()
    world.ask(text)
    world.flush()
    (worker,) = world.engine._workers._idle
    maps = Path(f"/proc/{worker._pid}/maps")
    assert ".arrow" in maps.read_text()
    assert world.tier.evict_below("otlp_logs", 10) == 1
    pause = threading.Event()
    for _ in range(200):
        world.ask(text)
        if ".arrow" not in maps.read_text():
            break
        pause.wait(0.05)
    assert ".arrow" not in maps.read_text()
    assert world.engine._workers._idle == [worker]


def test_map_values_are_counted_over_both_tiers(world: World) -> None:
    """DataFusion reads the tiers as a union."""
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


def test_a_piece_that_the_lake_has_in_part(world: World) -> None:
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


def test_the_lake_may_be_ahead_of_the_hot_tier(world: World) -> None:
    world.add(10)
    world.flush()
    assert world.ask(COUNT) == whole(10)


def test_an_outdated_lake_view_is_correct(world: World) -> None:
    """Rows of a commit that queries do not know yet come from the hot tier."""
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
def test_a_commit_during_the_start_of_a_query(world: World, is_before: bool) -> None:
    """Before or after the hot rows are taken, with eviction."""
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


def test_dead_letters_appear_once(world: World) -> None:
    """Also after commits without dead letters."""
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


def test_both_tiers_have_the_same_columns_and_values(world: World) -> None:
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


def test_a_worker_reads_both_tiers(world: World) -> None:
    world.add(6)
    world.flush()
    world.add(3)
    world.show()
    assert world.ask(JOIN) == [(9 * ROWS, 9)]


@pytest.mark.parametrize("order", ["DESC", "ASC"])
def test_top_n_over_both_tiers(world: World, order: str) -> None:
    for _ in range(5):
        world.add(2)
        world.flush()
    world.add(2)
    world.show()
    text = f"SELECT _offset, _row FROM logs ORDER BY time {order}, _offset, _row"
    assert world.ask(f"{text} LIMIT 4") == world.ask(text)[:4]


def test_cached_counts_of_both_tiers(world: World) -> None:
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


def test_only_rows_that_the_lake_has_are_evicted(tmp_path: Path) -> None:
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
def test_a_missing_data_file_is_an_error(world: World, text: str) -> None:
    """DataFusion would read it as a file without rows."""
    world.add(3)
    world.flush()
    cold = world.view.pin().tables["logs"]
    (Path(cold.root) / cold.files[0].path).unlink()
    with pytest.raises(Unavailable, match="is missing"):
        world.ask(text)


def test_a_damaged_data_file_is_named(world: World) -> None:
    """By every way to run a query."""
    world.add(3)
    world.flush()
    cold = world.view.pin().tables["logs"]
    (Path(cold.root) / cold.files[0].path).write_bytes(b"PAR1" + bytes(100))
    for text in ("SELECT service_name, count(*) FROM logs GROUP BY 1", "SELECT body FROM logs"):
        with pytest.raises(Unavailable, match="a data file cannot be read"):
            world.ask(text)


def test_no_query_can_name_a_file(world: World) -> None:
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


def test_an_unreadable_lake_is_an_error(tmp_path: Path) -> None:
    """Its rows may be nowhere else."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").write_bytes(b"this is no database, whatever its name is")
    view = LakeView(LakeConfig(), tmp_path)
    with Engine.open(dict, TABLES, QueryConfig(), CLOCK, view) as engine:
        with pytest.raises(Unavailable, match="does not respond"):
            engine.sql("SELECT count(*) FROM logs")
        assert engine.sql("SELECT 1").fetchall() == [(1,)]


def test_counts_are_correct_during_commits_and_evictions(world: World) -> None:
    """Several threads query while rows arrive, are committed, sealed and evicted."""
    world.add(1)
    world.show()
    done = threading.Event()
    known = [1]
    """Requests that are certainly visible; more may be."""

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
