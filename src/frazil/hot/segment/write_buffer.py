"""WriteBuffer: memory in which a segment file is put together before it is written."""

from __future__ import annotations

import mmap

from frazil.model import MiB

SIZE_UNIT = 8 * MiB


class WriteBuffer:
    """Reused by the next file: memory that is new to a process costs more than what is done in it.
    Begins at a page, as writes without the page cache need it. Owned by the holder of the sealer's
    lock."""

    def __init__(self) -> None:
        self._memory: mmap.mmap | None = None

    def take(self, size: int) -> memoryview:
        """Return `size` bytes of any content. Valid until the next call."""
        if self._memory is None or len(self._memory) < size:
            self._memory = mmap.mmap(-1, -(-size // SIZE_UNIT) * SIZE_UNIT)
        return memoryview(self._memory)[:size]

    def release(self) -> None:
        """Give the memory back; the next file takes it again."""
        self._memory = None
