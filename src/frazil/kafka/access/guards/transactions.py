"""Guards of the APIs of transactions and producers."""

from __future__ import annotations

from frazil.kafka.access.acls import CLUSTER, AclOperation, ResourceType
from frazil.kafka.access.guards.checks import (
    CLUSTER_REFUSED,
    GROUP_REFUSED,
    NOT_ALLOWED,
    TOPIC_REFUSED,
    TRANSACTION_REFUSED,
    Guarded,
    split,
)
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import Reply
from frazil.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from frazil.kafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from frazil.kafka.wire.messages.describe_producers import DescribeProducersResponse
from frazil.kafka.wire.messages.describe_transactions import DescribeTransactionsResponse
from frazil.kafka.wire.messages.end_txn import EndTxnResponse
from frazil.kafka.wire.messages.init_producer_id import InitProducerIdResponse
from frazil.kafka.wire.messages.list_transactions import ListTransactionsResponse
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)


async def init_producer_id(guarded: Guarded) -> Reply:
    """Write by the transactional id. Without one: write idempotently, or to some topic."""
    caller, transactional_id = guarded.caller, guarded.request.transactional_id
    if transactional_id is not None:
        if caller.may_transaction(AclOperation.WRITE, transactional_id):
            return await guarded.go_on()
        return InitProducerIdResponse(error_code=TRANSACTION_REFUSED)
    idempotent = AclOperation.IDEMPOTENT_WRITE
    if caller.sees(idempotent, ResourceType.CLUSTER, CLUSTER) or caller.may_write_something():
        return await guarded.go_on()
    return InitProducerIdResponse(error_code=CLUSTER_REFUSED)


async def add_partitions(guarded: Guarded) -> Reply:
    """Write by the transactional id, and to all topics: one that is refused refuses all."""
    request, caller = guarded.request, guarded.caller
    if request.transactions and not caller.may_cluster(AclOperation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=CLUSTER_REFUSED)  # for brokers only
    topics = request.v3_and_below_topics
    codes: dict[str, ErrorCode] = {}
    if not caller.may_transaction(AclOperation.WRITE, request.v3_and_below_transactional_id):
        codes = {topic.name: TRANSACTION_REFUSED for topic in topics}
    else:
        may = {topic.name: caller.may_topic(AclOperation.WRITE, topic.name) for topic in topics}
        if all(may.values()):
            return await guarded.go_on()
        others = ErrorCode.OPERATION_NOT_ATTEMPTED
        codes = {name: others if allowed else TOPIC_REFUSED for name, allowed in may.items()}
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                        index, codes[topic.name]
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


async def add_offsets(guarded: Guarded) -> Reply:
    """Write by the transactional id, and read the group."""
    request, caller = guarded.request, guarded.caller
    if not caller.may_transaction(AclOperation.WRITE, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=TRANSACTION_REFUSED)
    if not caller.may_group(AclOperation.READ, request.group_id):
        return AddOffsetsToTxnResponse(error_code=GROUP_REFUSED)
    return await guarded.go_on()


async def end(guarded: Guarded) -> Reply:
    """Write by the transactional id."""
    if guarded.caller.may_transaction(AclOperation.WRITE, guarded.request.transactional_id):
        return await guarded.go_on()
    return EndTxnResponse(error_code=TRANSACTION_REFUSED)


async def commit_offsets(guarded: Guarded) -> Reply:
    """Write by the transactional id, read the group and the topics."""
    request, caller = guarded.request, guarded.caller
    if not caller.may_transaction(AclOperation.WRITE, request.transactional_id):
        return _uncommitted(request.topics, TRANSACTION_REFUSED)
    if not caller.may_group(AclOperation.READ, request.group_id):
        return _uncommitted(request.topics, GROUP_REFUSED)
    allowed, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.READ, topic.name)
    )
    if not refused:
        return await guarded.go_on()
    errors = _uncommitted(refused, TOPIC_REFUSED)
    if not allowed:
        return errors
    request.topics = allowed

    def add(response: TxnOffsetCommitResponse) -> None:
        response.topics += errors.topics

    return await guarded.answer_with(add)


def _uncommitted(
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic], code: ErrorCode
) -> TxnOffsetCommitResponse:
    partition_class = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    partition_class(each.partition_index, code) for each in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


async def describe_producers(guarded: Guarded) -> Reply:
    """Read topics."""
    request, caller = guarded.request, guarded.caller
    request.topics, refused = split(
        request.topics, lambda topic: caller.may_topic(AclOperation.READ, topic.name)
    )

    def add(response: DescribeProducersResponse) -> None:
        response.topics += [
            DescribeProducersResponse.TopicResponse(
                topic.name,
                [
                    DescribeProducersResponse.PartitionResponse(index, TOPIC_REFUSED, NOT_ALLOWED)
                    for index in topic.partition_indexes
                ],
            )
            for topic in refused
        ]

    return await guarded.answer_with(add)


async def describe_transactions(guarded: Guarded) -> Reply:
    """Describe transactional ids. Topics that a client may not see are left out."""
    request, caller = guarded.request, guarded.caller
    request.transactional_ids, refused = split(
        request.transactional_ids, lambda each: caller.may_transaction(AclOperation.DESCRIBE, each)
    )

    def add(response: DescribeTransactionsResponse) -> None:
        for each in response.transaction_states:
            each.topics = [topic for topic in each.topics if caller.sees_topic(topic.topic)]
        response.transaction_states += [
            DescribeTransactionsResponse.TransactionState(
                error_code=TRANSACTION_REFUSED, transactional_id=transactional_id
            )
            for transactional_id in refused
        ]

    return await guarded.answer_with(add)


async def list_transactions(guarded: Guarded) -> Reply:
    """List the transactional ids that a client may describe."""
    caller = guarded.caller

    def add(response: ListTransactionsResponse) -> None:
        response.transaction_states = [
            each
            for each in response.transaction_states
            if caller.sees(
                AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id
            )
        ]

    return await guarded.answer_with(add)
