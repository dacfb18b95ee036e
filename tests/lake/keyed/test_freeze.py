"""Freezing without Spark: tasks run in the process of the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent
from sqlalchemy.exc import OperationalError

from frazil.errors import Conflict, Corrupt, Fenced, Unavailable
from frazil.lake import LakeView
from frazil.lake.append.commit import next_offsets
from frazil.lake.catalog.relocate import relocate
from frazil.lake.keyed import commit, delete_task
from frazil.lake.keyed.definition import LOG_PARTITION, OFFSET, ROW
from frazil.lake.keyed.delete_task import find_positions
from frazil.lake.keyed.merge_files import DEAD_PERCENT
from frazil.lake.keyed.read_rows import read_rows
from frazil.lake.keyed.row_positions import PositionCache, RowPositions
from frazil.lake.keyed.snapshot_files import snapshot_files
from frazil.lake.scan.position_deletes import read_positions
from frazil.model import Rand, TopicPartition
from frazil.tables import Operation
from tests.lake.keyed.engines import rows_by_key, with_pyiceberg
from tests.lake.keyed.world import CONFIG, NAME, KeyedWorld, keyed_world, new_row
from tests.lake.maintain.tables import data_files, local

RAND = Random(3)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KeyedWorld]:
    with keyed_world(tmp_path / "data") as opened:
        yield opened


def rows(*ids: int) -> list[dict[str, Any]]:
    return [new_row(RAND, number) for number in ids]


def test_a_round_advances_offsets_and_lets_the_log_trim(world: KeyedWorld) -> None:
    """Also if no row has changed; the watermark of the topic follows."""
    world.write(Operation.DELETE, [{"id": 1}])
    (done,) = world.freeze()
    assert done.row_count == 0
    world.write(Operation.UPSERT, rows(1, 2, 3))
    (done,) = world.freeze()
    assert done.row_count == 3
    topic = world.keyed.definition.topic
    ends = {p.index: p.view.last_stable_offset for p in world.log.topic(topic).partitions}
    assert next_offsets(world.table()) == {TopicPartition(topic, n): e for n, e in ends.items()}
    assert {n: world.log.lake_watermark(topic, n) for n in ends} == ends
    assert world.freezer.pending_bytes == 0
    assert world.freeze() == []
    assert with_pyiceberg(world.table()) == world.rows


def test_one_delete_file_per_data_file(world: KeyedWorld) -> None:
    """It has all dead positions, old and new, and replaces the one before."""
    world.write(Operation.UPSERT, rows(*range(100)))
    world.freeze()
    for begin in (0, 10, 50):
        world.write(Operation.DELETE, [{"id": begin + n} for n in range(5)])
        world.freeze()
        (file,) = snapshot_files(world.table(), world.table().current_snapshot())
        positions = read_positions(file.deletes_path, world.table().io)
        assert len(positions) == file.dead_count == 100 - len(world.rows)
        assert with_pyiceberg(world.table()) == world.rows
    summary: Any = world.table().metadata.snapshots[-1].summary
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("1", "15")


def test_small_rounds_cover_large_changes(
    world: KeyedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit is the fold of a prefix that ends between two records."""
    monkeypatch.setattr("frazil.lake.keyed.freezer.ROUND_BYTES_MAX", 2_000)
    monkeypatch.setattr("frazil.lake.keyed.freezer.TASK_BYTES", 500)
    for begin in range(0, 300, 50):
        world.write(Operation.UPSERT, rows(*range(begin, begin + 50)))
        world.write(
            Operation.UPDATE, [{"id": n // 2, "amount": n} for n in range(begin)] or rows(0)
        )
    commits = 0
    while world.freezer.freeze(world.definition()) is not None:
        commits += 1
        table = world.table()
        offsets = {key.partition: offset for key, offset in next_offsets(table).items()}
        view = world.keyed.view().as_of(offsets)
        expected = {row["id"]: row for batch in view.batches() for row in batch.to_pylist()}
        assert with_pyiceberg(table) == expected
    assert commits > 3
    assert with_pyiceberg(world.table()) == world.rows


def test_a_table_created_again_gets_a_new_one(world: KeyedWorld) -> None:
    """The old one is renamed, with its rows, and new files are elsewhere."""
    world.write(Operation.UPSERT, rows(1, 2))
    world.freeze()
    old, old_rows = world.table(), world.rows
    world.drop_and_create()
    world.write(Operation.UPSERT, rows(3))
    world.freeze()
    kept = f"{NAME}__deleted_{old.properties['frazil.table-id'][:8]}"
    assert with_pyiceberg(world.catalog.load_table((CONFIG.namespace, kept))) == old_rows
    assert with_pyiceberg(world.table()) == world.rows
    assert world.table().location() != old.location()


def test_a_table_dropped_in_the_catalog_is_written_again(world: KeyedWorld) -> None:
    world.write(Operation.UPSERT, rows(*range(50)))
    world.freeze()
    world.write(Operation.DELETE, [{"id": n} for n in range(20)])
    world.catalog.drop_table((CONFIG.namespace, NAME))
    world.freeze()
    assert with_pyiceberg(world.table()) == world.rows


def test_a_name_that_is_taken_is_refused(world: KeyedWorld) -> None:
    world.catalog.create_namespace(CONFIG.namespace)
    other = world.catalog.create_table((CONFIG.namespace, NAME), pa.schema([("a", pa.int32())]))
    world.write(Operation.UPSERT, rows(1))
    with pytest.raises(Unavailable, match="is not a keyed table"):
        world.freeze()
    assert world.table().metadata.table_uuid == other.metadata.table_uuid


def test_an_unknown_outcome_is_looked_up(
    world: KeyedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is there, and its answer is lost: it is not made twice."""
    world.write(Operation.UPSERT, rows(1, 2))
    world.freeze()
    original, calls = SqlCatalog.commit_table, []

    def lose(self: SqlCatalog, *args: Any) -> Any:
        answer = original(self, *args)
        calls.append(1)
        if len(calls) == 1:
            raise OperationalError("the connection was lost", None, Exception())
        return answer

    world.write(Operation.UPSERT, rows(2, 3))
    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", lose)
        world.freeze()
    assert len(calls) == 1
    assert with_pyiceberg(world.table()) == world.rows
    assert len(world.table().metadata.snapshots) == 2


def test_a_change_of_the_table_meanwhile_is_planned_again(
    world: KeyedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions are of files that compaction has replaced: they are looked up again."""
    world.write(Operation.UPSERT, rows(*range(30)))
    world.freeze()
    world.write(Operation.DELETE, [{"id": n} for n in range(10)])
    world.freeze()
    original, calls = commit._swap, []

    def late(*args: Any) -> int:
        calls.append(1)
        return original(*args)

    world.write(Operation.UPSERT, rows(15, 99))
    run = world.freezer._run

    def compact_meanwhile(*tasks: Any) -> Any:
        done = run(*tasks)
        if not calls:
            assert world.maintenance().compact(NAME).files_made == 1
            monkeypatch.setattr(commit, "_swap", late)
            calls.append(0)
        return done

    monkeypatch.setattr(world.freezer, "_run", compact_meanwhile)
    world.freeze()
    assert calls == [0, 1]
    assert with_pyiceberg(world.table()) == world.rows


def test_only_the_last_freezer_commits(world: KeyedWorld) -> None:
    world.write(Operation.UPSERT, rows(1))
    world.freeze()
    other = world.open_freezer()
    world.write(Operation.UPSERT, rows(2))
    assert len(list(other.freeze_all())) == 1
    world.write(Operation.UPSERT, rows(3))
    with pytest.raises(Fenced):
        world.freeze()


def test_a_row_that_is_not_found_stops_the_freeze(
    world: KeyedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with files that others have put into the table."""
    world.write(Operation.UPSERT, rows(1, 2))
    world.freeze()
    before = world.table().metadata.current_snapshot_id
    world.write(Operation.DELETE, [{"id": 1}])
    none = np.empty(0, np.int64)
    monkeypatch.setattr(delete_task, "find_positions", lambda *_: (none, none))
    with pytest.raises(Conflict, match=f"snapshot {before} of frazil.orders has row"):
        world.freeze()
    assert world.table().metadata.current_snapshot_id == before


def test_foreign_deletes_are_refused(world: KeyedWorld) -> None:
    """Equality deletes, even if they come with a summary like ours."""
    world.write(Operation.UPSERT, rows(1, 2))
    world.freeze()
    world.write(Operation.DELETE, [{"id": 1}])
    world.freeze()
    table = world.table()
    (before,) = [f for f in data_files(table) if f.content is not DataFileContent.DATA]
    deletes = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=before.file_path,
        file_format=before.file_format,
        partition=before.partition,
        record_count=1,
        file_size_in_bytes=before.file_size_in_bytes,
        equality_ids=[1],
    )
    deletes.spec_id = 0
    change = commit.KeyedChange(
        table_id=table.properties["frazil.table-id"],
        parent=table.metadata.current_snapshot_id,
        added=[deletes],
        offsets=next_offsets(table),
        next_rows={},
        appender=None,
        commit_id="other",
    )
    commit._swap(table, change)
    table = world.table()
    with pytest.raises(Conflict, match=f"snapshot {table.metadata.current_snapshot_id} .* delete"):
        snapshot_files(table, table.current_snapshot())
    view = LakeView(CONFIG, world.folder)
    refusal = view.pin([NAME]).tables[NAME].refusal
    view.close()
    assert refusal is not None and f"snapshot {table.metadata.current_snapshot_id}" in refusal


def test_a_rollback_is_refused(world: KeyedWorld) -> None:
    for number in range(2):
        world.write(Operation.UPSERT, rows(number))
        world.freeze()
    table = world.table()
    first, last = (snapshot.snapshot_id for snapshot in table.metadata.snapshots)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    world.write(Operation.UPSERT, rows(9))
    with pytest.raises(Conflict, match=f"snapshot {first} .* {last}"):
        world.freeze()
    (done,) = [each for each in world.maintenance().all() if each.table == NAME]
    assert len(done.trouble) >= 2, "neither compacted nor expired"


def test_compaction_applies_deletes(world: KeyedWorld) -> None:
    """Files that are mostly dead are rewritten; rows keep their numbers and offsets."""
    world.write(Operation.UPSERT, rows(*range(100)))
    world.freeze()
    world.write(Operation.UPSERT, rows(*range(100, 200)))
    world.freeze()
    share = DEAD_PERCENT - 1
    world.write(Operation.DELETE, [{"id": n} for n in range(share)])
    world.freeze()
    maintenance = world.maintenance()
    assert maintenance.compact(NAME).is_nothing
    world.write(Operation.DELETE, [{"id": share}])
    world.freeze()
    before = numbers(world)
    done = maintenance.compact(NAME)
    assert (done.files_joined, done.files_made) == (1, 1)
    assert numbers(world) == before
    assert with_pyiceberg(world.table()) == world.rows
    assert not any(file.content.value for file in data_files(world.table()))
    assert maintenance.compact(NAME).is_nothing
    world.write(Operation.DELETE, [{"id": n} for n in range(200)])
    world.freeze()
    assert maintenance.compact(NAME).files_made == 0
    assert data_files(world.table()) == []


def numbers(world: KeyedWorld) -> list[tuple[int, ...]]:
    found = world.table().scan().to_arrow().select(["id", LOG_PARTITION, OFFSET, ROW])
    return sorted(tuple(row.values()) for row in found.to_pylist())


def test_many_rounds_leave_few_files_and_manifests(world: KeyedWorld) -> None:
    """Expiry deletes replaced delete files; nothing that a snapshot needs is an orphan."""
    rand = Random(7)
    maintenance = world.maintenance()
    for number in range(40):
        world.change(rand, 60, 100)
        world.freeze()
        if number % 8 == 7:
            maintenance.compact(NAME)
        kinds = [file.content.value for file in data_files(world.table())]
        assert kinds.count(1) <= kinds.count(0)
    maintenance.join_manifests(NAME)
    table = world.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) <= 2 * commit.MANIFESTS_MAX
    keep = replace(maintenance._snapshots_kept(), is_purge=True)
    done = maintenance._expire(NAME, keep)
    assert done.snapshots_expired > 30
    folder = local(table.location()) / "data"
    names = {path.name for path in folder.iterdir()}
    assert names == {local(file.file_path).name for file in data_files(world.table())}
    assert maintenance.remove_orphans(NAME, is_purge=True).orphans_removed == 0
    assert with_pyiceberg(world.table()) == world.rows


def test_orphans_of_a_killed_freeze_are_removed(
    world: KeyedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(Operation.UPSERT, rows(1, 2))
    world.freeze()
    world.write(Operation.UPSERT, rows(2, 3))

    def die(*_: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(commit, "_swap", die)
        with pytest.raises(KeyboardInterrupt):
            world.freeze()
    done = world.maintenance().remove_orphans(NAME, is_purge=True)
    assert done.orphans_removed == 2, "a data file and a delete file"
    world.freeze()
    assert with_pyiceberg(world.table()) == world.rows


def test_rows_of_a_snapshot_rebuild_local_files(world: KeyedWorld) -> None:
    """Columns in their own types, offsets, row numbers, and where to go on; of any snapshot."""
    world.change(Random(1), 100, 50)
    world.write(Operation.UPSERT, rows(*range(20)))
    world.freeze()
    first = world.table().metadata.current_snapshot_id
    then = _frozen(world, None)
    world.write(Operation.DELETE, [{"id": n} for n in range(10)])
    world.freeze()
    assert _frozen(world, first) == then
    assert _frozen(world, None)[0] == world.rows


def _frozen(world: KeyedWorld, snapshot_id: int | None) -> tuple[Any, ...]:
    found: dict[Any, Any] = {}
    places = []
    for number, view in enumerate(world.keyed.view().partitions):
        frozen = read_rows(world.table(), world.definition(), number, snapshot_id)
        assert frozen is not None
        batches = list(frozen.batches)
        for batch in batches:
            assert batch.schema.names == [*view.definition.schema.names, OFFSET, ROW]
            found |= {row["id"]: row for row in batch.to_pylist()}
        places.append((frozen.position.offset, frozen.position.row))
        if snapshot_id is None:
            assert places[-1] == (view.end_offset, view.row_count)
            live = [
                n for batch in view.rows_between(0, view.row_count) for n in batch[ROW].to_pylist()
            ]
            assert sorted(n for batch in batches for n in batch[ROW].to_pylist()) == live
    plain = {
        key: {name: value for name, value in row.items() if not name.startswith("_")}
        for key, row in found.items()
    }
    return plain, places


@given(st.data())
def test_positions_are_found(data: st.DataObject) -> None:
    """As a loop would find them, in arrays and by search."""
    pairs = data.draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 40) | st.integers(2**39, 2**39 + 9)),
            unique=True,
            max_size=60,
        )
    )
    held = data.draw(st.permutations(pairs))[: len(pairs) // 2 + 1]
    dead = sorted(data.draw(st.permutations(pairs))[: len(pairs) // 2])
    partitions, numbers, dead_partitions, dead_rows = (
        np.array([pair[n] for pair in each], np.int64) for each in (held, dead) for n in (0, 1)
    )
    positions, found = find_positions(
        RowPositions("", partitions.astype(np.int32), numbers), dead_partitions, dead_rows
    )
    expected = {(held.index(pair), dead.index(pair)) for pair in dead if pair in held}
    assert set(zip(positions.tolist(), found.tolist(), strict=True)) == expected
    assert len(positions) == len(expected)


def test_a_file_with_a_row_version_twice_is_damaged() -> None:
    for last in (3, 2**39):
        with pytest.raises(Corrupt, match="partition 1 twice"):
            RowPositions("a", np.array([0, 1, 1, 1], np.int32), np.array([2, 2, last, 2]))


def test_positions_are_kept_within_a_budget(world: KeyedWorld) -> None:
    """The file that was used last stays."""
    for begin in (0, 50):
        world.write(Operation.UPSERT, rows(*range(begin, begin + 50)))
        world.freeze()
    paths = [file.file_path for file in data_files(world.table())]
    cache = PositionCache(bytes_max=250)
    first = cache.of(paths[0], world.table().io)
    assert cache.of(paths[0], world.table().io) is first
    last = cache.of(paths[1], world.table().io)
    assert cache.of(paths[1], world.table().io) is last
    assert cache.of(paths[0], world.table().io) is not first


def test_a_copied_folder_has_its_deletes(tmp_path: Path) -> None:
    """Delete files name data files: those of the copy name the copy's, in every snapshot."""
    old, new = tmp_path / "old", tmp_path / "a longer name" / "new"
    past = []
    with keyed_world(old) as world:
        for number in range(3):
            world.write(Operation.UPSERT, rows(*range(10 * number, 10 * number + 20)))
            world.write(Operation.DELETE, [{"id": 10 * number}])
            world.freeze()
            past.append(dict(world.rows))
    shutil.copytree(old, new)
    assert relocate(CONFIG, new, Rand(7)) == ["frazil.orders"]
    shutil.rmtree(old)
    with keyed_world(new) as world:
        table = world.table()
        for snapshot, then in zip(table.metadata.snapshots, past, strict=True):
            assert (
                rows_by_key(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist())
                == then
            )
        world.rows = past[-1]
        world.write(Operation.DELETE, [{"id": 25}])
        world.freeze()
        assert with_pyiceberg(world.table()) == world.rows
        assert world.maintenance().compact(NAME, is_all=True).files_made == 1
        assert with_pyiceberg(world.table()) == world.rows
