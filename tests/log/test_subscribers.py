"""Subscribers get every batch until they finish it, and do not block each other."""

from __future__ import annotations

import contextlib
import errno
import gc
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from frazil.errors import Conflict, Corrupt, Malformed, OutOfRange, Overloaded, Unknown
from frazil.log import (
    DEAD_LETTERS,
    AtTime,
    Claim,
    Log,
    Reader,
    Record,
    Start,
    StoredBatch,
    Subscriber,
    SubscriberConfig,
    append_of_records,
)
from frazil.log.compaction import compact
from frazil.log.retention import LOST
from frazil.log.subscribers import DROPPED, SETTLED, UNSAVED, load_progress, progress_path
from frazil.model import Rand
from frazil.settings import LogConfig, TopicConfig
from tests.log.build import SMALL, TOPIC, add, batch, flipped, numbers, open_log, put, submit
from tests.sim.clock import SimClock
from tests.sim.disk import Model, PowerCut, SimDisk

NAME = "s"
EXPIRE_AT_ONCE = TopicConfig(retention_ms=0)
COMPACT = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0, tombstone_grace_ms=0)


def subscribed(
    log: Log, start: Start = "earliest", *, name: str = NAME, **options: int
) -> Subscriber:
    return log.subscribe(name, TOPIC, start, SubscriberConfig(**options))


def bases(claims: list[Claim]) -> list[int]:
    return [claim.batch.base_offset for claim in claims]


def watermark(subscriber: Subscriber, partition: int = 0) -> int:
    return subscriber._followers[partition].progress.watermark


def ack_all(claims: list[Claim]) -> None:
    for claim in claims:
        claim.ack()


def letters(log: Log) -> list[Record]:
    reader = log.reader(DEAD_LETTERS, "earliest")
    try:
        stored = [b for chunk in iter(reader.read, []) for b in chunk]
    finally:
        reader.close()
    return [record for one in stored for record in one.records()]


def lettered_offsets(log: Log) -> list[int]:
    return [int(dict(letter.headers)["offset"] or b"") for letter in letters(log)]


def settle_all(log: Log, subscriber: Subscriber) -> None:
    """Apply what was said, letters and all, and save."""
    subscriber.step()
    log.writer.step()
    subscriber.step()


# Where it begins.


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", [0, 2, 4, 6]),
        ("latest", []),
        (0, [0, 2, 4, 6]),
        (4, [4, 6]),
        (5, [4, 6]),  # in the middle of a batch: it is given whole
        (7, [6]),
        (8, []),
        (AtTime(timestamp_ms=0), [0, 2, 4, 6]),
        (AtTime(timestamp_ms=20), [4, 6]),
        (AtTime(timestamp_ms=25), [6]),
        (AtTime(timestamp_ms=99), []),
    ],
)
def test_a_subscriber_starts_where_told(start: Start, expected: list[int]) -> None:
    log = open_log(SimDisk())
    for number in range(4):
        submit(log, batch(b"a", b"b", timestamp_ms=number * 10))
    log.writer.step()
    subscriber = subscribed(log, start)
    claims = subscriber.claim()
    assert bases(claims) == expected
    ack_all(claims)
    subscriber.step()
    assert subscriber.lag() == 0 and subscriber.saved_watermark(0) == 8
    add(log, b"later")
    assert bases(subscriber.claim()) == [8]


def test_a_batch_it_starts_inside_is_retried_and_dead_lettered() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), clock=clock)
    submit(log, batch(b"a", b"b", b"c"))
    log.writer.step()
    subscriber = subscribed(log, 1, tries_max=3)
    for tries in range(3):
        (claim,) = subscriber.claim()
        assert (claim.batch.base_offset, claim.tries) == (0, tries)
        claim.nack("no")
        settle_all(log, subscriber)
        assert subscriber.claim() == []
        clock.advance(60_000)
    assert lettered_offsets(log) == [0]
    assert subscriber.saved_watermark(0) == 3


def test_a_start_outside_the_log_registers_nothing() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, b"x")
    with pytest.raises(OutOfRange):
        subscribed(log, 2)
    assert log.subscribers() == [] and progress_path(NAME) not in disk.files()


def test_it_resumes_from_saved_progress() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 6))
    subscriber = subscribed(log)
    ack_all(subscriber.claim(2))
    subscriber.step()
    assert subscribed(log, "latest") is subscriber
    log.close()
    for start in ("earliest", "latest", 5):
        log = open_log(disk)
        assert [s.name for s in log.subscribers()] == [NAME]
        assert bases(subscribed(log, start).claim()) == [2, 3, 4, 5]
        log.close()


@pytest.mark.parametrize(
    "name",
    [
        *("", "..", "../x", "a/b", "/etc", ".hidden", "%2e%2e", "a\0b", "*", "a'b", "a b", "ä"),
        *("a\n", "subscribers", "x" * 241, "x" * 300),
    ],
)
def test_a_name_that_is_no_plain_file_name_is_refused(name: str) -> None:
    disk = SimDisk()
    log = open_log(disk)
    before = disk.files()
    with pytest.raises(Malformed):
        subscribed(log, name=name)
    assert disk.files() == before


def test_the_longest_name_fits_into_a_file_name() -> None:
    assert len(progress_path("x" * 240).rpartition("/")[2] + ".tmp") <= 255
    log = open_log(SimDisk())
    assert subscribed(log, name="x" * 240).lag() == 0


def test_a_subscriber_reads_one_topic() -> None:
    log = open_log(SimDisk())
    log.create_topic("u")
    subscribed(log)
    with pytest.raises(Conflict):
        log.subscribe(NAME, "u", "earliest")
    with pytest.raises(Unknown):
        log.subscribe("other", "nowhere", "earliest")
    with pytest.raises(Unknown):
        log.unsubscribe("unknown")


@pytest.mark.parametrize("option", ["in_flight_max", "tries_max", "backoff_ms", "backoff_ms_max"])
def test_settings_below_one_are_refused(option: str) -> None:
    with pytest.raises(Malformed):
        SubscriberConfig(**{option: 0})


# Claims and the words that settle them.


def test_a_claimed_batch_is_not_claimed_again() -> None:
    log = open_log(SimDisk())
    add(log, *numbers(0, 5))
    subscriber = subscribed(log)
    first, rest = subscriber.claim(2), subscriber.claim()
    assert (bases(first), bases(rest)) == ([0, 1], [2, 3, 4])
    assert subscriber.claim() == []
    ack_all(first + rest)
    assert subscriber.step() == 5
    assert subscriber.claim() == []
    assert (subscriber.lag(), subscriber.in_flight()) == (0, 0)


def test_acks_out_of_order_move_the_watermark_exactly() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 6))
    subscriber = subscribed(log)
    claims = subscriber.claim()
    for number, expected in ((1, 0), (3, 0), (0, 2), (5, 2), (2, 4), (4, 6)):
        claims[number].ack()
        claims[number].ack()
        subscriber.step()
        assert watermark(subscriber) == subscriber.saved_watermark(0) == expected
        saved = load_progress(disk, NAME)
        assert (saved.topic, saved.partitions[0].watermark) == (TOPIC, expected)


def test_after_a_restart_only_unfinished_batches_are_claimed() -> None:
    """Also one by one, with finished ones in between."""
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 8))
    subscriber = subscribed(log)
    claims = subscriber.claim()
    for number in (1, 2, 4, 7):
        claims[number].ack()
    subscriber.step()
    for room in (1, 2, 100):
        again = subscribed(open_log(disk.process_kill()))
        got: list[int] = []
        while claimed := again.claim(room):
            got += bases(claimed)
            ack_all(claimed)
        assert got == [0, 3, 5, 6]
        again.step()
        assert watermark(again) == 8


Word = Callable[[Claim], None]


def say_ack(claim: Claim) -> None:
    claim.ack()


def say_nack(claim: Claim) -> None:
    claim.nack("no")


def say_permanent(claim: Claim) -> None:
    claim.nack("never", is_permanent=True)


def say_defer(claim: Claim) -> None:
    claim.defer()


WORDS: list[Word] = [say_ack, say_nack, say_permanent, say_defer]


@pytest.mark.parametrize("first", WORDS, ids=lambda word: word.__name__)
@pytest.mark.parametrize("second", WORDS, ids=lambda word: word.__name__)
def test_only_the_first_settlement_counts(first: Word, second: Word) -> None:
    clock = SimClock()
    log = open_log(SimDisk(), clock=clock)
    add(log, b"x")
    subscriber = subscribed(log)
    (claim,) = subscriber.claim()
    first(claim)
    second(claim)
    settle_all(log, subscriber)
    second(claim)
    settle_all(log, subscriber)
    is_finished = first in (say_ack, say_permanent)
    assert watermark(subscriber) == int(is_finished)
    assert len(letters(log)) == int(first is say_permanent)
    clock.advance(60_000)
    again = subscriber.claim()
    assert [c.tries for c in again] == ([] if is_finished else [int(first is say_nack)])


def test_of_concurrent_settlements_one_counts() -> None:
    said: list[str] = []
    for _ in range(200):
        claim = Claim(lambda *word: said.append(word[1]), None, None, 0)  # type: ignore[arg-type]
        barrier = threading.Barrier(4)

        def speak(word: Word, claim: Claim = claim, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            word(claim)

        threads = [threading.Thread(target=speak, args=(word,)) for word in WORDS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(said) == 200


def test_claims_can_be_settled_from_other_threads() -> None:
    log = open_log(SimDisk())
    add(log, *numbers(0, 200))
    subscriber = subscribed(log)
    claims = subscriber.claim(200)
    shares = [claims[number::8] for number in range(8)]
    threads = [threading.Thread(target=ack_all, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert subscriber.step() == 200
    assert subscriber.saved_watermark(0) == 200


def test_an_unsettled_claim_is_deferred() -> None:
    log = open_log(SimDisk())
    add(log, *numbers(0, 3))
    subscriber = subscribed(log, tries_max=1)
    claims = subscriber.claim()
    del claims
    gc.collect()
    again = subscriber.claim()
    assert bases(again) == [0, 1, 2] and {claim.tries for claim in again} == {0}
    with pytest.raises(ZeroDivisionError), again[0]:
        raise ZeroDivisionError
    with again[1]:
        pass
    with again[2]:
        again[2].ack()
    subscriber.step()
    assert bases(subscriber.claim()) == [0, 1]
    assert letters(log) == []


def test_the_backoff_doubles_up_to_a_limit() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), clock=clock)
    add(log, b"x")
    subscriber = subscribed(log, tries_max=100, backoff_ms=100, backoff_ms_max=1000)
    waits = []
    for tries in range(12):
        (claim,) = subscriber.claim()
        assert claim.tries == tries
        claim.nack("not yet")
        subscriber.step()
        waited = 0
        while not (claims := subscriber.claim()):
            clock.advance(1)
            waited += 1
        claims[0].defer()
        waits.append(waited)
    for tries, waited in enumerate(waits):
        full = min(100 << tries, 1000)
        assert full * 3 // 4 <= waited <= full
    assert len(set(waits[4:])) > 1, "herds disperse"


def test_a_nacked_batch_does_not_block_others() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), clock=clock)
    add(log, *numbers(0, 3))
    subscriber = subscribed(log)
    (claim,) = subscriber.claim(1)
    claim.nack("not yet")
    claims = subscriber.claim()
    assert bases(claims) == [1, 2]
    ack_all(claims)
    subscriber.step()
    assert watermark(subscriber) == 0
    clock.advance(1000)
    assert bases(subscriber.claim()) == [0]


def test_an_error_while_reading_loses_no_batch() -> None:
    """Neither a pending retry nor batches read before the error."""
    for call in range(1, 8):
        disk = SimDisk()
        log = open_log(disk, SMALL)
        add_one_by_one(log, 20)
        subscriber = subscribed(log)
        for claim in subscriber.claim(3):
            claim.defer()
        disk.faults.fail_at = (disk.calls + call, errno.EIO)
        with contextlib.suppress(OSError):
            ack_all(subscriber.claim(5))
        gc.collect()
        ack_all(subscriber.claim())
        subscriber.step()
        assert (subscriber.lag(), subscriber.in_flight()) == (0, 0)


def test_in_flight_is_limited() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), clock=clock)
    add(log, *numbers(0, 20))
    subscriber = subscribed(log, in_flight_max=5)
    claims = subscriber.claim()
    assert bases(claims) == [0, 1, 2, 3, 4] and subscriber.claim() == []
    claims[0].nack("later")  # waits for its next try, and still counts
    assert subscriber.claim() == [] and subscriber.in_flight() == 5
    claims[1].ack()
    claims[2].ack()
    following = subscriber.claim()
    assert bases(following) == [5, 6] and subscriber.in_flight() == 5
    clock.advance(60_000)
    assert bases(subscriber.claim()) == [0]


def test_partitions_take_turns() -> None:
    log = open_log(SimDisk(), topic=TopicConfig(partitions=3))
    for partition in range(3):
        add(log, *numbers(0, 4), partition=partition)
    subscriber = subscribed(log)
    seen = Counter[int]()
    for _ in range(6):
        claims = subscriber.claim(2)
        seen.update(claim.partition.index for claim in claims)
        ack_all(claims)
    assert seen == {0: 4, 1: 4, 2: 4}
    subscriber.step()
    assert [subscriber.saved_watermark(partition) for partition in range(3)] == [4, 4, 4]


def test_settled_batches_are_counted_by_outcome() -> None:
    log = open_log(SimDisk())
    add(log, *numbers(0, 4))
    subscriber = subscribed(log, name="counted")
    for claim, word in zip(subscriber.claim(), WORDS, strict=True):
        word(claim)
    settle_all(log, subscriber)
    outcomes = ("ack", "transient", "permanent", "defer", "dead_letter")
    assert [SETTLED.value(subscriber="counted", outcome=o) for o in outcomes] == [1] * 5


# Dead letters.


def test_after_the_last_try_a_batch_becomes_a_dead_letter() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), clock=clock)
    add(log, b"before")
    submit(log, batch(b"poison", b"more", key=b"k"))
    log.writer.step()
    subscriber = subscribed(log, 1, tries_max=3)
    for tries in range(3):
        (claim,) = subscriber.claim()
        assert claim.tries == tries
        payload = claim.batch.payload
        claim.nack(f"reason {tries}")
        subscriber.step()
        clock.advance(60_000)
    assert subscriber.in_flight() == 1, "it is not finished before the letter is durable"
    settle_all(log, subscriber)
    assert (subscriber.lag(), subscriber.in_flight()) == (0, 0)
    (letter,) = letters(log)
    assert letter.value == payload and letter.key is None
    assert letter.timestamp_ms == clock.wall_ms() - 60_000
    assert dict(letter.headers[:6]) == {
        "topic": TOPIC.encode(),
        "partition": b"0",
        "offset": b"1",
        "subscriber": NAME.encode(),
        "tries": b"3",
        "reason": b"reason 2",
    }


def test_a_permanent_failure_becomes_a_dead_letter_at_once() -> None:
    log = open_log(SimDisk())
    add(log, *numbers(0, 3))
    subscriber = subscribed(log)
    claims = subscriber.claim()
    claims[1].nack("never", is_permanent=True)
    settle_all(log, subscriber)
    assert lettered_offsets(log) == [1]
    claims[0].ack()
    subscriber.step()
    assert watermark(subscriber) == 2


@pytest.mark.parametrize("reason", ["", "ä", "\udc80 from a file name", "x" * 10**6])
def test_any_reason_can_be_stored(reason: str) -> None:
    log = open_log(SimDisk())
    add(log, b"x")
    subscriber = subscribed(log)
    subscriber.claim()[0].nack(reason, is_permanent=True)
    settle_all(log, subscriber)
    assert lettered_offsets(log) == [0]
    assert len(letters(log)[0].headers[5][1] or b"") <= 4096


@pytest.mark.parametrize("downtime_ms", [0, 3_600_000, 30 * 86_400_000])
def test_a_crash_between_letter_and_progress_stores_one_letter(downtime_ms: int) -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, clock=clock)
    add(log, *numbers(0, 2))
    subscriber = subscribed(log)
    subscriber.claim()[0].nack("never", is_permanent=True)
    subscriber.step()
    log.writer.step()  # the letter is durable, the progress does not know
    assert lettered_offsets(log) == [0]
    for _ in range(3):
        disk = disk.process_kill()
        clock.advance(downtime_ms)
        log = open_log(disk, clock=clock)
        subscriber = subscribed(log)
        claims = subscriber.claim()
        assert bases(claims) == [0, 1]
        claims[0].nack("never", is_permanent=True)
        subscriber.step()
        log.writer.step()
        assert lettered_offsets(log) == [0]
    subscriber.step()
    assert watermark(subscriber) == 1


def test_a_crash_before_the_letter_is_durable_redelivers_the_batch() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, b"x")
    subscriber = subscribed(log)
    subscriber.claim()[0].nack("never", is_permanent=True)
    subscriber.step()
    log = open_log(disk.crash(Rand(1)))
    assert letters(log) == []
    assert bases(subscribed(log).claim()) == [0]


def test_a_refused_letter_is_sent_again() -> None:
    """The log is full for a while; the batch stays claimed until its letter is durable."""
    config = msgspec.structs.replace(SMALL, queue_count_max=1)
    log = open_log(SimDisk(), config)
    add_one_by_one(log, 5)
    subscriber = subscribed(log)
    claims = subscriber.claim()
    for claim in claims:
        claim.nack("never", is_permanent=True)
    (waiting,) = submit(log, batch(b"takes the only place"))
    with pytest.raises(Overloaded):
        submit(log, batch(b"no"))
    for _ in range(3):
        subscriber.step()
    assert (letters(log), watermark(subscriber), subscriber.in_flight()) == ([], 0, 5)
    for _ in range(12):
        log.writer.step()
        subscriber.step()
    assert waiting.result(0).base_offset == 5
    assert lettered_offsets(log) == [0, 1, 2, 3, 4]
    assert subscriber.saved_watermark(0) == 5


def add_one_by_one(log: Log, count: int) -> None:
    for value in numbers(0, count):
        add(log, value)


def test_a_letter_in_flight_at_close_is_written_or_the_batch_is_redelivered() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 2))
    subscriber = subscribed(log)
    claims = subscriber.claim()
    claims[0].nack("never", is_permanent=True)
    subscriber.step()
    claims[1].nack("never", is_permanent=True)
    log.close()  # takes the first letter still, the second no more
    log = open_log(disk)
    assert lettered_offsets(log) == [0]
    assert bases(subscribed(log).claim()) == [1]


# Independence, retention, crashes.


def rolled_log(disk: SimDisk, config: LogConfig = SMALL) -> Log:
    """A log of several sealed segments, each batch in a group of its own."""
    log = open_log(disk, config, topic=EXPIRE_AT_ONCE)
    add_one_by_one(log, 40)
    assert len(log.partition(TOPIC, 0).view.segments) > 4
    return log


def test_a_stopped_subscriber_does_not_block_others() -> None:
    log = open_log(SimDisk())
    add(log, *numbers(0, 50))
    stopped, moving = subscribed(log, name="stopped"), subscribed(log, name="moving")
    held = stopped.claim()
    claims = moving.claim()
    assert len(claims) == len(held) == 50
    ack_all(claims)
    moving.step()
    assert (moving.lag(), stopped.lag()) == (0, 50)


def test_retention_waits_for_the_saved_progress_of_the_slowest() -> None:
    log = rolled_log(SimDisk())
    partition = log.partition(TOPIC, 0)
    slow, fast = subscribed(log, name="slow"), subscribed(log, name="fast")
    ack_all(fast.claim())
    fast.step()
    ack_all(slow.claim(20))
    assert slow.claim(1)[0].batch.base_offset == 20
    log.maintain()
    assert partition.view.start_offset == 0, "settled, but not saved"
    slow.step()
    log.maintain()
    assert 0 < partition.view.start_offset <= 20
    sealed = partition.view.segments[0].info
    assert sealed.end_offset > 20


def test_unsubscribing_releases_segments() -> None:
    disk = SimDisk()
    log = rolled_log(disk)
    subscribed(log)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset == 0
    log.unsubscribe(NAME)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset > 30
    assert subscribed(log, "latest", name="other").lag() == 0
    assert progress_path(NAME) not in disk.crash(Rand(1)).files()


def test_unsaved_progress_is_redelivered_after_a_crash() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 10))
    subscriber = subscribed(log)
    ack_all(subscriber.claim(4))
    subscriber.step()
    ack_all(subscriber.claim(3))
    subscriber._settle_outcomes()
    for after in (disk.process_kill(), disk.crash(Rand(1)), disk.crash(Rand(2))):
        assert bases(subscribed(open_log(after)).claim()) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_crash_at_any_call_while_saving_leaves_the_old_or_the_new(model: Model) -> None:
    for call in itertools.count(1):
        disk = SimDisk(model=model, rand=Rand(call))
        log = open_log(disk)
        add(log, *numbers(0, 6))
        subscriber = subscribed(log)
        ack_all(subscriber.claim(2))
        subscriber.step()
        ack_all(subscriber.claim(2))
        disk.faults.crash_at = disk.calls + call
        try:
            subscriber.step()
        except PowerCut:
            for seed in range(5):
                after = disk.crash(Rand(seed))
                claims = subscribed(open_log(after)).claim()
                assert bases(claims) in ([2, 3, 4, 5], [4, 5])
        else:
            assert call > 5
            return


def test_a_full_disk_postpones_saving() -> None:
    """Nothing is lost or released meanwhile, and the log can be closed."""
    disk = SimDisk()
    log = rolled_log(disk)
    subscriber = subscribed(log, name="unsaved")
    ack_all(subscriber.claim())
    disk.faults.capacity_bytes = 1
    subscriber.step()
    assert UNSAVED.value(subscriber="unsaved") == 1
    assert (watermark(subscriber), subscriber.saved_watermark(0)) == (40, 0)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset == 0
    log.close()
    disk.faults.capacity_bytes = None
    log = open_log(disk, SMALL)
    again = subscribed(log, name="unsaved")
    ack_all(again.claim())
    again.step()
    assert again.saved_watermark(0) == 40


# Damaged progress.


def saved_progress() -> SimDisk:
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 6))
    subscriber = subscribed(log)
    claims = subscriber.claim()
    claims[1].nack("later")
    ack_all([claims[0], claims[3]])
    subscriber.step()
    log.close()
    return disk


def test_damaged_progress_is_refused() -> None:
    """Zeros, garbage, every length, every byte: the error has path and hint."""
    disk = saved_progress()
    path = progress_path(NAME)
    whole = disk.data(path)
    damages = [whole[:length] for length in range(len(whole))]
    damages += [flipped(whole, byte * 8 + byte % 8) for byte in range(len(whole))]
    damages += [whole + b"x", bytes(len(whole)), Rand(1).randbytes(len(whole)), whole + whole]
    for damaged in damages:
        after = disk.process_kill()
        put(after, path, damaged)
        with pytest.raises(Corrupt, match="explicit start") as caught:
            open_log(after)
        assert caught.value.path == path
        assert after.data(path) == damaged, "evidence stays as it is"
    put(after, path, whole)
    assert bases(subscribed(open_log(after)).claim()) == [1, 2, 4, 5]


def test_after_removing_damaged_progress_a_subscriber_starts_again() -> None:
    """As the hint says."""
    disk = saved_progress()
    put(disk, progress_path(NAME), b"")
    disk.unlink(progress_path(NAME))
    assert bases(subscribed(open_log(disk), 4).claim()) == [4, 5]


def test_progress_ahead_of_the_log_is_damage() -> None:
    """The log was restored from an older copy: offsets must not be reused."""
    disk = SimDisk()
    log = open_log(disk)
    add(log, *numbers(0, 3))
    subscriber = subscribed(log)
    log.close()
    older = disk.process_kill()
    log = open_log(disk.process_kill())
    disk = log._disk  # type: ignore[assignment]
    add(log, *numbers(3, 6))
    subscriber = subscribed(log)
    subscriber.claim()[5].ack()
    subscriber.step()
    put(older, progress_path(NAME), disk.data(progress_path(NAME)))
    with pytest.raises(Corrupt, match="below 6"):
        open_log(older)


# The oldest is dropped before it was read.

DROPPING = msgspec.structs.replace(
    SMALL, when_full="drop_oldest", disk_bytes_max=24 * 1024, batch_bytes_max=4 * 1024
)


def fill(log: Log) -> None:
    """Append until the log has dropped twice."""
    partition = log.partition(TOPIC, 0)
    for _ in range(2):
        before = partition.view.start_offset
        while partition.view.start_offset == before:
            add(log, b"x" * 100)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.__name__)
def test_dropped_offsets_are_counted_and_skipped(word: Word) -> None:
    """Claims of dropped batches settle without effect."""
    name = f"drops-{word.__name__}"
    log = open_log(SimDisk(), DROPPING)
    partition = log.partition(TOPIC, 0)
    add_one_by_one(log, 10)
    subscriber = subscribed(log, name=name)
    claims = subscriber.claim()
    for number in (0, 1, 4):
        claims[number].ack()
    claims[2].nack("later")
    subscriber.step()
    lost_before = LOST.value(reason="drop_oldest", topic=TOPIC)
    fill(log)
    start = partition.view.start_offset
    assert start > 10
    assert LOST.value(reason="drop_oldest", topic=TOPIC) - lost_before == start - 2
    assert partition.dropped_count == start - 2
    for claim in claims:
        word(claim)
    settle_all(log, subscriber)
    lost = start - 10 + (1 if word is say_ack else 7)
    assert DROPPED.value(subscriber=name) == lost
    assert subscriber._followers[0].progress.dropped_count == lost
    assert (watermark(subscriber), subscriber.in_flight()) == (start, 0)
    assert bases(subscriber.claim(10_000)) == list(range(start, partition.durable_watermark))


def test_after_a_restart_the_loss_is_counted_the_same() -> None:
    disk = SimDisk()
    log = open_log(disk, DROPPING)
    add_one_by_one(log, 10)
    subscriber = subscribed(log, name="restarted")
    claims = subscriber.claim()
    ack_all([claims[0], claims[5]])
    subscriber.step()
    fill(log)
    start = log.partition(TOPIC, 0).view.start_offset
    for after in (disk.process_kill(), disk.crash(Rand(1))):
        again = open_log(after, DROPPING)
        assert again.partition(TOPIC, 0).dropped_count == start - 1
        subscriber = subscribed(again, name="restarted")
        before = DROPPED.value(subscriber="restarted")
        assert subscriber.claim(1)[0].batch.base_offset == start
        subscriber.step()
        assert DROPPED.value(subscriber="restarted") - before == start - 2
        saved = load_progress(after, "restarted").partitions
        assert (saved[0].watermark, saved[0].dropped_count) == (start, start - 2)


def test_dropping_during_a_read_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer drops between the look at the start and the read."""
    log = open_log(SimDisk(), DROPPING)
    add_one_by_one(log, 10)
    subscriber = subscribed(log)
    claims = subscriber.claim(3)
    claims[0].defer()
    real_read = Reader.read

    def read_late(self: Reader, bytes_max: int = 1024) -> list[StoredBatch]:
        monkeypatch.setattr(Reader, "read", real_read)
        fill(log)
        return self.read(bytes_max)

    monkeypatch.setattr(Reader, "read", read_late)
    assert subscriber.claim() == []
    start = log.partition(TOPIC, 0).view.start_offset
    assert subscriber.claim(1)[0].batch.base_offset == start
    assert subscriber._followers[0].progress.dropped_count == start


def test_dropped_retries_free_their_slots() -> None:
    log = open_log(SimDisk(), DROPPING)
    add_one_by_one(log, 10)
    subscriber = subscribed(log, in_flight_max=10, backoff_ms=30_000)
    for claim in subscriber.claim():
        claim.nack("later")
    subscriber.step()
    assert subscriber.claim() == []
    fill(log)
    assert len(subscriber.claim()) == 10


# Where compaction has left nothing.


def test_compacted_batches_count_as_finished() -> None:
    """Also pending retries, and at the end of the log."""
    clock = SimClock()
    log = open_log(SimDisk(), SMALL, clock=clock, topic=COMPACT)
    partition = log.partition(TOPIC, 0)
    retrying, fresh = subscribed(log, name="retrying"), subscribed(log, name="fresh")
    record = Record(offset=0, timestamp_ms=1, key=b"k", value=None)
    while len(partition.view.segments) < 3:
        submit(log, append_of_records([record]))
        log.writer.step()
    for claim in retrying.claim(2):
        claim.nack("later")
    retrying.step()
    log._on_writer(partition.roll)
    for _ in range(2):  # the first round dates the last tombstone, the second takes it
        now_ms, end = clock.wall_ms(), partition.durable_watermark
        compact(partition, COMPACT, now_ms, end, log._on_writer)
    clock.advance(60_000)
    for subscriber in (retrying, fresh):
        assert subscriber.lag() == end
        assert subscriber.claim() == []
        subscriber.step()
        assert (subscriber.lag(), subscriber.in_flight()) == (0, 0)
        assert subscriber.saved_watermark(0) == end
    submit(log, append_of_records([record]))
    log.writer.step()
    assert bases(fresh.claim()) == bases(retrying.claim()) == [end]


# All of it at random.


@dataclass
class Sent:
    """What the model knows of one batch."""

    end: int
    claim: Claim | None = None
    is_done: bool = False


@dataclass
class Durable:
    """What survives a crash: which batches were finished when progress was last saved."""

    done: set[int] = field(default_factory=set)


class SubscriberMachine(RuleBasedStateMachine):
    """Random words, crashes and time: every batch is finished by an ack or a letter, and comes
    again until then; the watermark is exact; nothing is claimed twice at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimDisk()
        self.clock = SimClock()
        self.sent: dict[int, Sent] = {}
        self.durable = Durable()
        self.buried: set[int] = set()
        self.is_settled = True
        self._open()

    def _open(self) -> None:
        self.log = open_log(self.disk, SMALL, clock=self.clock, topic=EXPIRE_AT_ONCE)
        self.subscriber = subscribed(self.log, tries_max=3, in_flight_max=8)

    def _claimed(self) -> list[int]:
        return [base for base, sent in self.sent.items() if sent.claim is not None]

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=8))
    def append(self, counts: list[int]) -> None:
        for count in counts:
            (answer,) = submit(self.log, batch(*[b"x" * 40] * count))
            self.log.writer.step()
            appended = answer.result(0)
            self.sent[appended.base_offset] = Sent(appended.end_offset)

    @rule(count=st.integers(1, 6))
    def claim(self, count: int) -> None:
        for claim in self.subscriber.claim(count):
            sent = self.sent[claim.batch.base_offset]
            assert sent.claim is None and not sent.is_done
            assert sent.end == claim.batch.end_offset
            sent.claim = claim
        assert self.subscriber.in_flight() <= 8

    @precondition(lambda self: self._claimed())
    @rule(data=st.data(), word=st.sampled_from([*WORDS, None]))
    def settle(self, data: st.DataObject, word: Word | None) -> None:
        base = data.draw(st.sampled_from(self._claimed()))
        sent = self.sent[base]
        assert sent.claim is not None
        self.is_settled = False
        tries = sent.claim.tries + 1
        if word is not None:
            word(sent.claim)
        sent.claim = None
        if word is say_permanent or (word is say_nack and tries >= 3):
            self.buried.add(base)
        elif word is say_ack:
            sent.is_done = True

    @rule()
    def step(self) -> None:
        settle_all(self.log, self.subscriber)
        for base in self.buried:
            self.sent[base].is_done = True
        self.durable.done = {base for base, sent in self.sent.items() if sent.is_done}
        self.is_settled = True
        assert self.subscriber.saved_watermark(0) == watermark(self.subscriber)

    @rule(ms=st.sampled_from([1, 1000, 10_000]))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule()
    def maintain(self) -> None:
        self.log.maintain()

    @rule(seed=st.none() | st.integers(0, 1000))
    def crash(self, seed: int | None) -> None:
        """Kill or power cut: what was not saved is not done; a letter may be there already."""
        for sent in self.sent.values():
            sent.claim = None
        self.disk = self.disk.process_kill() if seed is None else self.disk.crash(Rand(seed))
        self._open()
        for base, sent in self.sent.items():
            sent.is_done = base in self.durable.done
        self.buried = {base for base in self.buried if base in self.durable.done}
        self.is_settled = True

    @invariant()
    def watermark_is_exact(self) -> None:
        if self.is_settled:
            open_ = [base for base, sent in self.sent.items() if not sent.is_done]
            end = self.log.partition(TOPIC, 0).durable_watermark
            assert watermark(self.subscriber) == min(open_, default=end)

    def teardown(self) -> None:
        """Whatever happened: everything that is not done comes again, and then it is done."""
        for sent in self.sent.values():
            sent.claim = None
        self.step()
        missing = {base for base, sent in self.sent.items() if not sent.is_done}
        for _ in range(2 + len(self.sent)):
            self.clock.advance(60_000)
            claims = self.subscriber.claim()
            assert set(bases(claims)) <= missing
            missing -= set(bases(claims))
            ack_all(claims)
        self.subscriber.step()
        assert not missing and self.subscriber.lag() == 0
        lettered = lettered_offsets(self.log)
        assert len(lettered) == len(set(lettered)), "no batch is buried twice"
        assert self.buried <= set(lettered)


SubscriberMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestSubscriber = SubscriberMachine.TestCase


# What may not wait for room.


def test_a_letter_is_appended_to_a_full_log() -> None:
    """Its batch keeps the log full, so the letter must get in first."""
    config = msgspec.structs.replace(SMALL, disk_bytes_max=24 * 1024)
    log = open_log(SimDisk(), config, topic=EXPIRE_AT_ONCE)
    subscriber = subscribed(log, in_flight_max=1000)
    with pytest.raises(Overloaded):
        for _ in range(1000):
            submit(log, batch(bytes(400)))
            log.writer.step()
    first, *rest = subscriber.claim(1000)
    first.nack("never", is_permanent=True)
    ack_all(rest)
    for _ in range(3):
        settle_all(log, subscriber)
        log.maintain()
    assert subscriber.lag() == 0
    assert lettered_offsets(log) == [0]
    add(log, bytes(400))


def test_a_nacked_dead_letter_is_finished() -> None:
    """Sending it to the dead letters again would never end."""
    log = open_log(SimDisk())
    subscriber = subscribed(log)
    add(log, b"poison")
    subscriber.claim()[0].nack("never", is_permanent=True)
    settle_all(log, subscriber)
    gravedigger = log.subscribe("gravedigger", DEAD_LETTERS, "earliest")
    gravedigger.claim()[0].nack("still bad", is_permanent=True)
    settle_all(log, gravedigger)
    assert gravedigger.lag() == 0
    assert len(letters(log)) == 1


def test_a_subscriber_without_claims_finishes_and_reopens() -> None:
    """Finished offsets are released, reopened ones kept."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=EXPIRE_AT_ONCE)
    subscriber = subscribed(log)
    for number in range(30):
        add(log, b"value-%06d" % number)
    subscriber.finish(0, 0, 10)
    subscriber.finish(0, 20, 30)
    assert watermark(subscriber) == 10 and subscriber.saved_watermark(0) == 0
    subscriber.step()
    assert subscriber.saved_watermark(0) == 10
    subscriber.finish(0, 10, 20)
    subscriber.step()
    subscriber.reopen(0, 12, 17)
    assert subscriber.saved_watermark(0) == 12, "at once: retention may look before it is saved"
    subscriber.step()
    log = open_log(disk.process_kill(), SMALL)
    again = subscribed(log)
    log.maintain()
    assert 0 < log.partition(TOPIC, 0).view.start_offset <= 12
    assert [f.progress.end_offset for f in again._followers] == [30]
    again.finish(0, 12, 17)
    again.step()
    assert again.saved_watermark(0) == 30 and again.lag() == 0
