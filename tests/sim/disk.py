"""A disk in memory that behaves as badly as a real one may, and repeats it from a seed.

Reads see the page cache: everything written. Below it lies what is durable, and in between the
changes that are not synced yet. `File.sync` moves one file's bytes and size down, and
`sync_directory` the names of one folder. `crash` draws what a power cut leaves of the rest.

Two models of what it may leave:

    ext4   ordered. Of each file a prefix of its unsynced changes, the next write perhaps torn;
           of all folders together a prefix of the name changes.
    weak   any subset of the writes, cuts and name changes. A write may also leave garbage or
           zeros. A write that survives alone leaves a hole of zeros in front of it.

Both are harsher than the real ext4 in one point: syncing a file never makes its name durable.
A sector of 512 bytes is written whole or not at all, so unsynced bytes never hurt synced ones
that they do not overwrite.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from frazil.disk import Buffer, Mode
from frazil.errors import Held
from frazil.model import Rand

Model = Literal["ext4", "weak"]
Rot = Literal[
    "flip", "zero_page", "duplicate_page", "swap_page", "cut", "append_garbage", "replace"
]

SECTOR_BYTES = 512
PAGE_BYTES = (512, 4096)
ENDLESS_BYTES = 1 << 40
"""What `space` says of a disk without a capacity."""


class PowerCut(BaseException):
    """The machine is gone in the middle of a storage call.

    Not an `Exception`, because no code runs on after a power cut: an `except Exception` at the
    top of a loop of the code under test must not catch it and go on.
    """


@dataclass(slots=True, kw_only=True)
class Faults:
    """What shall go wrong. May be changed between calls. Calls are counted from 1.

    What did go wrong is counted in `SimDisk.fired`: `fail`, `fail_sync`, `full`, `short_write`
    and `cut` while running; `lost_write`, `torn_write`, `garbage_write` and `lost_name` at a
    crash; `rot_<kind>`. A run in which a fault never fired has proven nothing about it.
    """

    fail_at: tuple[int, int] | None = None
    """(n, errno): the n-th storage call of any kind fails and has no effect."""
    fail_sync_at: int | None = None
    """The n-th sync of a file or folder fails with EIO. A file's unsynced bytes will never be
    durable then, though they stay readable and later syncs answer ok: the kernel calls them
    clean. A folder's names stay as they were: they may still become durable."""
    crash_at: int | None = None
    """The n-th storage call raises `PowerCut`, before, after or in the middle of its effect."""
    capacity_bytes: int | None = None
    """The bytes all files together may have. An append that does not fit leaves a part."""
    short_writes: bool = False
    """The kernel takes a write in several pieces, which a crash may then tear apart."""


class Change(NamedTuple):
    """One change of a file: `data` goes to `position`, or, when it is None, the file ends there."""

    position: int
    data: bytes | None


class Naming(NamedTuple):
    """One change of a folder's names, kept or lost as a whole. None takes the name away."""

    folder: Folder
    names: Sequence[tuple[str, Inode | Folder | None]]


@dataclass(slots=True, eq=False)
class Inode:
    """The bytes of one file, as read and as durable."""

    visible: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)
    """Changes that are visible and not durable, oldest first."""
    dropped_end: int = 0
    """Up to here a failed sync dropped bytes; a crash may leave zeros in their place."""

    def change(self, position: int, data: bytes | None) -> None:
        change = Change(position, data)
        apply(self.visible, change)
        self.pending.append(change)
        if data is None:
            self.dropped_end = min(self.dropped_end, position)

    def sync(self) -> None:
        for change in self.pending:
            apply(self.durable, change)
        self.pending.clear()

    def drop(self) -> None:
        """Call unsynced writes clean without writing them. Cuts are kept: the file system has
        them in its journal, where a failed data page does not reach them."""
        ends = [position + len(data) for position, data in self.pending if data is not None]
        self.dropped_end = min(max([self.dropped_end, *ends]), len(self.visible))
        self.pending = [change for change in self.pending if change.data is None]

    def forget_cache(self) -> None:
        """Read from the platter again. The size stays, as the kernel keeps it with the inode;
        dropped bytes show up as what was there before them, or as zeros."""
        lost_count = len(self.visible) - len(self.durable)
        self.visible = self.durable + bytes(max(0, lost_count))

    def patch(self, position: int, data: bytes) -> None:
        """Damage bytes in place, on the platter and in the cache. The size stays."""
        for content in (self.visible, self.durable):
            fitting = data[: max(0, len(content) - position)]
            content[position : position + len(fitting)] = fitting

    def replace(self, data: bytes | bytearray) -> None:
        """Be another file, durably."""
        self.visible, self.durable = bytearray(data), bytearray(data)
        self.pending, self.dropped_end = [], 0

    def copy(self, copies: dict[object, Any]) -> Inode:
        twin: Inode | None = copies.get(self)
        if twin is None:
            visible, durable = bytearray(self.visible), bytearray(self.durable)
            twin = copies[self] = Inode(visible, durable, self.pending[:], self.dropped_end)
        return twin


@dataclass(slots=True, eq=False)
class Folder:
    """The names in one folder, as listed and as durable."""

    visible: dict[str, Inode | Folder] = field(default_factory=dict)
    durable: dict[str, Inode | Folder] = field(default_factory=dict)

    def copy(self, copies: dict[object, Any]) -> Folder:
        """A twin of everything below. `copies` keeps one file under two names one file."""
        twin: Folder | None = copies.get(self)
        if twin is None:
            twin = copies[self] = Folder()
            twin.visible = {name: node.copy(copies) for name, node in self.visible.items()}
            twin.durable = {name: node.copy(copies) for name, node in self.durable.items()}
        return twin


def apply(content: bytearray, change: Change) -> None:
    position, data = change
    if position > len(content):
        content.extend(bytes(position - len(content)))
    if data is None:
        del content[position:]
    else:
        content[position : position + len(data)] = data


def apply_names(entries: dict[str, Inode | Folder], naming: Naming) -> None:
    for name, node in naming.names:
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


def failure(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class SimFile:
    """Implements `File`: one handle on an inode."""

    def __init__(self, disk: SimDisk, inode: Inode, path: str, *, writable: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._writable = writable
        self._open = True
        self._end = len(inode.visible)

    def append(self, buffers: Sequence[Buffer]) -> None:
        data = b"".join(buffers)
        with self._disk.call("append", self._path, len(data)):
            self._check(self._writable)
            held_bytes = len(self._inode.visible) - self._end
            room_bytes = held_bytes + max(0, self._disk.free_bytes())
            if len(data) <= room_bytes:
                self._write(self._end, data)
                self._end += len(data)
            else:
                part = data[: self._disk.rand.randint(0, room_bytes)]
                self._write(self._end, part)
                self._end += len(part)
                raise self._disk.full(self._path)

    def append_from(self, position: int) -> None:
        self._check(self._writable, position)
        self._end = position

    def write_at(self, position: int, data: bytes) -> None:
        with self._disk.call("write_at", self._path, len(data)):
            self._check(self._writable, position)
            growth_bytes = position + len(data) - len(self._inode.visible)
            if growth_bytes > 0 and growth_bytes > self._disk.free_bytes():
                raise self._disk.full(self._path)
            self._write(position, bytes(data))
            self._end = max(self._end, position + len(data))

    def read(self, position: int, length: int) -> bytes:
        with self._disk.call("read", self._path, length):
            self._check(True, position, length)
            return bytes(self._inode.visible[position : position + length])

    def size(self) -> int:
        with self._disk.call("size", self._path):
            self._check(True)
            return len(self._inode.visible)

    def truncate(self, size: int) -> None:
        with self._disk.call("truncate", self._path, size):
            self._check(self._writable, size)
            self._inode.change(size, None)
            self._end = size

    def sync(self) -> None:
        with self._disk.call("sync", self._path):
            self._sync()

    def settle(self) -> None:
        with self._disk.call("settle", self._path):
            self._sync()
            self._inode.forget_cache()

    def map(self) -> SimMapped:
        with self._disk.call("map", self._path):
            self._check(True)
            return SimMapped(bytes(self._inode.visible))

    def close(self) -> None:
        """Not a storage call, and silent after a power cut: code on its way out may close."""
        self._open = False

    def _check(self, allowed: bool, *numbers: int) -> None:
        if not (self._open and allowed):
            raise failure(errno.EBADF, self._path)
        if numbers and min(numbers) < 0:
            raise failure(errno.EINVAL, self._path)

    def _sync(self) -> None:
        self._check(True)
        if self._disk.watcher is not None:
            self._disk.watcher()
        if self._disk.sync_fails():
            self._inode.drop()
            raise failure(errno.EIO, self._path)
        self._inode.sync()

    def _write(self, position: int, data: bytes) -> None:
        for piece in self._disk.pieces(data):
            self._inode.change(position, piece)
            position += len(piece)


class SimMapped:
    """Implements `Mapped`: a copy, which is the same for a file that never changes."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)

    def release(self) -> None:
        """It is no page cache: nothing to give back."""


class SimLock:
    """Implements `Lock`."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk: SimDisk | None = disk

    def close(self) -> None:
        if self._disk is not None:
            self._disk.holder = None
            self._disk = None


class SimDisk:
    """Implements `Disk` in memory. Owned by one thread.

    `rand` draws what the faults leave open while running; `crash` is given its own.
    """

    def __init__(
        self,
        *,
        model: Model = "ext4",
        faults: Faults | None = None,
        rand: Rand | None = None,
        fired: Counter[str] | None = None,
        trace: list[str] | None = None,
    ) -> None:
        self.model = model
        self.faults = Faults() if faults is None else faults
        self.rand = Rand(0) if rand is None else rand
        self.fired: Counter[str] = Counter() if fired is None else fired
        """How often each fault struck, on this disk and on those it came from."""
        self.trace = trace
        """Each storage call as `operation path size`, if a list was given."""
        self.calls = 0
        """Storage calls so far: what `fail_at` and `crash_at` count."""
        self.syncs = 0
        """Syncs of files and folders so far: what `fail_sync_at` counts."""
        self.watcher: Callable[[], None] | None = None
        """Called at the beginning of every file sync: somebody looks while bytes are unsafe."""
        self.holder: str | None = None
        self._dead = False
        self._cutting = False
        self._root = Folder()
        self._pending: list[Naming] = []
        """Name changes of all folders that are visible and not durable, oldest first."""

    # What `Disk` promises.

    def open(self, path: str, mode: Mode = "read") -> SimFile:
        with self.call(mode, path):
            folder, name, node = self._place(path)
            if mode == "create":
                if node is not None:
                    raise failure(errno.EEXIST, path)
                node = self._make(folder, name, Inode(), path)
            return SimFile(self, self._file(node, path), path, writable=mode != "read")

    def rename(self, old: str, new: str) -> None:
        with self.call("rename", f"{old} {new}"):
            source, old_name, node = self._place(old)
            target, new_name, replaced = self._place(new)
            if node is None:
                raise failure(errno.ENOENT, old)
            if node is replaced:
                return
            if new.startswith(f"{old}/"):
                raise failure(errno.EINVAL, new)
            if old.startswith(f"{new}/"):
                raise failure(errno.ENOTEMPTY, new)
            if isinstance(node, Folder) and isinstance(replaced, Inode):
                raise failure(errno.ENOTDIR, new)
            if isinstance(node, Inode) and isinstance(replaced, Folder):
                raise failure(errno.EISDIR, new)
            if isinstance(replaced, Folder) and replaced.visible:
                raise failure(errno.ENOTEMPTY, new)
            if source is target:
                self._name(source, (old_name, None), (new_name, node))
            else:
                # Two folders are two blocks of the disk; syncing one says nothing of the other.
                self._name(target, (new_name, node))
                self._name(source, (old_name, None))

    def unlink(self, path: str) -> None:
        with self.call("unlink", path):
            folder, name, node = self._place(path)
            self._file(node, path)
            self._name(folder, (name, None))

    def make_directory(self, path: str) -> None:
        with self.call("make_directory", path):
            folder, name, node = self._place(path)
            if isinstance(node, Inode):
                raise failure(errno.EEXIST, path)
            if node is None:
                self._make(folder, name, Folder(), path)

    def sync_directory(self, path: str) -> None:
        with self.call("sync_directory", path):
            folder = self._folder(path)
            if self.sync_fails():
                # Names are in the journal; unlike data they are not forgotten when it fails.
                raise failure(errno.EIO, path)
            mine = [naming for naming in self._pending if naming.folder is folder]
            self._pending = [naming for naming in self._pending if naming.folder is not folder]
            for naming in mine:
                apply_names(folder.durable, naming)

    def space(self) -> int:
        with self.call("space", ""):
            return max(0, self.free_bytes())

    def lock(self, path: str, holder: str) -> SimLock:
        with self.call("lock", path):
            if self.holder is not None:
                raise Held(f"the disk is in use by {self.holder}; stop that process first")
            folder, name, node = self._place(path)
            if node is None:
                node = self._make(folder, name, Inode(), path)
            # The note is written as the real disk writes it, so a crash may spoil it.
            note = self._file(node, path)
            note.change(0, None)
            note.change(0, holder.encode())
            self.holder = holder
            return SimLock(self)

    def list(self, path: str) -> list[str]:
        with self.call("list", path):
            try:
                return sorted(self._folder(path).visible)
            except FileNotFoundError:
                return []

    # How the machine ends and comes back. This disk and its handles are dead then, but it may be
    # asked again, which tells another end of the same story.

    def crash(self, rand: Rand, faults: Faults | None = None) -> SimDisk:
        """Cut the power. The disk as the next start finds it."""
        after = self._successor(Rand(rand.getrandbits(64)), faults)
        keep_names = ordered_names if self.model == "ext4" else weak_names
        kept = keep_names(after._pending, rand)
        self.fired["lost_name"] += len(after._pending) - len(kept)
        after._pending = []
        for naming in kept:
            apply_names(naming.folder.durable, naming)
        cut_power(after._root, self.model, rand, self.fired)
        return after

    def process_kill(self, faults: Faults | None = None) -> SimDisk:
        """Kill -9. The page cache lives on, synced or not; locks and handles are gone."""
        return self._successor(self.rand, faults)

    def _successor(self, rand: Rand, faults: Faults | None) -> SimDisk:
        self._dead = True
        if faults is None:
            faults = Faults(capacity_bytes=self.faults.capacity_bytes)
        fired, trace = self.fired, self.trace
        after = SimDisk(model=self.model, faults=faults, rand=rand, fired=fired, trace=trace)
        copies: dict[object, Any] = {}
        after._root = self._root.copy(copies)
        for folder, names in self._pending:
            twins = [(name, node and node.copy(copies)) for name, node in names]
            after._pending.append(Naming(folder.copy(copies), twins))
        return after

    # Looking at it and damaging it. None of this is a storage call.

    def data(self, path: str) -> bytes:
        """The visible bytes of a file."""
        return bytes(self._inode(path).visible)

    def files(self) -> Sequence[str]:
        """The paths of all files, sorted."""
        return sorted(path for path, _ in walk(self._root))

    def rot(
        self,
        path: str,
        rand: Rand,
        kind: Rot,
        *,
        other: str | None = None,
        size: int | None = None,
        data: bytes | None = None,
    ) -> bool:
        """Damage a file behind everybody's back; False when that changed nothing.

        `swap_page` exchanges a page with the file `other`; `cut` keeps `size` bytes;
        `append_garbage` adds `data`; `replace` puts it in place of all. What is not given is
        drawn. The last three leave a file at rest: what was unsynced in it is durable then.
        """
        inode = self._inode(path)
        before = bytes(inode.visible)
        if kind == "cut":
            inode.replace(before[: rand.randint(0, len(before)) if size is None else size])
        elif kind == "append_garbage":
            inode.replace(before + (rand.randbytes(600) if data is None else data))
        elif kind == "replace":
            inode.replace(rand.randbytes(len(before)) if data is None else data)
        elif kind == "flip" and before:
            position = rand.randrange(len(before))
            inode.patch(position, bytes([before[position] ^ 1 << rand.randrange(8)]))
        elif before:
            self._rot_page(inode, rand, kind, inode if other is None else self._inode(other))
        changed = bytes(inode.visible) != before
        self.fired[f"rot_{kind}"] += changed
        return changed

    def _rot_page(self, inode: Inode, rand: Rand, kind: Rot, other: Inode) -> None:
        page_bytes = rand.choice(PAGE_BYTES)
        position = rand.randrange(0, len(inode.visible), page_bytes)
        page = bytes(inode.visible[position : position + page_bytes])
        if kind == "zero_page":
            inode.patch(position, bytes(page_bytes))
        elif other.visible:
            place = rand.randrange(0, len(other.visible), page_bytes)
            inode.patch(position, bytes(other.visible[place : place + page_bytes]))
            if kind == "swap_page":
                other.patch(place, page)

    # Every storage call passes here, as `with self.call(...)`: it is counted and traced, and it
    # may fail or be the last one. Power may go at its entry or at its exit.

    def call(self, operation: str, path: str, size: int = 0) -> SimDisk:
        if self._dead:
            raise PowerCut(f"{operation} {path} on a machine that is gone")
        self.calls += 1
        if self.trace is not None:
            self.trace.append(f"{operation} {path} {size}")
        faults = self.faults
        if faults.fail_at is not None and faults.fail_at[0] == self.calls:
            self.fired["fail"] += 1
            raise failure(faults.fail_at[1], path)
        if faults.crash_at == self.calls:
            self._cutting = True
            if self.rand.random() < 0.5:
                self._cut()
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._cutting:
            self._cut()

    def _cut(self) -> None:
        self._dead = True
        self.fired["cut"] += 1
        raise PowerCut(f"at storage call {self.calls}")

    def sync_fails(self) -> bool:
        """Count a sync; is it the one to fail?"""
        self.syncs += 1
        if self.syncs != self.faults.fail_sync_at:
            return False
        self.fired["fail_sync"] += 1
        return True

    def pieces(self, data: bytes) -> Sequence[bytes]:
        """The parts in which the kernel takes a write; not all of it when power goes meanwhile."""
        if self._cutting and self.rand.random() < 0.5:
            data = data[: self.rand.randint(0, len(data))]
        if not self.faults.short_writes or len(data) < 3 or self.rand.random() < 0.5:
            return (data,) if data else ()
        self.fired["short_write"] += 1
        middle = self.rand.randrange(2, len(data))
        first = self.rand.randrange(1, middle)
        return data[:first], data[first:middle], data[middle:]

    def free_bytes(self) -> int:
        """Room left; below 0 when the capacity was lowered under what is there."""
        if self.faults.capacity_bytes is None:
            return ENDLESS_BYTES
        used_bytes = sum(len(inode.visible) for _, inode in walk(self._root))
        return self.faults.capacity_bytes - used_bytes

    def full(self, path: str) -> OSError:
        self.fired["full"] += 1
        return failure(errno.ENOSPC, path)

    def _make(self, folder: Folder, name: str, node: Inode | Folder, path: str) -> Inode | Folder:
        if self.free_bytes() <= 0:
            raise self.full(path)
        self._name(folder, (name, node))
        return node

    def _name(self, folder: Folder, *names: tuple[str, Inode | Folder | None]) -> None:
        naming = Naming(folder, names)
        apply_names(folder.visible, naming)
        self._pending.append(naming)

    def _folder(self, path: str) -> Folder:
        node: Inode | Folder | None = self._root
        for name in path.split("/") if path else ():
            if isinstance(node, Folder):
                node = node.visible.get(name)
        if not isinstance(node, Folder):
            raise failure(errno.ENOTDIR if node else errno.ENOENT, path)
        return node

    def _place(self, path: str) -> tuple[Folder, str, Inode | Folder | None]:
        parent, _, name = path.rpartition("/")
        folder = self._folder(parent)
        return folder, name, folder.visible.get(name)

    def _file(self, node: Inode | Folder | None, path: str) -> Inode:
        if not isinstance(node, Inode):
            raise failure(errno.EISDIR if node else errno.ENOENT, path)
        return node

    def _inode(self, path: str) -> Inode:
        return self._file(self._place(path)[2], path)


def walk(folder: Folder, prefix: str = "") -> Iterator[tuple[str, Inode]]:
    for name, node in folder.visible.items():
        if isinstance(node, Inode):
            yield f"{prefix}{name}", node
        else:
            yield from walk(node, f"{prefix}{name}/")


# What a power cut leaves. Chances are drawn anew for each file, so that a run of crashes meets
# "all of it" and "nothing of it" as often as a mixture.


def cut_power(folder: Folder, model: Model, rand: Rand, fired: Counter[str]) -> None:
    """Make what is durable, and what luck adds to it, all there is."""
    folder.visible = dict(folder.durable)
    keep_changes = ordered_changes if model == "ext4" else weak_changes
    for node in folder.visible.values():
        if isinstance(node, Folder):
            cut_power(node, model, rand, fired)
            continue
        content = node.durable
        for change in keep_changes(node.pending, rand, fired):
            apply(content, change)
        if node.dropped_end > len(content) and rand.random() < 0.5:
            apply(content, Change(node.dropped_end, None))
        node.replace(content)


def ordered_changes(pending: list[Change], rand: Rand, fired: Counter[str]) -> Iterator[Change]:
    kept_count = prefix_count(rand, len(pending))
    yield from pending[:kept_count]
    if kept_count < len(pending):
        fired["lost_write"] += len(pending) - kept_count
        if rand.random() < 0.5:
            yield from torn(pending[kept_count], rand, fired)


def weak_changes(pending: list[Change], rand: Rand, fired: Counter[str]) -> Iterator[Change]:
    chance = keep_chance(rand)
    for change in pending:
        if rand.random() < chance:
            yield change
            continue
        fired["lost_write"] += 1
        wreck = rand.choice((torn, spoiled, None))
        if wreck is not None:
            yield from wreck(change, rand, fired)


def ordered_names(pending: list[Naming], rand: Rand) -> list[Naming]:
    return pending[: prefix_count(rand, len(pending))]


def weak_names(pending: list[Naming], rand: Rand) -> list[Naming]:
    chance = keep_chance(rand)
    return [naming for naming in pending if rand.random() < chance]


def prefix_count(rand: Rand, count: int) -> int:
    return rand.choice((0, count, rand.randint(0, count), rand.randint(0, count)))


def keep_chance(rand: Rand) -> float:
    return rand.choice((0.0, 0.1, 0.5, 0.9, 1.0))


def torn(change: Change, rand: Rand, fired: Counter[str]) -> Iterator[Change]:
    """The part of a write before one of the sector borders inside it, if there is one."""
    borders = sector_borders(change)
    if change.data is not None and borders:
        fired["torn_write"] += 1
        yield Change(change.position, change.data[: rand.choice(borders)])


def spoiled(change: Change, rand: Rand, fired: Counter[str]) -> Iterator[Change]:
    """A write of which some sectors in a row, perhaps all, became garbage or zeros."""
    position, data = change
    if data is not None:
        fired["garbage_write"] += 1
        borders = (0, *sector_borders(change), len(data))
        begin, end = sorted((rand.choice(borders), rand.choice(borders)))
        if begin == end:
            begin, end = 0, len(data)
        filling = rand.choice((bytes, rand.randbytes))(end - begin)
        yield Change(position, data[:begin] + filling + data[end:])


def sector_borders(change: Change) -> range:
    """The places in the data of a write where one sector of the disk ends and the next begins."""
    first = SECTOR_BYTES - change.position % SECTOR_BYTES
    return range(first, len(change.data or b""), SECTOR_BYTES)
