"""A request of each API that names a topic, a group or a transactional id called `hidden`."""

from __future__ import annotations

from collections.abc import Callable

from frazil.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from frazil.kafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from frazil.kafka.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from frazil.kafka.wire.messages.alter_configs import AlterConfigsRequest
from frazil.kafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from frazil.kafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from frazil.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from frazil.kafka.wire.messages.create_acls import CreateAclsRequest
from frazil.kafka.wire.messages.create_partitions import CreatePartitionsRequest
from frazil.kafka.wire.messages.create_topics import CreateTopicsRequest
from frazil.kafka.wire.messages.delete_acls import DeleteAclsRequest
from frazil.kafka.wire.messages.delete_groups import DeleteGroupsRequest
from frazil.kafka.wire.messages.delete_records import DeleteRecordsRequest
from frazil.kafka.wire.messages.delete_topics import DeleteTopicsRequest
from frazil.kafka.wire.messages.describe_acls import DescribeAclsRequest
from frazil.kafka.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from frazil.kafka.wire.messages.describe_configs import DescribeConfigsRequest
from frazil.kafka.wire.messages.describe_groups import DescribeGroupsRequest
from frazil.kafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from frazil.kafka.wire.messages.describe_producers import DescribeProducersRequest
from frazil.kafka.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from frazil.kafka.wire.messages.describe_transactions import DescribeTransactionsRequest
from frazil.kafka.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from frazil.kafka.wire.messages.end_txn import EndTxnRequest
from frazil.kafka.wire.messages.fetch import FetchRequest
from frazil.kafka.wire.messages.find_coordinator import FindCoordinatorRequest
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest
from frazil.kafka.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from frazil.kafka.wire.messages.init_producer_id import InitProducerIdRequest
from frazil.kafka.wire.messages.join_group import JoinGroupRequest
from frazil.kafka.wire.messages.leave_group import LeaveGroupRequest
from frazil.kafka.wire.messages.list_offsets import ListOffsetsRequest
from frazil.kafka.wire.messages.metadata import MetadataRequest
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest
from frazil.kafka.wire.messages.offset_delete import OffsetDeleteRequest
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest
from frazil.kafka.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from frazil.kafka.wire.messages.produce import ProduceRequest
from frazil.kafka.wire.messages.sync_group import SyncGroupRequest
from frazil.kafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from frazil.kafka.wire.schema import KafkaMessage
from frazil.log import Record, encode_batch

HIDDEN = "hidden"
TOPIC, GROUP, CLUSTER, TRANSACTION = 29, 30, 31, 53
"""Error codes."""
TOPIC_RESOURCE = 2
BATCH = encode_batch([Record(offset=0, timestamp_ms=1, key=b"k", value=b"v")])


def _offset_fetch(version: int) -> OffsetFetchRequest:
    request = OffsetFetchRequest
    if version < 8:
        return request(group_id=HIDDEN, topics=[request.OffsetFetchRequestTopic(HIDDEN, [0])])
    topic = request.OffsetFetchRequestTopics(name=HIDDEN, partition_indexes=[0])
    return request(groups=[request.OffsetFetchRequestGroup(HIDDEN, topics=[topic])])


def _delete_topics(version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[HIDDEN])
    return DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(HIDDEN)])


def _find_coordinator(version: int) -> FindCoordinatorRequest:
    if version < 4:
        return FindCoordinatorRequest(key=HIDDEN)
    return FindCoordinatorRequest(coordinator_keys=[HIDDEN])


REQUESTS: dict[int, tuple[int, Callable[[int], KafkaMessage]]] = {
    0: (
        TOPIC,
        lambda _: ProduceRequest(
            acks=-1,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=HIDDEN, partition_data=[ProduceRequest.PartitionProduceData(0, BATCH)]
                )
            ],
        ),
    ),
    1: (
        TOPIC,
        lambda _: FetchRequest(
            topics=[
                FetchRequest.FetchTopic(topic=HIDDEN, partitions=[FetchRequest.FetchPartition(0)])
            ]
        ),
    ),
    2: (
        TOPIC,
        lambda _: ListOffsetsRequest(
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    HIDDEN, [ListOffsetsRequest.ListOffsetsPartition(0)]
                )
            ]
        ),
    ),
    3: (
        TOPIC,
        lambda _: MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=HIDDEN)]),
    ),
    8: (
        GROUP,
        lambda _: OffsetCommitRequest(
            group_id=HIDDEN,
            topics=[
                OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=HIDDEN, partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(0)]
                )
            ],
        ),
    ),
    9: (GROUP, _offset_fetch),
    10: (GROUP, _find_coordinator),
    11: (GROUP, lambda _: JoinGroupRequest(group_id=HIDDEN)),
    12: (GROUP, lambda _: HeartbeatRequest(group_id=HIDDEN)),
    13: (GROUP, lambda _: LeaveGroupRequest(group_id=HIDDEN)),
    14: (GROUP, lambda _: SyncGroupRequest(group_id=HIDDEN)),
    15: (GROUP, lambda _: DescribeGroupsRequest(groups=[HIDDEN])),
    19: (
        TOPIC,
        lambda _: CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(HIDDEN, 1, 1)]),
    ),
    20: (TOPIC, _delete_topics),
    21: (
        TOPIC,
        lambda _: DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    HIDDEN, [DeleteRecordsRequest.DeleteRecordsPartition(0, -1)]
                )
            ]
        ),
    ),
    22: (
        TRANSACTION,
        lambda _: InitProducerIdRequest(transactional_id=HIDDEN, transaction_timeout_ms=1000),
    ),
    23: (
        TOPIC,
        lambda _: OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    HIDDEN, [OffsetForLeaderEpochRequest.OffsetForLeaderPartition(0)]
                )
            ]
        ),
    ),
    24: (
        TRANSACTION,
        lambda _: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=HIDDEN,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(HIDDEN, [0])],
        ),
    ),
    25: (TRANSACTION, lambda _: AddOffsetsToTxnRequest(transactional_id=HIDDEN, group_id=HIDDEN)),
    26: (TRANSACTION, lambda _: EndTxnRequest(transactional_id=HIDDEN)),
    28: (
        TRANSACTION,
        lambda _: TxnOffsetCommitRequest(
            transactional_id=HIDDEN,
            group_id=HIDDEN,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    HIDDEN, [TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(0)]
                )
            ],
        ),
    ),
    29: (
        CLUSTER,
        lambda _: DescribeAclsRequest(1, None, 1, None, None, operation=1, permission_type=1),
    ),
    30: (
        CLUSTER,
        lambda _: CreateAclsRequest(
            creations=[CreateAclsRequest.AclCreation(2, HIDDEN, 3, "User:ANONYMOUS", "*", 2, 3)]
        ),
    ),
    31: (
        CLUSTER,
        lambda _: DeleteAclsRequest(
            filters=[DeleteAclsRequest.DeleteAclsFilter(2, "other", 3, None, None, 1, 1)]
        ),
    ),
    32: (
        TOPIC,
        lambda _: DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.DescribeConfigsResource(TOPIC_RESOURCE, HIDDEN)]
        ),
    ),
    33: (
        TOPIC,
        lambda _: AlterConfigsRequest(
            resources=[AlterConfigsRequest.AlterConfigsResource(TOPIC_RESOURCE, HIDDEN)]
        ),
    ),
    35: (CLUSTER, lambda _: DescribeLogDirsRequest(topics=None)),
    37: (
        TOPIC,
        lambda _: CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.CreatePartitionsTopic(HIDDEN, 3, None)]
        ),
    ),
    42: (GROUP, lambda _: DeleteGroupsRequest(groups_names=[HIDDEN])),
    44: (
        TOPIC,
        lambda _: IncrementalAlterConfigsRequest(
            resources=[IncrementalAlterConfigsRequest.AlterConfigsResource(TOPIC_RESOURCE, HIDDEN)]
        ),
    ),
    47: (GROUP, lambda _: OffsetDeleteRequest(group_id=HIDDEN)),
    48: (CLUSTER, lambda _: DescribeClientQuotasRequest()),
    49: (
        CLUSTER,
        lambda _: AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequest.EntryData(
                    [AlterClientQuotasRequest.EntityData("user", HIDDEN)],
                    [AlterClientQuotasRequest.OpData("producer_byte_rate", 1e9)],
                )
            ]
        ),
    ),
    50: (CLUSTER, lambda _: DescribeUserScramCredentialsRequest()),
    51: (
        CLUSTER,
        lambda _: AlterUserScramCredentialsRequest(
            upsertions=[
                AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                    HIDDEN, 1, 4096, b"salt", b"password"
                )
            ]
        ),
    ),
    61: (
        TOPIC,
        lambda _: DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(HIDDEN, [0])]
        ),
    ),
    65: (TRANSACTION, lambda _: DescribeTransactionsRequest(transactional_ids=[HIDDEN])),
    68: (GROUP, lambda _: ConsumerGroupHeartbeatRequest(group_id=HIDDEN)),
    69: (GROUP, lambda _: ConsumerGroupDescribeRequest(group_ids=[HIDDEN])),
    75: (
        TOPIC,
        lambda _: DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(HIDDEN)]
        ),
    ),
}
"""By API: the error for who may nothing, and the request in a version. Also of APIs that the port
may offer one day."""

LISTS = {16, 66}
"""APIs that leave out what a client may not see."""
EVERYBODY = {17, 18, 36, 60, 71, 72}
"""APIs that need no permission."""
