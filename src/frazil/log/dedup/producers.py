"""Duplicate detection by sequence, for Kafka producers.

For each producer id the log remembers the epoch and the last five batches. A duplicate of one of
them gets the offset of the first; any other batch that is not the next one is refused with the
reason. The state can be rebuilt from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from frazil.errors import Fenced, SequenceGap, SequenceOld, Unknown
from frazil.log.format.batch import BatchHeader
from frazil.model import OffsetRange

REMEMBERED = 5
"""Batches remembered per producer: as many as a Kafka client has in flight."""
PRODUCERS_MAX = 100_000
"""Above this the producer unseen for longest is forgotten; its next batch is refused as
`Unknown`."""
SEQUENCE_MAX = 2**31 - 1

ENTRY = struct.Struct("<qhB")
PAST = struct.Struct("<iiqq")


class PastBatch(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    end_offset: int


class Producer(NamedTuple):
    """State of one producer id; `past` is oldest first and never empty."""

    epoch: int
    seen_ms: int
    past: tuple[PastBatch, ...]


class Producers:
    """Producer states of one partition. Owned by the writer thread."""

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}

    def find_duplicate(self, header: BatchHeader) -> PastBatch | None:
        """Return the remembered batch that this one repeats, None if it is the next one.

        Raises `Fenced`, `SequenceGap`, `SequenceOld` or `Unknown` if it may not be appended.
        """
        known = self._known.get(header.producer_id)
        first = header.base_sequence
        if known is None or header.producer_epoch > known.epoch:
            if first != 0:
                raise (Unknown if known is None else SequenceGap)(
                    f"producer {header.producer_id} epoch {header.producer_epoch} starts at "
                    f"sequence {first}; a producer new to this partition starts at 0"
                )
            return None
        if header.producer_epoch < known.epoch:
            raise Fenced(
                f"producer {header.producer_id} epoch {header.producer_epoch} is fenced by epoch "
                f"{known.epoch}; request a new producer id"
            )
        for past in known.past:
            if (past.first_sequence, past.last_sequence) == (first, header.last_sequence):
                return past
        expected = next_sequence(known.past[-1].last_sequence)
        if first == expected:
            return None
        what = f"producer {header.producer_id} sent sequence {first}, expected {expected}"
        if _is_behind(first, expected):
            raise SequenceOld(f"{what}: it is already stored, but its offset is no longer known")
        raise SequenceGap(f"{what}: send the missing batches first")

    def remember(self, header: BatchHeader, base_offset: int, now_ms: int) -> Producer | None:
        """Record an appended batch. Returns the previous state for `restore`."""
        before = self._known.pop(header.producer_id, None)
        past = before.past if before and before.epoch == header.producer_epoch else ()
        newest = PastBatch(
            header.base_sequence,
            header.last_sequence,
            base_offset,
            base_offset + header.last_offset_delta + 1,
        )
        self._known[header.producer_id] = Producer(
            header.producer_epoch, now_ms, (*past, newest)[-REMEMBERED:]
        )
        if len(self._known) > PRODUCERS_MAX:
            del self._known[next(iter(self._known))]
        return before

    def restore(self, producer_id: int, before: Producer | None) -> None:
        """Undo one `remember`: the batch was not written."""
        self._known.pop(producer_id, None)
        if before is not None:
            self._known[producer_id] = before

    def expire(self, unseen_since_ms: int) -> int:
        """Forget producers not seen since then. Returns how many."""
        stale = [key for key, known in self._known.items() if known.seen_ms < unseen_since_ms]
        for key in stale:
            del self._known[key]
        return len(stale)

    def forget(self, lost: Iterable[OffsetRange]) -> int:
        """Forget batches in lost offset ranges. Returns how many.

        The next batch of such a producer is refused, or accepted again if nothing came after it.
        """
        ranges, count = list(lost), 0
        for key, known in list(self._known.items()):
            past = tuple(
                p for p in known.past if not any(b <= p.base_offset < e for b, e in ranges)
            )
            count += len(known.past) - len(past)
            if not past:
                del self._known[key]
            elif past != known.past:
                self._known[key] = known._replace(past=past)
        return count

    def remembered_offsets(self) -> set[int]:
        """Return the base offsets of all remembered batches; compaction keeps their headers."""
        return {past.base_offset for known in self._known.values() for past in known.past}

    def encode(self) -> bytes:
        parts = [struct.pack("<I", len(self._known))]
        for producer_id, known in self._known.items():
            parts.append(ENTRY.pack(producer_id, known.epoch, len(known.past)))
            parts += [PAST.pack(*past) for past in known.past]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, now_ms: int) -> Producers:
        """Decode producer states, whose checksum is already verified.

        All count as seen now, so that a clock change between two runs forgets none.
        """
        producers = cls()
        (count,) = struct.unpack_from("<I", data)
        at = 4
        for _ in range(count):
            producer_id, epoch, past_count = ENTRY.unpack_from(data, at)
            at += ENTRY.size
            past = tuple(
                PastBatch(*PAST.unpack_from(data, at + i * PAST.size)) for i in range(past_count)
            )
            at += past_count * PAST.size
            producers._known[producer_id] = Producer(epoch, now_ms, past)
        return producers

    def __len__(self) -> int:
        return len(self._known)


def next_sequence(sequence: int) -> int:
    """Return the next sequence; it wraps to 0."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


def _is_behind(first: int, expected: int) -> bool:
    """Return whether `first` is nearer below `expected` than above it, across the wrap."""
    return (expected - first) % (SEQUENCE_MAX + 1) <= SEQUENCE_MAX // 2
