"""OffsetCommits: OffsetCommit, TxnOffsetCommit and the end of a transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.offset_checks import check_commit
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.kafka.groups.errors import storage_error
from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.groups.groups import Group, Groups
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.groups.member import Reply
from frazil.kafka.groups.offsets import Offsets, OffsetStore
from frazil.kafka.groups.rebalance import Rebalance
from frazil.kafka.groups.records import NO_TIME, CommittedOffset, offset_record
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.log import AppendResult, Marker
from frazil.metrics import Counter
from frazil.model import TopicPartition

PartitionCount = Callable[[str], int]
"""Returns the number of partitions of a topic; 0 if there is no such topic."""

COMMITTED = Counter("frazil.kafka.group.committed.offsets", "Offsets committed by groups.")
REFUSED = Counter("frazil.kafka.group.refused.offsets", "Offsets refused, by error.")

Topics = (
    Sequence[OffsetCommitRequest.OffsetCommitRequestTopic]
    | Sequence[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]
)
Errors = dict[TopicPartition, ErrorCode]
Committed = Callable[[ErrorCode], None]


class OffsetCommits:
    """Owned by one thread."""

    def __init__(
        self,
        groups: Groups,
        offsets: OffsetStore,
        rebalance: Rebalance,
        partition_count: PartitionCount,
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._rebalance = rebalance
        self._partition_count = partition_count

    def commit(
        self, request: OffsetCommitRequest, api_version: int, reply: Reply[OffsetCommitResponse]
    ) -> None:
        """Store offsets, and answer once they are durable."""
        group, error = self._check(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            api_version=api_version,
        )
        if group is None:
            reply(_commit_response(request, {}, error))
            return
        offsets, errors = self._take(request.topics, request.retention_time_ms)

        def answer(error: ErrorCode) -> None:
            reply(_commit_response(request, errors, error))

        self._append(group.group_id, offsets, answer)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, reply: Reply[TxnOffsetCommitResponse]
    ) -> None:
        """Store offsets of a producer's open transaction. They count when `end_transaction` says
        so; until then consumers that want stable offsets are told to wait. The caller has checked
        the producer."""
        group, error = self._check(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
        )
        if group is None:
            reply(staged_response(request, {}, error))
            return
        offsets, errors = self._take(request.topics, NO_TIME)

        def answer(error: ErrorCode) -> None:
            reply(staged_response(request, errors, error))

        producer = (request.producer_id, request.producer_epoch)
        self._append(group.group_id, offsets, answer, producer)

    def end_transaction(
        self,
        marker: Marker,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        done: Callable[[Exception | None], None],
    ) -> None:
        """Write the marker of a producer's transaction, then apply or drop its offsets. Calls
        `done` when both are done, or with the reason why the marker is not stored."""

        def written(result: AppendResult | Exception) -> None:
            if isinstance(result, Exception):
                done(result)
                return
            self._offsets.end_transaction(producer_id, marker)
            done(None)

        self._groups.journal.append_marker(
            marker,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            done=written,
        )

    def _check(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        api_version: int | None = None,
    ) -> tuple[Group | None, ErrorCode]:
        """Return the group; None with an error if this client may not commit for it. The version
        is that of OffsetCommit; in a transaction there is none."""
        is_transactional = api_version is None
        group = self._groups.get(group_id)
        if group is None:
            if generation >= 0:
                return None, ErrorCode.ILLEGAL_GENERATION
            group = self._groups.create(group_id)
            return group, ErrorCode.NONE if group else ErrorCode.GROUP_MAX_SIZE_REACHED
        if isinstance(group, ConsumerGroup):
            error = check_commit(group, member_id, generation, api_version)
            return (group if error is ErrorCode.NONE else None), error
        error = _check_member(group, member_id, instance_id, generation, is_transactional)
        if error is not ErrorCode.NONE:
            return None, error
        if member_id in group.members:
            self._rebalance.heard(group, group.members[member_id])
        return group, ErrorCode.NONE

    def _take(self, topics: Topics, retention_ms: int) -> tuple[Offsets, Errors]:
        """Return the offsets to store, and the errors of others."""
        config = self._groups.config
        now_ms = self._groups.time.now_ms()
        expire_ms = now_ms + retention_ms if retention_ms >= 0 else NO_TIME
        room = config.offsets_max - self._offsets.count
        offsets: Offsets = {}
        errors: Errors = {}
        for topic in topics:
            count = self._partition_count(topic.name)
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition_index)
                metadata = each.committed_metadata or ""
                if not 0 <= each.partition_index < count:
                    errors[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif len(metadata.encode()) > config.metadata_bytes_max:
                    errors[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
                elif len(offsets) >= room:
                    errors[key] = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
                else:
                    offsets[key] = CommittedOffset(
                        each.committed_offset,
                        each.committed_leader_epoch,
                        metadata,
                        now_ms,
                        expire_ms,
                    )
        for error in errors.values():
            REFUSED.add(error=error.name)
        return offsets, errors

    def _append(
        self,
        group_id: str,
        offsets: Offsets,
        answer: Committed,
        producer: tuple[int, int] | None = None,
    ) -> None:
        if not offsets:
            answer(ErrorCode.NONE)
            return
        records: list[KeyValue] = [
            offset_record(group_id, partition, each) for partition, each in offsets.items()
        ]
        self._offsets.begin(group_id, offsets)
        journal = self._groups.journal
        if producer is None:
            journal.append(records, partial(self._appended, group_id, offsets, answer, None))
        else:
            done = partial(self._appended, group_id, offsets, answer, producer[0])
            journal.append_transactional(records, *producer, done)

    def _appended(
        self,
        group_id: str,
        offsets: Offsets,
        answer: Committed,
        producer_id: int | None,
        result: AppendResult | Exception,
    ) -> None:
        self._offsets.end(group_id, offsets)
        if isinstance(result, Exception):
            answer(storage_error(result))
            return
        for number, (partition, each) in enumerate(offsets.items()):
            durable = each._replace(log_offset=result.base_offset + number)
            if producer_id is None:
                self._offsets.put(group_id, partition, durable)
            else:
                self._offsets.stage(producer_id, group_id, partition, durable)
        COMMITTED.add(len(offsets))
        answer(ErrorCode.NONE)


def _check_member(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    is_transactional: bool,
) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE  # a tool, or a consumer that assigns itself
    if generation >= 0 or member_id or instance_id is not None:
        error = group.check_generation(member_id, instance_id, generation)
        if error is not ErrorCode.NONE:
            return error
    elif not is_transactional:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not is_transactional and group.state is GroupState.COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _commit_response(
    request: OffsetCommitRequest, errors: Errors, error: ErrorCode
) -> OffsetCommitResponse:
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    partition_class = OffsetCommitResponse.OffsetCommitResponsePartition
    return OffsetCommitResponse(
        topics=[
            topic_class(
                name=topic.name,
                partitions=[partition_class(*each) for each in _codes(topic, errors, error)],
            )
            for topic in request.topics
        ]
    )


def staged_response(
    request: TxnOffsetCommitRequest, errors: Errors, error: ErrorCode
) -> TxnOffsetCommitResponse:
    """Return the response: `error` for each partition without its own."""
    topic_class = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
    partition_class = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    return TxnOffsetCommitResponse(
        topics=[
            topic_class(
                name=topic.name,
                partitions=[partition_class(*each) for each in _codes(topic, errors, error)],
            )
            for topic in request.topics
        ]
    )


def _codes(
    topic: OffsetCommitRequest.OffsetCommitRequestTopic
    | TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic,
    errors: Errors,
    error: ErrorCode,
) -> list[tuple[int, ErrorCode]]:
    """Return the number of each partition, and its code."""
    indexes = [each.partition_index for each in topic.partitions]
    return [(index, errors.get(TopicPartition(topic.name, index), error)) for index in indexes]
