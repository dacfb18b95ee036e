"""DurableCounter and TimeIds: a gap after a crash, never a repeat."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.disk import Disk, DurableCounter, RealDisk, TimeIds, split_id, write_checkpoint
from frazil.disk.files import Buffer, File, Lock, Mapped, Mode
from frazil.disk.ids import EPOCH_WALL_MS, MS_MAX, NODE_MAX, NUMBER_MAX, SEQUENCE_MAX
from frazil.errors import Corrupt, Malformed, Overloaded, Unavailable

NOW_MS = EPOCH_WALL_MS + 1_000_000
PATH = "ids"


class HandClock:
    """A wall clock set by hand."""

    def __init__(self, wall_ms: int = NOW_MS) -> None:
        self.now_ms = wall_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ns(self) -> int:
        raise AssertionError("ids need no monotonic clock")

    def sleep(self, seconds: float) -> None:
        raise AssertionError("ids never wait for the clock")


class MemoryFile:
    """Bytes, and how they looked at the last sync."""

    def __init__(self, disk: MemoryDisk, data: bytes = b"") -> None:
        self._disk = disk
        self.data = data
        self.synced = data

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.may_fail()
        self.data += b"".join(buffers)

    def append_synced(self, data: memoryview, *, is_cached: bool) -> None:
        raise NotImplementedError

    def append_from(self, position: int) -> None:
        raise NotImplementedError

    def write_at(self, position: int, data: bytes) -> None:
        raise NotImplementedError

    def read(self, position: int, length: int) -> bytes:
        return self.data[position : position + length]

    def size(self) -> int:
        return len(self.data)

    def truncate(self, size: int) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        self._disk.may_fail()
        self.synced = self.data

    def settle(self) -> None:
        raise NotImplementedError

    def map(self) -> Mapped:
        raise NotImplementedError

    def close(self) -> None:
        pass


class MemoryDisk:
    """One flat folder. `after_crash` keeps only what was synced: bytes and names."""

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}
        self.names_synced: dict[str, MemoryFile] = {}
        self.writes = 0
        self.fail_in: int | None = None
        self.fail_with = errno.EIO

    def may_fail(self) -> None:
        """Count a call that changes the disk, and fail once when its turn has come."""
        self.writes += 1
        if self.fail_in is not None:
            self.fail_in -= 1
            if self.fail_in < 0:
                self.fail_in = None
                raise OSError(self.fail_with, "injected")

    def after_crash(self) -> MemoryDisk:
        disk = MemoryDisk()
        for name, file in self.names_synced.items():
            disk.files[name] = disk.names_synced[name] = MemoryFile(disk, file.synced)
        return disk

    def open(self, path: str, mode: Mode = "read") -> File:
        if mode == "create":
            self.may_fail()
            assert path not in self.files
            self.files[path] = MemoryFile(self)
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def rename(self, old: str, new: str) -> None:
        self.may_fail()
        self.files[new] = self.files.pop(old)

    def unlink(self, path: str) -> None:
        self.may_fail()
        del self.files[path]

    def list(self, path: str) -> list[str]:
        assert path == ""
        return sorted(self.files)

    def make_directory(self, path: str) -> None:
        raise NotImplementedError

    def remove_directory(self, path: str) -> None:
        raise NotImplementedError

    def sync_directory(self, path: str) -> None:
        self.may_fail()
        self.names_synced = dict(self.files)

    def uncache(self, path: str) -> None:
        raise NotImplementedError

    def space(self) -> int:
        raise NotImplementedError

    def lock(self, path: str, holder: str) -> Lock:
        raise NotImplementedError


class Numbers(Protocol):
    """What both kinds have in common."""

    def next(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


Opener = Callable[[Disk], Numbers]


def open_counter(disk: Disk) -> Numbers:
    return DurableCounter.open(disk, PATH, reserve_count=3)


def open_time_ids(disk: Disk) -> Numbers:
    return TimeIds.open(disk, PATH, HandClock(), node=5, reserve_ms=3)


both = pytest.mark.parametrize("open_numbers", [open_counter, open_time_ids])


def take(numbers: Numbers, count: int) -> list[int]:
    return [numbers.next() for _ in range(count)]


def assert_rising(given_numbers: Sequence[int]) -> None:
    assert all(low < high for low, high in pairwise(given_numbers)), given_numbers


# Both kinds.


Event = tuple[str, int, int]
"""What happens, how much of it, and how many numbers are asked for afterwards."""


def event(name: str, amounts: st.SearchStrategy[int]) -> st.SearchStrategy[Event]:
    return st.tuples(st.just(name), amounts, st.integers(0, 9))


histories = st.lists(
    st.one_of(
        event("kill", st.just(0)),
        event("power cut", st.just(0)),
        event("stop", st.just(0)),
        event("full", st.integers(0, 6)),
        event("fault", st.integers(0, 6)),
        event("jump", st.integers(-50, 50)),
        event("date", st.integers(EPOCH_WALL_MS - 9, EPOCH_WALL_MS + MS_MAX + 9)),
        event("node", st.integers(0, NODE_MAX)),
    ),
    min_size=3,
    max_size=30,
)


def run(history: Sequence[Event], *, timed: bool, reserve: int) -> list[int]:
    """Live through a history of crashes, faults and clock jumps; return all that was given."""
    disk, clock, node, given_numbers = MemoryDisk(), HandClock(), 0, list[int]()
    # Full, failed, or a clock past the last millisecond: then nothing is given.
    refusals = suppress(Overloaded, Unavailable)

    def reopen() -> Numbers:
        if timed:
            return TimeIds.open(disk, PATH, clock, node=node, reserve_ms=reserve)
        return DurableCounter.open(disk, PATH, reserve_count=reserve)

    numbers = reopen()
    for name, amount, count in history:
        match name:
            case "kill":
                numbers = reopen()
            case "power cut":
                disk = disk.after_crash()
                numbers = reopen()
            case "stop":
                with refusals:
                    numbers.close()
                numbers = reopen()
            case "full" | "fault":
                disk.fail_in = amount
                disk.fail_with = errno.ENOSPC if name == "full" else errno.EIO
            case "jump":
                clock.now_ms += amount
            case "date":
                clock.now_ms = amount
            case "node":
                node = amount
                numbers = reopen()
        for _ in range(count):
            with refusals:
                given_numbers.append(numbers.next())
    return given_numbers


@pytest.mark.parametrize("timed", [False, True])
@given(history=histories, reserve=st.integers(1, 5))
def test_no_number_is_returned_twice(timed: bool, history: Sequence[Event], reserve: int) -> None:
    """Numbers increase over kill -9, power cuts, failed and full disks, clock jumps and new
    nodes."""
    assert_rising(run(history, timed=timed, reserve=reserve))


@both
@given(count=st.integers(1, 12))
def test_a_returned_number_is_durably_reserved(open_numbers: Opener, count: int) -> None:
    """After a power cut right after any call, numbering continues above."""
    disk = MemoryDisk()
    taken = take(open_numbers(disk), count)
    assert open_numbers(disk.after_crash()).next() > taken[-1]


@both
def test_a_full_disk_refuses_until_space_is_free(open_numbers: Opener) -> None:
    """Calls that must reserve are refused; afterwards no number is missing."""
    disk, calm = MemoryDisk(), MemoryDisk()
    numbers, wanted = open_numbers(disk), take(open_numbers(calm), 9)
    for want in wanted:
        disk.fail_in, disk.fail_with = 0, errno.ENOSPC
        try:
            found = numbers.next()
        except Overloaded:
            found = numbers.next()
        assert found == want


@both
@pytest.mark.parametrize("fail_in", range(5), ids=["create", "append", "sync", "rename", "folder"])
def test_a_failed_disk_is_final(open_numbers: Opener, fail_in: int) -> None:
    """After a failed write or sync nothing is given any more, even when the disk looks well, and
    closing writes nothing."""
    disk = MemoryDisk()
    numbers = open_numbers(disk)
    disk.fail_in = fail_in
    with pytest.raises(Unavailable, match="its disk has failed") as caught:
        numbers.next()
    assert isinstance(caught.value.__cause__, OSError)
    writes = disk.writes
    for _ in range(3):
        with pytest.raises(Unavailable, match="its disk has failed"):
            numbers.next()
    numbers.close()
    assert disk.writes == writes


@both
def test_a_closed_counter_returns_nothing(open_numbers: Opener) -> None:
    """Closing twice is harmless."""
    disk = MemoryDisk()
    with open_numbers(disk) as numbers:
        take(numbers, 2)
    numbers.close()
    with pytest.raises(Unavailable, match="is closed"):
        numbers.next()


@both
def test_opening_and_closing_unused_writes_nothing(open_numbers: Opener) -> None:
    disk = MemoryDisk()
    open_numbers(disk).close()
    assert disk.writes == 0


@both
def test_a_full_disk_at_close_leaves_the_reservation(open_numbers: Opener) -> None:
    """The next run starts after every returned number."""
    disk = MemoryDisk()
    numbers = open_numbers(disk)
    taken = take(numbers, 2)
    disk.fail_in, disk.fail_with = 0, errno.ENOSPC
    with pytest.raises(Overloaded):
        numbers.close()
    assert open_numbers(disk.after_crash()).next() > taken[-1]


def flip_a_bit(data: bytes) -> bytes:
    return data[:17] + bytes([data[17] ^ 1]) + data[18:]


def halve(data: bytes) -> bytes:
    return data[: len(data) // 2]


def empty(data: bytes) -> bytes:
    return b""


@both
@pytest.mark.parametrize("damage", [flip_a_bit, halve, empty])
def test_a_damaged_file_is_refused(open_numbers: Opener, damage: Callable[[bytes], bytes]) -> None:
    """It never starts again from 0."""
    disk = MemoryDisk()
    take(open_numbers(disk), 1)
    disk.files[PATH].data = damage(disk.files[PATH].data)
    with pytest.raises(Corrupt) as caught:
        open_numbers(disk)
    assert "remove" in caught.value.hint


@both
@pytest.mark.parametrize("body", [b"", b"\x01" * 7, b"\xff" * 8, b"\x00" * 9])
def test_a_limit_that_no_release_wrote_is_refused(open_numbers: Opener, body: bytes) -> None:
    """Even with a valid checksum."""
    disk = MemoryDisk()
    write_checkpoint(disk, PATH, b"CNTR" if open_numbers is open_counter else b"TIDS", 1, body)
    with pytest.raises(Corrupt, match="a limit of 8 bytes"):
        open_numbers(disk)


def test_a_counter_refuses_the_file_of_time_ids() -> None:
    disk = MemoryDisk()
    take(open_time_ids(disk), 1)
    with pytest.raises(Corrupt):
        open_counter(disk)


@both
def test_numbers_continue_on_a_real_disk(open_numbers: Opener, tmp_path: Path) -> None:
    """Dropped without a close, then closed, then reopened."""
    disk = RealDisk(tmp_path)
    taken = take(open_numbers(disk), 5)
    with open_numbers(disk) as numbers:
        taken += take(numbers, 5)
    taken += take(open_numbers(disk), 5)
    assert_rising(taken)
    assert disk.list("") == [PATH]


# DurableCounter alone.


def test_a_clean_stop_leaves_no_gap() -> None:
    disk = MemoryDisk()
    with open_counter(disk) as numbers:
        first = take(numbers, 7)
    assert first + take(open_counter(disk), 2) == list(range(9))


def test_a_crash_skips_to_the_limit() -> None:
    """Numbering continues at the reserved limit, so the gap is below the reserve."""
    disk = MemoryDisk()
    assert take(open_counter(disk), 4) == [0, 1, 2, 3]
    assert open_counter(disk).next() == 6


@pytest.mark.parametrize(("floor", "wanted"), [(0, 3), (2, 3), (3, 3), (10, 10)])
def test_the_floor_raises_and_never_lowers(floor: int, wanted: int) -> None:
    """Numbering starts at the stored number or the floor, whichever is higher."""
    disk = MemoryDisk()
    take(open_counter(disk), 1)
    assert DurableCounter.open(disk, PATH, floor=floor).next() == wanted


def test_one_reservation_serves_many_numbers() -> None:
    disk = MemoryDisk()
    numbers = DurableCounter.open(disk, PATH, reserve_count=100)
    take(numbers, 1)
    writes = disk.writes
    take(numbers, 99)
    assert disk.writes == writes
    take(numbers, 1)
    assert disk.writes > writes


def test_numbers_end_at_2_63_and_do_not_wrap() -> None:
    disk = MemoryDisk()
    numbers = DurableCounter.open(disk, PATH, floor=NUMBER_MAX - 1)
    assert take(numbers, 2) == [NUMBER_MAX - 1, NUMBER_MAX]
    with pytest.raises(Unavailable, match="every number"):
        numbers.next()
    with pytest.raises(Unavailable, match="every number"):
        DurableCounter.open(disk, PATH).next()


@pytest.mark.parametrize(
    ("floor", "reserve_count"), [(-1, 1), (NUMBER_MAX + 1, 1), (0, 0), (0, -5)]
)
def test_a_counter_refuses_arguments_out_of_range(floor: int, reserve_count: int) -> None:
    with pytest.raises(Malformed):
        DurableCounter.open(MemoryDisk(), PATH, floor=floor, reserve_count=reserve_count)


# TimeIds alone.


@given(wall_ms=st.integers(EPOCH_WALL_MS, EPOCH_WALL_MS + MS_MAX), node=st.integers(0, NODE_MAX))
def test_an_id_contains_its_time_and_node(wall_ms: int, node: int) -> None:
    number = TimeIds.open(MemoryDisk(), PATH, HandClock(wall_ms), node=node).next()
    assert split_id(number) == (wall_ms, node, 0)
    assert 0 <= number <= NUMBER_MAX


def test_more_than_4096_ids_in_a_millisecond_use_the_next() -> None:
    numbers = TimeIds.open(MemoryDisk(), PATH, HandClock(), node=NODE_MAX)
    taken = take(numbers, 2 * (SEQUENCE_MAX + 1) + 1)
    assert_rising(taken)
    assert split_id(taken[SEQUENCE_MAX]) == (NOW_MS, NODE_MAX, SEQUENCE_MAX)
    assert split_id(taken[SEQUENCE_MAX + 1]) == (NOW_MS + 1, NODE_MAX, 0)
    assert split_id(taken[-1]) == (NOW_MS + 2, NODE_MAX, 0)


def test_a_new_millisecond_starts_its_own_sequence() -> None:
    clock = HandClock()
    numbers = TimeIds.open(MemoryDisk(), PATH, clock, node=1)
    take(numbers, 3)
    clock.now_ms += 7
    assert split_id(numbers.next()) == (NOW_MS + 7, 1, 0)


@pytest.mark.parametrize("wall_ms", [0, EPOCH_WALL_MS - 1, NOW_MS - 1, NOW_MS - 86_400_000])
def test_a_clock_set_back_is_ignored(wall_ms: int) -> None:
    """Ids continue in the newest millisecond, also after a restart with the wrong clock."""
    disk, clock = MemoryDisk(), HandClock()
    numbers = TimeIds.open(disk, PATH, clock, node=1, reserve_ms=100)
    taken = take(numbers, 2)
    clock.now_ms = wall_ms
    taken += take(numbers, 2)
    assert split_id(taken[-1]) == (NOW_MS, 1, 3)
    taken += take(TimeIds.open(disk, PATH, clock, node=1), 1)
    assert split_id(taken[-1]) == (NOW_MS + 100, 1, 0)
    assert_rising(taken)


def test_a_clean_stop_returns_its_reservation() -> None:
    """The next run starts one millisecond later, not `reserve_ms`."""
    disk = MemoryDisk()
    with TimeIds.open(disk, PATH, HandClock(), node=1) as numbers:
        take(numbers, 2)
    assert split_id(TimeIds.open(disk, PATH, HandClock(), node=1).next()) == (NOW_MS + 1, 1, 0)


def test_another_node_number_keeps_the_floor() -> None:
    """A lower node number does not lead to lower ids."""
    disk = MemoryDisk()
    taken = take(TimeIds.open(disk, PATH, HandClock(), node=9), 2)
    taken += take(TimeIds.open(disk, PATH, HandClock(), node=2), 2)
    assert_rising(taken)
    assert [split_id(number)[1] for number in taken] == [9, 9, 2, 2]


def test_a_clock_past_2093_is_refused() -> None:
    """It uses nothing up, and ids continue once the clock is right."""
    clock = HandClock(EPOCH_WALL_MS + MS_MAX + 1)
    numbers = TimeIds.open(MemoryDisk(), PATH, clock, node=1)
    with pytest.raises(Unavailable, match="correct the clock"):
        numbers.next()
    clock.now_ms = NOW_MS
    assert split_id(numbers.next()) == (NOW_MS, 1, 0)


def test_ids_end_after_the_last_millisecond_and_do_not_wrap() -> None:
    numbers = TimeIds.open(MemoryDisk(), PATH, HandClock(EPOCH_WALL_MS + MS_MAX), node=NODE_MAX)
    taken = take(numbers, SEQUENCE_MAX + 1)
    assert taken[-1] == NUMBER_MAX
    with pytest.raises(Unavailable, match="past the last"):
        numbers.next()


def test_a_failed_disk_is_final_even_if_the_clock_goes_back() -> None:
    """Even ids below the old reservation are refused."""
    disk, clock = MemoryDisk(), HandClock()
    numbers = TimeIds.open(disk, PATH, clock, node=1, reserve_ms=100)
    take(numbers, 1)
    clock.now_ms += 1000
    disk.fail_in = 0
    for _ in range(2):
        with pytest.raises(Unavailable, match="its disk has failed"):
            numbers.next()
        clock.now_ms = NOW_MS


@pytest.mark.parametrize(("node", "reserve_ms"), [(-1, 1), (NODE_MAX + 1, 1), (0, 0)])
def test_time_ids_refuse_arguments_out_of_range(node: int, reserve_ms: int) -> None:
    with pytest.raises(Malformed):
        TimeIds.open(MemoryDisk(), PATH, HandClock(), node=node, reserve_ms=reserve_ms)


@pytest.mark.parametrize("number", [-1, NUMBER_MAX + 1])
def test_splitting_refuses_what_is_no_id(number: int) -> None:
    """Only a non-negative signed 64-bit number is an id."""
    with pytest.raises(Malformed):
        split_id(number)
