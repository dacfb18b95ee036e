"""Offsets: ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

from frazil.errors import FrazilError
from frazil.httpd import WorkerThreads
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from frazil.kafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from frazil.log import LEADER_EPOCH, Partition, record_at_time

LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH = 2, 23
READ_COMMITTED = 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
"""What a client asks for instead of a time."""
UNKNOWN = -1
EPOCH_VERSION = 4
"""The first version of ListOffsets with a leader epoch in its response."""


class Offsets:
    """Owned by the event loop."""

    def __init__(self, log: ClientTopics, threads: WorkerThreads) -> None:
        self._log = log
        self._threads = threads

    def register(self, router: ApiRouter) -> None:
        router.add(LIST_OFFSETS, "1-10", self.list_offsets)
        router.add(OFFSET_FOR_LEADER_EPOCH, "2-4", self.offset_for_leader_epoch)

    async def list_offsets(
        self, request: ListOffsetsRequest, context: RequestContext
    ) -> ListOffsetsResponse:
        """Return the first offset, the end, or the first one at a time."""
        is_committed = request.isolation_level == READ_COMMITTED
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    topic.name,
                    [
                        await self._offset(
                            topic.name, asked, context.api_version, is_committed=is_committed
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def _offset(
        self,
        topic: str,
        asked: ListOffsetsRequest.ListOffsetsPartition,
        version: int,
        *,
        is_committed: bool,
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        result = ListOffsetsResponse.ListOffsetsPartitionResponse(asked.partition_index)
        try:
            partition = self._log.partition(topic, asked.partition_index)
            if asked.current_leader_epoch > LEADER_EPOCH:
                result.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
                return result
            result.timestamp, result.offset = await self._find(
                partition, asked.timestamp, is_committed=is_committed
            )
        except FrazilError as error:
            result.error_code = error_code(error)
        if result.offset != UNKNOWN and version >= EPOCH_VERSION:
            result.leader_epoch = LEADER_EPOCH
        return result

    async def _find(
        self, partition: Partition, timestamp_ms: int, *, is_committed: bool
    ) -> tuple[int, int]:
        """Return a timestamp, if one was looked for, and an offset."""
        view = partition.view
        if timestamp_ms == LATEST:
            end = view.last_stable_offset if is_committed else view.durable_watermark
            return UNKNOWN, end
        if timestamp_ms in (EARLIEST, EARLIEST_LOCAL):
            return UNKNOWN, view.start_offset
        if timestamp_ms == MAX_TIMESTAMP:
            timestamp_ms = max((s.info.max_timestamp_ms for s in view.segments), default=UNKNOWN)
        if timestamp_ms < 0:
            return UNKNOWN, UNKNOWN
        record = await self._threads.run(record_at_time, partition, timestamp_ms)
        return (UNKNOWN, UNKNOWN) if record is None else (record.timestamp_ms, record.offset)

    async def offset_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest, context: RequestContext
    ) -> OffsetForLeaderEpochResponse:
        """Return where an epoch ended. There is one, and it goes on."""
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                    topic.topic, [self._epoch_end(topic.topic, asked) for asked in topic.partitions]
                )
                for topic in request.topics
            ]
        )

    def _epoch_end(
        self, topic: str, asked: OffsetForLeaderEpochRequest.OffsetForLeaderPartition
    ) -> OffsetForLeaderEpochResponse.EpochEndOffset:
        result = OffsetForLeaderEpochResponse.EpochEndOffset(partition=asked.partition)
        try:
            partition = self._log.partition(topic, asked.partition)
        except FrazilError as error:
            result.error_code = error_code(error)
            return result
        if asked.current_leader_epoch > LEADER_EPOCH:
            result.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
        elif asked.leader_epoch == LEADER_EPOCH:
            result.leader_epoch = LEADER_EPOCH
            result.end_offset = partition.view.durable_watermark
        return result
