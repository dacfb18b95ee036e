"""TopicChanges: tells other processes that a topic was created, changed or deleted.

`log/.changes` is a number that the log's owner increases after each change, in place and without a
sync. An observer that finds another number than before looks at all topics again.
"""

from __future__ import annotations

import struct

from frazil.disk import Disk, File

PATH = "log/.changes"
NUMBER = struct.Struct("<Q")


class TopicChanges:
    """The owner's end. Owned by the writer thread."""

    def __init__(self, disk: Disk) -> None:
        """Open or create the file. Counts as a change: the last owner may have died before it
        told of one."""
        folder, _, name = PATH.rpartition("/")
        self._file = disk.open(PATH, "edit" if name in disk.list(folder) else "create")
        data = self._file.read(0, NUMBER.size)
        self._number: int = NUMBER.unpack(data)[0] if len(data) == NUMBER.size else 0
        self.note()

    def note(self) -> None:
        """Tell of a change that is durable."""
        self._number = (self._number + 1) % 2**64
        self._file.write_at(0, NUMBER.pack(self._number))

    def close(self) -> None:
        self._file.close()


class TopicChangesReader:
    """An observer's end. Owned by the holder of the observer's lock."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: File | None = None
        self._seen: bytes | None = None

    def has_changed(self) -> bool:
        """Return whether topics may have changed since the last call."""
        if self._file is None:
            try:
                self._file = self._disk.open(PATH)
            except FileNotFoundError:
                return True  # an earlier release owns the log
        number = self._file.read(0, NUMBER.size)
        has_changed = number != self._seen
        self._seen = number
        return has_changed

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
