"""Duplicate detection by sequence, for Kafka producers.

For each producer id the log remembers the epoch and the last five batches, and decides as Kafka's
`ProducerStateManager` does:

    unknown producer    accepted with any sequence: its state may have expired
    older epoch         `Fenced`
    newer epoch         accepted with sequence 0, otherwise `SequenceGap`
    same epoch          a batch with the first and last sequence of one of the five is a duplicate
                        and gets its offset; the next sequence is accepted; any other is
                        `SequenceOld` or `SequenceGap`

A control marker sets the epoch, so that a producer may be known by its marker alone; its first
batch then has sequence 0. A marker, and a batch of a producer without sequences (transactional
offset commits), is checked by its epoch only. The state can be rebuilt from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable
from typing import NamedTuple

from frazil.errors import Fenced, SequenceGap, SequenceOld
from frazil.log.format.batch import BatchHeader
from frazil.model import OffsetRange

REMEMBERED = 5
"""Batches remembered per producer: as many as a Kafka client has in flight."""
PRODUCERS_MAX = 100_000
"""Above this the producer unseen for longest is forgotten: its duplicates are no longer found."""
SEQUENCE_MAX = 2**31 - 1
NO_OFFSET = -1

COUNT = struct.Struct("<I")
ENTRY = struct.Struct("<qhB")
PAST = struct.Struct("<iiqq")
MARKER = struct.Struct("<q")


class PastBatch(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    end_offset: int


class Producer(NamedTuple):
    """State of one producer id. `past` is oldest first; if it is empty, the batch at
    `marker_offset` set the epoch."""

    epoch: int
    seen_ms: int
    past: tuple[PastBatch, ...]
    marker_offset: int = NO_OFFSET

    @property
    def next_sequence(self) -> int:
        return next_sequence(self.past[-1].last_sequence) if self.past else 0


class Producers:
    """Producer states of one partition. Owned by the writer thread."""

    def __init__(self) -> None:
        self._known: dict[int, Producer] = {}
        self._undone: dict[int, Producer] = {}
        """States of producers whose first batches were undone: later ones must not be accepted
        before them."""

    def find_duplicate(self, header: BatchHeader) -> PastBatch | None:
        """Return the remembered batch that this one repeats, None if it may be appended.

        Raises `Fenced`, `SequenceGap` or `SequenceOld` if it may not.
        """
        known = self._known.get(header.producer_id)
        if known is None:
            self._check_undone(header)
            return None
        if header.producer_epoch < known.epoch:
            raise Fenced(
                f"producer {header.producer_id} epoch {header.producer_epoch} is fenced by epoch "
                f"{known.epoch}; request a new producer id"
            )
        if not _has_sequence(header):
            return None
        first = header.base_sequence
        if header.producer_epoch > known.epoch:
            if first != 0:
                raise SequenceGap(
                    f"producer {header.producer_id} starts epoch {header.producer_epoch} with "
                    f"sequence {first}; a new epoch starts at 0"
                )
            return None
        for past in known.past:
            if (past.first_sequence, past.last_sequence) == (first, header.last_sequence):
                return past
        expected = known.next_sequence
        if first == expected:
            return None
        what = f"producer {header.producer_id} sent sequence {first}, expected {expected}"
        if known.past and _is_behind(first, expected):
            raise SequenceOld(f"{what}: it is before the last {REMEMBERED} batches, or not as sent")
        raise SequenceGap(f"{what}: send the missing batches first")

    def _check_undone(self, header: BatchHeader) -> None:
        undone = self._undone.get(header.producer_id)
        if undone is None or undone.epoch != header.producer_epoch or not _has_sequence(header):
            return
        expected = undone.past[0].first_sequence if undone.past else 0
        if not _is_behind(header.base_sequence, expected):
            raise SequenceGap(
                f"producer {header.producer_id} sent sequence {header.base_sequence}, but "
                f"{expected} was refused: send the missing batches first"
            )

    def remember(self, header: BatchHeader, base_offset: int, now_ms: int) -> Producer | None:
        """Record an appended batch or marker. Returns the previous state for `restore`."""
        before = self._known.pop(header.producer_id, None)
        self._undone.pop(header.producer_id, None)
        past = before.past if before and before.epoch == header.producer_epoch else ()
        if _has_sequence(header):
            newest = PastBatch(
                header.base_sequence,
                header.last_sequence,
                base_offset,
                base_offset + header.last_offset_delta + 1,
            )
            past = (*past, newest)[-REMEMBERED:]
        marker_offset = NO_OFFSET if past else base_offset
        self._known[header.producer_id] = Producer(
            header.producer_epoch, now_ms, past, marker_offset
        )
        _drop_oldest(self._known)
        return before

    def restore(self, producer_id: int, before: Producer | None) -> None:
        """Undo one `remember`: the batch was not written."""
        undone = self._known.pop(producer_id, None)
        if before is not None:
            self._known[producer_id] = before
        elif undone is not None:
            self._undone[producer_id] = undone
            _drop_oldest(self._undone)

    def items(self) -> Iterable[tuple[int, Producer]]:
        """Yield known producers by their ids."""
        return self._known.items()

    def is_known(self, producer_id: int) -> bool:
        return producer_id in self._known

    def epoch_of(self, producer_id: int) -> int:
        """Return the epoch of a producer; 0 if it is not known."""
        known = self._known.get(producer_id)
        return 0 if known is None else known.epoch

    @property
    def id_max(self) -> int:
        """The largest known id; -1 if none is known."""
        return max(self._known, default=-1)

    def expire(self, unseen_since_ms: int, *, kept: Container[int] = ()) -> int:
        """Forget producers not seen since then, except those `kept`: a transaction of theirs is
        open. Returns how many."""
        count = len(self._known)
        for producers in (self._known, self._undone):
            stale = [
                key
                for key, known in producers.items()
                if known.seen_ms < unseen_since_ms and key not in kept
            ]
            for key in stale:
                del producers[key]
        return count - len(self._known)

    def forget(self, lost: Iterable[OffsetRange]) -> int:
        """Forget batches and markers in lost offset ranges. Returns how many.

        A producer of which nothing remains is unknown. If only its last batches are lost, it must
        send them again.
        """
        ranges, count = list(lost), 0

        def is_lost(offset: int) -> bool:
            return any(begin <= offset < end for begin, end in ranges)

        for key, known in list(self._known.items()):
            past = tuple(p for p in known.past if not is_lost(p.base_offset))
            count += len(known.past) - len(past)
            if past:
                self._known[key] = known._replace(past=past)
            elif known.past or is_lost(known.marker_offset):
                count += not known.past
                del self._known[key]
        return count

    def remembered_offsets(self) -> set[int]:
        """Return the base offsets of all remembered batches; compaction keeps their headers."""
        offsets = {past.base_offset for known in self._known.values() for past in known.past}
        return offsets | {known.marker_offset for known in self._known.values() if not known.past}

    def encode(self) -> bytes:
        parts = [COUNT.pack(len(self._known))]
        for producer_id, known in self._known.items():
            parts.append(ENTRY.pack(producer_id, known.epoch, len(known.past)))
            parts += [PAST.pack(*past) for past in known.past]
            if not known.past:
                parts.append(MARKER.pack(known.marker_offset))
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, now_ms: int) -> Producers:
        """Decode producer states, whose checksum is already verified.

        All count as seen now, so that a clock change between two runs forgets none.
        """
        producers = cls()
        (count,) = COUNT.unpack_from(data)
        at = COUNT.size
        for _ in range(count):
            producer_id, epoch, past_count = ENTRY.unpack_from(data, at)
            at += ENTRY.size
            past = tuple(
                PastBatch(*PAST.unpack_from(data, at + i * PAST.size)) for i in range(past_count)
            )
            at += past_count * PAST.size
            marker_offset = NO_OFFSET
            if not past:
                (marker_offset,) = MARKER.unpack_from(data, at)
                at += MARKER.size
            producers._known[producer_id] = Producer(epoch, now_ms, past, marker_offset)
        return producers

    def __len__(self) -> int:
        return len(self._known)


def next_sequence(sequence: int) -> int:
    """Return the next sequence; it wraps to 0."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


def _has_sequence(header: BatchHeader) -> bool:
    return header.base_sequence >= 0 and not header.is_control


def _is_behind(first: int, expected: int) -> bool:
    """Return whether `first` is nearer below `expected` than above it, across the wrap."""
    return (expected - first) % (SEQUENCE_MAX + 1) <= SEQUENCE_MAX // 2


def _drop_oldest(producers: dict[int, Producer]) -> None:
    if len(producers) > PRODUCERS_MAX:
        del producers[next(iter(producers))]
