"""OffsetStore: the committed offsets of all groups, and those of open transactions.

The same functions apply records when the log is read at start and when records become durable, so
both end in the same state. Where two records of one partition compete, the later one in the log
counts, even if it was decided earlier: compaction keeps that one, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from frazil.kafka.groups.records import CommittedOffset
from frazil.log import Marker
from frazil.model import TopicPartition

Offsets = dict[TopicPartition, CommittedOffset]

NO_OFFSETS: Mapping[TopicPartition, CommittedOffset] = {}
NONE_IN_FLIGHT: Mapping[TopicPartition, int] = {}


class OffsetStore:
    """Owned by one thread. Offsets that are not durable yet are in none of its answers."""

    def __init__(self) -> None:
        self.count = 0
        """Committed offsets of all groups."""
        self._committed: dict[str, Offsets] = {}
        self._staged: dict[int, dict[str, Offsets]] = {}
        """Offsets of open transactions, by producer id and group."""
        self._in_flight: dict[str, Counter[TopicPartition]] = {}
        """How many records of a partition are on their way to the disk."""

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return what a group has committed."""
        return self._committed.get(group_id, NO_OFFSETS)

    def group_ids(self) -> Iterator[str]:
        """Yield groups with committed offsets."""
        return iter(self._committed)

    def put(self, group_id: str, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Take a durable offset, unless a later one is there."""
        offsets = self._committed.setdefault(group_id, {})
        known = offsets.get(partition)
        if known is None:
            self.count += 1
        elif known.log_offset > committed.log_offset:
            return
        offsets[partition] = committed

    def remove(self, group_id: str, partition: TopicPartition, log_offset: int) -> None:
        """Take a durable tombstone. It also counts against what was staged before it."""
        offsets = self._committed.get(group_id)
        known = offsets.get(partition) if offsets is not None else None
        if offsets is not None and known is not None and known.log_offset < log_offset:
            del offsets[partition]
            self.count -= 1
            if not offsets:
                del self._committed[group_id]
        for groups in self._staged.values():
            staged = groups.get(group_id, {})
            if partition in staged and 0 <= staged[partition].log_offset < log_offset:
                del staged[partition]

    def stage(
        self,
        producer_id: int,
        group_id: str,
        partition: TopicPartition,
        committed: CommittedOffset,
    ) -> None:
        """Take an offset of an open transaction."""
        groups = self._staged.setdefault(producer_id, {})
        groups.setdefault(group_id, {})[partition] = committed

    def end_transaction(self, producer_id: int, marker: Marker) -> None:
        """Take a durable marker: what was staged before it counts now, or never."""
        groups = self._staged.pop(producer_id, {})
        for group_id, offsets in groups.items():
            for partition, committed in offsets.items():
                if marker is Marker.COMMIT:
                    self.put(group_id, partition, committed)

    def staged_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return partitions with offsets in open transactions."""
        return {
            partition
            for groups in self._staged.values()
            for partition in groups.get(group_id, NO_OFFSETS)
        }

    def open_producers(self) -> set[int]:
        """Return producers with offsets in open transactions."""
        return set(self._staged)

    def begin(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Note records on their way to the disk."""
        self._in_flight.setdefault(group_id, Counter()).update(list(partitions))

    def end(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Note that records are durable, or were not stored."""
        counts = self._in_flight[group_id]
        counts.subtract(list(partitions))
        for partition in [each for each, count in counts.items() if not count]:
            del counts[partition]
        if not counts:
            del self._in_flight[group_id]

    def known_partitions(self, group_id: str) -> set[TopicPartition]:
        """Return every partition of which the log has, or may get, a record of this group."""
        in_flight = self._in_flight.get(group_id, NONE_IN_FLIGHT)
        return {*self.of_group(group_id), *in_flight, *self.staged_partitions(group_id)}

    def is_busy(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether an offset is on its way to the disk or in an open transaction."""
        in_flight = self._in_flight.get(group_id, NONE_IN_FLIGHT)
        return partition in in_flight or partition in self.staged_partitions(group_id)
