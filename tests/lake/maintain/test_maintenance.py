"""Maintenance changes how rows lie, and never which rows there are: whoever commits meanwhile, and
whatever step it is killed at."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot
from sqlalchemy.exc import OperationalError

from frazil.disk import RealDisk
from frazil.errors import Conflict
from frazil.lake.append.commit import next_offsets
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.maintain import maintenance as maintaining
from frazil.lake.maintain.expire_snapshots import DAY_MS, HOUR_MS, SnapshotRetention, plan_expiry
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.maintain.orphan_files import normalized
from frazil.lake.maintain.replace_files import MANIFESTS_MAX
from frazil.lake.tables.properties import SORT_COLUMNS
from frazil.log import Log
from frazil.model import SystemClock
from frazil.settings import LakeConfig, TopicConfig
from tests.lake.append.test_appender import CLOCK, SMALL, World, expected


class Later(SystemClock):
    """The wall clock, some time ahead."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self._ahead_ms

    def sleep(self, seconds: float) -> None:
        """Tests do not wait."""


def do_here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def maintenance(world: World, ahead_ms: int = 0, config: LakeConfig = SMALL) -> Maintenance:
    return Maintenance(
        lambda: world.catalog, config, do_here, clock=Later(ahead_ms), rand=random.SystemRandom()
    )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "data"
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        catalog = open_catalog(SMALL, folder)
        yield World(log=log, folder=folder, catalog=catalog)
        catalog.close()


def fill(world: World, rounds: int = 5) -> int:
    """Small files. Returns how many requests are in the tables."""
    appender = world.open()
    for _ in range(rounds):
        world.add(2)
        appender.append()
    return world.count


def load(world: World, table: str = "logs") -> Table:
    return world.catalog.load_table(f"frazil.{table}")


def files_of(table: Table) -> list[DataFile]:
    return [task.file for task in table.scan().plan_files()]


def path_of(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def all_files(table: Table) -> set[Path]:
    return {path for path in path_of(table.location()).rglob("*") if path.is_file()}


def offsets_in(snapshot: Snapshot | None) -> Any:
    assert snapshot is not None
    assert snapshot.summary is not None
    return json.loads(snapshot.summary["frazil.offsets"] or "")


def offsets_of(table: Table) -> Any:
    return offsets_in(table.current_snapshot())


def whole(table: Table) -> list[Any]:
    """Every value of every row."""
    rows = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["_offset"], row["_row"], row["service_name"]))


@pytest.mark.parametrize("name", ["logs", "spans"])
def test_compaction_keeps_rows_order_and_offsets(world: World, name: str) -> None:
    """The appender continues afterwards."""
    count = fill(world)
    before = load(world, name)
    rows, size = whole(before), len(files_of(before))
    done = {each.table: each for each in maintenance(world).all()}
    assert (done[name].files_joined, done[name].files_made) == (size, 1)
    table = load(world, name)
    (file,) = files_of(table)
    assert whole(table) == rows
    read = pq.read_table(path_of(file.file_path), columns=list(SORT_COLUMNS[name]))
    keys = list(zip(*(read[column].to_pylist() for column in SORT_COLUMNS[name]), strict=True))
    assert keys == sorted(keys)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation is Operation.REPLACE
    assert snapshot.summary["total-records"] == str(len(rows))
    assert snapshot.summary["total-data-files"] == "1"
    assert offsets_of(table) == {f"otlp_{name}": {"0": count}}
    assert next_offsets(table) == {(f"otlp_{name}", 0): count}
    world.add(3)
    world.open().append()
    assert world.rows(name) == expected(count + 3)
    assert maintenance(world).compact(name).is_nothing, "two files of today are not worth it"


def test_compaction_does_not_change_older_snapshots(world: World) -> None:
    fill(world, 4)
    maintenance(world).all()
    world.add(2)
    world.open().append()
    table = load(world)
    ends = [offsets_in(snapshot) for snapshot in table.metadata.snapshots]
    assert [end["otlp_logs"]["0"] for end in ends] == [2, 4, 6, 8, 8, 10]
    for snapshot, end in zip(table.metadata.snapshots, ends, strict=True):
        rows = world.rows("logs", snapshot.snapshot_id)
        assert rows == expected(end["otlp_logs"]["0"])


class Broken(Exception):
    """What a test breaks maintenance with."""


@pytest.mark.parametrize("is_done", [False, True])
def test_a_kill_at_the_commit_loses_and_repeats_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    """Before the commit, or after it without a response."""
    import frazil.lake.maintain.replace_files as rewriting

    count = fill(world)
    real = rewriting.replace_files

    def breaking(*given: Any, **more: Any) -> int:
        if is_done:
            real(*given, **more)
        raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(rewriting, "replace_files", breaking)
        with pytest.raises(Broken):
            maintenance(world).all()
    assert world.rows() == expected(count)
    maintenance(world).all()
    assert world.rows() == expected(count)
    assert len(files_of(load(world))) == 1


def test_a_lost_response_to_a_replacement_is_looked_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not committed twice."""
    count = fill(world)
    commit_table = SqlCatalog.commit_table
    lost: list[Any] = []

    def losing(self: SqlCatalog, *given: Any) -> Any:
        answer = commit_table(self, *given)
        if not lost:
            lost.append(answer)
            raise OperationalError("connection lost", None, Exception())
        return answer

    before = len(load(world).metadata.snapshots)
    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", losing)
        maintenance(world).compact("logs", is_all=True)
    assert lost
    assert len(load(world).metadata.snapshots) == before + 1
    assert world.rows() == expected(count)


def test_a_concurrent_append_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between plan and commit. The new snapshot has its offsets."""
    count = fill(world)
    real = Maintenance._merge

    def merging(self: Maintenance, *given: Any) -> Any:
        merged = real(self, *given)
        if world.count == count:
            world.add(5)
            world.open().append()
        return merged

    monkeypatch.setattr(Maintenance, "_merge", merging)
    maintenance(world).compact("logs", is_all=True)
    table = load(world)
    assert world.rows() == expected(count + 5)
    assert len(files_of(table)) == 2
    assert offsets_of(table) == {"otlp_logs": {"0": count + 5}}


def test_a_concurrent_delete_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted files do not come back in a merged one; the merge is planned again."""
    fill(world)
    real = Maintenance._merge
    merges: list[int] = []

    def merging(self: Maintenance, name: str, *given: Any) -> Any:
        merged = real(self, name, *given)
        merges.append(1)
        if len(merges) == 1:
            load(world).delete("_offset < 4")
        return merged

    monkeypatch.setattr(Maintenance, "_merge", merging)
    maintenance(world).compact("logs", is_all=True)
    assert len(merges) == 2
    assert world.rows() == [place for place in expected(world.count) if place[0] >= 4]
    assert len(files_of(load(world))) == 1


def test_compaction_gives_up_on_a_table_that_keeps_changing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    import frazil.lake.maintain.replace_files as rewriting

    def conflicting(*_: Any, **__: Any) -> int:
        raise Conflict("again")

    monkeypatch.setattr(rewriting, "replace_files", conflicting)
    with pytest.raises(Conflict, match=f"{maintaining.ATTEMPTS_MAX} times"):
        maintenance(world).compact("logs", is_all=True)
    assert [each.trouble for each in maintenance(world).all() if each.table == "logs"] != [()]


def test_a_damaged_file_is_skipped_and_others_are_merged(world: World) -> None:
    """Damage is not copied into a file with valid checksums."""
    fill(world)
    table = load(world)
    victim = path_of(files_of(table)[3].file_path)
    data = bytearray(victim.read_bytes())
    data[200] ^= 1
    victim.write_bytes(data)
    maintenance(world).all()
    left = [path_of(file.file_path) for file in files_of(load(world))]
    assert victim in left
    assert len(left) == 2


def add_file(world: World, rows: pa.Table) -> None:
    """A file that somebody else has written and put into the table."""
    path = world.folder / "others.parquet"
    pq.write_table(rows, path)
    load(world).add_files([f"file://{path}"])


def test_files_with_unknown_columns_are_not_merged(world: World) -> None:
    from pyiceberg.types import StringType

    fill(world, 3)
    with load(world).update_schema() as update:
        update.add_column("note", StringType())
    table = load(world)
    number = str(table.schema().find_field("note").field_id)
    field = pa.field("note", pa.string(), metadata={"PARQUET:field_id": number})
    rows = pq.read_table(path_of(files_of(table)[0].file_path), partitioning=None)
    add_file(world, rows.append_column(field, pa.array(["mine"] * rows.num_rows)))
    maintenance(world).compact("logs", is_all=True)
    table = load(world)
    assert "mine" in table.scan().to_arrow()["note"].to_pylist()
    assert len(files_of(table)) == 2


def test_files_in_another_sort_order_are_not_merged(world: World) -> None:
    fill(world, 3)
    rows = pq.read_table(path_of(files_of(load(world))[0].file_path), partitioning=None)
    at = rows.schema.get_field_index("service_name")
    backwards = pa.array([chr(ord("z") - row) for row in range(rows.num_rows)])
    add_file(world, rows.set_column(at, rows.field(at), backwards))
    before = whole(load(world))
    maintenance(world).compact("logs", is_all=True)
    assert len(files_of(load(world))) == 2
    assert whole(load(world)) == before


def test_many_small_manifests_are_merged(world: World) -> None:
    """Data files and offsets stay the same."""
    count = fill(world, MANIFESTS_MAX + 1)
    before = {file.file_path for file in files_of(load(world))}
    done = maintenance(world).join_manifests("logs")
    assert done.manifests_joined == MANIFESTS_MAX + 1
    table = load(world)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) == 1
    assert {file.file_path for file in files_of(table)} == before
    assert world.rows() == expected(count)
    assert offsets_of(table) == {"otlp_logs": {"0": count}}
    assert maintenance(world).join_manifests("logs").is_nothing


def test_expiry_deletes_files_of_old_snapshots_only(world: World) -> None:
    """A tag keeps the last snapshot of a past day."""
    count = fill(world, 12)
    maintenance(world).all()
    old = {path_of(file.file_path) for file in _files_ever(load(world))}
    tag_rows = world.rows()
    tomorrow = maintenance(world, 2 * DAY_MS)
    appender = world.open()
    for _ in range(12):
        world.add(1)
        appender.append()
    tomorrow.compact("logs", is_all=True)
    before = all_files(load(world))
    done = tomorrow.expire("logs")
    table = load(world)
    assert done.snapshots_expired > 0
    assert len(done.tags_made) == 1
    assert done.files_removed == len(before - all_files(table))
    (tag,) = done.tags_made
    tagged = table.snapshot_by_name(tag)
    assert tagged is not None
    assert world.rows() == expected(count + 12)
    assert world.rows("logs", tagged.snapshot_id)[: len(tag_rows)] == tag_rows
    assert old - all_files(table), "the files of the first rounds are gone"
    for snapshot in table.metadata.snapshots:
        end = offsets_in(snapshot)["otlp_logs"]["0"]
        assert world.rows("logs", snapshot.snapshot_id) == expected(end)
    world.add(1)
    world.open().append()
    assert world.rows() == expected(count + 13)
    assert maintenance(world, 2 * DAY_MS).expire("logs").tags_made == ()
    assert maintenance(world, 40 * DAY_MS).expire("logs").tags_dropped == (tag,)


def _files_ever(table: Table) -> list[DataFile]:
    found: dict[str, DataFile] = {}
    for snapshot in table.metadata.snapshots:
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files():
            found[task.file.file_path] = task.file
    return list(found.values())


def test_the_ancestor_with_the_offsets_is_kept(world: World) -> None:
    """For a snapshot of another writer, however old the ancestor is."""
    fill(world, 14)
    ours = load(world).metadata.current_snapshot_id
    for end in range(2, 26, 2):
        load(world).delete(f"_offset < {end}")
    metadata = load(world).metadata
    keep = SnapshotRetention(now_ms=CLOCK.wall_ms() + 10 * HOUR_MS, age_ms=HOUR_MS, tag_days=0)
    expired = plan_expiry(metadata, keep).expired
    assert expired == tuple(snapshot.snapshot_id for snapshot in metadata.snapshots[:13])
    assert ours not in expired


def test_only_old_unreferenced_files_are_orphans(world: World) -> None:
    """Not the files of a running round, nor those of any snapshot."""
    count = fill(world, 3)
    maintenance(world).compact("logs", is_all=True)
    table = load(world)
    named = all_files(table)
    folder = path_of(table.location()) / "data" / "time_day=2026-01-01"
    folder.mkdir(parents=True)
    old, young = folder / "old.parquet", folder / "young.parquet"
    for path in (old, young):
        path.write_bytes(b"x" * 10)
    now_s = CLOCK.wall_ms() / 1000
    for path in (*named, old):
        os.utime(path, (now_s - 80 * 3600, now_s - 80 * 3600))
    os.utime(young, (now_s - 60 * 3600, now_s - 60 * 3600))
    world.add(1)
    world.open().append()
    done = maintenance(world).remove_orphans("logs")
    assert (done.orphans_removed, done.orphan_bytes) == (1, 10)
    assert not old.exists()
    assert young.exists()
    assert named <= all_files(load(world)) | {old}
    assert world.rows() == expected(count + 1)


def test_a_clock_a_year_ahead_makes_no_orphans(world: World) -> None:
    fill(world, 2)
    folder = path_of(load(world).location()) / "data" / "time_day=2026-01-01"
    folder.mkdir(parents=True)
    (folder / "being-written.parquet").write_bytes(b"x")
    assert maintenance(world, 365 * DAY_MS).remove_orphans("logs").is_nothing


def test_nothing_is_deleted_if_a_file_is_outside_the_location(world: World) -> None:
    fill(world, 2)
    table = load(world)
    elsewhere = world.folder / "elsewhere.parquet"
    elsewhere.write_bytes(path_of(files_of(table)[0].file_path).read_bytes())
    table.add_files([f"file://{elsewhere}"])
    with pytest.raises(Conflict, match=r"elsewhere\.parquet, which is not below"):
        maintenance(world).remove_orphans("logs")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:/a/b", "file:///a/b"),
        ("/a/b", "file:///a/b"),
        ("s3a://bucket/a", "s3://bucket/a"),
        ("s3n://bucket/a:b", "s3://bucket/a:b"),
    ],
)
def test_paths_are_normalized(one: str, other: str) -> None:
    """As written by Hadoop, Iceberg and Frazil."""
    assert normalized(one) == normalized(other)
