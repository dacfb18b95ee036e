"""Requests without a sequence are stored once: a duplicate digest gets its first offset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.log import DIGEST_BYTES, AppendResult, Log, Record, append_of_records
from frazil.log.append import digest_of
from frazil.log.dedup.digests import (
    DIGEST_HEADER,
    GENERATIONS,
    DigestWindow,
    decode_digests,
    encode_digests,
)
from frazil.settings import TopicConfig
from tests.log.build import SMALL, TOPIC, add, batch, batches, open_log, paths, submit
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, SimDisk

WINDOW_MS = 800
GENERATION_MS = WINDOW_MS // GENERATIONS
NOTED = msgspec.structs.replace(SMALL, digest_window_ms=WINDOW_MS)
EXPIRE_AT_ONCE = TopicConfig(retention_ms=0)


def digest(number: int) -> bytes:
    return hashlib.blake2b(b"%d" % number, digest_size=DIGEST_BYTES).digest()


def send(log: Log, *numbers: int) -> list[AppendResult]:
    """One request per number, all in one group."""
    answers = submit(log, *(batch(b"%d" % n, b"two", digest=digest(n)) for n in numbers))
    log.writer.step()
    return [answer.result(0) for answer in answers]


# The window alone.


def test_a_digest_is_remembered_for_the_window_and_at_most_an_eighth_more() -> None:
    for gap_ms in range(0, GENERATION_MS + 1, 10):
        window = DigestWindow(window_ms=WINDOW_MS, count_max=1000)
        window.add(digest(0), 0, 0)
        window.add(digest(1), 1, gap_ms)
        window.expire(WINDOW_MS)
        assert window.find(digest(0)) == 0
        window.expire(WINDOW_MS + GENERATION_MS + 1)
        assert window.find(digest(0)) is None


@pytest.mark.parametrize("count_max", [1, 7, 8, 80, 1000])
def test_count_max_digests_are_remembered_and_memory_is_bounded(count_max: int) -> None:
    window = DigestWindow(window_ms=10**9, count_max=count_max)
    for number in range(3 * count_max):
        window.add(digest(number), number, 0)
        assert len(window) <= count_max + max(1, count_max // GENERATIONS)
        remembered = range(max(0, number - count_max + 1), number + 1)
        if number % 7 == 0:
            assert all(window.find(digest(n)) == n for n in remembered)
    assert len(window) == sum(len(g.offsets) for g in window._generations)
    assert len(window._generations) <= 2 * GENERATIONS + 1


def test_a_digest_added_twice_counts_once() -> None:
    """Recovery meets one twice if it was sent again after its window."""
    window = DigestWindow(window_ms=WINDOW_MS, count_max=80)
    for offset in range(100):
        window.add(digest(0), offset, 0)
    assert window.find(digest(0)) == 99
    assert len(window) == sum(len(g.offsets) for g in window._generations)
    for number in range(1, 80):
        window.add(digest(number), 100 + number, 0)
    assert all(window.find(digest(number)) is not None for number in range(80))


UNDONE = -1
Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 30)),
        st.tuples(st.just("undo"), st.just(0)),
        st.tuples(st.just("pass"), st.integers(0, 300)),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 20))
def test_the_window_agrees_with_a_list(steps: list[Step], count_max: int) -> None:
    """Against a plain list: what is younger than the window and among the last `count_max` is
    found at its newest offset; what is more than an eighth older is not. What was undone counts
    as one of the last, because others may have gone for it."""
    window = DigestWindow(window_ms=WINDOW_MS, count_max=count_max)
    added: list[tuple[int, int, int]] = []
    now_ms = 0
    for offset, (step, number) in enumerate(steps):
        if step == "pass":
            now_ms += number
            window.expire(now_ms)
        elif step == "add":
            window.expire(now_ms)
            if window.find(digest(number)) is None:  # as `stage` does: a repetition adds nothing
                window.add(digest(number), offset, now_ms)
                added.append((number, offset, now_ms))
        elif added and added[-1][0] != UNDONE:
            number, _, added_ms = added[-1]
            window.remove(digest(number))
            added[-1] = (UNDONE, 0, added_ms)
        for number, offset_then, added_ms in added[-count_max:]:
            if number != UNDONE and now_ms - added_ms <= WINDOW_MS:
                assert window.find(digest(number)) == offset_then
        young = {n for n, _, ms in added if now_ms - ms <= WINDOW_MS + GENERATION_MS}
        for number in range(31):
            assert number in young or window.find(digest(number)) is None


@given(st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 2**62))))
def test_digests_round_trip(entries: list[tuple[bytes, int]]) -> None:
    assert decode_digests(encode_digests(entries)) == entries


# The header that carries it.


def test_the_digest_is_the_last_header_of_the_first_record() -> None:
    """A client's header of that name does not pass for ours."""
    forged = ((DIGEST_HEADER, digest(666)), ("other", None))
    records = [Record(offset=0, timestamp_ms=1, key=None, value=b"x", headers=forged)] * 2
    append = append_of_records(records, digest=digest(1))
    from_log = append_of_records([Record(offset=0, timestamp_ms=1, key=None, value=b"x")])
    assert append.digest == digest(1) and from_log.digest is None
    stored = Record(offset=0, timestamp_ms=1, key=None, value=b"x", headers=forged)
    assert digest_of([]) is None
    assert digest_of([Record(offset=0, timestamp_ms=1, key=None, value=b"x")]) is None
    disk = SimDisk()
    log = open_log(disk, NOTED)
    (answer,) = submit(log, append)
    log.writer.step()
    (kept,) = batches(log)
    assert digest_of(kept.records()) == digest(1)
    assert kept.records()[1].headers == stored.headers
    log = open_log(disk.process_kill(), NOTED)
    assert submit(log, append)[0] is not answer
    log.writer.step()
    assert len(batches(log)) == 1


@pytest.mark.parametrize("with_digest", [None, digest(1)])
def test_an_empty_batch_is_refused(with_digest: bytes | None) -> None:
    with pytest.raises(Malformed):
        append_of_records([], digest=with_digest)


# The same, in a log that is closed, killed, rolled and trimmed.

Fate = Callable[[SimDisk, Log, SimClock], tuple[SimDisk, Log]]


def nothing(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    return disk, log


def closed(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    log.close()
    return disk, open_log(disk, NOTED, clock=clock)


def killed(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    disk = disk.process_kill()
    return disk, open_log(disk, NOTED, clock=clock)


def rolled(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    end = log.partition(TOPIC, 0).durable_watermark
    while log.partition(TOPIC, 0).view.segments[-1].header.base_offset < end:
        add(log, b"filler" * 30)
    return disk, log


def trimmed(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    end = log.partition(TOPIC, 0).durable_watermark
    disk, log = rolled(disk, log, clock)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset >= end
    return disk, log


def files_lost(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    """The `.digests` files are gone; the records themselves still carry them."""
    disk, log = rolled(disk, log, clock)
    disk = disk.process_kill()
    for path in paths(disk, ".digests"):
        disk.unlink(path)
    return disk, open_log(disk, NOTED, clock=clock)


def files_damaged(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    disk, log = rolled(disk, log, clock)
    disk = disk.process_kill()
    for path in paths(disk, ".digests"):
        disk.open(path, "edit").write_at(30, b"damage")
    return disk, open_log(disk, NOTED, clock=clock)


def files_lost_trimmed(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
    """Lost, read anew from the records, and written again before the records go."""
    return killed(*trimmed(*files_lost(disk, log, clock), clock), clock)


def then(*fates: Fate) -> Fate:
    def all_of_them(disk: SimDisk, log: Log, clock: SimClock) -> tuple[SimDisk, Log]:
        for fate in fates:
            disk, log = fate(disk, log, clock)
        return disk, log

    all_of_them.__name__ = "_".join(fate.__name__ for fate in fates)
    return all_of_them


FATES = [
    nothing,
    closed,
    killed,
    rolled,
    then(rolled, killed),
    trimmed,
    then(trimmed, closed),
    then(trimmed, killed),
    then(trimmed, killed, killed),
    files_lost,
    files_damaged,
    files_lost_trimmed,
]


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.__name__)
def test_a_duplicate_request_returns_its_first_offset(fate: Fate) -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, NOTED, clock=clock, topic=EXPIRE_AT_ONCE)
    sent = {n: send(log, n)[0] for n in range(9)}
    disk, log = fate(disk, log, clock)
    end = log.partition(TOPIC, 0).durable_watermark
    for number, first in sent.items():
        assert send(log, number) == [(first.base_offset, first.end_offset, True)]
    assert log.partition(TOPIC, 0).durable_watermark == end
    assert send(log, 9) == [(end, end + 2, False)]


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.__name__)
def test_a_request_is_forgotten_after_the_window_and_its_files_with_it(fate: Fate) -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, NOTED, clock=clock, topic=EXPIRE_AT_ONCE)
    send(log, *range(9))
    disk, log = fate(disk, log, clock)
    clock.advance(WINDOW_MS + GENERATION_MS + 1)
    end = log.partition(TOPIC, 0).durable_watermark
    assert send(log, 3) == [(end, end + 2, False)]
    log.maintain()
    clock.advance(WINDOW_MS + 1)
    log.maintain()
    kept = {segment.path for segment in log.partition(TOPIC, 0).view.segments}
    for path in paths(disk, ".digests"):
        assert path.replace(".digests", ".log") in kept


def test_duplicates_in_one_group_are_stored_once() -> None:
    log = open_log(SimDisk(), NOTED)
    assert send(log, 1, 2, 1, 2) == [(0, 2, False), (2, 4, False), (0, 2, True), (2, 4, True)]


def test_a_window_by_count_forgets_the_oldest() -> None:
    config = msgspec.structs.replace(NOTED, digest_count_max=8)
    log = open_log(SimDisk(), config)
    for number in range(30):
        send(log, number)
    assert all(send(log, number)[0].is_duplicate for number in range(22, 30))
    assert not send(log, 0)[0].is_duplicate


def test_a_clock_jump_while_running_forgets_nothing() -> None:
    clock = SimClock()
    log = open_log(SimDisk(), NOTED, clock=clock)
    send(log, 1)
    for jump_ms in (10**12, -(10**12), -(10**11)):
        clock.jump_wall(jump_ms)
        log.maintain()
        assert send(log, 1)[0].is_duplicate


@pytest.mark.parametrize("jump_ms", [10**10, -(10**10)])
@pytest.mark.parametrize("fate", [killed, then(rolled, killed), then(trimmed, killed)])
def test_a_clock_jump_between_two_runs_forgets_nothing_early(fate: Fate, jump_ms: int) -> None:
    disk, clock = SimDisk(), SimClock()
    log = open_log(disk, NOTED, clock=clock, topic=EXPIRE_AT_ONCE)
    send(log, 1)
    clock.jump_wall(jump_ms)
    disk, log = fate(disk, log, clock)
    assert send(log, 1)[0].is_duplicate


def test_a_refused_request_is_not_remembered() -> None:
    """The disk was full; its retry is stored."""
    disk = SimDisk(faults=Faults())
    log = open_log(disk, NOTED)
    send(log, 1)
    used = sum(len(disk.data(path)) for path in disk.files())
    disk.faults.capacity_bytes = used + 40
    answers = submit(log, batch(b"2", b"two", digest=digest(2)), batch(b"1", digest=digest(1)))
    log.writer.step()
    assert answers[0].exception(0) is not None
    assert answers[1].result(0).is_duplicate
    disk.faults.capacity_bytes = None
    assert send(log, 2) == [(2, 4, False)]
    assert send(log, 2) == [(2, 4, True)]
