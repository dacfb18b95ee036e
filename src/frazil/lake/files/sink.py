"""ArrowSink: buffered writes of Arrow to a file."""

from __future__ import annotations

from frazil.lake.files.object_store import NewFile

WRITE_BYTES = 1024 * 1024
"""Buffer size. Arrow writes each page and each page header separately."""


class ArrowSink:
    """A file-like object for Arrow that combines many small writes into few large ones.

    After a failed write it drops further writes silently: Arrow still closes its writer, and the
    first error is the one to report.
    """

    closed = False

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self._buffer: list[bytes] = []
        self._buffer_bytes = 0
        self._position = 0
        self._has_failed = False

    def write(self, data: bytes) -> int:
        self._buffer.append(data)
        self._buffer_bytes += len(data)
        self._position += len(data)
        if self._buffer_bytes >= WRITE_BYTES:
            self.drain()
        return len(data)

    def drain(self) -> None:
        """Append all buffered bytes to the file."""
        buffers, self._buffer, self._buffer_bytes = self._buffer, [], 0
        if buffers and not self._has_failed:
            try:
                self._file.append(buffers)
            except OSError:
                self._has_failed = True
                raise

    def tell(self) -> int:
        return self._position

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True
