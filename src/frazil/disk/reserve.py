"""DiskReserve: free space that is kept for one flush of the lake, whatever fills the disk.

free space          what gives way
two reserves        nothing
less                what others have, too: hot files and log segments that are in the lake; and
                    the lake flushes earlier, so that there are more of them
less than one       new requests are refused; the flush may use the reserve
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.disk.files import Disk
from frazil.metrics import Gauge

KEPT_RESERVES = 2
"""Derived data gives way before the reserve itself is used."""

FREE = Gauge("frazil.disk.free.bytes", "Free bytes on the disk of the data folder.")


@dataclass(frozen=True, slots=True)
class DiskReserve:
    """Looks at the disk each time: other programs use it, too."""

    disk: Disk
    size_bytes: int
    """0 if nothing is reserved; then the disk is never looked at."""

    def missing_bytes(self, added_bytes: int = 0) -> int:
        """Return how many bytes derived data should free now, or before it adds some; 0 if there is
        enough space."""
        if self.size_bytes == 0:
            return 0
        return max(0, KEPT_RESERVES * self.size_bytes + added_bytes - self._free_bytes())

    def is_used(self) -> bool:
        """Return whether less than the reserve is free."""
        return self.size_bytes > 0 and self._free_bytes() < self.size_bytes

    def _free_bytes(self) -> int:
        free = self.disk.space()
        FREE.set(free)
        return free
