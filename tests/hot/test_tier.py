"""Every acknowledged record is visible once, whatever happens to the files."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from frazil.disk import WriteBuffer
from frazil.errors import Malformed, Unknown
from frazil.hot.partition import LOST
from frazil.hot.recovery import SET_ASIDE
from frazil.hot.sealer import SEAL_FAILED, UNMAP_MS
from frazil.hot.segment import segments
from frazil.hot.segment.arrow_segment import open_segment, write_segment
from frazil.hot.segment.segments import EVICTED, MERGE_COUNT
from frazil.hot.tier import STALLED, HotTier
from frazil.log.subscribers import load_progress
from frazil.model import Rand
from frazil.model.arrow.types import Decoded, ExportRequest
from frazil.settings import HotConfig, TopicConfig
from tests.hot.build import (
    FIRST,
    FOLDER,
    LINES,
    LOG,
    SCHEMAS,
    SMALL,
    TOPIC,
    Machine,
    PickyDisk,
    bodies,
    check_pieces,
    decode,
    expected_places,
    lines,
    places,
    start,
)
from tests.sim.disk import Faults, SimDisk

EXPIRE_AT_ONCE = TopicConfig(retention_ms=0)


def seal_each(machine: Machine, *bounds: int) -> None:
    """One file per range between the bounds, with log segments of minimal size."""
    for begin, end in zip((0, *bounds), bounds, strict=False):
        for first in range(begin, end, 10):
            machine.add(*lines(first, min(end, first + 10)))
        machine.catch_up()
        machine.seal()


def files(disk: SimDisk, suffix: str = ".arrow") -> list[int]:
    """First offsets of the segment files of `logs`."""
    names = [path.removeprefix(f"{FOLDER}/") for path in disk.files() if path.startswith(FOLDER)]
    return [int(name[:20]) for name in names if name[20:] == suffix]


def restarted(disk: SimDisk, config: HotConfig = SMALL) -> Machine:
    machine = start(disk.process_kill(), config)
    machine.catch_up()
    check_pieces(machine.tier)
    return machine


def assert_whole(machine: Machine, count: int) -> None:
    assert sorted(places(machine.tier.pieces("logs"))) == expected_places(count)
    check_pieces(machine.tier)


def watermark(disk: SimDisk) -> int:
    """The progress of the hot tier that the log has on disk."""
    (progress,) = load_progress(disk, "hot_logs").partitions
    return progress.watermark


def test_acknowledged_records_are_visible_after_a_step() -> None:
    """In log order, with their partition and offset."""
    machine = start(SimDisk())
    assert machine.tier.pieces("logs") == ()
    machine.add(*lines(0, 3))
    assert machine.tier.lag == 3
    assert machine.tier.step() == 3
    assert machine.tier.lag == 0 and machine.tier.watermark(TOPIC) == 3
    assert places(machine.tier.pieces("logs")) == expected_places(3)
    assert bodies(machine.tier.pieces("logs"))[:2] == ["first of 0", "second of 0"]
    assert machine.tier.step() == 0
    check_pieces(machine.tier)


def test_visible_pieces_do_not_change() -> None:
    """Later appends, seals and evictions do not affect them."""
    machine = start(SimDisk())
    machine.add(*lines(0, 5))
    machine.tier.step()
    held = machine.tier.visible_pieces()
    machine.seal()
    machine.add(*lines(5, 9))
    machine.tier.step()
    later = machine.tier.visible_pieces()
    machine.seal()
    machine.tier.evict_below(TOPIC, 9)
    assert machine.tier.pieces("logs") == ()
    assert len(places(held["logs"])) == 10
    assert len(places(later["logs"])) == 18
    assert set(held) == set(later) == set(SCHEMAS)


def test_new_topics_are_followed() -> None:
    """All three signals, each in its table, also topics created after the start."""
    machine = start(SimDisk())
    with pytest.raises(Unknown):
        machine.tier.watermark("otlp_spans")
    for topic, table in (("otlp_spans", "spans"), ("otlp_metrics", "metrics")):
        machine.log.create_topic(topic)
        machine.add(*lines(0, 2), topic=topic)
        machine.tier.step()
        assert places(machine.tier.pieces(table)) == expected_places(2)
    (batch,) = machine.tier.pieces("spans")[0].batches
    assert batch["attributes"][0].as_py() == [("signal", "traces")]
    machine.seal()
    again = restarted(machine.disk)
    assert len(again.tier.pieces("spans")) == len(again.tier.pieces("metrics")) == 1


def test_every_partition_is_followed() -> None:
    """Each has its own offsets and files."""
    disk = SimDisk()
    machine = start(disk, topic=TopicConfig(partitions=2))
    machine.add(*lines(0, 2))
    machine.add(*lines(0, 3), partition=1)
    machine.tier.step()
    machine.seal()
    again = restarted(disk)
    rows = pa.Table.from_batches([b for p in again.tier.pieces("logs") for b in p.batches])
    assert rows["_log_partition"].to_pylist() == [0] * 4 + [1] * 6
    assert [(p.partition, p.offset_end) for p in again.tier.pieces("logs")] == [(0, 2), (1, 3)]


def test_bad_records_become_dead_letters_and_others_rows() -> None:
    """Also when the decoder fails, and after a restart; with the request's time."""
    disk = SimDisk()
    machine = start(disk)
    now_us = machine.clock.wall_ms() * 1000
    machine.add(b"a t one\nbad two\na t three", b"crash", b"a t four", b"bad five")
    machine.catch_up()

    def letters(tier: HotTier) -> list[tuple[object, ...]]:
        table = pa.Table.from_batches([b for p in tier.pieces("dead_letters") for b in p.batches])
        names = ["topic", "_log_partition", "_offset", "_row", "stage", "payload"]
        assert table["time"].cast(pa.int64()).to_pylist() == [now_us] * 3
        return list(zip(*(table[name].to_pylist() for name in names), strict=True))

    wanted = [
        (TOPIC, 0, 0, 1, "decode", b"bad two"),
        (TOPIC, 0, 1, None, "decode", b"crash"),
        (TOPIC, 0, 3, 0, "decode", b"bad five"),
    ]
    assert letters(machine.tier) == wanted
    assert bodies(machine.tier.pieces("logs")) == ["one", "three", "four"]
    machine.clock.advance(5)
    assert letters(restarted(disk).tier) == wanted
    machine = start(disk.process_kill())
    machine.catch_up()
    machine.seal()
    assert letters(machine.tier) == wanted
    assert letters(restarted(machine.disk).tier) == wanted


@pytest.mark.parametrize("sealed", [0, 1, 40])
def test_a_restart_maps_files_and_reads_the_tail_of_the_log(sealed: int) -> None:
    """Rows in files are not decoded again."""
    disk = SimDisk()
    machine = start(disk)
    if sealed:
        seal_each(machine, sealed)
    machine.add(*lines(sealed, 50))
    machine.tier.step()
    decoded: list[int] = []

    def counted(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        decoded.extend(request.offset for request in requests)
        return decode(signal, requests)

    again = start(disk.process_kill(), decode=counted)
    again.catch_up()
    assert decoded == list(range(sealed, 50))
    assert_whole(again, 50)


def test_segments_are_sealed_by_size_age_and_memory_pressure() -> None:
    config = msgspec.structs.replace(SMALL, seal_bytes=8 * 1024, memory_bytes_max=64 * 1024)
    machine = start(SimDisk(), config)
    machine.add(*lines(0, 10))
    machine.tier.step()
    assert machine.tier.seal() == 0
    machine.clock.advance(config.seal_age_ms)
    machine.tier.step()
    assert machine.tier.seal() == 1
    machine.add(*lines(10, 80))
    machine.tier.step()
    assert machine.tier.seal() == 1
    wide = msgspec.structs.replace(config, seal_bytes=32 * 1024)
    machine = start(SimDisk(), wide)
    machine.log.create_topic("otlp_spans")
    for begin in range(0, 100, 10):
        machine.add(*lines(begin, begin + 10))
        machine.add(*lines(begin, begin + 10), topic="otlp_spans")
        machine.tier.step()
    assert machine.tier.seal() == 1, "neither is large enough, both together are too much"
    assert_whole(machine, 100)


def test_rows_that_a_start_reads_again_are_sealed() -> None:
    """A process that ends again and again does not read more each time. A few rows wait for more,
    and so do rows that come later."""
    disk = SimDisk()
    machine = start(disk)
    machine.add(*lines(0, 200))
    machine.catch_up()
    assert machine.tier.seal() == 0, "they are new"
    disk = disk.process_kill()
    machine = start(disk)
    machine.catch_up()
    assert machine.tier.seal() == 1
    machine.add(*lines(200, 205))
    disk = disk.process_kill()
    decoded: list[int] = []

    def counted(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        decoded.extend(request.offset for request in requests)
        return decode(signal, requests)

    machine = start(disk, decode=counted)
    machine.catch_up()
    assert decoded == [200, 201, 202, 203, 204]
    assert machine.tier.seal() == 0
    assert_whole(machine, 205)


def test_memory_is_bounded_when_seals_fail() -> None:
    """New records wait in the log, rows in memory stay visible, and nothing is lost."""
    disk = PickyDisk()
    machine = start(disk)
    disk.refused = FOLDER
    for begin in range(0, 2000, 10):
        machine.add(*lines(begin, begin + 10))
        machine.tier.step()
        machine.tier.seal()
    assert machine.tier.is_full and machine.tier.lag > 0 and not machine.tier.is_behind
    one_step_bytes = 4 * SMALL.read_bytes  # what the rows of one read take, and more
    unsealed_bytes = machine.tier._visible.unsealed_bytes
    assert SMALL.memory_bytes_max <= unsealed_bytes < SMALL.memory_bytes_max + one_step_bytes
    assert_whole(machine, machine.tier.watermark(TOPIC))
    assert watermark(disk) == 0
    disk.refused = ""
    machine.clock.advance(SMALL.retry_ms)
    machine.catch_up()
    assert_whole(machine, 2000)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failed_seal_keeps_rows_and_log_records(code: int) -> None:
    """It is retried later, with a new file."""
    disk = SimDisk()
    machine = start(disk, topic=EXPIRE_AT_ONCE)
    machine.add(*lines(0, 100))
    machine.catch_up()
    disk.faults = Faults(capacity_bytes=0) if code == errno.ENOSPC else Faults()
    if code == errno.EIO:
        disk.faults = Faults(fail_sync_at=disk.syncs + 1)
    failed = SEAL_FAILED.value(topic=TOPIC)
    assert machine.seal() == 0
    assert SEAL_FAILED.value(topic=TOPIC) == failed + 1
    assert files(disk, ".arrow.tmp") == [], "what failed takes no room"
    assert_whole(machine, 100)
    disk.faults = Faults()
    machine.log.maintain()
    assert machine.log.partition(TOPIC, 0).view.start_offset == 0
    assert machine.tier.seal() == 0, "it is not tried again at once"
    machine.clock.advance(SMALL.retry_ms)
    assert machine.tier.seal() == 1
    assert watermark(disk) == 100
    assert files(disk) == [0] and files(disk, ".arrow.tmp") == []
    machine.log.maintain()
    assert machine.log.partition(TOPIC, 0).view.start_offset > 0
    assert_whole(machine, 100)
    assert_whole(restarted(disk), 100)


def test_progress_that_cannot_be_saved_is_saved_later() -> None:
    """The file is valid once durable; until then the log only keeps more than needed."""
    disk = PickyDisk()
    machine = start(disk)
    machine.add(*lines(0, 5))
    machine.tier.step()
    disk.refused, disk.code = "log/subscribers", errno.EIO
    assert machine.seal() == 1
    assert_whole(machine, 5)
    assert watermark(disk) == 0
    again = restarted(disk)
    assert_whole(again, 5)
    again.tier.seal()
    assert watermark(again.disk) == 5


def foreign(disk: SimDisk, path: str) -> None:
    """A valid segment of another partition."""
    segment = open_segment(disk, path)
    disk.unlink(path)
    slots = {stream.slot: stream.batches for stream in segment.streams}
    write_segment(disk, path, replace(segment.header, identity=1), slots, WriteBuffer())


def renamed(disk: SimDisk, path: str) -> None:
    disk.rename(path, f"{FOLDER}/{99:020d}.arrow")


DAMAGE: dict[str, Callable[[SimDisk, str], object]] = {
    "flip": lambda disk, path: disk.rot(path, Rand(3), "flip"),
    "cut": lambda disk, path: disk.rot(path, Rand(3), "cut", size=len(disk.data(path)) // 2),
    "empty": lambda disk, path: disk.rot(path, Rand(3), "cut", size=0),
    "zero": lambda disk, path: disk.rot(path, Rand(3), "replace", data=bytes(5000)),
    "more": lambda disk, path: disk.rot(path, Rand(3), "append_garbage"),
    "missing": lambda disk, path: disk.unlink(path),
    "foreign": foreign,
    "renamed": renamed,
}


@pytest.mark.parametrize("number", [0, 10, 20])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_rebuilt_from_the_log(kind: str, number: int) -> None:
    """First, middle or last file: the rows are complete, without duplicates."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20, 30)
    machine.add(*lines(30, 35))
    disk = disk.process_kill()
    DAMAGE[kind](disk, f"{FOLDER}/{number:020d}.arrow")
    lost, aside = LOST.value(topic=TOPIC), SET_ASIDE.value(topic=TOPIC)
    again = restarted(disk)
    assert_whole(again, 35)
    assert LOST.value(topic=TOPIC) == lost
    assert SET_ASIDE.value(topic=TOPIC) == aside + (kind != "missing")
    again.seal()
    assert files(again.disk, ".arrow.damaged") == []
    assert_whole(again, 35)
    third = restarted(again.disk)
    assert "open" not in [piece.name for piece in third.tier.pieces("logs")]
    assert_whole(third, 35)


def test_missing_files_are_rebuilt_one_by_one() -> None:
    """No other file is touched."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20, 30, 40)
    disk = disk.process_kill()
    for number in (0, 20):
        disk.unlink(f"{FOLDER}/{number:020d}.arrow")
    again = restarted(disk)
    assert_whole(again, 40)
    again.tier.seal()
    assert files(again.disk) == [0, 10, 20, 30]
    assert "open" not in [piece.name for piece in again.tier.pieces("logs")]
    assert watermark(again.disk) == 40


def test_a_file_with_a_bad_sector_is_rebuilt() -> None:
    """But not after an error that is not the file's, such as too many open files."""
    disk = PickyDisk()
    machine = start(disk)
    seal_each(machine, 10, 20)
    machine.close()
    disk.unreadable, disk.code = FIRST, errno.EMFILE
    with pytest.raises(OSError):
        start(disk)
    disk.holder = None
    assert files(disk) == [0, 10]
    disk.code = errno.EIO
    again = start(disk)
    assert files(disk) == [10]
    disk.unreadable = ""
    again.catch_up()
    assert_whole(again, 20)


def test_all_rows_are_rebuilt_if_all_files_are_gone() -> None:
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20, 300)
    disk = disk.process_kill()
    for path in disk.files():
        if path.startswith("hot/"):
            disk.unlink(path)
    again = restarted(disk)
    assert_whole(again, 300)


def test_new_rows_are_visible_while_a_gap_is_filled() -> None:
    wide = msgspec.structs.replace(SMALL, seal_bytes=1024 * 1024, memory_bytes_max=4096 * 1024)
    disk = SimDisk()
    machine = start(disk, wide)
    seal_each(machine, 1000, 1001)
    disk = disk.process_kill()
    disk.unlink(FIRST)
    again = start(disk, wide)
    again.add(*lines(1001, 1003))
    again.tier.step()
    seen = places(again.tier.pieces("logs"))
    assert (1002, 1) in seen and (999, 0) not in seen
    again.catch_up()
    again.seal()
    assert_whole(again, 1003)


def test_the_log_keeps_records_of_a_gap() -> None:
    """Retention waits for the gap, although the range was once finished."""
    disk = SimDisk()
    machine = start(disk, topic=EXPIRE_AT_ONCE)
    seal_each(machine, 40, 80, 120)
    disk = disk.process_kill()
    disk.unlink(f"{FOLDER}/{40:020d}.arrow")
    again = start(disk)
    again.log.maintain()
    assert again.log.partition(TOPIC, 0).view.start_offset <= 40
    again.catch_up()
    again.seal()
    again.log.maintain()
    assert again.log.partition(TOPIC, 0).view.start_offset > 40
    assert_whole(again, 120)


@pytest.mark.parametrize("kind", ["flip", "missing"])
def test_lost_offsets_are_reported(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """An error is logged, a counter rises, the damaged file is set aside; other rows are served."""
    disk = SimDisk()
    machine = start(disk, topic=EXPIRE_AT_ONCE)
    seal_each(machine, 40, 80, 120)
    machine.add(*lines(120, 121))
    machine.log.maintain()
    begin = machine.log.partition(TOPIC, 0).view.start_offset
    assert begin > 40, "the log has let the first file's range go"
    disk = disk.process_kill()
    DAMAGE[kind](disk, FIRST)
    lost = LOST.value(topic=TOPIC)
    with caplog.at_level(logging.ERROR):
        again = restarted(disk)
    assert LOST.value(topic=TOPIC) == lost + 40
    (told,) = [r for r in caplog.records if r.message == "offsets are lost to the hot tier"]
    assert (told.__dict__["begin"], told.__dict__["end"]) == (0, 40)
    assert files(again.disk, ".arrow.damaged") == ([0] if kind == "flip" else [])
    assert sorted(places(again.tier.pieces("logs"))) == expected_places(121)[80:]
    again.tier.seal()
    assert watermark(again.disk) == 120


def test_a_gap_is_rebuilt_as_far_as_the_log_has_it() -> None:
    disk = SimDisk()
    machine = start(disk, topic=EXPIRE_AT_ONCE)
    seal_each(machine, 10)
    for number in range(10, 90):
        machine.add(*lines(number, number + 1))
    machine.catch_up()
    machine.seal()
    machine.add(*lines(90, 91))
    machine.log.maintain()
    begin = machine.log.partition(TOPIC, 0).view.start_offset
    assert 10 < begin < 90
    disk = disk.process_kill()
    disk.unlink(f"{FOLDER}/{10:020d}.arrow")
    lost = LOST.value(topic=TOPIC)
    again = restarted(disk)
    assert LOST.value(topic=TOPIC) == lost + begin - 10
    wanted = [place for place in expected_places(91) if not 10 <= place[0] < begin]
    assert sorted(places(again.tier.pieces("logs"))) == wanted


def test_records_dropped_by_the_log_are_counted_as_lost(caplog: pytest.LogCaptureFixture) -> None:
    """Later records are visible."""
    config = msgspec.structs.replace(
        LOG, when_full="drop_oldest", disk_bytes_max=96 * 1024, batch_bytes_max=8 * 1024
    )
    disk = SimDisk()
    machine = start(disk, log_config=config)
    machine.add(*lines(0, 10))
    machine.tier.step()
    lost = LOST.value(topic=TOPIC)
    for begin in range(10, 1500, 10):
        machine.add(*lines(begin, begin + 10))
        machine.log.maintain()
    first = machine.log.partition(TOPIC, 0).view.start_offset
    assert first > 10
    machine.catch_up()
    assert LOST.value(topic=TOPIC) == lost + first - 10
    wanted = [place for place in expected_places(1500) if not 10 <= place[0] < first]
    assert sorted(places(machine.tier.pieces("logs"))) == wanted
    machine.seal()
    assert watermark(disk) == 1500


def test_files_beyond_the_end_of_the_log_are_set_aside() -> None:
    """An older copy of the log was restored, and offsets are assigned again."""
    disk = SimDisk()
    machine = start(disk)
    machine.add(*lines(0, 10))
    machine.catch_up()
    before = disk.process_kill()
    machine = start(disk.process_kill())
    machine.catch_up()
    machine.add(*lines(10, 20))
    machine.catch_up()
    machine.seal()
    data = machine.disk.data(FIRST)
    before.open(FIRST, "create").append([data])
    aside = SET_ASIDE.value(topic=TOPIC)
    again = start(before)
    assert SET_ASIDE.value(topic=TOPIC) == aside + 1
    assert files(before, ".arrow.damaged") == [0]
    again.add(*lines(100, 110))
    again.catch_up()
    assert bodies(again.tier.pieces("logs"))[20] == "first of 100"
    assert_whole(again, 20)


def test_files_of_another_log_are_set_aside() -> None:
    """The folder of the log was replaced, and that of the hot tier was not."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20)
    disk = disk.process_kill()
    other = SimDisk()
    start(other).add(*lines(500, 530))
    other = other.process_kill()
    other.unlink("log/subscribers/hot_logs.progress")
    for path in disk.files():
        if path.endswith(".arrow"):
            other.open(path, "create").append([disk.data(path)])
    again = restarted(other)
    assert files(again.disk, ".arrow.damaged") == [0, 10]
    assert bodies(again.tier.pieces("logs"))[0] == "first of 500"
    assert_whole(again, 30)


def test_rows_of_an_older_schema_are_converted() -> None:
    """New columns are null in old rows, also after a merge."""
    old = pa.schema([field for field in LINES if field.name != "trace_id"])

    def decode_old(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        found = decode(signal, requests)
        return Decoded(batch=found.batch.drop_columns(["trace_id"]), dead=found.dead)

    disk = SimDisk()
    machine = start(disk, schemas={**SCHEMAS, "logs": old}, decode=decode_old)
    seal_each(machine, 5)
    again = restarted(disk)
    again.add(*lines(5, 8))
    again.catch_up()
    assert_whole(again, 8)
    rows = pa.Table.from_batches([b for p in again.tier.pieces("logs") for b in p.batches])
    assert rows["trace_id"].null_count == 10


def test_rows_that_do_not_fit_the_schema_are_decoded_again() -> None:
    """A new required column: the rows are rebuilt from the log."""
    old = pa.schema([field for field in LINES if field.name != "attributes"])

    def decode_old(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        found = decode(signal, requests)
        return Decoded(batch=found.batch.drop_columns(["attributes"]), dead=found.dead)

    disk = SimDisk()
    machine = start(disk, schemas={**SCHEMAS, "logs": old}, decode=decode_old)
    seal_each(machine, 5)
    assert_whole(restarted(disk), 5)


def test_evicted_rows_do_not_come_back() -> None:
    """Only files completely below the offset are evicted; a restart does not restore them."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20, 30)
    evicted = EVICTED.value(reason="lake", topic=TOPIC)
    assert machine.tier.evict_below(TOPIC, 9) == 0
    assert machine.tier.evict_below(TOPIC, 25) == 2
    assert machine.tier.evict_below(TOPIC, 25) == 0
    assert EVICTED.value(reason="lake", topic=TOPIC) == evicted + 2
    assert files(disk) == [20]
    for each in (machine, restarted(disk)):
        assert places(each.tier.pieces("logs")) == expected_places(30)[40:]
    again = start(disk.process_kill())
    assert again.tier.evict_below(TOPIC, 30) == 1
    again.add(*lines(30, 32))
    again.catch_up()
    assert places(again.tier.pieces("logs")) == expected_places(32)[60:]


def test_a_crash_during_eviction_restores_nothing() -> None:
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20)
    data = disk.data(FIRST)
    machine.tier.evict_below(TOPIC, 10)
    disk = disk.process_kill()
    disk.open(FIRST, "create").append([data])
    again = restarted(disk)
    assert places(again.tier.pieces("logs")) == expected_places(20)[20:]
    assert files(again.disk) == [10]


def test_an_evicted_gap_is_not_filled() -> None:
    """The lake has these rows; they would be visible twice."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20, 30)
    disk = disk.process_kill()
    disk.unlink(FIRST)
    again = start(disk)
    assert again.tier.evict_below(TOPIC, 20) == 1
    again.catch_up()
    assert places(again.tier.pieces("logs")) == expected_places(30)[40:]


def test_eviction_works_on_a_full_disk() -> None:
    """Files are deleted first, and the start is saved afterwards."""
    disk = PickyDisk()
    machine = start(disk)
    seal_each(machine, 10, 20)
    disk.refused = f"{FOLDER}/start.ckpt"
    assert machine.tier.evict_below(TOPIC, 10) == 1
    disk.refused = ""
    assert machine.tier.evict_below(TOPIC, 20) == 1
    assert places(restarted(disk).tier.pieces("logs")) == []


def test_the_oldest_files_are_evicted_above_the_disk_limit() -> None:
    config = msgspec.structs.replace(
        SMALL, seal_bytes=16 * 1024, memory_bytes_max=64 * 1024, disk_bytes_max=100 * 1024
    )
    disk = SimDisk()
    machine = start(disk, config)
    evicted = EVICTED.value(reason="size", topic=TOPIC)
    machine.log.create_topic("otlp_spans")
    machine.add(*lines(0, 50))
    machine.add(*lines(0, 50), topic="otlp_spans")
    machine.catch_up()
    machine.seal()
    for begin in range(50, 1000, 50):
        machine.clock.advance(1000)
        machine.add(*lines(begin, begin + 50))
        machine.catch_up()
        machine.seal()
    assert EVICTED.value(reason="size", topic=TOPIC) > evicted
    size_bytes = sum(len(disk.data(p)) for p in disk.files() if p.endswith(".arrow"))
    assert size_bytes <= config.disk_bytes_max
    assert machine.tier.pieces("spans") == (), "the oldest of all tables"
    found = places(machine.tier.pieces("logs"))
    assert found == expected_places(1000)[-len(found) :] and len(found) > 100


def test_a_short_disk_gets_back_the_files_that_the_lake_has() -> None:
    """The oldest ones, as many as needed; others stay, also while nothing more can be given up."""
    disk = SimDisk()
    in_lake = 0
    machine = start(disk, lake_watermark=lambda *_: in_lake, reserve_bytes=1000)
    seal_each(machine, 10, 20, 30)
    used = sum(len(disk.data(path)) for path in disk.files())
    evicted = EVICTED.value(reason="disk", topic=TOPIC)

    def check(free: int) -> list[int]:
        disk.faults.capacity_bytes = used + free
        machine.clock.advance(UNMAP_MS)
        machine.tier.seal()
        return files(disk)

    assert check(2000) == [0, 10, 20]
    assert machine.tier.disk_shortage is None
    assert check(1999) == [0, 10, 20]
    assert "short of space: 0 bytes" in (machine.tier.disk_shortage or "")
    in_lake = 29
    assert check(1999) == [10, 20], "one file is enough"
    assert check(-20_000) == [20], "the lake does not have its last row"
    assert EVICTED.value(reason="disk", topic=TOPIC) == evicted + 2
    assert "bytes of the hot tier evicted" in (machine.tier.disk_shortage or "")
    assert places(machine.tier.pieces("logs")) == expected_places(30)[40:]
    assert check(20_000) == [20]
    assert machine.tier.disk_shortage is None


def test_without_a_lake_a_short_disk_gets_nothing_back() -> None:
    """No other place has the rows."""
    disk = SimDisk()
    machine = start(disk, reserve_bytes=1000)
    seal_each(machine, 10, 20)
    disk.faults.capacity_bytes = sum(len(disk.data(path)) for path in disk.files())
    machine.clock.advance(UNMAP_MS)
    machine.tier.seal()
    assert files(disk) == [0, 10]
    assert machine.tier.disk_shortage is None
    assert_whole(machine, 20)


def test_a_short_disk_gets_no_new_files() -> None:
    """Rows wait in memory until the lake has them; then the log need not keep them either."""
    disk = SimDisk()
    in_lake = 0
    machine = start(disk, lake_watermark=lambda *_: in_lake, reserve_bytes=1000)
    seal_each(machine, 10)
    disk.faults.capacity_bytes = sum(len(disk.data(path)) for path in disk.files()) + 10_000
    machine.add(*lines(10, 20))
    disk.faults.capacity_bytes -= 9500
    machine.tier.step()
    machine.clock.advance(UNMAP_MS)
    machine.tier.seal()
    assert machine.seal() == 0
    assert (files(disk), watermark(disk)) == ([0], 10)
    assert_whole(machine, 20)
    in_lake = 20
    machine.tier.seal()
    assert (files(disk), watermark(disk)) == ([], 20)
    assert places(machine.tier.pieces("logs")) == []
    disk.faults.capacity_bytes = None
    machine.add(*lines(20, 22))
    machine.catch_up()
    for each in (machine, restarted(disk)):
        assert places(each.tier.pieces("logs")) == expected_places(22)[40:]


def test_a_file_must_leave_the_reserve_free() -> None:
    """Many segments may wait for space; those that fit are written when there is some."""
    disk = SimDisk()
    machine = start(disk, lake_watermark=lambda *_: 0, reserve_bytes=1000)
    seal_each(machine, 10)
    machine.add(*lines(10, 20))
    machine.tier.step()
    machine.tier.freeze()
    used = sum(len(disk.data(path)) for path in disk.files())
    disk.faults.capacity_bytes = used + 2000
    assert machine.tier.seal() == 0
    assert machine.tier.disk_shortage is None
    disk.faults.capacity_bytes = used + 100_000
    assert machine.tier.seal() == 1
    assert files(disk) == [0, 10]
    assert_whole(machine, 20)


def test_adjacent_small_files_are_merged() -> None:
    disk = SimDisk()
    machine = start(disk)
    for begin in range(100):
        machine.add(*lines(begin, begin + 1))
        machine.tier.step()
        machine.seal()
        assert len(files(disk)) <= MERGE_COUNT
    assert files(disk)[0] == 0
    assert places(machine.tier.pieces("logs")) == expected_places(100)
    assert_whole(restarted(disk), 100)


def test_a_merge_does_not_span_lost_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start must report the loss again."""
    disk = SimDisk()
    machine = start(disk, topic=EXPIRE_AT_ONCE)
    seal_each(machine, 20, 40, 60, 80, 100)
    machine.add(*lines(100, 101))
    machine.log.maintain()
    disk = disk.process_kill()
    disk.unlink(f"{FOLDER}/{40:020d}.arrow")
    monkeypatch.setattr(segments, "MERGE_COUNT", 2)
    again = restarted(disk)
    again.seal()
    assert files(again.disk) == [0, 20, 60]
    lost = LOST.value(topic=TOPIC)
    third = restarted(again.disk)
    assert LOST.value(topic=TOPIC) == lost + 20
    assert len(places(third.tier.pieces("logs"))) == 2 * (101 - 20)


def test_a_crash_during_a_merge_duplicates_nothing() -> None:
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, *range(1, MERGE_COUNT))
    parts = {path: disk.data(path) for path in disk.files() if path.endswith(".arrow")}
    machine.add(*lines(MERGE_COUNT - 1, MERGE_COUNT))
    machine.tier.step()
    machine.seal()
    assert files(disk) == [0]
    disk = disk.process_kill()
    for path, data in parts.items():
        if path != FIRST:
            disk.open(path, "create").append([data])
    aside = SET_ASIDE.value(topic=TOPIC)
    again = restarted(disk)
    assert files(again.disk) == [0]
    assert SET_ASIDE.value(topic=TOPIC) == aside, "nothing is wrong with them"
    assert_whole(again, MERGE_COUNT)


def test_overlapping_files_do_not_duplicate_rows() -> None:
    """An older copy of one file was restored."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20)
    disk = disk.process_kill()
    first = open_segment(disk, FIRST)
    second = open_segment(disk, f"{FOLDER}/{10:020d}.arrow")
    rows = [batch for segment in (first, second) for batch in segment.streams[0].batches]
    longer = [rows[0], rows[1].slice(0, 6)]
    write_segment(
        disk, FIRST, replace(first.header, end_offset=13), {"logs": longer}, WriteBuffer()
    )
    again = restarted(disk)
    assert_whole(again, 20)


def test_a_damaged_partition_does_not_stop_others(caplog: pytest.LogCaptureFixture) -> None:
    """The error is reported, and the read is retried later."""
    disk = SimDisk()
    machine = start(disk)
    machine.log.create_topic("otlp_spans")
    machine.add(*lines(0, 20))
    path = f"log/{TOPIC}/0/00000000000000000000.log"
    whole = disk.data(path)
    disk.rot(path, Rand(0), "replace", data=whole[:200] + bytes(50) + whole[250:])
    failures = STALLED.value(topic=TOPIC)
    for _ in range(3):
        machine.add(*lines(0, 2), topic="otlp_spans")
        machine.tier.step()
    assert STALLED.value(topic=TOPIC) == failures + 1
    assert len(places(machine.tier.pieces("spans"))) == 12
    assert places(machine.tier.pieces("logs")) == []
    disk.rot(path, Rand(0), "replace", data=whole)
    machine.clock.advance(SMALL.retry_ms)
    machine.catch_up()
    assert_whole(machine, 20)


def test_a_damaged_start_file_is_ignored() -> None:
    """Evicted rows are visible again while the log has them."""
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10, 20)
    machine.tier.evict_below(TOPIC, 10)
    disk = disk.process_kill()
    disk.rot(f"{FOLDER}/start.ckpt", Rand(0), "flip")
    assert_whole(restarted(disk), 20)


def test_temporary_files_are_removed_and_unknown_files_kept() -> None:
    disk = SimDisk()
    machine = start(disk)
    seal_each(machine, 10)
    disk = disk.process_kill()
    for name in ("00000000000000000010.arrow.tmp", "notes.txt", "10.arrow"):
        disk.open(f"{FOLDER}/{name}", "create").append([b"x"])
    again = restarted(disk)
    assert_whole(again, 10)
    names = again.disk.list(FOLDER)
    assert "notes.txt" in names and "10.arrow" in names
    assert not any(name.endswith(".tmp") for name in names)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"seal_bytes": 0}, "seal_bytes"),
        ({"refresh_ms": -1}, "refresh_ms"),
        ({"memory_bytes_max": 1}, "memory_bytes_max"),
        ({"disk_bytes_max": 1}, "disk_bytes_max"),
    ],
)
def test_contradictory_settings_are_errors(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(Malformed, match=word):
        HotConfig(**settings)


def test_a_full_disk_at_the_first_start_is_retried() -> None:
    """The log is served meanwhile."""
    disk = PickyDisk()
    disk.refused = "hot"
    machine = start(disk)
    machine.add(*lines(0, 3))
    assert machine.tier.step() == 0
    assert machine.tier.pieces("logs") == ()
    disk.refused = ""
    machine.catch_up()
    assert_whole(machine, 3)
