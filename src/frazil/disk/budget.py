"""How much room the log may take: plain accounting, a soft cap and a hard cap.

Above the soft cap old data is released; at the hard cap appends are refused. The soft cap lies
one segment below the hard cap, so that releasing starts before refusing does. A refused append is
remembered as wanted room, so that whoever is refused finds room when it comes back.
"""

from __future__ import annotations

from frazil.errors import Overloaded
from frazil.metrics import Counter, Gauge

USED = Gauge("frazil.disk.budget.bytes", "Bytes the log takes on disk.")
REFUSED = Counter("frazil.disk.budget.refusals", "Appends refused because the log is full.")


class Budget:
    """Bytes used against two caps. Moved by the writer thread, read by any."""

    def __init__(self, *, hard_bytes_max: int, segment_bytes_max: int) -> None:
        assert hard_bytes_max > segment_bytes_max
        self.hard_bytes_max = hard_bytes_max
        self.soft_bytes_max = hard_bytes_max - segment_bytes_max
        self.used_bytes = 0
        self._wanted_bytes = 0
        self._is_disk_full = False

    def admit(self, length: int) -> None:
        """Let `length` more bytes in, or raise `Overloaded`. Takes nothing by itself."""
        if self.used_bytes + length > self.hard_bytes_max:
            self._wanted_bytes = max(self._wanted_bytes, length)
            REFUSED.add()
            raise Overloaded(
                f"the log holds {self.used_bytes} of {self.hard_bytes_max} bytes; it makes room "
                "when its readers catch up: send again later, or raise log.disk_bytes_max"
            )
        if length >= self._wanted_bytes:  # a smaller one that fits does not help the larger one
            self._wanted_bytes = 0

    def take(self, length: int) -> None:
        """Count bytes written; negative for bytes given back."""
        self.used_bytes += length
        if length:
            self._is_disk_full = False
        assert self.used_bytes >= 0
        USED.set(self.used_bytes)

    def note_full(self) -> None:
        """The disk itself has no room, whatever the caps say; true until something fits or goes."""
        self._is_disk_full = True

    @property
    def is_full(self) -> bool:
        """Was the last one who came refused, and is there still no room for him?"""
        return self._is_disk_full or self.used_bytes + max(self._wanted_bytes, 1) > (
            self.hard_bytes_max
        )

    @property
    def is_tight(self) -> bool:
        """Should everything that may go, go now?"""
        return (
            self._is_disk_full
            or self.used_bytes > self.soft_bytes_max
            or self.used_bytes + self._wanted_bytes > self.hard_bytes_max
        )
