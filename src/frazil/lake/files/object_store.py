"""FileStore: where the files of a table are written, a local folder or a bucket.

Both give the same guarantee: after the file and its directory are synced, the whole file is
durable. Before that it may exist in part or not at all, and no table refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from frazil.disk import Buffer, Mode, RealDisk

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

LOCAL = frozenset({"", "file"})


class NewFile(Protocol):
    """A file being written. `frazil.disk.File` implements it."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """Append all bytes, or raise."""

    def sync(self) -> None:
        """Return once every byte is durable. No append may follow."""

    def close(self) -> None:
        """Close the file. Bytes that were not synced may be lost."""


class FileStore(Protocol):
    """Paths are relative to the location of a table. `frazil.disk.Disk` implements it."""

    def open(self, path: str, mode: Mode = "read") -> NewFile:
        """Create a file; it must not exist."""

    def unlink(self, path: str) -> None:
        """Delete a file."""

    def list(self, path: str) -> list[str]:
        """Return the names in a folder."""

    def make_directory(self, path: str) -> None:
        """Create a folder unless it exists."""

    def sync_directory(self, path: str) -> None:
        """Make the names in a folder durable."""


def open_store(location: str, io: FileIO | None) -> FileStore:
    """Return the store at a table's location. A bucket needs `io`."""
    parts = urlsplit(location)
    if parts.scheme in LOCAL:
        return RealDisk(unquote(parts.path))
    assert io is not None, f"{location} is not a local folder"
    return ObjectStore(location, io)


class ObjectStore:
    """A bucket: an object exists as a whole or not at all."""

    def __init__(self, location: str, io: FileIO) -> None:
        self._location = location.rstrip("/")
        self._io = io

    def open(self, path: str, mode: Mode = "read") -> NewFile:
        assert mode == "create", f"a lake task only creates files, but the mode is {mode}"
        return _NewObject(self._io.new_output(f"{self._location}/{path}").create())

    def unlink(self, path: str) -> None:
        self._io.delete(f"{self._location}/{path}")

    def list(self, path: str) -> list[str]:
        """Return no names: a bucket has no folders that would have to be created."""
        return []

    def make_directory(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...


class _NewObject:
    """An object that becomes visible, and durable, when its upload completes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def append(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            self._stream.write(buffer)

    def sync(self) -> None:
        self._stream.close()

    def close(self) -> None:
        """Complete the upload: Arrow cannot abort it. No table refers to a partial object."""
        self._stream.close()
