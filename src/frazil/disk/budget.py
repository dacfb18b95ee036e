"""Budget: how much disk space the log may use.

Above the soft cap released segments are removed; at the hard cap appends are refused. The soft cap
is one segment below the hard cap, so that removal starts before refusal. The size of a refused
append is remembered, so that there is room for it when the client retries.

The disk itself may be short of space before the log has used its share: see `DiskReserve`.
"""

from __future__ import annotations

from frazil.disk.reserve import DiskReserve
from frazil.errors import Overloaded
from frazil.metrics import Counter, Gauge
from frazil.model import MiB

OPEN_SHARE = 2
"""Open segments cannot be removed: all together they take at most one part in so many."""

LOOK_BYTES = MiB
"""Written between looks at the free space: little beside the reserve."""

USED = Gauge("frazil.disk.budget.bytes", "Bytes of disk the log uses.")
REFUSED = Counter("frazil.disk.budget.refusals", "Appends refused because the log is full.")


class Budget:
    """Bytes used and two caps. Changed by the writer thread, read by any."""

    def __init__(
        self, *, hard_bytes_max: int, segment_bytes_max: int, reserve: DiskReserve | None = None
    ) -> None:
        assert hard_bytes_max > segment_bytes_max
        self.hard_bytes_max = hard_bytes_max
        self.soft_bytes_max = hard_bytes_max - segment_bytes_max
        self.used_bytes = 0
        self.segment_bytes_max = segment_bytes_max
        """At this size a segment is sealed: smaller if many partitions have an open one."""
        self._segment_bytes_max = segment_bytes_max
        self._open_count = 0
        self._reserve = reserve
        self._refused_bytes = 0
        self._is_disk_full = False
        self._unseen_bytes = 0
        """Written since the last look at the disk."""
        self.is_disk_short = False
        """Whether the disk should get back what the log need not keep."""
        self.is_reserve_used = False
        """Whether the rest of the disk is for the lake's flush."""

    def admit(self, length: int) -> None:
        """Raise `Overloaded` unless `length` more bytes fit. Reserves nothing."""
        if self.is_reserve_used:
            REFUSED.add()
            raise Overloaded(
                "the disk is full: the rest is kept free for the lake's next flush; free disk "
                "space, then retry"
            )
        if self.used_bytes + length > self.hard_bytes_max:
            self._refused_bytes = max(self._refused_bytes, length)
            REFUSED.add()
            raise Overloaded(
                f"the log holds {self.used_bytes} of {self.hard_bytes_max} bytes; retry when its "
                "readers have caught up, or raise log.disk_bytes_max"
            )
        if length >= self._refused_bytes:  # a smaller append that fits does not help a larger one
            self._refused_bytes = 0

    def admit_copy(self) -> None:
        """Raise `Overloaded` unless the log is well below its limits: a copy can wait, and the
        space that is left is for clients that cannot."""
        if not self.has_room:
            raise Overloaded(
                f"the log holds {self.used_bytes} of {self.hard_bytes_max} bytes; what is left is "
                "for clients, and copies wait until the lake has caught up"
            )

    def take(self, length: int) -> None:
        """Count bytes written; negative for bytes freed."""
        self.used_bytes += length
        self._unseen_bytes += abs(length)
        if length:
            self._is_disk_full = False
        assert self.used_bytes >= 0
        USED.set(self.used_bytes)

    def count_open(self, change: int) -> None:
        """Count open segments with records."""
        self._open_count += change
        share = self.hard_bytes_max // OPEN_SHARE // max(1, self._open_count)
        self.segment_bytes_max = min(self._segment_bytes_max, share)

    def note_full(self) -> None:
        """The disk itself is full. Holds until bytes are written or freed."""
        self._is_disk_full = True

    def check_space(self) -> None:
        """Look at the free space of the disk. Holds until the next look."""
        self._unseen_bytes = 0
        reserve = self._reserve
        self.is_disk_short = reserve is not None and reserve.missing_bytes() > 0
        self.is_reserve_used = self.is_disk_short and reserve is not None and reserve.is_used()

    def check_space_if_due(self) -> None:
        """Look at the free space if it may have changed much, or if there is little. Maintenance
        looks every second."""
        if self.is_disk_short or self._unseen_bytes >= LOOK_BYTES:
            self.check_space()

    @property
    def has_room(self) -> bool:
        """Whether the log is well below its limits."""
        return self.used_bytes <= self.soft_bytes_max and not self.is_reserve_used

    @property
    def is_disk_full(self) -> bool:
        """Whether appends are refused because of the disk, not because of the log's share."""
        return self._is_disk_full or self.is_reserve_used

    @property
    def is_full(self) -> bool:
        """Whether the last refused append would be refused again."""
        return self.is_disk_full or self.used_bytes + max(self._refused_bytes, 1) > (
            self.hard_bytes_max
        )

    @property
    def should_release(self) -> bool:
        """Whether everything released should be removed now."""
        return self.is_tight or self.is_disk_short

    @property
    def is_tight(self) -> bool:
        """Whether the log must become smaller now."""
        return (
            self._is_disk_full
            or self.used_bytes > self.soft_bytes_max
            or self.used_bytes + self._refused_bytes > self.hard_bytes_max
        )
