"""Topics that are changed, grown and deleted while the log is used: each change happens completely
or not at all, whatever fails, and other processes see it."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from frazil.disk import RealDisk, write_checkpoint
from frazil.errors import Malformed, OutOfRange, Overloaded, TooLarge, Unknown
from frazil.log import Log, PartitionObserver, Reader, StoredBatch
from frazil.log.external.commit_signal import CommitSignal, CommitWaiter
from frazil.log.external.observed_log import ObservedLog
from frazil.log.topic import CONFIG_KIND, CONFIG_NAME, FOLDER, buried_topics
from frazil.model import Rand, SystemClock
from frazil.settings import TopicConfig
from tests.log.build import SMALL, TOPIC, Fatal, add, add_each, batch, numbers, open_log, values
from tests.sim.disk import Faults, PowerCut, SimDisk


def filled(disk: SimDisk, fatal: Fatal | None = None) -> Log:
    """A topic of two partitions and several segments, with a subscriber, besides another one."""
    log = open_log(disk, SMALL, topic=TopicConfig(partitions=2), fatal=fatal)
    add_each(log, *numbers(0, 20))
    add(log, b"other", partition=1)
    log.create_topic("other")
    log.append("other", batch(b"kept"))
    log.writer.step()
    subscriber = log.subscribe("reads", TOPIC, "earliest")
    for claim in subscriber.claim(3):
        claim.ack()
    subscriber.step()
    return log


def change(log: Log) -> None:
    log.alter_topic(TOPIC, {"retention_ms": 7})


def grow(log: Log) -> None:
    log.add_partitions(TOPIC, 3)


def delete(log: Log) -> None:
    log.delete_topic(TOPIC)


def delete_some(log: Log) -> None:
    log.delete_records(TOPIC, 0, 13)


def delete_all(log: Log) -> None:
    log.delete_records(TOPIC, 0, 20)


CHANGES = [change, grow, delete, delete_some, delete_all]

Outcome = tuple[object, ...]


def outcome(log: Log) -> Outcome:
    """Everything that a change may change."""
    try:
        topic = log.topic(TOPIC)
    except Unknown:
        assert not log.has_subscriber("reads")
        return ("deleted",)
    start = topic.partitions[0].view.start_offset
    seen = [r.offset for b in _read(log, start) for r in b.records() if r.offset >= start]
    assert seen == list(range(start, 20))
    return topic.config.retention_ms, len(topic.partitions), start


def _read(log: Log, start: int) -> list[StoredBatch]:
    reader = log.reader(TOPIC, start)
    return [each for some in iter(reader.read, []) for each in some]


def check_usable(log: Log) -> None:
    """The rest of the log is as it was, and every topic can be used or created again."""
    reader = log.reader("other", "earliest")
    assert [r.value for b in reader.read() for r in b.records()] == [b"kept"]
    if not any(topic.name == TOPIC for topic in log.topics()):
        log.create_topic(TOPIC, TopicConfig(partitions=2))
        assert add(log, b"new")[0].base_offset == 0
        assert values(log) == [b"new"]
    else:
        assert add(log, b"more")[0].base_offset == 20
        assert log.subscriber("reads").claim()


@pytest.mark.parametrize("apply", CHANGES)
@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_change_happens_completely_or_not_at_all(
    apply: Callable[[Log], None], model: str
) -> None:
    """A kill and a power cut at every storage call."""
    quiet = filled(SimDisk())
    before = outcome(quiet)
    apply(quiet)
    after = outcome(quiet)
    outcomes = set()
    for call in range(1, 400):
        disk = SimDisk(model="weak" if model == "weak" else "ext4", rand=Rand(call))
        log = filled(disk)
        disk.faults = Faults(crash_at=disk.calls + call)
        try:
            apply(log)
        except PowerCut:
            pass
        else:
            break
        for seed in range(3):
            survivor = disk.process_kill() if seed == 0 else disk.crash(Rand(seed))
            again = open_log_as_found(survivor)
            outcomes.add(outcome(again))
            assert not buried_topics(survivor), "the next start finishes a deletion"
            check_usable(again)
            once_more = open_log_as_found(survivor.crash(Rand(seed)))
            assert once_more.topic(TOPIC).partitions[0].durable_watermark in (1, 21)
    else:
        raise AssertionError("it takes fewer storage calls than that")
    assert outcomes == {before, after}


def open_log_as_found(disk: SimDisk) -> Log:
    return Log.open(
        disk, SMALL, clock=SystemClock(), rand=Rand(disk.calls), fatal=Fatal(), threaded=False
    )


@pytest.mark.parametrize("apply", CHANGES)
def test_a_change_on_a_full_disk_is_refused_or_done(apply: Callable[[Log], None]) -> None:
    """At every storage call; what is refused can be repeated."""
    quiet = filled(SimDisk())
    before = outcome(quiet)
    apply(quiet)
    after = outcome(quiet)
    for call in range(1, 400):
        disk, fatal = SimDisk(), Fatal()
        log = filled(disk, fatal)
        disk.faults = Faults(fail_at=(disk.calls + call, errno.ENOSPC))
        error: Exception | None = None
        try:
            apply(log)
        except (Overloaded, OSError) as raised:
            error = raised
        has_failed, disk.faults = "fail" in disk.fired, Faults()
        if not has_failed:
            break
        if fatal.errors:  # done, but nobody knows whether it is durable
            log = open_log_as_found(disk.process_kill())
            assert outcome(log) in (before, after)
        elif isinstance(error, Overloaded):
            assert outcome(log) == before
            apply(log)
            assert outcome(log) == after
        else:
            assert outcome(log) == after
        check_usable(log)
    else:
        raise AssertionError("it takes fewer storage calls than that")


def test_a_topic_keeps_its_id_and_a_new_one_gets_another() -> None:
    disk = SimDisk()
    log = open_log(disk)
    first = log.topic(TOPIC)
    assert log.topic_by_id(first.topic_id) == first
    log.close()
    log = open_log(disk)
    assert log.topic(TOPIC).topic_id == first.topic_id
    log.delete_topic(TOPIC)
    second = log.create_topic(TOPIC)
    assert second.topic_id != first.topic_id
    assert log.topic_by_id(second.topic_id) == second
    with pytest.raises(Unknown, match="no topic with id"):
        log.topic_by_id(first.topic_id)


def test_a_topic_of_an_earlier_release_gets_an_id() -> None:
    """Its settings are a checkpoint of version 1, and the progress of its subscribers has no id."""
    disk = SimDisk()
    log = filled(disk)
    config = log.topic(TOPIC).config
    log.close()
    path = f"{FOLDER}/{TOPIC}/{CONFIG_NAME}"
    write_checkpoint(disk, path, CONFIG_KIND, 1, msgspec.json.encode(config))
    topic_id = open_log_as_found(disk).topic(TOPIC).topic_id
    again = open_log_as_found(disk.process_kill())
    assert again.topic(TOPIC).topic_id == topic_id
    assert again.topic(TOPIC).config == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"retention_ms": -1}, "must not be negative"),
        ({"retention_ms": "long"}, "invalid setting"),
        ({"cleanup": "burn"}, "invalid setting"),
        ({"retention": 1}, "no setting retention"),
        ({"partitions": 9}, "add partitions"),
    ],
)
def test_a_bad_setting_changes_nothing(changes: dict[str, object], message: str) -> None:
    log = open_log(SimDisk())
    before = log.topic(TOPIC)
    with pytest.raises(Malformed, match=message):
        log.alter_topic(TOPIC, changes)
    assert log.topic(TOPIC) == before
    with pytest.raises(Unknown):
        log.alter_topic("missing", {})


def test_settings_apply_at_once() -> None:
    log = open_log(SimDisk(), SMALL, topic=TopicConfig(retention_ms=10**9))
    add_each(log, *numbers(0, 20))
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset == 0
    log.alter_topic(TOPIC, {"retention_ms": 0, "batch_bytes_max": 200})
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset > 0
    add(log, b"small")
    with pytest.raises(TooLarge, match="batch_bytes_max of topic t"):
        log.append(TOPIC, batch(b"x" * 500))


def test_added_partitions_can_be_used_and_are_read_by_subscribers() -> None:
    disk = SimDisk()
    log = open_log(disk)
    subscriber = log.subscribe("reads", TOPIC, "latest")
    with pytest.raises(Malformed, match="is not more"):
        log.add_partitions(TOPIC, 1)
    log.add_partitions(TOPIC, 3)
    add(log, b"x", partition=2)
    (claim,) = subscriber.claim()
    assert claim.partition.index == 2
    claim.ack()
    subscriber.step()
    log.close()
    again = open_log(disk)
    assert again.topic(TOPIC).config.partitions == 3
    assert again.subscriber("reads").claim() == []


def test_batches_that_wait_for_a_deleted_topic_are_refused() -> None:
    log = open_log(SimDisk())
    answer = log.append(TOPIC, batch(b"x"))
    reader = log.reader(TOPIC, "earliest")
    log.delete_topic(TOPIC)
    with pytest.raises(Unknown, match="was deleted"):
        answer.result(0)
    with pytest.raises(Unknown, match="was deleted"):
        reader.read()
    assert log.budget.used_bytes == 0
    with pytest.raises(Unknown, match="there is no topic"):
        log.append(TOPIC, batch(b"x"))


def test_own_topics_cannot_be_deleted_or_grown() -> None:
    log = open_log(SimDisk())
    for name in ("otlp_logs", "dead_letters"):
        log.create_topic(name)
        with pytest.raises(Malformed, match="own"):
            log.delete_topic(name)
    with pytest.raises(Malformed, match="own"):
        log.add_partitions("dead_letters", 2)
    log.add_partitions("otlp_logs", 2)  # for topics that are declared as OTLP


def test_records_are_deleted_up_to_an_offset() -> None:
    """Inside a segment and inside a batch; the start survives a restart, and never goes back."""
    disk = SimDisk()
    log = open_log(disk, SMALL)
    log.append(TOPIC, batch(*numbers(0, 10)))
    log.writer.step()
    add_each(log, *numbers(10, 30))
    assert log.delete_records(TOPIC, 0, 4) == 4
    assert log.delete_records(TOPIC, 0, 2) == 4
    with pytest.raises(OutOfRange, match="can be deleted up to offset 30"):
        log.delete_records(TOPIC, 0, 31)
    with pytest.raises(OutOfRange):
        log.reader(TOPIC, 3)
    observed = PartitionObserver(disk, TOPIC, 0).observe()
    assert (observed.start_offset, observed.exempt_offset) == (4, 4)
    log = open_log(disk.process_kill(), SMALL)
    view = log.partition(TOPIC, 0).view
    assert (view.start_offset, view.exempt_offset) == (4, 4)
    assert log.reader(TOPIC, "earliest").offset == 4
    log.delete_records(TOPIC, 0, 30)
    assert values(log) == []
    assert len(log.partition(TOPIC, 0).view.segments) == 1
    assert add(log, b"next")[0].base_offset == 30


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[tuple[Log, ObservedLog]]:
    """A log, and the same log seen by another process; calls to the owner are not needed here."""
    log = open_log(RealDisk(tmp_path), SMALL)
    signal = CommitSignal()
    waiter = CommitWaiter(signal.descriptor, SystemClock())
    seen = ObservedLog(RealDisk(tmp_path), None, waiter)  # type: ignore[arg-type]
    yield log, seen
    waiter.close()
    log.close()


def test_an_observer_sees_every_change(observed: tuple[Log, ObservedLog]) -> None:
    log, seen = observed
    add(log, b"old")
    before = seen.topic(TOPIC)
    reader = Reader.open(before.partitions[0], "earliest")
    assert len(reader.read()) == 1
    log.alter_topic(TOPIC, {"retention_ms": 7})
    log.add_partitions(TOPIC, 2)
    grown = seen.topic(TOPIC)
    assert (grown.config.retention_ms, len(grown.partitions)) == (7, 2)
    assert grown.partitions[0] is before.partitions[0]
    log.delete_topic(TOPIC)
    with pytest.raises(Unknown, match="was deleted"):
        reader.read()
    assert before.partitions[0].view.durable_watermark == 1, "what was last seen"
    assert TOPIC not in [topic.name for topic in seen.topics()]
    log.create_topic(TOPIC)
    add(log, b"new")
    again = seen.topic(TOPIC)
    assert again.topic_id == log.topic(TOPIC).topic_id != before.topic_id
    (found,) = Reader.open(again.partitions[0], "earliest").read()
    assert [record.value for record in found.records()] == [b"new"]
    with pytest.raises(Unknown, match="was deleted"):
        reader.read()
