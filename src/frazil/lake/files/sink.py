"""Where Arrow writes to: a file of a disk."""

from __future__ import annotations

from frazil.lake.files.object_store import NewFile

WRITE_BYTES = 1024 * 1024
"""Arrow writes each page, and the header in front of it, for itself."""


class ArrowSink:
    """A file of a disk, as Arrow writes to it: many small pieces become few large writes.

    Once a write has failed it takes no more, in silence: Arrow goes on to close what it has
    opened, and the first error is the one to be heard of.
    """

    closed = False

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._position = 0
        self._has_failed = False

    def write(self, data: bytes) -> int:
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._position += len(data)
        if self._waiting_bytes >= WRITE_BYTES:
            self.drain()
        return len(data)

    def drain(self) -> None:
        """Hand everything to the disk."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting and not self._has_failed:
            try:
                self._file.append(waiting)
            except OSError:
                self._has_failed = True
                raise

    def tell(self) -> int:
        return self._position

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True
