"""Followers read every row once, in log order, from table and log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.table import Table

from frazil.disk import RealDisk
from frazil.errors import Conflict, Corrupt, Malformed, OutOfRange, Unavailable, Unknown
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.read import reader_progress, table_reader
from frazil.lake.read.follower import FollowedRows, Follower
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.offset_files import added_files, files_now
from frazil.lake.read.prefetch import ReadLimits
from frazil.lake.read.table_reader import TableReader
from frazil.lake.scan.data_file import TableFile
from frazil.log import AtTime, Start
from frazil.settings import TopicConfig
from tests.lake.maintain.tables import compact, expire, local
from tests.lake.read.topic_tables import LAKE, TABLE, TOPIC, TopicWorld, time_of

TINY = ReadLimits(window_bytes=2000, ahead_bytes=4000, ahead_files=3, reads=2)
"""Small, so that a few records make many windows."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TopicWorld]:
    opened = TopicWorld.open(tmp_path / "data")
    yield opened
    opened.close()


def follow(
    world: TopicWorld, name: str = "reader", start: Start = "earliest", *, lake: bool = True
) -> Follower:
    history = None
    if lake:
        catalog = open_catalog(LAKE, world.folder)
        history = TableReader.open(catalog, LAKE, TABLE, limits=TINY)
    disk = RealDisk(world.folder)
    return Follower.open(
        name, start, disk=disk, tail=LogTail.open(world.log, TOPIC), history=history
    )


def values(followed: FollowedRows) -> list[str]:
    rows = followed.rows.to_pylist()
    assert [row["_log_partition"] for row in rows] == [followed.partition] * len(rows)
    assert all(followed.begin <= row["_offset"] < followed.end for row in rows)
    assert [row["value"] for row in rows] == [
        b"%d/%d" % (followed.partition, row["_offset"]) for row in rows
    ]
    return [row["value"].decode() for row in rows]


def rest(follower: Follower) -> list[str]:
    """Read all rows that exist now."""
    found: list[str] = []
    while (followed := follower.read()) is not None:
        found += values(followed)
    return found


def expected(begin: int, end: int, partition: int = 0) -> list[str]:
    return [f"{partition}/{number}" for number in range(begin, end)]


def test_a_follower_continues_from_the_table_in_the_log(world: TopicWorld) -> None:
    """It reads rows that are in the table only, in both, and in the log only."""
    world.add(200)
    world.flush()
    start = world.trim()
    assert 0 < start <= 200
    world.add(50)
    with follow(world) as follower:
        assert rest(follower) == expected(0, 250)
        assert follower.read() is None
        world.add(5)
        assert rest(follower) == expected(250, 255)
        assert follower.dropped_count == 0


def test_a_follower_returns_to_the_table_after_a_trim(world: TopicWorld) -> None:
    with follow(world) as follower:
        world.add(10)
        assert rest(follower) == expected(0, 10)
        world.add(300)
        world.flush()
        assert world.trim() > 20
        assert rest(follower) == expected(10, 310)


@pytest.mark.parametrize("is_expired", [False, True])
def test_maintenance_does_not_affect_a_follower(world: TopicWorld, is_expired: bool) -> None:
    """Neither before a reader starts nor while it reads."""
    for _ in range(3):
        world.add(60)
        world.flush()
    world.trim()
    with follow(world) as follower:
        first = follower.read()
        assert first is not None
        found = values(first)
        compact(world.table(), "compacted")
        if is_expired:
            expire(world.table())
        world.add(60)
        world.flush()
        world.trim()
        assert found + rest(follower) == expected(0, 240)


def test_unacknowledged_rows_are_read_again(world: TopicWorld) -> None:
    """Only those, from table and log; readers are independent."""
    world.add(150)
    world.flush()
    world.trim()
    world.add(100)
    followers = follow(world, "one"), follow(world, "two")
    done: list[str] = []
    while (followed := followers[0].read()) is not None:
        done += values(followed)
        if len(done) > 60:
            followers[0].ack(followed)
            break
    for follower in followers:
        follower.read()
        follower.close()
    with follow(world, "one", "latest") as one, follow(world, "two", "latest") as two:
        assert done + rest(one) == rest(two) == expected(0, 250)


def test_an_acknowledgement_includes_all_earlier_rows(world: TopicWorld) -> None:
    """A later acknowledgement of older rows has no effect."""
    world.add(5)
    follower = follow(world)
    first = follower.read()
    world.add(5)
    second = follower.read()
    assert first is not None and second is not None
    follower.ack(second)
    follower.ack(first)
    follower.close()
    with follow(world) as again:
        assert again.offsets == {0: 10}


@pytest.mark.parametrize(
    ("start", "begin"),
    [
        ("earliest", 0),
        ("latest", 250),
        (0, 0),
        (7, 7),
        (249, 249),
        (AtTime(timestamp_ms=0), 0),
        (AtTime(timestamp_ms=time_of(33) - 1), 33),
        (AtTime(timestamp_ms=time_of(198)), 1),
        (AtTime(timestamp_ms=time_of(241)), 241),
        (AtTime(timestamp_ms=2_000_000_000_000), 250),
    ],
)
def test_start_of_a_new_reader(world: TopicWorld, start: Start, begin: int) -> None:
    world.add(200)
    world.flush()
    world.trim()
    world.add(50)
    with follow(world, start=start) as follower:
        assert rest(follower) == expected(begin, 250)


def test_a_start_beyond_the_end_is_an_error(world: TopicWorld) -> None:
    world.add(3)
    with pytest.raises(OutOfRange):
        follow(world, start=4)
    with follow(world, start=3) as follower:
        assert rest(follower) == []


def test_each_partition_is_in_order(tmp_path: Path) -> None:
    world = TopicWorld.open(tmp_path / "data", partitions=3)
    for partition, count in ((0, 120), (1, 30), (2, 200)):
        world.add(count, partition)
    world.flush()
    world.trim()
    world.add(10, 1)
    with follow(world) as follower:
        found = rest(follower)
    for partition in range(3):
        ours = [value for value in found if value.startswith(f"{partition}/")]
        assert ours == expected(0, world.counts[partition], partition)
    assert len(found) == sum(world.counts)
    world.close()


def test_lost_offsets_are_counted(tmp_path: Path) -> None:
    """They occur only in topics that do not wait for the lake."""
    world = TopicWorld.open(tmp_path / "data", awaits_lake=False)
    world.add(10)
    with follow(world) as follower, follow(world, "other", lake=False) as other:
        assert rest(follower) == rest(other) == expected(0, 10)
        world.flush()
        world.add(300)
        start = world.trim()
        assert start > 10
        assert rest(follower) == rest(other) == expected(start, 310)
        assert follower.dropped_count == other.dropped_count == start - 10
    world.close()


def test_a_waiting_reader_wakes_up_for_rows_and_close(world: TopicWorld) -> None:
    follower = follow(world)
    found: list[str] = []

    def work() -> None:
        for followed in follower:
            found.extend(values(followed))
            follower.ack(followed)
            if len(found) == 4:
                is_enough.set()

    is_enough = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    world.add(4)
    assert is_enough.wait(60)
    follower.close()
    thread.join()
    assert found == expected(0, 4)
    with pytest.raises(Unavailable, match="closed"):
        follower.read()


def test_a_name_is_one_reader_of_one_table(world: TopicWorld) -> None:
    """Its progress can be deleted."""
    disk = RealDisk(world.folder)
    world.add(3)
    follow(world).close()
    with pytest.raises(Conflict, match="follows topic_orders"):
        reader_progress.load(disk, "reader", "logs")
    with pytest.raises(Malformed):
        follow(world, "../reader")
    reader_progress.forget(disk, "reader")
    with follow(world, start="latest") as follower:
        assert follower.offsets == {0: 3}
    with pytest.raises(Unknown):
        reader_progress.forget(disk, "nobody")
    with pytest.raises(Unknown):
        LogTail.open(world.log, "nothing")


def test_an_ambiguous_name_is_rejected(world: TopicWorld) -> None:
    """Each topic has a name that is unique."""
    world.log.create_topic(TABLE, TopicConfig())
    with pytest.raises(Malformed, match="the table of orders; use topic_topic_orders or orders"):
        LogTail.open(world.log, TABLE)
    assert LogTail.open(world.log, TOPIC).topic == TOPIC
    assert LogTail.open(world.log, f"topic_{TABLE}").topic == TABLE


def test_damaged_progress_is_an_error(world: TopicWorld) -> None:
    follow(world).close()
    path = world.folder / reader_progress.path_of("reader")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(Corrupt, match="follow again"):
        follow(world)


def test_a_missing_data_file_is_an_error(world: TopicWorld) -> None:
    world.add(200)
    world.flush()
    world.trim()
    (first, *_) = added_files(world.table(), None, snapshot_id(world))
    local(first.location).unlink()
    with follow(world) as follower, pytest.raises(Corrupt, match="current snapshot"):
        rest(follower)


def test_a_damaged_data_file_is_an_error(world: TopicWorld) -> None:
    """Page checksums detect the change."""
    world.add(40)
    world.flush()
    for file in added_files(world.table(), None, snapshot_id(world)):
        data = bytearray(local(file.location).read_bytes())
        data[100] ^= 1
        local(file.location).write_bytes(data)
    table = TableReader.open(open_catalog(LAKE, world.folder), LAKE, TABLE)
    with pytest.raises(Unavailable, match="cannot be read"):
        list(table.read({0: 0}))
    table.close()


def snapshot_id(world: TopicWorld) -> int:
    found = world.table().current_snapshot()
    assert found is not None
    return found.snapshot_id


def test_added_files_of_a_range_of_snapshots(world: TopicWorld) -> None:
    """Files written by compaction are excluded."""
    ids = []
    for number in range(4):
        world.add(40)
        world.flush()
        ids.append(snapshot_id(world))
        if number == 1:
            compact(world.table(), "compacted")
    table = world.table()

    def offsets(after: int | None, up_to: int) -> list[int]:
        files = added_files(table, after, up_to)
        return sorted({n for file in files for n in range(file.offset_min, file.offset_max + 1)})

    assert offsets(None, ids[3]) == list(range(160))
    assert offsets(ids[0], ids[2]) == list(range(40, 120))
    assert offsets(ids[3], ids[3]) == []
    with pytest.raises(OutOfRange, match="or read by offsets"):
        offsets(ids[2], ids[1])
    expire(table)
    table = world.table()
    for after in (ids[0], None):
        with pytest.raises(OutOfRange, match="or read by offsets"):
            offsets(after, ids[3])
    assert offsets(ids[3], ids[3]) == []


def test_a_table_reader_opens_only_new_manifests(
    world: TopicWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are considered only at first and after expiry."""
    listed: list[Table] = []

    def counting(table: Table) -> list[TableFile]:
        listed.append(table)
        return files_now(table)

    monkeypatch.setattr(table_reader, "files_now", counting)
    table = TableReader.open(open_catalog(LAKE, world.folder), LAKE, TABLE, limits=TINY)
    begins, found = {0: 0}, []
    list_counts = []
    for number in range(5):
        world.add(30)
        world.flush()
        if number >= 2:
            compact(world.table(), f"compacted-{number}")
        if number == 3:
            expire(world.table())
        listed.clear()
        table.refresh()
        for rows in table.read(begins):
            found += rows.batch.column("_offset").to_pylist()
            begins[rows.partition] = rows.end
        list_counts.append(len(listed))
        assert found == list(range(world.counts[0]))
    assert list_counts == [1, 0, 0, 1, 0]
    table.close()
