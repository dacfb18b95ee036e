"""The Disk protocol: the real disk and the simulated one behave the same."""

from __future__ import annotations

import errno
import mmap
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import (
    Disk,
    File,
    Lock,
    RealDisk,
    make_directories,
    read_checkpoint,
    write_checkpoint,
)
from frazil.errors import Corrupt, Held
from tests.sim.disk import Faults, SimDisk


@pytest.fixture(params=["real", "sim_ext4", "sim_weak", "sim_short_writes"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    made: dict[str, Callable[[], Disk]] = {
        "real": lambda: RealDisk(tmp_path),
        "sim_ext4": lambda: SimDisk(model="ext4"),
        "sim_weak": lambda: SimDisk(model="weak"),
        "sim_short_writes": lambda: SimDisk(faults=Faults(short_writes=True)),
    }
    return made[request.param]()


def put(disk: Disk, path: str, *buffers: bytes) -> None:
    file = disk.open(path, "create")
    file.append(buffers)
    file.close()


def get(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    data = file.read(0, file.size())
    file.close()
    return data


def test_creating_an_existing_file_fails(disk: Disk) -> None:
    """Its bytes stay."""
    put(disk, "a", b"one")
    with pytest.raises(FileExistsError):
        disk.open("a", "create")
    assert get(disk, "a") == b"one"


@pytest.mark.parametrize("path", ["a", "folder/a"])
def test_opening_a_missing_file_fails(disk: Disk, path: str) -> None:
    """Nothing is created."""
    for call in (
        lambda: disk.open(path),
        lambda: disk.open(path, "edit"),
        lambda: disk.unlink(path),
        lambda: disk.rename(path, "b"),
        lambda: disk.sync_directory(path),
        lambda: disk.open("no/such/file", "create"),
        lambda: disk.make_directory("no/folder"),
    ):
        with pytest.raises(FileNotFoundError):
            call()
    assert disk.list("") == []


def test_rename_into_a_missing_folder_is_refused(disk: Disk) -> None:
    """The file keeps its name."""
    put(disk, "a", b"one")
    with pytest.raises(FileNotFoundError):
        disk.rename("a", "no/b")
    assert disk.list("") == ["a"]


@pytest.mark.parametrize(
    "buffers",
    [
        [],
        [b""],
        [b"", b"one", b"", b"two", b""],
        [b"x" * 70_000, b"y"],
        [bytes([number % 251]) * (number % 3) for number in range(1024)],
        [bytes([number % 251]) * (number % 3) for number in range(1025)],
        [b"z"] * 5000,
    ],
)
def test_append_adds_all_buffers_in_order(disk: Disk, buffers: list[bytes]) -> None:
    """Any number of buffers, including empty ones."""
    file = disk.open("a", "create")
    file.append([b"before"])
    file.append(buffers)
    assert file.size() == 6 + sum(map(len, buffers))
    file.append([b"after"])
    assert file.read(0, file.size()) == b"before" + b"".join(buffers) + b"after"
    file.close()
    assert get(disk, "a") == b"before" + b"".join(buffers) + b"after"


@pytest.mark.parametrize(
    ("position", "length", "expected"),
    [
        (0, 10, b"0123456789"),
        (3, 4, b"3456"),
        (3, 0, b""),
        (8, 10, b"89"),
        (10, 1, b""),
        (99, 5, b""),
    ],
)
def test_read_is_short_only_at_the_end(
    disk: Disk, position: int, length: int, expected: bytes
) -> None:
    """Any range may be requested."""
    put(disk, "a", b"0123456789")
    file = disk.open("a")
    assert file.read(position, length) == expected
    file.close()


def test_invalid_calls_raise(disk: Disk) -> None:
    """A negative position, a read-only or a closed handle."""
    file = disk.open("a", "create")
    file.append([b"one"])
    reader = disk.open("a")
    closed = disk.open("a")
    closed.close()
    closed.close()
    for call in (
        lambda: file.read(-1, 1),
        lambda: file.write_at(-1, b"x"),
        lambda: file.truncate(-1),
        lambda: reader.append([b"x"]),
        lambda: reader.write_at(0, b"x"),
        lambda: reader.truncate(0),
        lambda: closed.read(0, 1),
        lambda: closed.size(),
        lambda: closed.map(),
        lambda: closed.sync(),
    ):
        # Python itself refuses to sync a closed descriptor, with a ValueError.
        with pytest.raises((OSError, ValueError)):
            call()
    assert file.read(0, 9) == b"one"
    file.close()
    reader.close()


def test_write_at_overwrites_in_place(disk: Disk) -> None:
    """The size stays, and appends still go to the end."""
    file = disk.open("a", "create")
    file.append([b"0123456789"])
    file.write_at(3, b"xyz")
    assert file.size() == 10
    file.append([b"!"])
    assert file.read(0, 99) == b"012xyz6789!"
    file.close()


def test_write_at_after_the_end_fills_with_zeros(disk: Disk) -> None:
    """The next append follows the written bytes."""
    file = disk.open("a", "create")
    file.append([b"ab"])
    file.write_at(4, b"ef")
    file.append([b"g"])
    assert file.read(0, 99) == b"ab\0\0efg"
    file.close()


def test_append_from_sets_the_position_of_the_next_append(disk: Disk) -> None:
    """A reused file is overwritten from there; bytes after it stay."""
    file = disk.open("a", "create")
    file.append([b"0123456789"])
    file.append_from(2)
    file.append([b"ab", b"c"])
    file.append([b"d"])
    assert file.read(0, 100) == b"01abcd6789"
    file.append([b"efghijk"])
    assert file.read(0, 100) == b"01abcdefghijk"
    file.close()


def test_append_follows_a_truncate(disk: Disk) -> None:
    """New bytes start at the cut."""
    file = disk.open("a", "create")
    file.append([b"0123456789"])
    file.truncate(4)
    assert file.size() == 4
    file.append([b"xy"])
    file.sync()
    assert file.read(0, 99) == b"0123xy"
    file.close()


def test_settled_bytes_read_the_same(disk: Disk) -> None:
    """If no sync failed, the disk has what the cache showed."""
    file = disk.open("a", "create")
    file.append([b"0123456789" * 1000])
    file.truncate(9000)
    file.settle()
    assert (file.size(), file.read(0, 10_000)) == (9000, b"0123456789" * 900)
    file.append([b"!"])
    assert file.read(8999, 9) == b"9!"
    file.close()


def test_memoryviews_are_appended_like_bytes(disk: Disk) -> None:
    """The caller may reuse the buffer afterwards."""
    buffer = bytearray(b"0123456789")
    file = disk.open("a", "create")
    file.append([memoryview(buffer)[2:4], b"-", memoryview(buffer)[8:]])
    buffer[:] = bytes(10)
    assert file.read(0, 99) == b"23-89"
    file.close()


def test_a_second_handle_sees_unsynced_bytes(disk: Disk) -> None:
    """An edit handle starts at the current end."""
    writer = disk.open("a", "create")
    reader = disk.open("a")
    writer.append([b"one"])
    assert (reader.size(), reader.read(0, 9)) == (3, b"one")
    writer.close()
    editor = disk.open("a", "edit")
    editor.append([b"two"])
    assert reader.read(0, 9) == b"onetwo"
    editor.close()
    reader.close()


@pytest.mark.parametrize("data", [b"", b"one", b"0123456789" * 5000])
def test_mapped_bytes_outlive_handle_and_name(disk: Disk, data: bytes) -> None:
    """They are read-only, and are loaded again after a release."""
    put(disk, "a", data)
    file = disk.open("a")
    mapped = file.map()
    file.close()
    assert bytes(mapped.view) == data
    mapped.release()
    assert bytes(mapped.view) == data
    disk.rename("a", "b")
    disk.unlink("b")
    mapped.release()
    assert bytes(mapped.view) == data
    with pytest.raises((TypeError, IndexError)):
        mapped.view[0] = 1


def test_rename_replaces_the_target(disk: Disk) -> None:
    """The old name is free; old handles read old bytes."""
    put(disk, "a", b"new")
    put(disk, "b", b"old")
    old = disk.open("b")
    disk.rename("a", "b")
    assert disk.list("") == ["b"]
    assert get(disk, "b") == b"new"
    assert old.read(0, 9) == b"old"
    old.close()


def test_rename_to_itself_changes_nothing(disk: Disk) -> None:
    put(disk, "a", b"one")
    disk.rename("a", "a")
    assert get(disk, "a") == b"one"


def test_rename_moves_a_folder_with_its_files(disk: Disk) -> None:
    """A folder that is not empty is not replaced."""
    make_directories(disk, "a/inner")
    put(disk, "a/inner/file", b"one")
    disk.rename("a", "b")
    assert disk.list("") == ["b"]
    assert get(disk, "b/inner/file") == b"one"
    disk.make_directory("c")
    with pytest.raises(OSError) as caught:
        disk.rename("c", "b")
    assert caught.value.errno == errno.ENOTEMPTY
    disk.rename("b/inner/file", "c/file")
    assert (disk.list("b/inner"), disk.list("c")) == ([], ["file"])


def test_unlinked_files_stay_readable_while_open(disk: Disk) -> None:
    put(disk, "a", b"one")
    file = disk.open("a")
    disk.unlink("a")
    assert disk.list("") == []
    put(disk, "a", b"two")
    assert file.read(0, 9) == b"one"
    assert file.size() == 3
    file.close()
    assert get(disk, "a") == b"two"


def test_list_is_sorted_and_empty_for_a_missing_folder(disk: Disk) -> None:
    """Folders are listed, too, but not their contents."""
    for name in ("b", "a", "00000000000000000010.log", "00000000000000000009.log"):
        put(disk, name, b"")
    make_directories(disk, "z/inner")
    assert disk.list("") == [
        "00000000000000000009.log",
        "00000000000000000010.log",
        "a",
        "b",
        "z",
    ]
    assert disk.list("missing") == disk.list("missing/inner") == []
    with pytest.raises(NotADirectoryError):
        disk.list("a")


def test_make_directory_is_idempotent(disk: Disk) -> None:
    """A file of that name is an error."""
    disk.make_directory("folder")
    put(disk, "folder/a", b"one")
    disk.make_directory("folder")
    assert disk.list("folder") == ["a"]
    with pytest.raises(FileExistsError):
        disk.make_directory("folder/a")
    with pytest.raises(NotADirectoryError):
        disk.open("folder/a/b", "create")


def test_make_directories_creates_parents(disk: Disk) -> None:
    make_directories(disk, "a/b")
    make_directories(disk, "a/b/c/d")
    make_directories(disk, "a/b/c/d")
    assert (disk.list(""), disk.list("a"), disk.list("a/b/c")) == (["a"], ["b"], ["d"])
    disk.sync_directory("a/b/c/d")


def test_the_lock_excludes_and_names_its_holder(disk: Disk) -> None:
    """It is free again after a close."""
    first: Lock = disk.lock("lock", "the first node")
    with pytest.raises(Held, match="the first node"):
        disk.lock("lock", "the second node")
    with pytest.raises(Held, match="the first node"):
        disk.lock("lock", "the third node")
    first.close()
    first.close()
    second = disk.lock("lock", "the second node")
    with pytest.raises(Held, match="the second node"):
        disk.lock("lock", "the first node")
    second.close()
    assert disk.list("") == ["lock"]


def test_space_is_positive(disk: Disk) -> None:
    assert disk.space() > 0


@pytest.mark.parametrize("path", ["state", "folder/state"])
def test_checkpoint_round_trip(disk: Disk, path: str) -> None:
    """None before the first write; no scratch file is left."""
    disk.make_directory("folder")
    assert read_checkpoint(disk, path, b"TEST", 1, "hint") is None
    for body in (b"", b"one", bytes(10_000), b"last"):
        write_checkpoint(disk, path, b"TEST", 1, body)
        assert read_checkpoint(disk, path, b"TEST", 1, "hint") == body
    assert disk.list(path.rpartition("/")[0]).count("state") == 1
    assert "state.tmp" not in disk.list(path.rpartition("/")[0])


def test_a_leftover_scratch_file_does_not_stop_a_write(disk: Disk) -> None:
    put(disk, "state.tmp", b"half")
    write_checkpoint(disk, "state", b"TEST", 1, b"whole")
    assert read_checkpoint(disk, "state", b"TEST", 1, "hint") == b"whole"
    assert disk.list("") == ["state"]


def is_refused(disk: Disk, kind: bytes = b"TEST", version: int = 1) -> bool:
    try:
        return read_checkpoint(disk, "state", kind, version, "hint") is None
    except Corrupt as error:
        assert error.path == "state" and error.hint == "hint"
        return True


def test_a_damaged_checkpoint_is_refused(disk: Disk) -> None:
    """A flip in any byte, a cut at any byte, or extra bytes."""
    write_checkpoint(disk, "state", b"TEST", 1, b"the body of the state")
    assert is_refused(disk, kind=b"ELSE") and is_refused(disk, version=2)
    file = disk.open("state", "edit")
    whole = file.read(0, file.size())
    for position in range(len(whole)):
        for mask in (0x01, 0x80, 0xFF):
            file.write_at(position, bytes([whole[position] ^ mask]))
            assert is_refused(disk), f"byte {position} changed by {mask:#x}"
        file.write_at(position, whole[position : position + 1])
    assert not is_refused(disk)
    for size in range(len(whole)):
        file.truncate(size)
        assert is_refused(disk), f"cut to {size} bytes"
        file.append([whole[size:]])
    assert not is_refused(disk)
    file.append([b"\0"])
    assert is_refused(disk)
    file.close()


PATHS = st.sampled_from(["a", "b", "f", "f/a", "f/b", "f/g", "f/g/a"])
SIZES = st.integers(0, 12)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "unlink", "list", "make_directory", "read"]), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.just("append"), PATHS, st.lists(st.binary(max_size=4), max_size=3)),
    st.tuples(st.just("write_at"), PATHS, SIZES, st.binary(min_size=1, max_size=4)),
    st.tuples(st.just("truncate"), PATHS, SIZES),
    st.tuples(st.sampled_from(["sync", "settle", "sync_directory"]), PATHS),
)
ON_THE_DISK = {"unlink", "list", "make_directory", "sync_directory", "rename"}


def outcome(disk: Disk, step: tuple[object, ...]) -> object:
    """What a caller gets to see of one step: the answer or the error."""
    name, path, *rest = step
    assert isinstance(name, str) and isinstance(path, str)
    try:
        if name in ON_THE_DISK:
            return getattr(disk, name)(path, *rest)
        if name == "create":
            disk.open(path, "create").close()
            return None
        file: File = disk.open(path, "edit")
        try:
            if name != "read":
                getattr(file, name)(*rest)
            return file.size(), file.read(0, 99)
        finally:
            file.close()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_both_disks_agree_on_any_sequence_of_calls(steps: list[tuple[object, ...]]) -> None:
    """The same results and the same errors."""
    with tempfile.TemporaryDirectory() as folder:
        real, sim = RealDisk(folder), SimDisk(faults=Faults(short_writes=True))
        for step in steps:
            assert outcome(sim, step) == outcome(real, step), step


@pytest.mark.parametrize("size", [0, 5, 4096, 3 * 1024 * 1024 + 777])
@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("is_cached", [True, False])
def test_a_synced_append_adds_all_bytes(
    disk: Disk, size: int, is_aligned: bool, is_cached: bool
) -> None:
    """Whatever its length and address, also after other bytes."""
    memory = mmap.mmap(-1, size + 4096)
    memory[:] = (bytes(range(251)) * (len(memory) // 251 + 1))[: len(memory)]
    begin = 0 if is_aligned else 3
    data = memoryview(memory)[begin : begin + size]
    file = disk.open("a", "create")
    file.append_synced(data, is_cached=is_cached)
    file.append_synced(data, is_cached=is_cached)
    file.append([b"end"])
    file.close()
    assert get(disk, "a") == bytes(data) * 2 + b"end"


def test_a_file_that_is_not_cached_reads_the_same(disk: Disk) -> None:
    """One that is gone is no error."""
    put(disk, "a", b"one")
    disk.uncache("a")
    assert get(disk, "a") == b"one"
    disk.uncache("b")
