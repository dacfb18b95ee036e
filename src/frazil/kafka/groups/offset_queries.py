"""OffsetQueries: OffsetFetch."""

from __future__ import annotations

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.offset_checks import check_fetch
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.groups.records import CommittedOffset
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from frazil.model import TopicPartition

GROUPS_VERSION = 8
"""From this version on a request names several groups."""
NOTHING = CommittedOffset(-1, -1, "", -1)


class OffsetQueries:
    """Owned by one thread."""

    def __init__(self, groups: Groups, offsets: OffsetStore) -> None:
        self._groups = groups
        self._offsets = offsets

    def fetch(self, request: OffsetFetchRequest, api_version: int) -> OffsetFetchResponse:
        """Return committed offsets. With `require_stable`, partitions with an offset in an open
        transaction get an error that makes the client ask again."""
        is_stable = request.require_stable
        if api_version < GROUPS_VERSION:
            wanted = None
            if request.topics is not None:
                wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
            found = self._fetch(request.group_id, wanted, is_stable)
            return OffsetFetchResponse(topics=[_topic(name, rows) for name, rows in found.items()])
        groups = []
        for group in request.groups:
            wanted = None
            if group.topics is not None:
                wanted = [(topic.name, topic.partition_indexes) for topic in group.topics]
            known = self._groups.get(group.group_id)
            error = check_fetch(known, group.member_id, group.member_epoch)
            if error is not ErrorCode.NONE:
                response_class = OffsetFetchResponse.OffsetFetchResponseGroup
                groups.append(response_class(group_id=group.group_id, error_code=error))
                continue
            found = self._fetch(group.group_id, wanted, is_stable)
            groups.append(
                OffsetFetchResponse.OffsetFetchResponseGroup(
                    group_id=group.group_id,
                    topics=[_group_topic(name, rows) for name, rows in found.items()],
                )
            )
        return OffsetFetchResponse(groups=groups)

    def _fetch(
        self, group_id: str, wanted: list[tuple[str, list[int]]] | None, is_stable: bool
    ) -> dict[str, list[Row]]:
        """Return rows by topic: all that the group has if nothing is named."""
        offsets = self._offsets.of_group(group_id)
        unstable = self._offsets.staged_partitions(group_id) if is_stable else set()
        if wanted is None:
            by_topic: dict[str, list[int]] = {}
            for partition in sorted({*offsets, *unstable}):
                by_topic.setdefault(partition.topic, []).append(partition.partition)
            wanted = list(by_topic.items())
        found: dict[str, list[Row]] = {}
        for topic, indexes in wanted:
            rows = found.setdefault(topic, [])
            for index in indexes:
                key = TopicPartition(topic, index)
                if key in unstable:
                    rows.append((index, NOTHING, ErrorCode.UNSTABLE_OFFSET_COMMIT))
                else:
                    rows.append((index, offsets.get(key, NOTHING), ErrorCode.NONE))
        return found


Row = tuple[int, CommittedOffset, ErrorCode]
"""Partition, what is committed, error."""


def _topic(name: str, rows: list[Row]) -> OffsetFetchResponse.OffsetFetchResponseTopic:
    return OffsetFetchResponse.OffsetFetchResponseTopic(
        name=name,
        partitions=[
            OffsetFetchResponse.OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=error,
            )
            for index, committed, error in rows
        ],
    )


def _group_topic(name: str, rows: list[Row]) -> OffsetFetchResponse.OffsetFetchResponseTopics:
    return OffsetFetchResponse.OffsetFetchResponseTopics(
        name=name,
        partitions=[
            OffsetFetchResponse.OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=error,
            )
            for index, committed, error in rows
        ],
    )
