"""Guards of the APIs of topics and their records."""

from __future__ import annotations

from typing import Any

from frazil.errors import Rejected
from frazil.kafka.access.acls import CLUSTER, AclOperation, ResourceType
from frazil.kafka.access.guards.checks import (
    NOT_ALLOWED,
    TOPIC_REFUSED,
    TRANSACTION_REFUSED,
    Guarded,
    split,
)
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import Reply
from frazil.kafka.wire.messages.create_partitions import CreatePartitionsResponse
from frazil.kafka.wire.messages.create_topics import CreateTopicsResponse
from frazil.kafka.wire.messages.delete_records import DeleteRecordsResponse
from frazil.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from frazil.kafka.wire.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.list_offsets import ListOffsetsResponse
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from frazil.kafka.wire.messages.produce import ProduceRequest, ProduceResponse

NOBODY = 0
"""No operation is allowed."""


async def metadata(guarded: Guarded) -> Reply:
    """Describe. What a client may not see is left out of a list, and is not created."""
    request, caller = guarded.request, guarded.caller
    is_all = request.topics is None or (guarded.context.api_version == 0 and not request.topics)
    refused: list[MetadataResponse.MetadataResponseTopic] = []
    if not is_all:
        allowed = []
        for asked in request.topics:
            code = _metadata_code(guarded, asked)
            if code is ErrorCode.NONE:
                allowed.append(asked)
            else:
                refused.append(
                    MetadataResponse.MetadataResponseTopic(code, asked.name, asked.topic_id)
                )
        request.topics = allowed

    def add(response: MetadataResponse) -> None:
        if is_all:
            topics = [each for each in response.topics if caller.sees_topic(each.name or "")]
        else:
            # Version 0 describes all topics if none is left.
            topics = response.topics if request.topics else []
        for each in topics:
            if request.include_topic_authorized_operations and not each.error_code:
                operations = caller.operations(ResourceType.TOPIC, each.name or "")
                each.topic_authorized_operations = operations
        response.topics = [*topics, *refused]
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = cluster_operations(guarded)

    return await guarded.answer_with(add)


def _metadata_code(guarded: Guarded, asked: MetadataRequest.MetadataRequestTopic) -> ErrorCode:
    caller, topics = guarded.caller, guarded.topics
    name = guarded.topic_name(asked.name, asked.topic_id)
    if name is None:
        return ErrorCode.NONE  # an id that does not exist: the handler says so
    if not caller.may_topic(AclOperation.DESCRIBE, name):
        return TOPIC_REFUSED if asked.name is not None else ErrorCode.UNKNOWN_TOPIC_ID
    would_create = guarded.request.allow_auto_topic_creation and topics.creates
    if would_create and not topics.has(name) and not caller.may_create(name):
        return TOPIC_REFUSED
    return ErrorCode.NONE


def cluster_operations(guarded: Guarded) -> int:
    """Return what a client may do with the cluster, if it may see it."""
    if not guarded.caller.may_cluster(AclOperation.DESCRIBE):
        return NOBODY
    return guarded.caller.operations(ResourceType.CLUSTER, CLUSTER)


async def produce(guarded: Guarded) -> Reply:
    """Write to topics, and by the transactional id, if there is one."""
    request, caller = guarded.request, guarded.caller
    code, refused = TRANSACTION_REFUSED, request.topic_data
    allowed: list[ProduceRequest.TopicProduceData] = []
    transactional_id = request.transactional_id
    if transactional_id is None or caller.may_transaction(AclOperation.WRITE, transactional_id):
        code = TOPIC_REFUSED
        allowed, refused = split(
            request.topic_data, lambda topic: _may(guarded, topic, AclOperation.WRITE)
        )
    if not refused:
        return await guarded.go_on()
    request.topic_data = allowed

    def add(response: ProduceResponse) -> None:
        response.responses += [_unwritten(topic, code) for topic in refused]

    reply = await guarded.answer_with(add)
    if request.acks == 0:  # no response can tell: the connection is closed, as Kafka does
        raise Rejected(NOT_ALLOWED)
    return reply


def _may(guarded: Guarded, topic: Any, operation: AclOperation) -> bool:
    name = guarded.topic_name(topic.name, topic.topic_id)
    return name is None or guarded.caller.may_topic(operation, name)


def _unwritten(
    topic: ProduceRequest.TopicProduceData, code: ErrorCode
) -> ProduceResponse.TopicProduceResponse:
    return ProduceResponse.TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            ProduceResponse.PartitionProduceResponse(
                index=each.index, error_code=code, base_offset=-1, error_message=NOT_ALLOWED
            )
            for each in topic.partition_data
        ],
    )


async def fetch(guarded: Guarded) -> Reply:
    """Read topics."""
    request = guarded.request

    def is_allowed(topic: FetchRequest.FetchTopic) -> bool:
        name = guarded.topic_name(topic.topic, topic.topic_id)
        return name is None or guarded.caller.may_topic(AclOperation.READ, name)

    allowed, refused = split(request.topics, is_allowed)
    if not refused:
        return await guarded.go_on()
    request.topics = allowed

    def add(response: FetchResponse) -> None:
        response.responses += [
            FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    FetchResponse.PartitionData(each.partition, TOPIC_REFUSED, -1)
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def list_offsets(guarded: Guarded) -> Reply:
    """Describe topics."""
    request, caller = guarded.request, guarded.caller
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.DESCRIBE, topic.name)
    )

    def add(response: ListOffsetsResponse) -> None:
        response.topics += [
            ListOffsetsResponse.ListOffsetsTopicResponse(
                topic.name,
                [
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        each.partition_index, TOPIC_REFUSED
                    )
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def offset_for_leader_epoch(guarded: Guarded) -> Reply:
    """Describe topics."""
    request, caller = guarded.request, guarded.caller
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.DESCRIBE, topic.topic)
    )

    def add(response: OffsetForLeaderEpochResponse) -> None:
        response.topics += [
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic.topic,
                [
                    OffsetForLeaderEpochResponse.EpochEndOffset(TOPIC_REFUSED, each.partition)
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def create_topics(guarded: Guarded) -> Reply:
    """Create any topic in the cluster, or this one. Settings are shown to who may see them."""
    request, caller = guarded.request, guarded.caller
    request.topics, refused = split(request.topics, lambda topic: caller.may_create(topic.name))

    def add(response: CreateTopicsResponse) -> None:
        for topic in response.topics:
            is_seen = caller.sees(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
            if not topic.error_code and not is_seen:
                topic.topic_config_error_code = TOPIC_REFUSED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        response.topics += [
            CreateTopicsResponse.CreatableTopicResult(
                name=topic.name, error_code=TOPIC_REFUSED, error_message=NOT_ALLOWED
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def delete_topics(guarded: Guarded) -> Reply:
    """Delete topics. An id whose topic a client may not see does not exist for it."""
    request = guarded.request
    asked = request.topics or [
        DeleteTopicsRequest.DeleteTopicState(name) for name in request.topic_names
    ]
    codes = {id(each): _deletion_code(guarded, each) for each in asked}
    allowed, refused = split(asked, lambda each: codes[id(each)] is ErrorCode.NONE)
    request.topics, request.topic_names = allowed, []

    def add(response: DeleteTopicsResponse) -> None:
        response.responses += [
            DeleteTopicsResponse.DeletableTopicResult(
                each.name, each.topic_id, codes[id(each)], NOT_ALLOWED
            )
            for each in refused
        ]

    return await guarded.answer_with(add)


def _deletion_code(guarded: Guarded, asked: DeleteTopicsRequest.DeleteTopicState) -> ErrorCode:
    name = guarded.topic_name(asked.name, asked.topic_id)
    if name is None or guarded.caller.may_topic(AclOperation.DELETE, name):
        return ErrorCode.NONE
    is_hidden = asked.name is None and not guarded.caller.sees_topic(name)
    return ErrorCode.UNKNOWN_TOPIC_ID if is_hidden else TOPIC_REFUSED


async def delete_records(guarded: Guarded) -> Reply:
    """Delete from topics."""
    request, caller = guarded.request, guarded.caller
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.DELETE, topic.name)
    )

    def add(response: DeleteRecordsResponse) -> None:
        response.topics += [
            DeleteRecordsResponse.DeleteRecordsTopicResult(
                topic.name,
                [
                    DeleteRecordsResponse.DeleteRecordsPartitionResult(
                        each.partition_index, -1, TOPIC_REFUSED
                    )
                    for each in topic.partitions
                ],
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def create_partitions(guarded: Guarded) -> Reply:
    """Alter topics."""
    request, caller = guarded.request, guarded.caller
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.ALTER, topic.name)
    )

    def add(response: CreatePartitionsResponse) -> None:
        response.results += [
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                topic.name, TOPIC_REFUSED, NOT_ALLOWED
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def describe_topic_partitions(guarded: Guarded) -> Reply:
    """Describe topics; without names all that a client may see."""
    request, caller = guarded.request, guarded.caller
    is_all = not request.topics
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.DESCRIBE, topic.name)
    )
    topic_class = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    errors = [topic_class(error_code=TOPIC_REFUSED, name=topic.name) for topic in refused]
    if refused and not request.topics:
        return DescribeTopicPartitionsResponse(topics=errors)

    def add(response: DescribeTopicPartitionsResponse) -> None:
        topics = response.topics
        if is_all:
            topics = [each for each in topics if caller.sees_topic(each.name or "")]
        for each in topics:
            if not each.error_code:
                operations = caller.operations(ResourceType.TOPIC, each.name or "")
                each.topic_authorized_operations = operations
        response.topics = sorted([*topics, *errors], key=lambda each: each.name or "")

    return await guarded.answer_with(add)
