"""LineLog: lines that are appended and synced one by one, in a file and the one before it.

    <path>      at most `bytes_max`, and the line that exceeds it
    <old path>  the file before, once there was one

A line that a crash has cut stays as it is: readers skip what they cannot decode.
"""

from __future__ import annotations

from frazil.disk.files import Disk, make_directories


class LineLog:
    """Owned by one thread at a time. All methods raise `OSError` as the disk does."""

    def __init__(self, disk: Disk, path: str, old_path: str, bytes_max: int) -> None:
        self._disk = disk
        self._folder, _, self._name = path.rpartition("/")
        self._path = path
        self._old_path = old_path
        self._bytes_max = bytes_max

    def append(self, line: bytes) -> None:
        """Append a line, given without its end. Durable on return."""
        make_directories(self._disk, self._folder)
        line += b"\n"
        is_new = self._name not in self._disk.list(self._folder)
        file = self._disk.open(self._path, "create" if is_new else "edit")
        try:
            size = file.size()
            if size and file.read(size - 1, 1) != b"\n":
                line = b"\n" + line  # after a line that a crash has cut
            file.append([line])
            file.sync()
        finally:
            file.close()
        is_full = size + len(line) > self._bytes_max
        if is_full:
            self._disk.rename(self._path, self._old_path)
        if is_new or is_full:
            self._disk.sync_directory(self._folder)

    def lines(self) -> list[bytes]:
        """Return all lines, the oldest first."""
        return [line for path in (self._old_path, self._path) for line in self._read(path)]

    def _read(self, path: str) -> list[bytes]:
        try:
            file = self._disk.open(path)
        except FileNotFoundError:
            return []
        try:
            return file.read(0, file.size()).splitlines()
        finally:
            file.close()
