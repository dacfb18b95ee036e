"""The log as a whole: one owner, topics, maintenance, a clean close."""

from __future__ import annotations

import errno
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from frazil.disk import RealDisk
from frazil.errors import (
    Conflict,
    Corrupt,
    FrazilError,
    Held,
    Malformed,
    OutOfRange,
    Overloaded,
    TooLarge,
    Unavailable,
    Unknown,
)
from frazil.log import DEAD_LETTERS, Append, AppendResult, Log, Record, append_of_records
from frazil.log.log import LOCK_NAME
from frazil.log.retention import LOST
from frazil.model import KiB, Rand
from frazil.settings import LogConfig, TopicConfig
from tests.log.build import (
    FIRST,
    SMALL,
    TOPIC,
    WIDE,
    Fatal,
    add,
    add_each,
    batch,
    flipped,
    numbers,
    open_log,
    paths,
    segments,
    submit,
    values,
)
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, SimDisk


def replaced(config: LogConfig, **changes: object) -> LogConfig:
    return msgspec.structs.replace(config, **changes)


def descriptors(folder: Path) -> list[Path]:
    """The files below a folder that this process holds open."""
    held = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that listed the folder
            held.append(link.readlink())
    return sorted(path for path in held if folder in path.parents)


# One owner.


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    """The second one is refused and told who the first is."""
    log = open_log(RealDisk(tmp_path))
    with pytest.raises(Held, match=rf"{tmp_path} is in use by process {os.getpid()} \(a test\)"):
        open_log(RealDisk(tmp_path))
    add(log, b"x")
    log.close()
    with open_log(RealDisk(tmp_path)) as again:
        assert values(again) == [b"x"]


def test_a_log_that_fails_to_open_holds_nothing(tmp_path: Path) -> None:
    """Neither the lock nor a file, so that it can be repaired meanwhile."""
    with open_log(RealDisk(tmp_path), SMALL, topic=TopicConfig(partitions=3)) as log:
        for partition in (0, 1, 2):
            add(log, *numbers(0, 5), partition=partition)
    path = tmp_path / "log" / TOPIC / "2" / "00000000000000000000.log"
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, 8 * 100))
    for _ in range(3):
        with pytest.raises(Corrupt):
            open_log(RealDisk(tmp_path), SMALL)
        assert descriptors(tmp_path) == []
    path.write_bytes(whole)
    with open_log(RealDisk(tmp_path), SMALL) as log:
        assert values(log, partition=2) == numbers(0, 5)


def test_a_start_on_a_full_disk_succeeds() -> None:
    """Reading works, nothing unread is removed, appends are refused."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    log.subscribe("slow", TOPIC, "earliest")
    add_each(log, *numbers(0, 30))
    disk = disk.process_kill()
    used_bytes = sum(len(disk.data(path)) for path in disk.files())
    before = segments(disk)
    disk.faults = Faults(capacity_bytes=used_bytes)
    log = open_log(disk, SMALL)
    assert values(log) == numbers(0, 30)
    assert segments(disk) == before
    answers = submit(log, batch(b"no room"))
    log.writer.step()
    assert isinstance(answers[0].exception(0), Overloaded)
    log.close()
    disk.faults = Faults()
    assert values(open_log(disk, SMALL)) == numbers(0, 30)


def test_the_lock_needs_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder's name is optional: if it cannot be written, the lock is held anyway; on other
    errors no lock remains."""
    disk = RealDisk(tmp_path)

    def failing(number: int) -> None:
        def pwrite(*_: object) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr("frazil.disk.files.os.pwrite", pwrite)

    failing(errno.ENOSPC)
    lock = disk.lock(LOCK_NAME, "the first")
    monkeypatch.undo()
    with pytest.raises(Held, match="another process"):
        disk.lock(LOCK_NAME, "the second")
    lock.close()
    failing(errno.EIO)
    with pytest.raises(OSError):
        disk.lock(LOCK_NAME, "the third")
    monkeypatch.undo()
    disk.lock(LOCK_NAME, "the fourth").close()
    assert descriptors(tmp_path) == []


def test_a_new_data_folder_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each created folder is synced into its parent."""
    synced: list[Path] = []
    fsync = os.fsync

    def seen_fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr("frazil.disk.files.os.fsync", seen_fsync)
    RealDisk(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    RealDisk(tmp_path / "a" / "b" / "c")
    assert len(synced) == 3


# The end.


def test_close_leaves_nothing_open(tmp_path: Path) -> None:
    """The next start has nothing to repair."""
    log = open_log(RealDisk(tmp_path), SMALL, threaded=True)
    for value in numbers(0, 30):
        log.append(TOPIC, batch(value)).result(30)
    log.close()
    assert descriptors(tmp_path) == []
    with open_log(RealDisk(tmp_path), SMALL) as again:
        partition = again.partition(TOPIC, 0)
        assert (partition.recovered_cut_bytes, partition.recovered_rebuilt) == (0, ())
        assert values(again) == numbers(0, 30)


def test_close_is_idempotent() -> None:
    """The folder may have another owner by then."""
    disk = SimDisk()
    log = open_log(disk)
    subscriber = log.subscribe("reader", TOPIC, "earliest")
    add(log, b"one")
    (claim,) = subscriber.claim()
    log.close()
    claim.ack()
    other = open_log(disk)
    add(other, b"two")
    calls, holder = disk.calls, disk.holder
    log.close()
    assert (disk.calls, disk.holder) == (calls, holder)
    with pytest.raises(Unavailable):
        log.append(TOPIC, batch(b"late"))
    assert values(other) == [b"one", b"two"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_close_releases_the_folder_whatever_fails(number: int) -> None:
    """On a full disk the clean mark is left out; on a failing one the error is raised. The next
    start finds everything either way."""
    for call in range(1, 60):
        disk = SimDisk()
        log = open_log(disk)
        subscriber = log.subscribe("reader", TOPIC, "earliest")
        add(log, b"x")
        subscriber.claim()[0].ack()
        disk.faults = Faults(fail_at=(disk.calls + call, number))
        try:
            log.close()
        except OSError as error:
            assert error.errno == number == errno.EIO
        assert disk.holder is None
        if "fail" not in disk.fired:
            return
        assert values(open_log(disk.process_kill())) == [b"x"]
    raise AssertionError("closing takes fewer storage calls than that")


def test_leaving_the_with_block_closes() -> None:
    """Also by an error."""
    disk = SimDisk()
    with pytest.raises(ZeroDivisionError), open_log(disk) as log:
        submit(log, batch(b"queued"))
        raise ZeroDivisionError
    assert disk.holder is None
    assert values(open_log(disk)) == [b"queued"]


# Topics.


def test_creating_a_topic_is_idempotent() -> None:
    """Other settings are a conflict."""
    log = open_log(SimDisk())
    config = TopicConfig(partitions=2)
    topic = log.create_topic("new", config)
    assert log.create_topic("new", TopicConfig(partitions=2)) is topic
    with pytest.raises(Conflict, match="topic new exists with other settings"):
        log.create_topic("new", TopicConfig(partitions=3))
    assert [topic.name for topic in log.topics()] == ["new", TOPIC]


def test_partitions_are_limited_in_number_not_by_their_segments() -> None:
    """The open segments of many partitions are sealed earlier: they cannot be removed, and must not
    fill the log. A small one is not sealed, however full the log is: its records are new."""
    log = open_log(SimDisk(), replaced(SMALL, disk_bytes_max=40 * KiB))
    wide = log.create_topic("wide", TopicConfig(partitions=100))
    for _ in range(10):
        for partition in wide.partitions:
            log.append("wide", batch(b"x" * 100), partition=partition.index)
            log.writer.step()
    log.maintain()
    assert all(partition.durable_watermark == 10 for partition in wide.partitions)
    assert log.budget.used_bytes <= 40 * KiB
    (kept,) = add(log, b"new")
    log.maintain()
    assert values(log, kept.base_offset) == [b"new"]
    with pytest.raises(Malformed, match="a log has at most 4096"):
        for number in range(4):
            log.create_topic(f"wider-{number}", TopicConfig(partitions=1024))


def test_a_partition_has_no_files_before_its_first_append() -> None:
    disk = SimDisk()
    log = open_log(disk, topic=TopicConfig(partitions=3), has_files=False)
    log.maintain()
    assert not [path for path in disk.files() if path.startswith(f"log/{TOPIC}/0/")]
    assert values(log) == []
    log.close()
    log = open_log(disk)
    add(log, b"x", partition=1)
    assert values(log, partition=1) == [b"x"]
    log = open_log(disk.process_kill())
    assert [values(log, partition=index) for index in range(3)] == [[], [b"x"], []]


def test_a_missing_topic_or_partition_is_unknown() -> None:
    log = open_log(SimDisk())
    for call in (
        lambda: log.topic("other"),
        lambda: log.append("other", batch(b"x")),
        lambda: log.append(TOPIC, batch(b"x"), partition=1),
        lambda: log.append(TOPIC, batch(b"x"), partition=-1),
        lambda: log.reader(TOPIC, "earliest", partition=1),
        lambda: log.wait_for("other", 0, 0, 0),
        lambda: log.publish("other", 0, 0),
        lambda: log.subscribe("reader", "other", "earliest"),
        lambda: log.unsubscribe("unknown"),
    ):
        with pytest.raises(Unknown):
            call()


def test_a_topic_on_a_full_disk_is_refused_and_created_later() -> None:
    """At every storage call."""
    for call in range(1, 100):
        disk, fatal = SimDisk(), Fatal()
        log = open_log(disk, fatal=fatal)
        used_bytes = log.budget.used_bytes
        disk.faults = Faults(fail_at=(disk.calls + call, errno.ENOSPC))
        try:
            log.create_topic("new", TopicConfig(partitions=2))
        except Overloaded:
            assert log.budget.used_bytes == used_bytes
            assert [topic.name for topic in log.topics()] == [TOPIC]
        if "fail" not in disk.fired:
            return
        assert not fatal.errors
        log.create_topic("new", TopicConfig(partitions=2))
        log.append("new", batch(b"x"), partition=1)
        log.writer.step()
        log.close()
        again = open_log(disk)
        assert again.partition("new", 1).durable_watermark == 1
    raise AssertionError("making a topic takes fewer storage calls than that")


def test_a_disk_failure_while_creating_a_topic_is_final() -> None:
    """A failed sync is not retried."""
    for call in range(1, 100):
        disk, fatal = SimDisk(), Fatal()
        log = open_log(disk, fatal=fatal)
        disk.faults = Faults(fail_at=(disk.calls + call, errno.EIO))
        try:
            log.create_topic("new")
        except OSError:
            assert len(fatal.errors) == 1
            with pytest.raises(Unavailable):
                log.create_topic("new")
        if "fail" not in disk.fired:
            return
    raise AssertionError("making a topic takes fewer storage calls than that")


def test_topics_and_subscribers_can_be_created_concurrently(tmp_path: Path) -> None:
    """From many threads, with the same names, while maintenance runs and batches arrive."""
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        log = open_log(RealDisk(tmp_path), replaced(WIDE, disk_bytes_max=64 * 1024 * KiB))
        log.writer.start()
        failures: list[BaseException] = []
        begin = threading.Barrier(4)

        def work() -> None:
            try:
                begin.wait()
                for number in range(12):
                    log.create_topic(f"topic-{number}")
                    log.subscribe(f"reader-{threading.get_ident()}-{number}", TOPIC, "earliest")
                    log.append(f"topic-{number}", batch(b"x")).result(30)
                    log.maintain()
            except BaseException as error:  # noqa: BLE001 - carried to the test's own thread
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        for number in range(12):
            assert log.partition(f"topic-{number}", 0).durable_watermark == 4
        log.close()
    finally:
        sys.setswitchinterval(old)


# Appends.


def test_a_batch_above_the_limit_is_too_large() -> None:
    """It will never fit, so it is not `Overloaded`."""
    log = open_log(SimDisk(), replaced(WIDE, batch_bytes_max=200))
    with pytest.raises(TooLarge, match=r"above log\.batch_bytes_max \(200\); send smaller"):
        log.append(TOPIC, batch(bytes(200)))
    add(log, bytes(100))


def test_a_compacted_topic_requires_keys() -> None:
    log = open_log(SimDisk(), topic=TopicConfig(cleanup="compact"))
    with pytest.raises(Malformed, match="every record needs a key"):
        log.append(TOPIC, batch(b"x"))
    log.append(TOPIC, batch(b"x", key=b"k"))
    log.writer.step()
    assert values(log) == [b"x"]


def test_the_lake_cannot_be_ahead_of_the_log() -> None:
    """The published watermark never decreases."""
    log = open_log(SimDisk(), topic=TopicConfig(awaits_lake=True))
    add(log, b"a", b"b")
    with pytest.raises(Malformed, match="durable up to 2; the lake cannot hold it up to 3"):
        log.publish(TOPIC, 0, 3)
    log.publish(TOPIC, 0, 2)
    log.publish(TOPIC, 0, 1)
    partition = log.partition(TOPIC, 0)
    partition.roll()
    log._time._wall_ms += 10**9
    assert log.maintain().expired_bytes > 0


# Maintenance.


def test_maintenance_frees_space_on_a_full_disk() -> None:
    """A segment that cannot be rolled does not stop the removal of old ones, in any partition."""
    disk, clock = SimDisk(), SimClock()
    topic = TopicConfig(partitions=2, retention_ms=1000)
    log = open_log(disk, SMALL, clock=clock, topic=topic)
    for value in numbers(0, 30):
        add(log, value, partition=0)
        add(log, value, partition=1)
    while not log.partition(TOPIC, 0).needs_roll:
        add(log, b"x", partition=0)
    clock.advance(2000)
    disk.faults = Faults(capacity_bytes=sum(len(disk.data(path)) for path in disk.files()))
    assert log.maintain().expired_bytes > 0
    assert log.partition(TOPIC, 0).view.start_offset > 0
    assert log.partition(TOPIC, 1).view.start_offset > 0
    add(log, b"there is room again")


def test_dropping_on_a_full_disk_terminates() -> None:
    """If nothing can be dropped, nothing is counted, and the log continues."""
    disk = SimDisk()
    config = replaced(SMALL, disk_bytes_max=24 * KiB)
    log = open_log(disk, config)
    log.subscribe("slow", TOPIC, "earliest")
    while not log.budget.is_tight:
        submit(log, batch(bytes(500), digest=b"%016d" % log.budget.used_bytes))
        log.writer.step()
    disk = disk.process_kill()
    for path in paths(disk, ".digests"):
        disk.unlink(path)
    log = open_log(disk, replaced(config, when_full="drop_oldest"))
    lost_before = LOST.value(reason="drop_oldest", topic=TOPIC)
    disk.faults = Faults(capacity_bytes=sum(len(disk.data(path)) for path in disk.files()))
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset == 0
    assert LOST.value(reason="drop_oldest", topic=TOPIC) == lost_before
    disk.faults = Faults()
    log.maintain()
    assert not log.budget.is_tight
    assert LOST.value(reason="drop_oldest", topic=TOPIC) - lost_before == (
        log.partition(TOPIC, 0).view.start_offset
    )


def test_a_full_disk_removes_spare_files() -> None:
    disk = SimDisk()
    log = open_log(disk, replaced(SMALL, when_full="drop_oldest"))
    add_each(log, *numbers(0, 20))
    log.partition(TOPIC, 0).trim(10)
    assert paths(disk, ".spare") != []
    log.subscribe("slow", TOPIC, "earliest")
    start = log.partition(TOPIC, 0).view.start_offset
    disk.faults = Faults(capacity_bytes=sum(len(disk.data(path)) for path in disk.files()))
    (answer,) = submit(log, batch(b"no room"))
    log.writer.step()
    assert isinstance(answer.exception(0), Overloaded)
    assert paths(disk, ".spare") == []
    add(log, b"there is room")
    assert values(log) == [*numbers(start, 20), b"there is room"]


def test_a_full_disk_drops_only_the_oldest_segment() -> None:
    disk = SimDisk()
    log = open_log(disk, replaced(SMALL, when_full="drop_oldest"))
    log.subscribe("slow", TOPIC, "earliest")
    add_each(log, *numbers(0, 60))
    second = log.partition(TOPIC, 0).view.segments[1].info.base_offset
    disk.faults = Faults(capacity_bytes=sum(len(disk.data(path)) for path in disk.files()))
    (answer,) = submit(log, batch(b"no room"))
    log.writer.step()
    assert isinstance(answer.exception(0), Overloaded)
    assert values(log) == numbers(second, 60)
    add(log, b"there is room")


def test_old_segments_are_rolled_by_maintenance() -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, WIDE, clock=clock, topic=TopicConfig(retention_ms=0))
    add(log, b"x")
    assert log.maintain().expired_bytes == 0
    clock.advance(WIDE.segment_age_ms_max)
    assert log.maintain().expired_bytes > 0
    assert values(log) == []
    with pytest.raises(OutOfRange):
        log.reader(TOPIC, 0)


def test_dead_letters_may_have_other_settings() -> None:
    log = open_log(SimDisk())
    log.create_topic(DEAD_LETTERS, TopicConfig(retention_ms=10**9))
    log.subscribe("reader", TOPIC, "earliest")


def test_every_record_survives_many_restarts() -> None:
    """Closed, killed, powered off."""
    disk = SimDisk(model="weak")
    rand = Rand(5)
    expected: list[bytes] = []
    for life in range(60):
        log = open_log(disk, SMALL)
        assert values(log) == expected
        for number in range(rand.randrange(8)):
            value = b"%d in life %d" % (number, life)
            add(log, value)
            expected.append(value)
        end = rand.randrange(3)
        if end == 0:
            log.close()
        else:
            disk = disk.process_kill() if end == 1 else disk.crash(rand)
    assert len(expected) > 100
    assert FIRST in segments(disk)


def test_all_refusals_are_frazil_errors() -> None:
    log: Log = open_log(SimDisk())
    log.close()
    with pytest.raises(FrazilError):
        log.append(TOPIC, batch(b"x"))
    with pytest.raises(FrazilError):
        log.maintain()


def expecting(value: bytes, offset: int, digest: bytes | None = None) -> Append:
    record = Record(offset=0, timestamp_ms=1, key=None, value=value)
    return append_of_records([record], digest=digest, expects_offset=offset)


def test_a_batch_that_expects_another_end_is_refused_alone() -> None:
    """The end counts batches of the same group; the first of two that expect it wins."""
    log = open_log(SimDisk())
    answers = submit(log, expecting(b"a", 0), expecting(b"b", 0), batch(b"c"), expecting(b"d", 2))
    log.writer.step()
    assert [answers[i].result(0).base_offset for i in (0, 2, 3)] == [0, 1, 2]
    with pytest.raises(Conflict, match="ends at offset 1, not at 0"):
        answers[1].result(0)
    assert values(log) == [b"a", b"c", b"d"]


def test_a_repetition_is_answered_although_the_end_has_moved_on() -> None:
    log = open_log(SimDisk())
    digest = bytes(16)
    for is_duplicate in (False, True):
        (answer,) = submit(log, expecting(b"a", 0, digest))
        log.writer.step()
        assert answer.result(0) == AppendResult(0, 1, is_duplicate)
    assert values(log) == [b"a"]


def test_a_batch_for_a_topic_that_was_created_again_is_refused() -> None:
    log = open_log(SimDisk())
    before = log.create_topic("again").topic_id
    log.delete_topic("again")
    assert log.create_topic("again").topic_id != before
    with pytest.raises(Unknown, match="created again"):
        log.append("again", batch(b"a"), topic_id=before)
