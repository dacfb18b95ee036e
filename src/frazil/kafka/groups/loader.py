"""load: reads `__consumer_offsets` at start.

Only the last record of each key is kept while reading, as bytes; it is decoded at the end. Memory
is bounded by the number of keys, not by the length of the log.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import NamedTuple

from frazil.errors import Malformed
from frazil.kafka.groups.consumer.records import CONSUMER_TYPES, ConsumerGroupLoader
from frazil.kafka.groups.group import ClassicGroup
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.groups.records import (
    is_group_key,
    is_offset_key,
    read_group,
    read_offset,
    read_offset_key,
)
from frazil.kafka.wire.records import prefix_of
from frazil.log import Marker, Partition, Reader, StoredBatch, marker_of
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

SKIPPED = Counter(
    "frazil.kafka.group.skipped.records", "Records of `__consumer_offsets` not understood."
)


class _Value(NamedTuple):
    value: bytes | None
    log_offset: int


Latest = dict[bytes, _Value]


class _Records:
    """The last record of each key, and those of open transactions."""

    def __init__(self) -> None:
        self.latest: Latest = {}
        self.staged: dict[int, Latest] = {}

    def take(self, batch: StoredBatch) -> None:
        header = batch.header
        if header.is_control:
            marker = marker_of(batch.payload)
            staged = self.staged.pop(header.producer_id, {})
            if marker is Marker.COMMIT:
                for key, value in staged.items():
                    known = self.latest.get(key)
                    if known is None or known.log_offset < value.log_offset:
                        self.latest[key] = value
            return
        latest = self.latest
        if header.is_transactional:
            latest = self.staged.setdefault(header.producer_id, {})
        for record in batch.records():
            if record.key is not None:
                latest[record.key] = _Value(record.value, record.offset)


def load(partition: Partition, groups: Groups, offsets: OffsetStore) -> None:
    """Read the whole topic into groups and offsets."""
    records = _Records()
    consumer_groups = ConsumerGroupLoader()
    start = partition.view.start_offset
    with closing(Reader(partition, start, isolation="uncommitted")) as reader:
        while batches := reader.read():
            for batch in batches:
                records.take(batch)
    for key, (value, log_offset) in records.latest.items():
        if value is not None:
            _apply(key, value, log_offset, groups, offsets, consumer_groups)
    for group in consumer_groups.finish():
        groups.put(group)
    for producer_id, staged in records.staged.items():
        for key, (value, log_offset) in staged.items():
            tombstone = records.latest.get(key)
            is_deleted = (
                tombstone is not None
                and tombstone.value is None
                and tombstone.log_offset > log_offset
            )
            if value is not None and not is_deleted and is_offset_key(key):
                group_id, topic_partition = read_offset_key(key)
                committed = read_offset(value, log_offset)
                offsets.stage(producer_id, group_id, topic_partition, committed)
    for group_id in offsets.group_ids():
        if groups.get(group_id) is None:
            groups.put(ClassicGroup(group_id, groups.time.now_ms()))


def _apply(
    key: bytes,
    value: bytes,
    log_offset: int,
    groups: Groups,
    offsets: OffsetStore,
    consumer_groups: ConsumerGroupLoader,
) -> None:
    try:
        if is_offset_key(key):
            group_id, topic_partition = read_offset_key(key)
            offsets.put(group_id, topic_partition, read_offset(value, log_offset))
        elif is_group_key(key):
            groups.put(read_group(key, value))
        elif prefix_of(key) in CONSUMER_TYPES:
            consumer_groups.take(prefix_of(key), key, value)
        else:
            raise Malformed("a record of an unknown type")
    except Malformed as error:
        SKIPPED.add()
        logger.warning(
            "a record of __consumer_offsets was skipped",
            extra={"offset": log_offset, "reason": str(error)},
        )
