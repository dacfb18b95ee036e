"""WriteBuffer: memory in which files are put together."""

from __future__ import annotations

import mmap

from frazil.model import MiB

BUFFER_UNIT = 8 * MiB
"""Buffers grow in steps of this size."""


class WriteBuffer:
    """Memory in which a file is put together for `append_synced`. The next file uses it again:
    memory that is new to a process costs more than what is done in it. Owned by one thread."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None

    def take(self, size: int) -> memoryview:
        """Return `size` bytes of any content, from the begin of a page. Valid until the next
        call."""
        if self._memory is None or len(self._memory) < size:
            self._memory = mmap.mmap(-1, -(-size // BUFFER_UNIT) * BUFFER_UNIT)
        return memoryview(self._memory)[:size]

    def release(self) -> None:
        """Give the memory back; the next file takes it again."""
        self._memory = None
