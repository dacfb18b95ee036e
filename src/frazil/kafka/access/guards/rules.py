"""RULES: the guard of each API. An API without one is not offered while ACLs are on."""

from __future__ import annotations

from frazil.kafka.access.acls import AclOperation
from frazil.kafka.access.authorizer import Authorizer, Caller
from frazil.kafka.access.guards import cluster, groups, topics, transactions
from frazil.kafka.access.guards.checks import Guard, Guarded, TopicDirectory
from frazil.kafka.context import RequestContext
from frazil.kafka.router import ApiRouter, Handler, Reply, RoutedApi
from frazil.kafka.wire.messages.heartbeat import HeartbeatResponse
from frazil.kafka.wire.messages.join_group import JoinGroupResponse
from frazil.kafka.wire.messages.leave_group import LeaveGroupResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupResponse
from frazil.kafka.wire.schema import KafkaMessage


async def free(guarded: Guarded) -> Reply:
    """What every client may do."""
    return await guarded.go_on()


RULES: dict[int, Guard] = {
    0: topics.produce,
    1: topics.fetch,
    2: topics.list_offsets,
    3: topics.metadata,
    8: groups.offset_commit,
    9: groups.offset_fetch,
    10: groups.find_coordinator,
    11: groups.member(JoinGroupResponse),
    12: groups.member(HeartbeatResponse),
    13: groups.member(LeaveGroupResponse),
    14: groups.member(SyncGroupResponse),
    15: groups.describe_groups,
    16: groups.list_groups,
    17: free,  # SaslHandshake
    18: free,  # ApiVersions
    19: topics.create_topics,
    20: topics.delete_topics,
    21: topics.delete_records,
    22: transactions.init_producer_id,
    23: topics.offset_for_leader_epoch,
    24: transactions.add_partitions,
    25: transactions.add_offsets,
    26: transactions.end,
    28: transactions.commit_offsets,
    29: cluster.cluster(AclOperation.DESCRIBE, cluster.acls_unseen),
    30: cluster.cluster(AclOperation.ALTER, cluster.acls_uncreated),
    31: cluster.cluster(AclOperation.ALTER, cluster.acls_undeleted),
    32: cluster.describe_configs,
    33: cluster.alter_configs,
    35: cluster.cluster(AclOperation.DESCRIBE, cluster.log_dirs_unseen),
    36: free,  # SaslAuthenticate
    37: topics.create_partitions,
    42: groups.delete_groups,
    44: cluster.alter_configs,
    47: groups.offset_delete,
    48: cluster.cluster(AclOperation.DESCRIBE_CONFIGS, cluster.quotas_unseen),
    49: cluster.cluster(AclOperation.ALTER_CONFIGS, cluster.quotas_unchanged),
    50: cluster.cluster(AclOperation.DESCRIBE, cluster.users_unseen),
    51: cluster.cluster(AclOperation.ALTER, cluster.users_unchanged),
    60: cluster.describe_cluster,
    61: transactions.describe_producers,
    65: transactions.describe_transactions,
    66: transactions.list_transactions,
    68: groups.consumer_group_heartbeat,
    69: groups.consumer_group_describe,
    71: free,  # GetTelemetrySubscriptions
    72: free,  # PushTelemetry
    75: topics.describe_topic_partitions,
}


def guard_all(router: ApiRouter, authorizer: Authorizer, directory: TopicDirectory) -> None:
    """Put the guards around all handlers."""

    def guarded_handler(api: RoutedApi) -> Handler:
        guard, handle = RULES[api.key], api.handle

        async def checked(request: KafkaMessage, context: RequestContext) -> Reply:
            caller = Caller(authorizer, context.principal, context.client_host)
            return await guard(Guarded(request, context, handle, caller, directory))

        return checked

    router.replace_handlers(guarded_handler)
