"""The writer: many batches, one sync; after a failed sync nothing is acknowledged."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from pathlib import Path

import msgspec
import pytest

from frazil.disk import RealDisk
from frazil.errors import (
    FrazilError,
    Overloaded,
    SequenceGap,
    Unavailable,
    Unresolved,
)
from frazil.log import AppendResult, Partition
from frazil.log.segment import HEADER_BYTES
from frazil.log.writer import DISK_REFUSED, QUEUE_REFUSED
from frazil.settings import LogConfig, TopicConfig
from tests.log.build import (
    FIRST,
    FOLDER,
    SMALL,
    TOPIC,
    WIDE,
    Fatal,
    add,
    add_each,
    batch,
    numbered,
    numbers,
    open_log,
    paths,
    segments,
    submit,
    values,
)
from tests.sim.disk import Faults, SimDisk

FULL = [errno.ENOSPC, errno.EDQUOT]


def error_of(answer: Future[AppendResult]) -> BaseException | None:
    assert answer.done(), "a batch is still pending"
    return answer.exception(0)


def errors_of(answers: list[Future[AppendResult]]) -> list[type[BaseException] | type[None]]:
    return [type(error_of(answer)) for answer in answers]


# Group commit.


def test_a_group_is_synced_once_and_acknowledged_then() -> None:
    disk = SimDisk(trace=[])
    log = open_log(disk)
    answers = submit(log, *map(batch, numbers(0, 50)))
    assert disk.trace is not None
    disk.trace.clear()
    assert not any(answer.done() for answer in answers)
    assert log.writer.step() == 50
    assert [call.split()[:2] for call in disk.trace] == [
        ["append", FIRST],
        ["sync", FIRST],
        ["write_at", f"{FOLDER}/marks"],
    ]
    assert [answer.result(0) for answer in answers] == [(n, n + 1, False) for n in range(50)]


def test_a_group_has_a_maximum_size() -> None:
    """The rest goes into the next one; each has at least one batch."""
    disk = SimDisk()
    log = open_log(disk, replaced(WIDE, group_bytes_max=1))
    answers = submit(log, *map(batch, numbers(0, 3)))
    for done in (1, 2, 3):
        assert log.writer.step() == 1
        assert sum(answer.done() for answer in answers) == done
    assert log.writer.step() == 0


def replaced(config: LogConfig, **changes: object) -> LogConfig:
    return msgspec.structs.replace(config, **changes)


def test_partitions_share_a_step() -> None:
    """Each is synced before any batch is acknowledged."""
    disk = SimDisk(trace=[])
    log = open_log(disk, topic=TopicConfig(partitions=2))
    answers = [log.append(TOPIC, batch(b"x"), partition=number % 2) for number in range(6)]
    assert disk.trace is not None
    disk.trace.clear()
    log.writer.step()
    assert [call.split()[0] for call in disk.trace] == ["append"] * 2 + ["sync"] * 2 + [
        "write_at"
    ] * 2
    assert [answer.result(0).base_offset for answer in answers] == [0, 0, 1, 1, 2, 2]


def test_one_bad_batch_is_refused_alone() -> None:
    """Others in the group are stored and acknowledged."""
    disk = SimDisk()
    log = open_log(disk)
    answers = submit(log, batch(b"a"), numbered(b"gap", 0), numbered(b"gap", 7), batch(b"b"))
    log.writer.step()
    assert errors_of(answers) == [type(None), type(None), SequenceGap, type(None)]
    assert values(open_log(disk.process_kill())) == [b"a", b"gap", b"b"]


def test_a_cancelled_batch_is_not_written() -> None:
    log = open_log(SimDisk())
    answers = submit(log, *map(batch, numbers(0, 3)))
    assert answers[1].cancel()
    log.writer.step()
    assert values(log) == [numbers(0, 1)[0], numbers(2, 3)[0]]
    assert [answers[0].result(0), answers[2].result(0)] == [(0, 1, False), (1, 2, False)]
    with pytest.raises(CancelledError):
        answers[1].result(0)


def test_a_producer_may_run_the_step_itself() -> None:
    """It returns with all queued batches done; a duplicate gets its first offset, a refused
    batch its error."""
    log = open_log(SimDisk())
    waiting = submit(log, batch(b"waited"))
    assert log.append_durably(TOPIC, numbered(b"own", 0)) == (1, 2, False)
    assert waiting[0].result(0) == (0, 1, False)
    assert log.append_durably(TOPIC, numbered(b"own", 0)) == (1, 2, True)
    with pytest.raises(SequenceGap):
        log.append_durably(TOPIC, numbered(b"gap", 5))
    assert values(log) == [b"waited", b"own"]


def test_a_producer_that_runs_the_step_keeps_its_order() -> None:
    """Batches it queued before come first, even if they do not fit into one group."""
    log = open_log(SimDisk(), replaced(WIDE, group_bytes_max=1))
    answers = submit(log, *map(batch, numbers(0, 3)))
    assert log.append_durably(TOPIC, batch(b"last")) == (3, 4, False)
    assert [answer.result(0).base_offset for answer in answers] == [0, 1, 2]
    assert values(log) == [*numbers(0, 3), b"last"]


def test_an_idle_log_is_written_to_by_the_caller() -> None:
    """Not before what is queued. Readers are told when the caller says so."""
    log = open_log(SimDisk())
    told: list[int] = []
    log.writer.listen(lambda: told.append(log.writer.queue_count))
    waiting = submit(log, batch(b"waited"))
    assert log.append_if_idle(TOPIC, numbered(b"own", 0), 0) is None
    log.writer.step()
    assert (error_of(waiting[0]), told) == (None, [0])
    for expected in ((1, 2, False), (1, 2, True)):
        done = log.append_if_idle(TOPIC, numbered(b"own", 0), 0)
        assert done is not None and done.result(0) == expected
    refused = log.append_if_idle(TOPIC, numbered(b"gap", 5), 0)
    assert refused is not None and type(error_of(refused)) is SequenceGap
    assert (values(log), told) == ([b"waited", b"own"], [0])
    log.writer.wake_readers()
    add(log, b"next")
    assert told == [0, 0, 0]


def test_a_failed_sync_is_final_for_the_caller_of_an_idle_log() -> None:
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, fatal=fatal)
    disk.faults = Faults(fail_sync_at=disk.syncs + 1)
    unresolved = log.append_if_idle(TOPIC, batch(b"x"), 0)
    assert unresolved is not None and type(error_of(unresolved)) is Unresolved
    with pytest.raises(Unavailable):
        log.append_if_idle(TOPIC, batch(b"y"), 0)
    assert len(fatal.errors) == 1


def test_close_completes_batches_queued_after_cancelled_ones() -> None:
    log = open_log(SimDisk(), replaced(WIDE, group_bytes_max=1))
    answers = submit(log, *map(batch, numbers(0, 4)))
    assert answers[0].cancel() and answers[2].cancel()
    log.close()
    assert answers[1].result(0).base_offset == 0
    assert answers[3].result(0).base_offset == 1


# Full queues, full budgets.


def test_a_queue_that_is_full_by_count_refuses() -> None:
    """With a short retry time. Queued batches are written, then there is room again."""
    log = open_log(SimDisk(), replaced(WIDE, queue_count_max=3))
    answers = submit(log, *map(batch, numbers(0, 3)))
    refused_before = QUEUE_REFUSED.value()
    with pytest.raises(Overloaded, match=r"3 batches of .* wait for the disk") as caught:
        log.append(TOPIC, batch(b"one more"))
    assert caught.value.retry_after_ms > 0
    assert QUEUE_REFUSED.value() == refused_before + 1
    log.writer.step()
    assert [answer.result(0).base_offset for answer in answers] == [0, 1, 2]
    assert add(log, b"again") == [(3, 4, False)]
    assert values(log) == [*numbers(0, 3), b"again"]


def test_a_queue_that_is_full_by_bytes_refuses() -> None:
    """Memory is bounded by configuration, not by the speed of producers."""
    config = replaced(WIDE, batch_bytes_max=4096, queue_bytes_max=10_000)
    log = open_log(SimDisk(), config)
    submit(log, batch(bytes(3900)), batch(bytes(3900)))
    with pytest.raises(Overloaded):
        log.append(TOPIC, batch(bytes(3900)))
    submit(log, batch(b"a small one still fits"))
    log.writer.step()
    submit(log, batch(bytes(3900)))
    log.writer.step()
    assert len(values(log)) == 4


def test_a_full_budget_refuses_until_readers_catch_up() -> None:
    clock_disk = SimDisk()
    config = replaced(SMALL, disk_bytes_max=24 * 1024)
    log = open_log(clock_disk, config, topic=TopicConfig(retention_ms=10**12))
    subscriber = log.subscribe("slow", TOPIC, "earliest")
    stored = 0
    with pytest.raises(Overloaded, match="retry when its readers"):
        for _ in range(1000):
            add(log, bytes(500))
            stored += 1
    assert sum(len(clock_disk.data(path)) for path in segments(clock_disk)) <= 24 * 1024
    log.maintain()
    with pytest.raises(Overloaded):
        log.append(TOPIC, batch(bytes(500)))
    assert len(values(log)) == stored
    while claims := subscriber.claim():
        for claim in claims:
            claim.ack()
        subscriber.step()
    log.maintain()
    assert add(log, b"again") == [(stored, stored + 1, False)]


def test_a_log_above_its_budget_opens() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    add_each(log, *[bytes(500)] * 100)
    log = open_log(disk.process_kill(), replaced(SMALL, disk_bytes_max=20 * 1024))
    assert len(values(log)) == 100
    with pytest.raises(Overloaded):
        log.append(TOPIC, batch(b"x"))


# The disk is full.


def fill(disk: SimDisk, room_bytes: int) -> None:
    """Leave this much room."""
    used_bytes = sum(len(disk.data(path)) for path in disk.files())
    disk.faults = Faults(capacity_bytes=used_bytes + room_bytes)


@pytest.mark.parametrize("room_bytes", [0, 1, 31, 32, 33, 111, 112, 113, 200])
def test_a_full_disk_undoes_the_whole_group(room_bytes: int) -> None:
    """No partial frame stays, and appends succeed once there is space."""
    disk = SimDisk()
    log = open_log(disk)
    add_each(log, *numbers(0, 3))
    whole = disk.data(FIRST)
    for _ in range(3):
        fill(disk, room_bytes)
        refused_before = DISK_REFUSED.value()
        answers = submit(log, *map(batch, numbers(10, 12)))
        log.writer.step()
        assert errors_of(answers) == [Overloaded, Overloaded]
        assert "the disk is full" in str(error_of(answers[0]))
        assert DISK_REFUSED.value() == refused_before + 2
        assert disk.data(FIRST) == whole
        assert values(log) == numbers(0, 3)
    disk.faults = Faults()
    assert add(log, b"next") == [(3, 4, False)]
    assert values(open_log(disk.process_kill())) == [*numbers(0, 3), b"next"]


def test_a_batch_refused_on_a_full_disk_is_never_stored() -> None:
    """Also after a kill or a power cut."""
    for seed in range(20):
        disk = SimDisk(model="weak")
        log = open_log(disk)
        add(log, b"kept")
        fill(disk, 150)
        submit(log, *map(batch, numbers(0, 4)))
        log.writer.step()
        after = disk.process_kill() if seed == 0 else disk.crash(disk.rand)
        after.faults = Faults()
        assert values(open_log(after)) == [b"kept"]


def test_an_undone_group_is_forgotten_by_producers_and_digests() -> None:
    """The same batches sent again are new, in the same order; repetitions inside the lost group
    are refused with it, and repetitions of something durable are still answered."""
    disk = SimDisk()
    log = open_log(disk)
    digest, old = b"d" * 16, b"o" * 16
    durable = submit(log, numbered(b"0", 0), batch(b"old", digest=old))
    log.writer.step()
    again = [
        numbered(b"1", 1),
        numbered(b"2", 2),
        numbered(b"1", 1),
        batch(b"x", digest=digest),
        batch(b"x", digest=digest),
        numbered(b"0", 0),
        batch(b"old", digest=old),
        numbered(b"other", 0, producer=8),
    ]
    fill(disk, 40)
    answers = submit(log, *again)
    log.writer.step()
    assert errors_of(answers[:5]) == [Overloaded] * 5
    assert [answer.result(0).base_offset for answer in answers[5:7]] == [0, 1]
    assert error_of(answers[7]).__class__ is Overloaded
    disk.faults = Faults()
    answers = submit(log, *again)
    log.writer.step()
    found = [(answer.result(0).base_offset, answer.result(0).is_duplicate) for answer in answers]
    assert found == [
        (2, False),
        (3, False),
        (2, True),
        (4, False),
        (4, True),
        (0, True),
        (1, True),
        (5, False),
    ]
    assert [answer.result(0).base_offset for answer in durable] == [0, 1]
    assert values(log) == [b"0", b"old", b"1", b"2", b"x", b"other"]


def test_a_full_partition_does_not_block_another() -> None:
    """In one step one group is undone and the other stored."""
    disk = SimDisk()
    log = open_log(disk, topic=TopicConfig(partitions=2))
    fill(disk, 200)
    large = log.append(TOPIC, batch(bytes(5000)), partition=0)
    small = log.append(TOPIC, batch(b"small"), partition=1)
    log.writer.step()
    assert type(error_of(large)) is Overloaded
    assert small.result(0) == (0, 1, False)
    assert values(log, partition=1) == [b"small"]


@pytest.mark.parametrize("number", FULL)
def test_a_roll_on_a_full_disk_refuses_and_resumes(number: int) -> None:
    """No torn file is left, and the next attempt rolls."""
    for call in range(1, 5):
        disk = SimDisk()
        log = open_log(disk, SMALL, topic=TopicConfig(awaits_lake=True))
        while not log.partition(TOPIC, 0).needs_roll:
            add(log, b"before")
        before = values(log)
        disk.faults = Faults(fail_at=(disk.calls + call, number))
        answers = submit(log, batch(b"refused"))
        log.writer.step()
        assert errors_of(answers) == [Overloaded]
        assert all(len(disk.data(path)) >= HEADER_BYTES for path in segments(disk))
        assert values(log) == before
        add(log, b"after")
        assert len(segments(disk)) == 2
        assert values(open_log(disk.process_kill(), SMALL)) == [*before, b"after"]


@pytest.mark.parametrize("number", FULL)
def test_side_files_are_skipped_on_a_full_disk(number: int) -> None:
    """Roll and append succeed; the next start scans the segment instead of its index."""
    for call in range(5, 40):
        disk = SimDisk()
        fatal = Fatal()
        log = open_log(disk, SMALL, fatal=fatal)
        while not log.partition(TOPIC, 0).needs_roll:
            submit(log, batch(b"before", digest=b"%016d" % disk.calls))
            log.writer.step()
        before = values(log)
        disk.faults = Faults(fail_at=(disk.calls + call, number))
        answers = submit(log, batch(b"after"))
        log.writer.step()
        if "fail" not in disk.fired:
            assert len(paths(disk, ".index")) == 1
            return
        if errors_of(answers) == [Overloaded]:  # the append after the roll failed
            continue
        if fatal.errors:  # a sync: full or not, it is never tried again
            continue
        assert answers[0].result(0).base_offset == len(before)
        assert paths(disk, ".tmp") == []
        assert values(open_log(disk.process_kill(), SMALL)) == [*before, b"after"]
    raise AssertionError("a roll takes fewer storage calls than that")


# The disk fails.


def test_a_failed_sync_is_final() -> None:
    """The group is Unresolved, queued batches are not stored, nothing is acknowledged
    afterwards, and the process ends."""
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, replaced(WIDE, group_bytes_max=150), fatal=fatal)
    add(log, b"acknowledged")
    answers = submit(log, *map(batch, numbers(0, 5)))
    cancelled = answers[4].cancel()
    disk.faults = Faults(fail_sync_at=disk.syncs + 1)
    log.writer.step()
    syncs = disk.syncs
    assert disk.fired["fail_sync"] == 1
    assert cancelled
    assert errors_of(answers[:4]) == [Unresolved, Unresolved, Unavailable, Unavailable]
    assert [type(error) for error in fatal.errors] == [OSError]
    assert log.writer.has_failed
    for call in (
        lambda: log.append(TOPIC, batch(b"late")),
        lambda: log.writer.run(lambda: None),
        log.maintain,
    ):
        with pytest.raises(Unavailable, match="the log has stopped"):
            call()
    assert log.writer.step() == 0
    log.close()
    assert (disk.syncs, len(fatal.errors)) == (syncs, 1)
    assert values(log) == [b"acknowledged"]


def test_a_failed_sync_is_final_for_a_producer_that_runs_the_step() -> None:
    """It gets Unresolved; the next one learns that nothing is stored."""
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, fatal=fatal)
    disk.faults = Faults(fail_sync_at=disk.syncs + 1)
    with pytest.raises(Unresolved):
        log.append_durably(TOPIC, batch(b"x"))
    with pytest.raises(Unavailable):
        log.append_durably(TOPIC, batch(b"y"))
    assert len(fatal.errors) == 1
    assert disk.fired["fail_sync"] == 1


@pytest.mark.parametrize("number", [errno.EIO, *FULL])
def test_a_sync_that_fails_for_any_reason_is_final(number: int) -> None:
    """A sync that reports a full disk has lost pages, too."""
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, fatal=fatal)
    disk.faults = Faults(fail_at=(disk.calls + 2, number))
    answers = submit(log, batch(b"x"))
    log.writer.step()
    assert errors_of(answers) == [Unresolved]
    assert len(fatal.errors) == 1


def test_after_a_failed_sync_the_next_start_reads_the_disk() -> None:
    """The kernel shows the lost bytes and calls them clean; they are not served as records
    unless the disk has them."""
    for seed in range(20):
        disk = SimDisk()
        log = open_log(disk)
        add(log, b"acknowledged")
        disk.faults = Faults(fail_sync_at=disk.syncs + 1)
        answers = submit(log, batch(b"unresolved"))
        log.writer.step()
        assert errors_of(answers) == [Unresolved]
        after = disk.process_kill() if seed == 0 else disk.crash(disk.rand)
        log = open_log(after)
        assert values(log) == [b"acknowledged"]
        add(log, b"next")
        assert values(open_log(after.crash(disk.rand))) == [b"acknowledged", b"next"]


def test_a_sync_that_fails_in_one_partition_acknowledges_none() -> None:
    for which in (1, 2):
        disk, fatal = SimDisk(), Fatal()
        log = open_log(disk, topic=TopicConfig(partitions=2), fatal=fatal)
        disk.faults = Faults(fail_sync_at=disk.syncs + which)
        answers = [log.append(TOPIC, batch(b"x"), partition=number) for number in (0, 1)]
        log.writer.step()
        assert errors_of(answers) == [Unresolved, Unresolved]
        assert len(fatal.errors) == 1


def test_an_error_at_any_call_of_a_step_acknowledges_nothing_wrongly() -> None:
    """EIO at the n-th storage call, for every n, over appends and rolls: what was answered with
    an offset is there after the restart; after the error nobody is."""
    for call in range(1, 200):
        disk, fatal = SimDisk(), Fatal()
        log = open_log(disk, SMALL, fatal=fatal)
        disk.faults = Faults(fail_at=(disk.calls + call, errno.EIO))
        acknowledged: list[bytes] = []
        for value in numbers(0, 24):
            try:
                answer = log.append(TOPIC, batch(value))
            except Unavailable:
                assert fatal.errors
                continue
            log.writer.step()
            if error_of(answer) is None:
                assert not fatal.errors
                acknowledged.append(value)
        if "fail" not in disk.fired:
            assert len(acknowledged) == 24
            return
        assert len(fatal.errors) == 1
        found = values(open_log(disk.process_kill(), SMALL))
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1
    raise AssertionError("so few batches take fewer storage calls than that")


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EBADF])
def test_a_write_error_other_than_a_full_disk_is_final(number: int) -> None:
    """Stored batches can still be read."""
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, fatal=fatal)
    add(log, b"acknowledged")
    disk.faults = Faults(fail_at=(disk.calls + 1, number))
    answers = submit(log, batch(b"x"))
    log.writer.step()
    assert errors_of(answers) == [Unresolved]
    assert len(fatal.errors) == 1
    assert values(log) == [b"acknowledged"]


def test_a_failed_undo_is_final() -> None:
    """A full disk whose file cannot be truncated either."""
    for call, number in ((2, errno.EIO), (3, errno.EIO), (3, errno.ENOSPC)):
        disk, fatal = SimDisk(), Fatal()
        log = open_log(disk, fatal=fatal)
        fill(disk, 50)
        disk.faults.fail_at = (disk.calls + call, number)
        answers = submit(log, batch(b"x" * 100))
        log.writer.step()
        assert errors_of(answers) == [Unresolved]
        assert len(fatal.errors) == 1


# Errands.


def test_tasks_run_on_the_writer_thread() -> None:
    """Results and errors go to the caller; appends in the same step are not affected."""
    log = open_log(SimDisk())

    def refuse() -> None:
        raise Overloaded("no")

    result = log.writer.run(lambda: 42)
    refused = log.writer.run(refuse)
    answers = submit(log, batch(b"x"))
    assert log.writer.step() == 3
    assert result.result(0) == 42
    assert isinstance(refused.exception(0), Overloaded)
    assert answers[0].result(0).base_offset == 0


@pytest.mark.parametrize("number", FULL)
def test_a_task_on_a_full_disk_fails_alone(number: int) -> None:
    fatal = Fatal()
    log = open_log(SimDisk(), fatal=fatal)

    def work() -> None:
        raise OSError(number, "no room")

    answer = log.writer.run(work)
    log.writer.step()
    assert isinstance(answer.exception(0), OSError)
    assert not fatal.errors
    assert add(log, b"x") == [(0, 1, False)]


def test_a_task_on_a_failing_disk_is_final() -> None:
    """Batches of the same step are not acknowledged."""
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, fatal=fatal)

    def work() -> None:
        raise OSError(errno.EIO, "broken")

    before = submit(log, batch(b"before"))
    errand = log.writer.run(work)
    second = log.writer.run(lambda: 42)
    after = submit(log, batch(b"after"))
    log.writer.step()
    assert isinstance(errand.exception(0), OSError)
    assert isinstance(second.exception(0), Unresolved)
    assert errors_of(before + after) == [Unresolved, Unresolved]
    assert len(fatal.errors) == 1
    assert values(open_log(disk.process_kill())) == []


# The thread.


def test_many_threads_are_served_in_their_order(tmp_path: Path) -> None:
    """Offsets are dense, each thread's batches lie in the order it sent them, and what was
    answered is what is read, also after a restart."""
    log = open_log(RealDisk(tmp_path), SMALL, threaded=True)
    sent_count, thread_count = 150, 8
    answers: list[list[Future[AppendResult]]] = [[] for _ in range(thread_count)]
    begin = threading.Barrier(thread_count)

    def produce(mine: list[Future[AppendResult]], name: int) -> None:
        begin.wait()
        while len(mine) < sent_count:
            append = batch(b"%d %d" % (name, len(mine)))
            try:
                if len(mine) % 7 == name:
                    own: Future[AppendResult] = Future()
                    own.set_result(log.append_durably(TOPIC, append))
                    mine.append(own)
                else:
                    mine.append(log.append(TOPIC, append))
            except Overloaded:  # let the writer catch up
                wait(mine[-1:], timeout=30)

    threads = [
        threading.Thread(target=produce, args=(mine, name)) for name, mine in enumerate(answers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found: dict[int, bytes] = {}
    for name, mine in enumerate(answers):
        offsets = [answer.result(30).base_offset for answer in mine]
        assert offsets == sorted(offsets)
        found |= {offset: b"%d %d" % (name, number) for number, offset in enumerate(offsets)}
    expected = [found[offset] for offset in range(thread_count * sent_count)]
    assert values(log) == expected
    log.close()
    log = open_log(RealDisk(tmp_path), SMALL)
    assert values(log) == expected
    log.close()


def test_a_slow_sync_acknowledges_nothing_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see nothing, and the queue fills up to its limit and then refuses; afterwards all
    are acknowledged."""
    log = open_log(RealDisk(tmp_path), replaced(WIDE, queue_count_max=10), threaded=True)
    syncing, go_on = threading.Event(), threading.Event()
    sync = Partition.sync

    def slow_sync(partition: Partition) -> None:
        syncing.set()
        assert go_on.wait(30)
        sync(partition)

    monkeypatch.setattr(Partition, "sync", slow_sync)
    answers = submit(log, batch(b"first"))
    assert syncing.wait(30)
    answers += submit(log, *map(batch, numbers(0, 10)))
    with pytest.raises(Overloaded):
        log.append(TOPIC, batch(b"one too many"))
    assert not any(answer.done() for answer in answers)
    assert values(log) == []
    go_on.set()
    assert [answer.result(30).base_offset for answer in answers] == list(range(11))
    log.close()


def test_readers_wait_for_new_batches(tmp_path: Path) -> None:
    """Woken by the commit of their partition, or by the timeout."""
    log = open_log(RealDisk(tmp_path), threaded=True, topic=TopicConfig(partitions=2))
    assert not log.wait_for(TOPIC, 0, 0, 0)
    woken: Future[bool] = Future()
    thread = threading.Thread(target=lambda: woken.set_result(log.wait_for(TOPIC, 0, 0, 30)))
    thread.start()
    log.append(TOPIC, batch(b"elsewhere"), partition=1).result(30)
    log.append(TOPIC, batch(b"news")).result(30)
    assert woken.result(30)
    thread.join()
    assert log.wait_for(TOPIC, 0, 0, 0)
    assert not log.wait_for(TOPIC, 0, 1, 0)
    log.close()


def test_readers_of_many_partitions_wait_for_the_first_commit(tmp_path: Path) -> None:
    log = open_log(RealDisk(tmp_path), threaded=True, topic=TopicConfig(partitions=2))
    places = [(log.partition(TOPIC, index), 0) for index in range(2)]
    assert not log.wait_for_any(places, 0) and not log.wait_for_any([], 0)
    woken: Future[bool] = Future()
    thread = threading.Thread(target=lambda: woken.set_result(log.wait_for_any(places, 30)))
    thread.start()
    log.append(TOPIC, batch(b"news"), partition=1).result(30)
    assert woken.result(30)
    thread.join()
    assert log.wait_for_any(places, 0) and not log.wait_for_any(places[:1], 0)
    log.close()


def test_close_finishes_queued_batches(tmp_path: Path) -> None:
    """Later ones are refused."""
    log = open_log(RealDisk(tmp_path), threaded=True)
    answers = submit(log, *map(batch, numbers(0, 200)))
    log.close()
    assert [answer.result(0).base_offset for answer in answers] == list(range(200))
    with pytest.raises(Unavailable, match="the log is closing"):
        log.append(TOPIC, batch(b"late"))


def test_close_waits_for_a_producer_that_runs_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(RealDisk(tmp_path), threaded=True)
    syncing, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    sync, close = Partition.sync, Partition.close

    def slow_sync(partition: Partition) -> None:
        syncing.set()
        assert go_on.wait(30)
        sync(partition)

    def seen_close(partition: Partition) -> None:
        closed.set()
        close(partition)

    monkeypatch.setattr(Partition, "sync", slow_sync)
    monkeypatch.setattr(Partition, "close", seen_close)
    with ThreadPoolExecutor() as pool:
        own = pool.submit(log.append_durably, TOPIC, batch(b"own"))
        assert syncing.wait(30)
        closing = pool.submit(log.close)
        assert not closed.wait(0.1)
        go_on.set()
        assert own.result(30) == (0, 1, False)
        closing.result(30)
    assert closed.is_set()
    with open_log(RealDisk(tmp_path)) as again:
        assert values(again) == [b"own"]


@pytest.mark.parametrize("method", ["stage", "write", "publish"])
def test_a_dead_writer_fails_all_waiting_batches(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug in the writer thread: all batches fail, new ones are refused, the process ends."""

    def broken(*_: object) -> None:
        raise RuntimeError("a mistake")

    fatal = Fatal()
    log = open_log(RealDisk(tmp_path), threaded=True, fatal=fatal)
    hold = threading.Event()
    log.writer.run(hold.wait)
    first = log.writer.run(lambda: 1)
    answers = submit(log, *map(batch, numbers(0, 3)))
    monkeypatch.setattr(Partition, method, broken)
    hold.set()
    for answer in answers:
        assert isinstance(answer.exception(30), Unresolved | Unavailable)
    assert first.result(30) == 1
    with pytest.raises(Unavailable):
        log.append(TOPIC, batch(b"late"))
    log.close()
    assert [type(error) for error in fatal.errors] == [RuntimeError]


def test_a_bug_in_a_task_fails_all_waiting_batches(tmp_path: Path) -> None:
    fatal = Fatal()
    log = open_log(RealDisk(tmp_path), threaded=True, fatal=fatal)
    hold = threading.Event()
    log.writer.run(hold.wait)
    asked: Future[float] = log.writer.run(lambda: 1 / 0)
    answers = submit(log, *map(batch, numbers(0, 3)))
    hold.set()
    assert isinstance(asked.exception(30), FrazilError | ZeroDivisionError)
    for answer in answers:
        assert isinstance(answer.exception(30), Unresolved | Unavailable)
    log.close()
    assert len(fatal.errors) == 1


def test_ctrl_c_stops_the_log_without_a_disk_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A producer interrupted in the middle of its own step: nothing acknowledged is lost, the log
    takes nothing more, and the interrupt goes its way."""
    disk, fatal = SimDisk(), Fatal()
    log = open_log(disk, fatal=fatal)
    add(log, b"before")

    def interrupted(self: Partition) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Partition, "sync", interrupted)
        (waiting,) = submit(log, batch(b"waiting"))
        with pytest.raises(KeyboardInterrupt):
            log.append_durably(TOPIC, batch(b"own"))
    assert isinstance(waiting.exception(0), Unresolved)
    assert not fatal.errors
    with pytest.raises(Unavailable):
        submit(log, batch(b"after"))
    log.close()
    assert values(open_log(disk))[:1] == [b"before"]


def test_bytes_being_written_count_against_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hard cap holds."""
    log = open_log(SimDisk(), replaced(SMALL, disk_bytes_max=24 * 1024))
    original = Partition.sync

    def meanwhile(self: Partition) -> None:
        with pytest.raises(Overloaded):
            for _ in range(100):
                submit(log, batch(bytes(2000)))
        original(self)

    monkeypatch.setattr(Partition, "sync", meanwhile)
    submit(log, batch(bytes(15_000)))
    log.writer.step()
    monkeypatch.undo()
    while log.writer.step():
        assert log.budget.used_bytes <= 24 * 1024
