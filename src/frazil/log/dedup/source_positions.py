"""Duplicate detection by position, for programs that copy from elsewhere: connectors, streams,
mirrors.

Such a program reads a source from a position on, and appends what it has read together with the
position to go on from: one step. The log stores both in one batch, and remembers the last position
of every source in each partition, for as long as the partition exists. A step says which position
it continues, and is compared with the remembered one:

    the same position           appended
    the position it leads to    a duplicate, whose response was lost: it gets the offset it has
    another one, or none        `PositionMismatch`: the program goes on from what is remembered
    an older epoch              `Fenced`: another instance of the program has taken over

Positions are compared for equality only: their bytes mean something to the program alone. They are
stored with the records, as a header, and in a checkpoint before compaction or retention removes
those.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from frazil.errors import Fenced, Malformed, PositionMismatch, TooLarge
from frazil.log.format.record import Record
from frazil.model import OffsetRange

POSITION_HEADER = "frazil.position"
"""Key of the header of a batch's first record that has the step."""
SOURCE_BYTES_MAX = 249
POSITION_BYTES_MAX = 1024
SOURCES_MAX = 10_000
"""Per partition. None is ever forgotten on its own."""
EPOCH_MAX = 2**63 - 1
LOST = 2**16 - 1
"""Stands for the size of a position that was lost."""

STEP = struct.Struct("<HQ")
"""Bytes of the source's name, epoch; then the name, then the position."""
COUNT = struct.Struct("<I")
ENTRY = struct.Struct("<HHQQQ")
"""Bytes of the name and of the position, epoch, base and end offset; then the name, then the
position."""


class SourceStep(NamedTuple):
    """Which step of a copy a batch is."""

    source: str
    """Names the program and what it reads; as long as it is the same copy."""
    epoch: int
    """Number of the program's instance. A newer one fences those before it."""
    expected: bytes | None
    """The position that this step continues; None for the first."""
    position: bytes


class SourcePosition(NamedTuple):
    """How far a source was read, and the batch that says so."""

    epoch: int
    position: bytes | None
    """None if a repair lost the batch: the source cannot go on by itself."""
    base_offset: int
    end_offset: int


class SourcePositions:
    """Positions of all sources of one partition. Owned by the writer thread."""

    def __init__(self) -> None:
        self._known: dict[str, SourcePosition] = {}

    def find_duplicate(self, step: SourceStep) -> SourcePosition | None:
        """Return the remembered step that this one repeats, None if it may be appended. Raises if
        it may not."""
        known = self._known.get(step.source)
        if known is None:
            if step.expected is not None:
                raise PositionMismatch(
                    f"{step.source} continues a position, but the log remembers none: its first "
                    "step is missing, or was lost"
                )
            if len(self._known) >= SOURCES_MAX:
                raise TooLarge(
                    f"the partition remembers {SOURCES_MAX} sources, and no more; forget those "
                    "that have ended"
                )
            return None
        if step.epoch < known.epoch:
            raise Fenced(
                f"{step.source} with epoch {step.epoch} is fenced by epoch {known.epoch}: another "
                "instance has taken over"
            )
        _check_not_lost(step.source, known)
        if step.position == known.position:
            return known
        if step.expected != known.position:
            raise PositionMismatch(
                f"{step.source} continues another position than the one that the log remembers: "
                "go on from that one",
                current=known.position,
            )
        return None

    def remember(
        self, step: SourceStep, base_offset: int, end_offset: int
    ) -> SourcePosition | None:
        """Record an appended step. Returns the previous position for `restore`."""
        before = self._known.get(step.source)
        self._known[step.source] = SourcePosition(
            step.epoch, step.position, base_offset, end_offset
        )
        return before

    def restore(self, source: str, before: SourcePosition | None) -> None:
        """Undo one `remember`: the batch was not written."""
        if before is None:
            self._known.pop(source, None)
        else:
            self._known[source] = before

    def get(self, source: str) -> SourcePosition | None:
        """Return the last position of a source; None if it has none. Raises `PositionMismatch` if
        it was lost."""
        known = self._known.get(source)
        if known is not None:
            _check_not_lost(source, known)
        return known

    def items(self) -> Iterator[tuple[str, SourcePosition]]:
        return iter(self._known.items())

    def forget(self, source: str) -> bool:
        """Forget a source that has ended. Returns whether it was known."""
        return self._known.pop(source, None) is not None

    def lose(self, lost: Iterable[OffsetRange]) -> int:
        """Note that the batches in these ranges are lost. Returns how many sources had their last
        one there."""
        ranges = list(lost)
        gone = {
            source: known._replace(position=None)
            for source, known in self._known.items()
            if any(known.base_offset < end and begin < known.end_offset for begin, end in ranges)
        }
        self._known.update(gone)
        return len(gone)

    def encode(self) -> bytes:
        parts = [COUNT.pack(len(self._known))]
        for source, known in self._known.items():
            name = source.encode()
            size = LOST if known.position is None else len(known.position)
            parts += [
                ENTRY.pack(len(name), size, known.epoch, known.base_offset, known.end_offset),
                name,
                known.position or b"",
            ]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> SourcePositions:
        """Decode positions, whose checksum is already verified."""
        positions = cls()
        (count,) = COUNT.unpack_from(data)
        at = COUNT.size
        for _ in range(count):
            name_size, size, epoch, base_offset, end_offset = ENTRY.unpack_from(data, at)
            at += ENTRY.size
            source = data[at : at + name_size].decode()
            at += name_size
            position = None
            if size != LOST:
                position = data[at : at + size]
                at += size
            positions._known[source] = SourcePosition(epoch, position, base_offset, end_offset)
        return positions

    def __len__(self) -> int:
        return len(self._known)


def _check_not_lost(source: str, known: SourcePosition) -> None:
    if known.position is None:
        raise PositionMismatch(
            f"the last records of {source} were lost in a repair: forget the source, then start "
            "the copy anew, or from a position that you know"
        )


def check_step(step: SourceStep) -> None:
    """Raise `Malformed` or `TooLarge` if a step cannot be stored."""
    size = len(step.source.encode())
    if not 0 < size <= SOURCE_BYTES_MAX:
        raise Malformed(f"the name of a source has {size} bytes; 1 to {SOURCE_BYTES_MAX} are valid")
    if not 0 <= step.epoch <= EPOCH_MAX:
        raise Malformed(f"epoch {step.epoch} of {step.source}; 0 to {EPOCH_MAX} are valid")
    if len(step.position) > POSITION_BYTES_MAX:
        raise TooLarge(
            f"a position of {step.source} has {len(step.position)} bytes; the log stores up to "
            f"{POSITION_BYTES_MAX}"
        )
    if step.position == step.expected:
        raise Malformed(f"a step of {step.source} leads to the position that it continues")


def header_of_step(step: SourceStep) -> tuple[str, bytes]:
    """Return the record header that stores a step."""
    name = step.source.encode()
    return POSITION_HEADER, STEP.pack(len(name), step.epoch) + name + step.position


def step_in(records: Sequence[Record]) -> SourceStep | None:
    """Return the step in a stored batch's records; None if compaction has removed it. The last
    header of that name is ours."""
    for key, value in reversed(records[0].headers) if records else ():
        if key == POSITION_HEADER and value is not None and len(value) >= STEP.size:
            size, epoch = STEP.unpack_from(value)
            name = value[STEP.size : STEP.size + size]
            return SourceStep(name.decode(), epoch, None, value[STEP.size + size :])
    return None
