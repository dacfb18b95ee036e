"""An in-memory disk with the failures of real disks, reproducible from a seed.

Reads see the page cache: everything written. Beneath it are the durable contents; changes in
between are pending. `File.sync` makes one file's bytes and size durable, `sync_directory` the names
of one folder. `crash` draws which pending changes survive a power cut.

Two models of what survives:

    ext4   ordered: of each file a prefix of its pending changes, the next write perhaps torn;
           of all folders together a prefix of the name changes
    weak   any subset of writes, truncations and name changes. A write may also leave garbage or
           zeros. A write that survives alone leaves a hole of zeros before it.

Both are stricter than real ext4 in one point: syncing a file never makes its name durable.
A sector of 512 bytes is written completely or not at all, so pending bytes never damage durable
ones that they do not overwrite.
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
"""Free space of a disk without a capacity limit."""


class PowerCut(BaseException):
    """The machine lost power in the middle of a storage call.

    Not an `Exception`: an `except Exception` at the top of a loop of the code under test must not
    catch it, because no code runs after a power cut.
    """


@dataclass(slots=True, kw_only=True)
class Faults:
    """The faults to inject. May be changed between calls. Calls are counted from 1.

    Faults that struck are counted in `SimDisk.fired`: `fail`, `fail_sync`, `full`, `short_write`
    and `cut` while running; `lost_write`, `torn_write`, `garbage_write` and `lost_name` at a
    crash; `rot_<kind>`. A run in which a fault never fired proves nothing about it.
    """

    fail_at: tuple[int, int] | None = None
    """(n, errno): the n-th storage call of any kind fails and has no effect."""
    fail_sync_at: int | None = None
    """The n-th sync of a file or folder fails with EIO. A file's pending bytes will never become
    durable then, although they stay readable and later syncs succeed: the kernel marks them clean.
    A folder's names stay pending: they may still become durable."""
    crash_at: int | None = None
    """The n-th storage call raises `PowerCut`, before, after or in the middle of its effect."""
    capacity_bytes: int | None = None
    """Maximum bytes of all files together. An append that does not fit writes a part."""
    short_writes: bool = False
    """The kernel splits writes into pieces; a crash may keep some of them."""


class Change(NamedTuple):
    """One change of a file: write `data` at `position`, or truncate there when it is None."""

    position: int
    data: bytes | None


class Naming(NamedTuple):
    """One atomic change of a folder's names. None removes the name."""

    folder: Folder
    names: Sequence[tuple[str, Inode | Folder | None]]


@dataclass(slots=True, eq=False)
class Inode:
    """The visible and the durable bytes of one file."""

    visible: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)
    """Changes that are visible but not durable, oldest first."""
    dropped_end: int = 0
    """End of the bytes dropped by a failed sync; a crash may leave zeros in their place."""

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
        """Mark pending writes clean without writing them.

        Truncations stay pending: they are in the file system's journal, which a failed data page
        does not affect.
        """
        ends = [position + len(data) for position, data in self.pending if data is not None]
        self.dropped_end = min(max([self.dropped_end, *ends]), len(self.visible))
        self.pending = [change for change in self.pending if change.data is None]

    def forget_cache(self) -> None:
        """Reread the durable bytes. The size stays, as the kernel keeps it with the inode.

        Dropped bytes read as the previous contents, or as zeros.
        """
        lost_count = len(self.visible) - len(self.durable)
        self.visible = self.durable + bytes(max(0, lost_count))

    def patch(self, position: int, data: bytes) -> None:
        """Damage bytes in place, on disk and in the cache. The size stays."""
        for content in (self.visible, self.durable):
            fitting = data[: max(0, len(content) - position)]
            content[position : position + len(fitting)] = fitting

    def replace(self, data: bytes | bytearray) -> None:
        """Replace the contents durably."""
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
    """The visible and the durable names in one folder."""

    visible: dict[str, Inode | Folder] = field(default_factory=dict)
    durable: dict[str, Inode | Folder] = field(default_factory=dict)

    def copy(self, copies: dict[object, Any]) -> Folder:
        """Return a deep copy. `copies` keeps a file with two names one file."""
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

    def append_synced(self, data: memoryview, *, is_cached: bool) -> None:
        self.append([data])
        self.sync()

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
        """Not a storage call, and allowed after a power cut: cleanup code may close files."""
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
    """Implements `Mapped` with a copy, which is equivalent for an immutable file."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)

    def release(self) -> None:
        """Do nothing: there is no page cache to release."""


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

    `rand` draws the details of faults while running; `crash` takes its own.
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
        """Count of each fault, on this disk and its predecessors."""
        self.trace = trace
        """Each storage call as `operation path size`, unless None."""
        self.calls = 0
        """Storage calls so far, as counted by `fail_at` and `crash_at`."""
        self.syncs = 0
        """Syncs of files and folders so far, as counted by `fail_sync_at`."""
        self.watcher: Callable[[], None] | None = None
        """Called at the start of every file sync, to read while bytes are not durable."""
        self.holder: str | None = None
        self._dead = False
        self._cutting = False
        self._root = Folder()
        self._pending: list[Naming] = []
        """Name changes of all folders that are visible but not durable, oldest first."""

    # The methods of `Disk`.

    def open(self, path: str, mode: Mode = "read") -> SimFile:
        with self.call(mode, path):
            folder, name, node = self._lookup(path)
            if mode in ("create", "create_private"):
                if node is not None:
                    raise failure(errno.EEXIST, path)
                node = self._make(folder, name, Inode(), path)
            return SimFile(self, self._file(node, path), path, writable=mode != "read")

    def rename(self, old: str, new: str) -> None:
        with self.call("rename", f"{old} {new}"):
            source, old_name, node = self._lookup(old)
            target, new_name, replaced = self._lookup(new)
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
                # Two folders are two blocks of the disk, which are synced independently.
                self._name(target, (new_name, node))
                self._name(source, (old_name, None))

    def unlink(self, path: str) -> None:
        with self.call("unlink", path):
            folder, name, node = self._lookup(path)
            self._file(node, path)
            self._name(folder, (name, None))

    def make_directory(self, path: str) -> None:
        with self.call("make_directory", path):
            folder, name, node = self._lookup(path)
            if isinstance(node, Inode):
                raise failure(errno.EEXIST, path)
            if node is None:
                self._make(folder, name, Folder(), path)

    def remove_directory(self, path: str) -> None:
        with self.call("remove_directory", path):
            folder, name, _ = self._lookup(path)
            if self._folder(path).visible:
                raise failure(errno.ENOTEMPTY, path)
            self._name(folder, (name, None))

    def sync_directory(self, path: str) -> None:
        with self.call("sync_directory", path):
            folder = self._folder(path)
            if self.sync_fails():
                # Names are in the journal; unlike data they are not dropped by a failed sync.
                raise failure(errno.EIO, path)
            mine = [naming for naming in self._pending if naming.folder is folder]
            self._pending = [naming for naming in self._pending if naming.folder is not folder]
            for naming in mine:
                apply_names(folder.durable, naming)

    def uncache(self, path: str) -> None:
        """Do nothing: only durable pages would be dropped."""

    def space(self) -> int:
        with self.call("space", ""):
            return max(0, self.free_bytes())

    def lock(self, path: str, holder: str) -> SimLock:
        with self.call("lock", path):
            if self.holder is not None:
                raise Held(f"the disk is in use by {self.holder}; stop that process first")
            folder, name, node = self._lookup(path)
            if node is None:
                node = self._make(folder, name, Inode(), path)
            # The note is written as on a real disk, so a crash may damage it.
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

    # Ending the machine or the process. This disk and its handles are dead afterwards, but these
    # methods may be called again, to draw another outcome of the same moment.

    @property
    def is_dead(self) -> bool:
        """Whether the power was cut, or the process killed."""
        return self._dead

    def stop(self) -> None:
        """Let no storage call succeed any more, as if the process were killed now."""
        self._dead = True

    def crash(self, rand: Rand, faults: Faults | None = None) -> SimDisk:
        """Cut the power. Return the disk that the next start finds."""
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
        """Kill -9. Return a disk with the whole page cache, without locks and handles."""
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

    # Inspection and damage. None of this is a storage call.

    def data(self, path: str) -> bytes:
        """Return the visible bytes of a file."""
        return bytes(self._inode(path).visible)

    def files(self) -> Sequence[str]:
        """Return the paths of all files, sorted."""
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
        """Damage a file. Return False when its contents did not change.

        `swap_page` exchanges a page with the file `other`; `cut` keeps `size` bytes;
        `append_garbage` adds `data`; `replace` writes it instead of the contents. Missing arguments
        are drawn. The last three make all pending bytes of the file durable.
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
            source = rand.randrange(0, len(other.visible), page_bytes)
            inode.patch(position, bytes(other.visible[source : source + page_bytes]))
            if kind == "swap_page":
                other.patch(source, page)

    # Every storage call runs in `with self.call(...)`: it is counted and traced, and may fail.
    # A power cut strikes at its entry or its exit.

    def call(self, operation: str, path: str, size: int = 0) -> SimDisk:
        if self._dead:
            raise PowerCut(f"{operation} {path} after the end of the machine")
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
        """Count a sync. Return True if it must fail."""
        self.syncs += 1
        if self.syncs != self.faults.fail_sync_at:
            return False
        self.fired["fail_sync"] += 1
        return True

    def pieces(self, data: bytes) -> Sequence[bytes]:
        """Split a write as the kernel does; a power cut may keep only a part of it."""
        if self._cutting and self.rand.random() < 0.5:
            data = data[: self.rand.randint(0, len(data))]
        if not self.faults.short_writes or len(data) < 3 or self.rand.random() < 0.5:
            return (data,) if data else ()
        self.fired["short_write"] += 1
        middle = self.rand.randrange(2, len(data))
        first = self.rand.randrange(1, middle)
        return data[:first], data[first:middle], data[middle:]

    def free_bytes(self) -> int:
        """Return the free space; negative when the capacity was lowered below the used bytes."""
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

    def _lookup(self, path: str) -> tuple[Folder, str, Inode | Folder | None]:
        parent, _, name = path.rpartition("/")
        folder = self._folder(parent)
        return folder, name, folder.visible.get(name)

    def _file(self, node: Inode | Folder | None, path: str) -> Inode:
        if not isinstance(node, Inode):
            raise failure(errno.EISDIR if node else errno.ENOENT, path)
        return node

    def _inode(self, path: str) -> Inode:
        return self._file(self._lookup(path)[2], path)


def walk(folder: Folder, prefix: str = "") -> Iterator[tuple[str, Inode]]:
    for name, node in folder.visible.items():
        if isinstance(node, Inode):
            yield f"{prefix}{name}", node
        else:
            yield from walk(node, f"{prefix}{name}/")


# What survives a power cut. Probabilities are drawn per file, so that "everything" and "nothing"
# occur as often as a mixture.


def cut_power(folder: Folder, model: Model, rand: Rand, fired: Counter[str]) -> None:
    """Make the durable contents and the surviving changes the visible contents."""
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
    """Yield the part of a write before a random sector boundary inside it, if any."""
    borders = sector_borders(change)
    if change.data is not None and borders:
        fired["torn_write"] += 1
        yield Change(change.position, change.data[: rand.choice(borders)])


def spoiled(change: Change, rand: Rand, fired: Counter[str]) -> Iterator[Change]:
    """Yield a write with consecutive sectors, perhaps all, replaced by garbage or zeros."""
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
    """Return the positions in the data of a write at which a disk sector ends."""
    first = SECTOR_BYTES - change.position % SECTOR_BYTES
    return range(first, len(change.data or b""), SECTOR_BYTES)
