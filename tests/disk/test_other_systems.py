"""The disk without the calls that only Linux has. A sync stays a sync."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from frazil.disk import RealDisk, descriptor_path, memory_file

FULL_SYNC = 51
"""The number of F_FULLFSYNC on macOS."""


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The syncs that macOS would be asked for."""
    calls: list[str] = []
    real = fcntl.fcntl

    def full_sync(descriptor: int, command: int, *arguments: int) -> int:
        if command != FULL_SYNC:
            return int(real(descriptor, command, *arguments))
        calls.append("full")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL_SYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("plain"))
    for name in ("fdatasync", "posix_fadvise", "O_DIRECT", "memfd_create"):
        monkeypatch.delattr(os, name)
    return calls


def test_every_sync_reaches_the_drive(tmp_path: Path, synced: list[str]) -> None:
    """`fsync` of macOS leaves bytes in the cache of the drive."""
    file = RealDisk(tmp_path).open("a", "create")
    file.append([b"one"])
    file.sync()
    file.settle()
    file.append_synced(memoryview(bytes(5000)), is_cached=False)
    file.close()
    assert synced == ["full"] * 4  # the last one in two portions
    RealDisk(tmp_path).uncache("a")
    assert (tmp_path / "a").read_bytes() == b"one" + bytes(5000)


@pytest.mark.parametrize(("code", "expected"), [(errno.ENOTSUP, ["plain"]), (errno.EIO, None)])
def test_a_file_system_without_it_gets_a_plain_sync(
    tmp_path: Path,
    synced: list[str],
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    expected: list[str] | None,
) -> None:
    """A sync that failed for another reason is not tried again."""

    def refuse(*_: int) -> int:
        raise OSError(code, "refused")

    file = RealDisk(tmp_path).open("a", "create")
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    if expected is None:
        with pytest.raises(OSError, match="refused"):
            file.sync()
    else:
        file.sync()
        assert synced == expected
    file.close()


@pytest.mark.usefixtures("synced")
def test_a_memory_file_is_a_file_without_a_name() -> None:
    descriptor = memory_file("test")
    try:
        Path(descriptor_path(descriptor)).write_bytes(b"rows")
        assert os.pread(descriptor, 9, 0) == b"rows"
        assert os.fstat(descriptor).st_nlink == 0
    finally:
        os.close(descriptor)
