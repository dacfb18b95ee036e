"""The simulated disk loses only what a real one may lose, and all of that."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import Disk, is_full, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Held
from frazil.model import Clock, Rand, SteadyTime
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, Model, PowerCut, Rot, SimDisk, SimFile

SEEDS = range(200)
both_models = pytest.mark.parametrize("model", ["ext4", "weak"])


def synced_file(disk: SimDisk, path: str, data: bytes = b"") -> SimFile:
    """A file whose name and bytes are durable."""
    file = disk.open(path, "create")
    file.append([data])
    file.sync()
    disk.sync_directory(path.rpartition("/")[0])
    return file


def ends(disk: SimDisk, path: str) -> Iterator[bytes | None]:
    """Return the contents that many power cuts at this moment leave of a file."""
    for seed in SEEDS:
        after = disk.crash(Rand(seed))
        yield after.data(path) if path in after.files() else None


# Durability.

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "sync", "sync_directory", "rename", "unlink"]),
        st.sampled_from(["a", "b", "f/a", "f/b"]),
        st.sampled_from([1, 100, 512, 700, 2000]),
    ),
    max_size=40,
)


class DurableState:
    """Runs steps and records what must survive a power cut.

    Each file is filled with its own letter, so that it is recognised under any name.
    """

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.files: dict[str, SimFile] = {}
        self.letters: dict[SimFile, bytes] = {}
        self.synced: Counter[bytes] = Counter()
        self.durable_names: dict[str, SimFile] = {}
        self.loose_names: set[str] = set()
        make_directories(disk, "f")

    def step(self, action: str, path: str, size: int) -> None:
        folder, _, name = path.rpartition("/")
        if action == "append":
            if path not in self.files:
                file = self.files[path] = self.disk.open(path, "create")
                self.letters[file] = bytes([len(self.letters) + 1])
                self.loose_names.add(path)
            self.files[path].append([self.letters[self.files[path]] * size])
        elif action == "sync" and path in self.files:
            file = self.files[path]
            file.sync()
            self.synced[self.letters[file]] = file.size()
        elif action == "sync_directory":
            self.disk.sync_directory(folder)
            for known in {*self.files, *self.durable_names}:
                if known.rpartition("/")[0] == folder:
                    self.loose_names.discard(known)
                    self.durable_names.pop(known, None)
                    if known in self.files:
                        self.durable_names[known] = self.files[known]
        elif action == "unlink" and path in self.files:
            self.disk.unlink(path)
            del self.files[path]
            self.loose_names.add(path)
        elif action == "rename" and path in self.files:
            target = path.removesuffix(name) + ("b" if name == "a" else "a")
            self.disk.rename(path, target)
            self.files[target] = self.files.pop(path)
            self.loose_names |= {path, target}

    def check(self, after: SimDisk) -> None:
        for path, file in self.durable_names.items():
            if path not in self.loose_names:
                letter = self.letters[file]
                assert after.data(path).startswith(letter * self.synced[letter])
        if after.model == "weak":
            return
        for path in after.files():
            # With ordered changes a file holds only its own bytes, and all synced ones.
            data = after.data(path)
            letter = data[:1]
            assert data == letter * len(data) and len(data) >= self.synced[letter]


@both_models
@settings(max_examples=150, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 2**32), short_writes=st.booleans())
def test_synced_bytes_survive_every_crash(
    model: Model, steps: list[tuple[str, str, int]], seed: int, short_writes: bool
) -> None:
    rand = Rand(seed)
    disk = SimDisk(model=model, rand=rand, faults=Faults(short_writes=short_writes))
    promises = DurableState(disk)
    for step in steps:
        promises.step(*step)
    for _ in range(10):
        after = disk.crash(rand)
        promises.check(after)
        promises.check(after.crash(rand))


@both_models
@settings(max_examples=100, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 2**32))
def test_a_killed_process_loses_nothing(
    model: Model, steps: list[tuple[str, str, int]], seed: int
) -> None:
    """Later power cuts may still lose unsynced bytes."""
    disk = SimDisk(model=model)
    promises = DurableState(disk)
    for step in steps:
        promises.step(*step)
    after = disk.process_kill()
    assert {path: after.data(path) for path in after.files()} == {
        path: disk.data(path) for path in disk.files()
    }
    promises.check(after.crash(Rand(seed)))
    # The same seed draws the same outcome with and without the kill.
    assert dump(disk.crash(Rand(seed))) == dump(after.crash(Rand(seed)))


def dump(disk: SimDisk) -> dict[str, bytes]:
    return {path: disk.data(path) for path in disk.files()}


@both_models
def test_unsynced_names_may_vanish(model: Model) -> None:
    """Syncing a file does not sync its name."""
    disk = SimDisk(model=model)
    file = disk.open("a", "create")
    file.append([b"one"])
    file.sync()
    assert set(ends(disk, "a")) == {None, b"one"}


@both_models
def test_a_folder_without_a_durable_name_loses_its_files(model: Model) -> None:
    disk = SimDisk(model=model)
    disk.make_directory("f")
    synced_file(disk, "f/a", b"one")
    assert set(ends(disk, "f/a")) == {None, b"one"}
    disk = SimDisk(model=model)
    make_directories(disk, "f")
    synced_file(disk, "f/a", b"one")
    assert set(ends(disk, "f/a")) == {b"one"}


@both_models
def test_unlink_may_be_undone(model: Model) -> None:
    """Until its folder is synced."""
    disk = SimDisk(model=model)
    synced_file(disk, "a", b"one")
    disk.unlink("a")
    assert set(ends(disk, "a")) == {None, b"one"}
    disk = disk.process_kill()
    disk.sync_directory("")
    assert set(ends(disk, "a")) == {None}


@both_models
def test_rename_is_old_or_new(model: Model) -> None:
    disk = SimDisk(model=model)
    synced_file(disk, "a", b"old")
    synced_file(disk, "b", b"new")
    disk.rename("b", "a")
    found = set(zip(ends(disk, "a"), ends(disk, "b"), strict=True))
    assert found == {(b"old", b"new"), (b"new", None)}


@both_models
def test_rename_before_sync_may_leave_an_empty_file(model: Model) -> None:
    disk = SimDisk(model=model)
    synced_file(disk, "a", b"old")
    disk.open("b", "create").append([b"new"])
    disk.rename("b", "a")
    disk.sync_directory("")
    assert {b"", b"new"} <= set(ends(disk, "a"))


def test_a_move_between_folders_is_two_changes() -> None:
    """Syncing only the source folder may lose the file."""
    disk = SimDisk(model="weak")
    make_directories(disk, "f")
    synced_file(disk, "a", b"one")
    disk.rename("a", "f/a")
    disk.sync_directory("")
    assert set(ends(disk, "f/a")) == {None, b"one"}
    assert set(ends(disk, "a")) == {None}


def test_ext4_names_survive_in_order() -> None:
    """A prefix of the name changes, over all folders."""
    disk = SimDisk(model="ext4")
    make_directories(disk, "f")
    for path in ("f/1", "2", "f/3", "4"):
        disk.open(path, "create")
    found = {tuple(disk.crash(Rand(seed)).files()) for seed in SEEDS}
    assert found == {(), ("f/1",), ("2", "f/1"), ("2", "f/1", "f/3"), ("2", "4", "f/1", "f/3")}


def test_weak_names_survive_in_any_combination() -> None:
    disk = SimDisk(model="weak")
    for path in "123":
        disk.open(path, "create")
    assert len({tuple(disk.crash(Rand(seed)).files()) for seed in SEEDS}) == 8


# Torn writes.


def test_ext4_appends_survive_as_a_prefix() -> None:
    """Torn only at a sector border."""
    disk = SimDisk(model="ext4")
    file = synced_file(disk, "a", b"s" * 100)
    whole = b"s" * 100
    borders = {100}
    for number, size in enumerate([10, 2000, 30, 1500]):
        piece = bytes([number]) * size
        file.append([piece])
        whole += piece
        borders.add(len(whole))
    borders |= set(range(512, len(whole), 512))
    sizes = set()
    for data in ends(disk, "a"):
        assert data is not None and whole.startswith(data)
        sizes.add(len(data))
    assert {100, len(whole)} < sizes <= borders
    assert disk.fired["torn_write"] and disk.fired["lost_write"]
    assert not disk.fired["garbage_write"]


def test_weak_writes_leave_holes_and_garbage() -> None:
    disk = SimDisk(model="weak")
    file = synced_file(disk, "a", b"s" * 100)
    file.append([b"x" * 1000])
    file.append([b"y" * 1000])
    seen: Counter[str] = Counter()
    for data in ends(disk, "a"):
        assert data is not None and data.startswith(b"s" * 100) and len(data) <= 2100
        first, second = data[100:1100], data[1100:]
        seen["whole"] += first == b"x" * 1000 and second == b"y" * 1000
        seen["nothing"] += not first
        seen["hole"] += first == bytes(1000) and second == b"y" * 1000
        seen["torn"] += bool(first) and first == b"x" * len(first) and len(first) < 1000
        seen["garbage"] += bool(set(first) - set(b"x\0"))
        seen["second_only"] += first != b"x" * 1000 and second == b"y" * 1000
    assert min(seen.values()) > 0 and len(seen) == 6, seen
    assert min(disk.fired[name] for name in ("torn_write", "lost_write", "garbage_write")) > 0


def test_a_weak_truncate_may_be_lost_below_a_later_write() -> None:
    disk = SimDisk(model="weak")
    file = synced_file(disk, "a", b"oldoldold")
    file.truncate(3)
    file.append([b"new"])
    assert {b"oldoldold", b"old", b"oldnew", b"oldnewold"} <= set(ends(disk, "a"))
    assert b"oldnewold" not in set(ends(remade(disk, "ext4"), "a"))


def remade(disk: SimDisk, model: Model) -> SimDisk:
    other = disk.process_kill()
    other.model = model
    return other


@both_models
def test_a_small_slot_is_old_or_new_unless_garbage(model: Model) -> None:
    disk = SimDisk(model=model)
    file = synced_file(disk, "a", b"o" * 1024)
    file.write_at(512, b"n" * 64)
    found = {data[512:576] for data in ends(disk, "a") if data is not None}
    assert {b"o" * 64, b"n" * 64} <= found
    if model == "ext4":
        assert found == {b"o" * 64, b"n" * 64}
    assert all(data and data[:512] + data[576:] == b"o" * 960 for data in ends(disk, "a"))


def test_short_writes_are_whole_in_the_cache_and_torn_by_a_crash() -> None:
    disk = SimDisk(faults=Faults(short_writes=True))
    file = synced_file(disk, "a")
    for _ in range(20):
        file.append([b"0123456789"])
    assert disk.data("a") == b"0123456789" * 20
    assert any(data and len(data) % 10 for data in ends(disk, "a"))
    assert disk.fired["short_write"] > 0


# Power cuts and kills.


def write_states(disk: Disk) -> None:
    make_directories(disk, "f")
    for body in (b"one", b"two" * 1000, b"three"):
        write_checkpoint(disk, "f/state", b"TEST", 1, body)


@both_models
@pytest.mark.parametrize("short_writes", [False, True])
def test_a_checkpoint_is_old_or_new_after_any_power_cut(model: Model, short_writes: bool) -> None:
    """At every call, before, during and after it, by cut or by kill."""
    trace: list[str] = []
    quiet = SimDisk(trace=trace)
    write_states(quiet)
    assert quiet.calls == len(trace) > 20
    states = [None, b"one", b"two" * 1000, b"three"]
    renames = [number for number, line in enumerate(trace, 1) if line.startswith("rename")]
    syncs = [n for n, line in enumerate(trace, 1) if line == "sync_directory f 0"]
    for crash_at in range(1, quiet.calls + 1):
        for seed in range(6):
            faults = Faults(crash_at=crash_at, short_writes=short_writes)
            disk = SimDisk(model=model, faults=faults, rand=Rand(seed))
            with pytest.raises(PowerCut):
                write_states(disk)
            assert disk.fired["cut"] == 1
            for after in (disk.crash(Rand(seed)), disk.process_kill()):
                state = states.index(read_checkpoint(after, "f/state", b"TEST", 1, "hint"))
                assert sum(n < crash_at for n in syncs) <= state
                assert state <= sum(n <= crash_at for n in renames)
                write_checkpoint(make_sure(after, "f"), "f/state", b"TEST", 1, b"next")
                assert read_checkpoint(after, "f/state", b"TEST", 1, "hint") == b"next"


def make_sure(disk: SimDisk, folder: str) -> SimDisk:
    make_directories(disk, folder)
    return disk


def test_a_cut_happens_before_during_and_after_the_effect() -> None:
    made = set()
    for seed in range(20):
        disk = SimDisk(rand=Rand(seed), faults=Faults(crash_at=1))
        with pytest.raises(PowerCut):
            disk.make_directory("f")
        made.add(tuple(disk.process_kill().list("")))
    assert made == {(), ("f",)}
    seen = set()
    for seed in range(60):
        disk = SimDisk(rand=Rand(seed))
        file = synced_file(disk, "a")
        disk.faults.crash_at = disk.calls + 1
        with pytest.raises(PowerCut):
            file.append([b"0123456789"])
        seen.add(len(disk.process_kill().data("a")))
    assert {0, 10} < seen


def test_a_power_cut_is_not_an_exception() -> None:
    """`except Exception` does not catch it."""
    disk = SimDisk(faults=Faults(crash_at=1))
    with pytest.raises(PowerCut), suppress(Exception):
        disk.make_directory("f")


@pytest.mark.parametrize("end", [lambda disk: disk.crash(Rand(1)), SimDisk.process_kill])
def test_a_dead_disk_refuses_every_call(end: Callable[[SimDisk], SimDisk]) -> None:
    """Its lock is free, and closing is silent."""
    disk = SimDisk()
    file = synced_file(disk, "a", b"one")
    lock = disk.lock("lock", "the first node")
    after = end(disk)
    for call in (
        lambda: file.append([b"x"]),
        lambda: file.write_at(0, b"x"),
        lambda: file.read(0, 1),
        lambda: file.size(),
        lambda: file.truncate(0),
        lambda: file.sync(),
        lambda: file.settle(),
        lambda: disk.open("a"),
        lambda: disk.rename("a", "b"),
        lambda: disk.unlink("a"),
        lambda: disk.list(""),
        lambda: disk.make_directory("f"),
        lambda: disk.sync_directory(""),
        lambda: disk.space(),
        lambda: disk.lock("lock", "another node"),
    ):
        with pytest.raises(PowerCut):
            call()
    held = after.lock("lock", "the second node")
    lock.close()
    file.close()
    with pytest.raises(Held, match="the second node"):
        after.lock("lock", "the third node")
    held.close()
    assert after.data("a") == b"one"


def test_a_seed_repeats_a_run_exactly() -> None:
    def story() -> tuple[dict[str, bytes], list[str], Counter[str]]:
        trace: list[str] = []
        faults = Faults(short_writes=True, crash_at=40)
        disk = SimDisk(model="weak", rand=Rand(7), faults=faults, trace=trace)
        with suppress(PowerCut):
            file = disk.open("a", "create")
            for _ in range(100):
                file.append([b"0123456789" * 100])
        after = disk.crash(Rand(8))
        return dump(after), trace, after.fired

    assert story() == story()


# Failed calls.


def test_after_a_failed_sync_the_cache_shows_lost_bytes() -> None:
    """The next sync succeeds, yet a crash shows the loss."""
    disk = SimDisk()
    file = synced_file(disk, "a", b"safe")
    disk.faults.fail_sync_at = disk.syncs + 1
    file.append([b"lost"])
    with pytest.raises(OSError) as caught:
        file.sync()
    assert caught.value.errno == errno.EIO and disk.fired["fail_sync"] == 1
    file.sync()
    assert file.read(0, 99) == b"safelost"
    assert set(ends(disk, "a")) == {b"safe", b"safe\0\0\0\0"}

    disk = disk.process_kill()
    file = disk.open("a", "edit")
    assert file.read(0, 99) == b"safelost"
    file.append([b"more"])
    file.sync()
    assert set(ends(disk, "a")) == {b"safe\0\0\0\0more"}


def test_a_failed_sync_drops_writes_but_not_truncates() -> None:
    """The size goes through the file system's journal."""
    disk = SimDisk()
    file = synced_file(disk, "a", b"old old")
    disk.faults.fail_sync_at = disk.syncs + 1
    file.truncate(3)
    file.append([b"new"])
    with pytest.raises(OSError):
        file.sync()
    file.sync()
    assert set(ends(disk, "a")) == {b"old", b"old\0\0\0"}


def test_settle_shows_what_a_failed_sync_lost() -> None:
    disk = SimDisk()
    file = synced_file(disk, "a", b"safe")
    disk.faults.fail_sync_at = disk.syncs + 1
    file.append([b"lost"])
    file.write_at(0, b"gone")
    with pytest.raises(OSError):
        file.sync()
    disk = disk.process_kill()
    file = disk.open("a", "edit")
    file.settle()
    assert file.read(0, 99) == b"safe\0\0\0\0"
    file.truncate(4)
    file.append([b"kept"])
    file.settle()
    assert file.read(0, 99) == b"safekept"
    assert set(ends(disk, "a")) == {b"safekept"}


def test_settle_is_a_sync_that_may_fail() -> None:
    disk = SimDisk()
    file = synced_file(disk, "a", b"safe")
    disk.faults.fail_sync_at = disk.syncs + 1
    file.append([b"lost"])
    with pytest.raises(OSError):
        file.settle()
    file.settle()
    assert file.read(0, 99) == b"safe\0\0\0\0"


def test_after_a_failed_folder_sync_names_may_or_may_not_survive() -> None:
    """A later sync keeps them."""
    disk = SimDisk(faults=Faults(fail_sync_at=2))
    file = disk.open("a", "create")
    file.sync()
    with pytest.raises(OSError):
        disk.sync_directory("")
    assert disk.list("") == ["a"]
    assert set(ends(disk, "a")) == {None, b""}
    disk = SimDisk(faults=Faults(fail_sync_at=1))
    disk.open("a", "create")
    with pytest.raises(OSError):
        disk.sync_directory("")
    disk.sync_directory("")
    assert set(ends(disk, "a")) == {b""}


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_a_failed_call_has_no_effect(number: int) -> None:
    quiet = SimDisk()
    write_states(quiet)
    for call in range(1, quiet.calls + 1):
        disk = SimDisk(faults=Faults(fail_at=(call, number)))
        with pytest.raises(OSError) as caught:
            write_states(disk)
        assert caught.value.errno == number
        assert (disk.fired["fail"], disk.syncs <= quiet.syncs) == (1, True)
        write_states(disk)
        assert read_checkpoint(disk, "f/state", b"TEST", 1, "hint") == b"three"

    disk = SimDisk()
    file = synced_file(disk, "a", b"one")
    disk.faults.fail_at = (disk.calls + 1, number)
    with pytest.raises(OSError):
        file.append([b"two"])
    assert file.read(0, 9) == b"one"


@settings(deadline=None)
@given(
    capacity=st.integers(1, 200),
    sizes=st.lists(st.integers(0, 60), max_size=20),
    seed=st.integers(0, 2**32),
)
def test_a_full_disk_takes_a_part_and_raises(capacity: int, sizes: list[int], seed: int) -> None:
    disk = SimDisk(faults=Faults(capacity_bytes=capacity), rand=Rand(seed))
    file = disk.open("a", "create")
    for size in sizes:
        before, room = file.size(), disk.space()
        assert before + room == capacity
        try:
            file.append([b"x" * size])
            assert size <= room and file.size() == before + size
        except OSError as error:
            assert is_full(error) and size > room and before <= file.size() <= capacity
    assert (disk.fired["full"] > 0) == (sum(sizes) > capacity)


def test_space_is_freed_by_unlink_and_truncate() -> None:
    """A full disk refuses new names and growth, not overwrites."""
    disk = SimDisk(faults=Faults(capacity_bytes=10))
    file = synced_file(disk, "a", b"0123456789")
    for call in (
        lambda: disk.open("b", "create"),
        lambda: disk.make_directory("f"),
        lambda: file.append([b"x"]),
        lambda: file.write_at(9, b"xy"),
    ):
        with pytest.raises(OSError) as caught:
            call()
        assert is_full(caught.value)
    assert (disk.space(), disk.files(), disk.data("a")) == (0, ["a"], b"0123456789")
    file.write_at(8, b"xy")
    file.truncate(4)
    assert disk.space() == 6
    synced_file(disk, "b", b"012345")
    assert disk.crash(Rand(1)).space() == 0
    disk = disk.process_kill()
    disk.unlink("a")
    assert disk.space() == 4


# Damage.

FIRST = Rand(1).randbytes(10_000)
SECOND = Rand(2).randbytes(6_000)


def changed_sectors(before: bytes, after: bytes) -> set[int]:
    assert len(before) == len(after)
    return {at // 512 for at in range(len(before)) if before[at] != after[at]}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["flip", "zero_page", "duplicate_page", "swap_page"])
def test_rot_hits_one_aligned_page(kind: Rot, seed: int) -> None:
    """Durable, of the named kind, and the size stays."""
    disk = SimDisk()
    synced_file(disk, "a", FIRST)
    synced_file(disk, "b", SECOND)
    changed = disk.rot("a", Rand(seed), kind, other="b" if kind == "swap_page" else None)
    assert changed == (disk.data("a") != FIRST) == (disk.fired[f"rot_{kind}"] == 1)
    assert disk.crash(Rand(0)).data("a") == disk.data("a")
    sectors = changed_sectors(FIRST, disk.data("a"))
    if kind == "flip":
        bits = int.from_bytes(FIRST, "big") ^ int.from_bytes(disk.data("a"), "big")
        assert bits.bit_count() == 1
        return
    if sectors:
        assert sectors == set(range(min(sectors), max(sectors) + 1)) and len(sectors) <= 8
        position = min(sectors) * 512
        damage = disk.data("a")[position : position + 300]
        sources = {
            "zero_page": bytes(10_000),
            "duplicate_page": FIRST,
            "swap_page": SECOND,
        }
        assert damage in sources[kind]
    if kind == "swap_page":
        assert changed_sectors(SECOND, disk.data("b"))


@pytest.mark.parametrize("kind", ["flip", "zero_page", "duplicate_page", "swap_page"])
def test_an_empty_file_cannot_rot(kind: Rot) -> None:
    disk = SimDisk()
    synced_file(disk, "a")
    assert not disk.rot("a", Rand(0), kind)
    assert disk.data("a") == b"" and not disk.fired[f"rot_{kind}"]


def test_rot_cuts_appends_and_replaces() -> None:
    """Missing arguments are drawn at random."""
    disk = SimDisk()
    synced_file(disk, "a", b"0123456789")
    assert disk.rot("a", Rand(0), "cut", size=4)
    assert disk.rot("a", Rand(0), "append_garbage", data=b"xy")
    assert disk.data("a") == disk.crash(Rand(0)).data("a") == b"0123xy"
    assert disk.rot("a", Rand(0), "replace", data=b"else")
    assert disk.data("a") == b"else"
    assert not disk.rot("a", Rand(0), "replace", data=b"else")
    assert disk.rot("a", Rand(0), "append_garbage") and len(disk.data("a")) > 4
    assert disk.rot("a", Rand(0), "replace") and disk.rot("a", Rand(0), "cut")


# The clock.


def test_time_moves_only_when_a_test_moves_it() -> None:
    sim = SimClock(wall_ms=1000)
    clock: Clock = sim
    steady = SteadyTime(clock)
    assert (clock.wall_ms(), clock.monotonic_ns()) == (1000, 0)
    sim.advance(5)
    clock.sleep(0.25)
    assert (clock.wall_ms(), clock.monotonic_ns()) == (1255, 255_000_000)
    sim.jump_wall(-1_000_000)
    assert (clock.wall_ms(), clock.monotonic_ns()) == (-998_745, 255_000_000)
    assert steady.now_ms() == 1255
    clock.sleep(1e-10)
    assert clock.monotonic_ns() == 255_000_001
    with pytest.raises(ValueError):
        clock.sleep(-1)
