"""MappedPages: bounds the memory of mapped row files.

Pages of a mapped file that were read count as memory of the process until they are released; they
stay in the page cache, so reading them again costs a page fault, not a read of the disk. Nobody can
ask the kernel which pages of a mapping are resident, so the bytes that were touched are counted,
rather too many than too few.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

import numpy as np

from frazil.disk import Mapped
from frazil.model import KiB
from frazil.tables.keys.kernels import Longs
from frazil.tables.rows.row_segment import RowSegment, base_rows

FAULT_BYTES = 64 * KiB
"""The kernel maps so much of the page cache around a page that is read. Where it keeps more in one
piece it would map that, so files are written in pieces of this size (`File.append_synced`)."""


class MappedPages:
    """Releases the files that were not used for the longest time. Any thread may use it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._touched: WeakKeyDictionary[Mapped, int] = WeakKeyDictionary()
        """Bytes by file, the least recently used first. A file that nobody has is unmapped."""
        self._bytes = 0

    def used(self, mapped: Mapped | None, size: int) -> None:
        """Note that some bytes of a file are read; None is memory that is not mapped."""
        if mapped is None:
            return
        released: list[Mapped] = []
        with self._lock:
            before = self._touched.pop(mapped, 0)
            after = min(before + size, len(mapped.view))
            self._touched[mapped] = after
            self._bytes += after - before
            if self._bytes > self._bytes_max:
                released = self._oldest()
        for each in released:
            each.release()

    def _oldest(self) -> list[Mapped]:
        """Take out the files to be released. The lock is held."""
        self._bytes = sum(self._touched.values())  # some may be unmapped
        released = []
        for mapped in list(self._touched):
            if self._bytes <= self._bytes_max:
                break
            self._bytes -= self._touched.pop(mapped)
            released.append(mapped)
        return released

    @property
    def bytes(self) -> int:
        """Resident at most."""
        with self._lock:
            return sum(self._touched.values())

    def used_segment(self, segment: RowSegment) -> None:
        """Note that all of a segment is read."""
        if segment.mapped is not None:
            self.used(segment.mapped, len(segment.mapped.view))

    def used_rows(self, segments: tuple[RowSegment, ...], rows: Longs, columns: int) -> None:
        """Note that columns of single row versions are read."""
        if not len(rows) or not segments:
            return
        owners = np.searchsorted(base_rows(segments), rows, side="right") - 1
        counts = np.bincount(np.maximum(owners, 0), minlength=len(segments))
        for number in np.flatnonzero(counts).tolist():
            size = int(counts[number]) * columns * FAULT_BYTES
            self.used(segments[number].mapped, size)

    def forget(self, mapped: Mapped) -> None:
        """Release a file that is not used any more."""
        with self._lock:
            self._bytes -= self._touched.pop(mapped, 0)
        mapped.release()

    def release_all(self) -> None:
        """Release everything, as when there is nothing to do."""
        with self._lock:
            touched = list(self._touched)
            self._touched.clear()
            self._bytes = 0
        for mapped in touched:
            mapped.release()
