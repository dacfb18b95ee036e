"""DurableCounter and TimeIds: numbers that never repeat, even after kill -9 or a clock jump.

Both reserve ahead: a checkpoint stores a limit below which every number may be in use, and only
numbers below a durable limit are returned. A crash costs a gap, never a repeat, and few calls wait
for the disk.
"""

from __future__ import annotations

import struct
from typing import Self

from frazil.disk.checkpoint import HEADER, read_checkpoint, write_checkpoint
from frazil.disk.files import Disk, is_full
from frazil.errors import Corrupt, Malformed, Overloaded, Unavailable
from frazil.model import Clock

NUMBER_MAX = 2**63 - 1
"""Largest number of either kind: Kafka, Arrow and SQL use signed 64-bit integers."""

MS_BITS, NODE_BITS, SEQUENCE_BITS = 41, 10, 12
"""Fields of a time id from the top, below a sign bit that is always 0."""
NODE_SHIFT = SEQUENCE_BITS
MS_SHIFT = NODE_BITS + SEQUENCE_BITS
MS_MAX = 2**MS_BITS - 1
NODE_MAX = 2**NODE_BITS - 1
SEQUENCE_MAX = 2**SEQUENCE_BITS - 1
EPOCH_WALL_MS = 1_704_067_200_000
"""Millisecond 0 of a time id: 2024-01-01 UTC. The last one is in September 2093."""

VERSION = 1
BODY = struct.Struct("<Q")
"""The limit: the first number (or millisecond) that is certainly unused."""


class DurableCounter:
    """Increasing numbers that never repeat, from `floor` or where the last run stopped.

    Owned by one thread; only one may be open per path. A call that has to reserve waits for the
    disk.
    """

    def __init__(self, limit: _Limit, number: int, reserve_count: int) -> None:
        self._limit = limit
        self._next = number
        self._reserve_count = reserve_count
        self._safe_below = number

    @classmethod
    def open(cls, disk: Disk, path: str, *, floor: int = 0, reserve_count: int = 65_536) -> Self:
        """Continue after the stored counter, but not below `floor`. Writes nothing; the folder
        of `path` must exist. Raises `Corrupt` if the stored counter is damaged."""
        if not 0 <= floor <= NUMBER_MAX:
            raise Malformed(f"the floor of {path} is {floor}; it must be 0 to {NUMBER_MAX}")
        if reserve_count < 1:
            raise Malformed(f"{path} reserves {reserve_count} numbers; it must be at least 1")
        limit = _Limit(
            disk,
            path,
            kind=b"CNTR",
            limit_max=NUMBER_MAX + 1,
            hint="Restore the file from a copy, or remove it and open the counter with a floor"
            " above every number it ever returned.",
        )
        return cls(limit, max(limit.stored, floor), reserve_count)

    def next(self) -> int:
        """Return a number that was never returned before.

        Raises `Overloaded` if the disk is full (retry later), `Unavailable` if the counter is
        closed, exhausted, or its disk has failed (final).
        """
        number = self._next
        if number >= self._safe_below:
            self._reserve()
        self._next = number + 1
        return number

    def _reserve(self) -> None:
        if self._next > NUMBER_MAX:
            raise Unavailable(f"{self._limit.path} has returned every number up to {NUMBER_MAX}")
        limit = min(self._next + self._reserve_count, NUMBER_MAX + 1)
        self._limit.store(limit)
        self._safe_below = limit

    def close(self) -> None:
        """Store the exact next number, so that a clean stop leaves no gap. If that fails, the
        next run starts after the reservation."""
        self._safe_below = self._next
        self._limit.close(self._next)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TimeIds:
    """64-bit ids that always increase, and sort by time while the clock is right.

        0 | 41 bits: milliseconds since 2024 | 10 bits: node | 12 bits: sequence

    If the clock stands still or jumps back, or one millisecond has more than 4096 ids, ids use
    later milliseconds: they never wait and never repeat. After a clock jumped forward and was set
    back, ids stay ahead of time until the true time has caught up.

    Nodes with different node numbers never return the same id. A reopen with another node number is
    allowed: the stored millisecond remains the floor, so ids keep increasing.

    Owned by one thread; only one may be open per path. A call that has to reserve waits for the
    disk, at most once per `reserve_ms` of id time.
    """

    def __init__(self, limit: _Limit, clock: Clock, node: int, reserve_ms: int) -> None:
        self._limit = limit
        self._wall_ms = clock.wall_ms
        self._node_bits = node << NODE_SHIFT
        self._reserve_ms = reserve_ms
        self._next = limit.stored << MS_SHIFT | self._node_bits
        self._safe_below = 0

    @classmethod
    def open(
        cls, disk: Disk, path: str, clock: Clock, *, node: int, reserve_ms: int = 10_000
    ) -> Self:
        """Start at the current time or the stored limit, whichever is later. Writes nothing; the
        folder of `path` must exist. Raises `Corrupt` if the stored limit is damaged."""
        if not 0 <= node <= NODE_MAX:
            raise Malformed(f"the node of {path} is {node}; it must be 0 to {NODE_MAX}")
        if reserve_ms < 1:
            raise Malformed(f"{path} reserves {reserve_ms} ms; it must be at least 1")
        limit = _Limit(
            disk,
            path,
            kind=b"TIDS",
            limit_max=MS_MAX + 1,
            hint="Restore the file from a copy. Or check that the clock is right and past the"
            " time of the newest id, then remove the file.",
        )
        return cls(limit, clock, node, reserve_ms)

    def next(self) -> int:
        """Return an id above all earlier ones.

        Raises `Overloaded` if the disk is full (retry later), `Unavailable` if this is closed, its
        disk has failed (final), or the clock is past 2093.
        """
        number = (self._wall_ms() - EPOCH_WALL_MS) << MS_SHIFT | self._node_bits
        if number < self._next:
            number = self._next
        if number >= self._safe_below:
            self._reserve(number >> MS_SHIFT)
        if number & SEQUENCE_MAX != SEQUENCE_MAX:
            self._next = number + 1
        else:
            self._next = ((number >> MS_SHIFT) + 1) << MS_SHIFT | self._node_bits
        return number

    def _reserve(self, ms: int) -> None:
        if ms > MS_MAX:
            raise Unavailable(
                f"{self._limit.path}: millisecond {EPOCH_WALL_MS + ms} since 1970 is past the last"
                f" one of an id, {EPOCH_WALL_MS + MS_MAX}; correct the clock, then retry"
            )
        limit_ms = min(ms + self._reserve_ms, MS_MAX + 1)
        # After a failure ids below the old limit are refused, too, even if the clock goes back.
        self._safe_below = 0
        self._limit.store(limit_ms)
        self._safe_below = limit_ms << MS_SHIFT

    def close(self) -> None:
        """Store the first unused millisecond, so that a clean stop wastes none. If that fails,
        the next run starts after the reservation."""
        self._safe_below = 0
        # All ids are below `_next`; a started millisecond counts as used.
        begun = self._next & SEQUENCE_MAX != 0
        self._limit.close((self._next >> MS_SHIFT) + begun)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def split_id(number: int) -> tuple[int, int, int]:
    """Return the fields of a time id: milliseconds since 1970, node, sequence."""
    if not 0 <= number <= NUMBER_MAX:
        raise Malformed(f"{number} is not a time id; it must be 0 to {NUMBER_MAX}")
    return (
        EPOCH_WALL_MS + (number >> MS_SHIFT),
        number >> NODE_SHIFT & NODE_MAX,
        number & SEQUENCE_MAX,
    )


class _Limit:
    """The durable limit in one file. Unusable once closed or once its disk has failed."""

    def __init__(self, disk: Disk, path: str, *, kind: bytes, limit_max: int, hint: str) -> None:
        self.path = path
        self._disk = disk
        self._kind = kind
        self._refusal: str | None = None
        self.stored = _read_limit(disk, path, kind, limit_max, hint)

    def store(self, limit: int) -> None:
        """Make a new limit durable, or raise and keep the old one."""
        if self._refusal is not None:
            raise Unavailable(self._refusal)
        try:
            write_checkpoint(self._disk, self.path, self._kind, VERSION, BODY.pack(limit))
        except OSError as error:
            if is_full(error):
                raise Overloaded(
                    f"{self.path}: no space to reserve numbers; free disk space"
                ) from error
            # The disk state is unknown, and a second sync would report success: stop for good.
            self._refusal = f"{self.path} cannot return numbers, its disk has failed: {error}"
            raise Unavailable(self._refusal) from error
        self.stored = limit

    def close(self, limit: int) -> None:
        """Store the last limit and refuse any further. Writes nothing if it is stored already,
        after a failure, or on a second call."""
        if self._refusal is not None:
            return
        try:
            if limit != self.stored:
                self.store(limit)
        finally:
            self._refusal = self._refusal or f"{self.path} is closed"


def _read_limit(disk: Disk, path: str, kind: bytes, limit_max: int, hint: str) -> int:
    """Return the stored limit, 0 if there is no file. Raises `Corrupt` if it is damaged."""
    body = read_checkpoint(disk, path, kind, VERSION, hint)
    if body is None:
        return 0
    limit = int.from_bytes(body, "little")
    if len(body) != BODY.size or limit > limit_max:
        # The checksum matches, so another program wrote this.
        raise Corrupt(
            path=path,
            position=HEADER.size,
            expected=f"a limit of {BODY.size} bytes, at most {limit_max}",
            found=f"{len(body)} bytes, {body[:16].hex(' ')}",
            hint=hint,
        )
    return limit
