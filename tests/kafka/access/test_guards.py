"""Every API of the port, in every version, refuses what no ACL allows, with Kafka's codes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from frazil.kafka.access.guards.rules import RULES
from frazil.kafka.wire.apis import APIS, message_class
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from frazil.kafka.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from frazil.kafka.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from frazil.kafka.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from frazil.kafka.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from frazil.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from frazil.kafka.wire.schema import KafkaMessage
from frazil.settings import TopicConfig
from tests.kafka.access.requests import (
    BATCH,
    CLUSTER,
    EVERYBODY,
    GROUP,
    HIDDEN,
    LISTS,
    REQUESTS,
    TOPIC,
    TRANSACTION,
)
from tests.kafka.port.opened import TIMEOUT_S, Client, OpenedPort, opened

REFUSALS = {TOPIC, GROUP, CLUSTER, TRANSACTION}
ALLOW, DENY = 3, 2
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, CREATE, DESCRIBE = 2, 3, 4, 5, 8
ON_TOPIC, ON_GROUP, ON_CLUSTER = 2, 3, 4
ME = "User:ANONYMOUS"
LEAVES = -1
"""Epoch of a member that leaves its group."""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[OpenedPort]:
    """A port whose clients may do nothing."""
    with opened(tmp_path, acls=True, super_users=("User:admin",)) as found:
        found.log.create_topic(HIDDEN, TopicConfig())
        yield found


@pytest.fixture
def client(port: OpenedPort) -> Iterator[Client]:
    with port.client() as found:
        yield found


def allow(port: OpenedPort, *acls: tuple[int, str, int, int, int]) -> None:
    """Add ACLs for the client: type, name, pattern, operation, permission."""
    creations = [
        CreateAclsRequest.AclCreation(kind, name, pattern, ME, "*", operation, permission)
        for kind, name, pattern, operation, permission in acls
    ]
    response = as_admin(port, CreateAclsResponse, CreateAclsRequest(creations=creations), 3)
    assert [each.error_code for each in response.results] == [0] * len(acls)


def as_admin(port: OpenedPort, kind: type[Any], request: KafkaMessage, version: int) -> Any:
    """Ask as a super user: the port has no login here, so the connection is given a principal."""
    with port.client() as client:
        client.ask(ApiVersionsResponse, ApiVersionsRequest(), 0)
        (connection,) = [
            each
            for each in port._kafka._shared.active
            if each.state.client.port == client.socket.getsockname()[1]
        ]
        connection.state.principal = "User:admin"
        return client.ask(kind, request, version)


def codes_in(value: object) -> set[int]:
    """Return all error codes in a response."""
    found: set[int] = set()
    if isinstance(value, list):
        for each in value:
            found |= codes_in(each)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            part = getattr(value, name)
            if name.endswith("error_code") and isinstance(part, int):
                found.add(part)
            else:
                found |= codes_in(part)
    return found


def offered(port: OpenedPort) -> dict[int, range]:
    return {
        key: range(api.versions.first, api.versions.last + 1)
        for key, api in port._kafka._shared.router._apis.items()
    }


def response_class(key: int) -> type[KafkaMessage]:
    request: type[KafkaMessage] = type(REQUESTS[key][1](0))
    return message_class(request.__module__.rpartition(".")[2], f"{APIS[key].name}Response")


def test_every_api_has_a_rule_and_is_tested(port: OpenedPort) -> None:
    """A new API cannot be forgotten."""
    assert set(offered(port)) <= set(RULES)
    tested = {*REQUESTS, *LISTS, *EVERYBODY}
    assert set(offered(port)) <= tested, "add it to tests/kafka/access/requests.py"


def test_what_no_acl_allows_is_refused(port: OpenedPort, client: Client) -> None:
    """In every version, and nothing has changed afterwards."""
    for key, versions in offered(port).items():
        if key not in REQUESTS:
            continue
        expected, request = REQUESTS[key]
        for version in versions:
            response = client.ask(response_class(key), request(version), version)
            code = {
                # The response has no code in these versions.
                (35, 1): set(),
                (35, 2): set(),
            }.get((key, version), {expected})
            found = codes_in(response) - {0}
            assert found == code, (APIS[key].name, version, response)
    (topic,) = [each for each in port.log.topics() if each.name == HIDDEN]
    assert len(topic.partitions) == 1
    assert topic.partitions[0].view.durable_watermark == 0


def test_who_may_do_everything_is_not_refused(port: OpenedPort) -> None:
    """The same requests, so that each of them is a request that the port understands."""
    known = REQUESTS.keys() & offered(port).keys()
    order = sorted(known, key=lambda key: key in (20, 42))  # deletions last
    for key in order:
        version = max(offered(port)[key])
        response = as_admin(port, response_class(key), REQUESTS[key][1](version), version)
        assert not codes_in(response) & REFUSALS, APIS[key].name


def test_what_cannot_be_seen_is_left_out(port: OpenedPort, client: Client) -> None:
    """Lists do not tell that it exists, nor does its creation; what is asked for is not created."""
    port.log.create_topic("seen", TopicConfig())
    allow(port, (ON_TOPIC, "see", PREFIXED, READ, ALLOW))
    for version in range(14):
        request = MetadataRequest(topics=None if version else [])
        listed = client.ask(MetadataResponse, request, version)
        assert [each.name for each in listed.topics] == ["seen"]
    for version in (0, 4, 12):
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in (HIDDEN, "absent")]
        answers = client.ask(MetadataResponse, MetadataRequest(topics=names), version).topics
        assert [(each.name, each.error_code) for each in answers] == [
            (HIDDEN, TOPIC),
            ("absent", TOPIC),
        ]
    by_id = MetadataRequest.MetadataRequestTopic(port.log.topic(HIDDEN).topic_id.bytes, None)
    unknown = MetadataRequest.MetadataRequestTopic(bytes(range(16)), None)
    answers = client.ask(MetadataResponse, MetadataRequest(topics=[by_id, unknown]), 12).topics
    assert [each.error_code for each in answers] == [100, 100]
    # May see it, not create it.
    named = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="seen-not-made")])
    (answer,) = client.ask(MetadataResponse, named, 12).topics
    assert answer.error_code == TOPIC and not port.log.has_topic("seen-not-made")
    allow(port, (ON_TOPIC, "seen-not", PREFIXED, CREATE, ALLOW))
    (answer,) = client.ask(MetadataResponse, named, 12).topics
    assert answer.error_code == 0 and port.log.has_topic("seen-not-made")


def test_a_request_is_refused_in_part(port: OpenedPort, client: Client) -> None:
    """The allowed topic is written and read, the other one is not; then the ACL is deleted."""
    port.log.create_topic("mine", TopicConfig())
    allow(port, (ON_TOPIC, "mine", LITERAL, ALL, ALLOW), (ON_GROUP, "g", LITERAL, READ, ALLOW))
    produce = ProduceRequest(
        acks=-1,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=name, partition_data=[ProduceRequest.PartitionProduceData(0, BATCH)]
            )
            for name in (HIDDEN, "mine")
        ],
    )
    written = {
        each.name: each.partition_responses[0].error_code
        for each in client.ask(ProduceResponse, produce, 9).responses
    }
    assert written == {"mine": 0, HIDDEN: TOPIC}
    fetch = FetchRequest(
        max_bytes=10**6,
        topics=[
            FetchRequest.FetchTopic(
                topic=name, partitions=[FetchRequest.FetchPartition(0, partition_max_bytes=10**6)]
            )
            for name in (HIDDEN, "mine")
        ],
    )
    read = client.ask(FetchResponse, fetch, 11).responses
    assert {each.topic: each.partitions[0].error_code for each in read} == written
    assert [bool(each.partitions[0].records) for each in read] == [True, False]
    find = FindCoordinatorRequest(coordinator_keys=["g", HIDDEN])
    found = client.ask(FindCoordinatorResponse, find, 4).coordinators
    assert {each.key: each.error_code for each in found} == {"g": 0, HIDDEN: GROUP}
    commit = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=name, partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(0, 1)]
            )
            for name in (HIDDEN, "mine")
        ],
    )
    committed = client.ask(OffsetCommitResponse, commit, 8).topics
    assert {each.name: each.partitions[0].error_code for each in committed} == written
    wanted = DeleteAclsRequest.DeleteAclsFilter(ON_TOPIC, "mine", LITERAL, None, None, 1, 1)
    deleted = as_admin(port, DeleteAclsResponse, DeleteAclsRequest(filters=[wanted]), 3)
    assert len(deleted.filter_results[0].matching_acls) == 1
    written = {
        each.name: each.partition_responses[0].error_code
        for each in client.ask(ProduceResponse, produce, 9).responses
    }
    assert written == {"mine": TOPIC, HIDDEN: TOPIC}


def test_a_denial_counts_more(port: OpenedPort, client: Client) -> None:
    port.log.create_topic("mine", TopicConfig())
    allow(port, (ON_TOPIC, "*", LITERAL, ALL, ALLOW), (ON_TOPIC, "hid", PREFIXED, READ, DENY))
    fetch = FetchRequest(
        topics=[
            FetchRequest.FetchTopic(topic=name, partitions=[FetchRequest.FetchPartition(0)])
            for name in (HIDDEN, "mine")
        ]
    )
    read = client.ask(FetchResponse, fetch, 11).responses
    assert {each.topic: each.partitions[0].error_code for each in read} == {
        HIDDEN: TOPIC,
        "mine": 0,
    }


def test_produce_without_a_response_ends_the_connection(port: OpenedPort, client: Client) -> None:
    request = REQUESTS[0][1](9)
    assert isinstance(request, ProduceRequest)
    request.acks = 0
    client.send(request, 9)
    assert client.is_closed()


def test_who_may_write_something_gets_a_producer_id(port: OpenedPort, client: Client) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    assert client.ask(InitProducerIdResponse, request, 4).error_code == CLUSTER
    allow(port, (ON_TOPIC, "mine", LITERAL, WRITE, ALLOW))
    assert client.ask(InitProducerIdResponse, request, 4).error_code == 0


def test_operations_that_are_allowed(port: OpenedPort, client: Client) -> None:
    """Filled when asked, with what the ACLs say."""
    allow(
        port,
        (ON_TOPIC, HIDDEN, LITERAL, WRITE, ALLOW),
        (ON_GROUP, HIDDEN, LITERAL, DESCRIBE, ALLOW),
        (ON_CLUSTER, "kafka-cluster", LITERAL, DESCRIBE, ALLOW),
    )
    metadata = MetadataRequest(
        topics=None,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = client.ask(MetadataResponse, metadata, 10)
    assert response.topics[0].topic_authorized_operations == 1 << WRITE | 1 << DESCRIBE
    assert response.cluster_authorized_operations == 1 << DESCRIBE
    cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
    described = client.ask(DescribeClusterResponse, cluster, 1)
    assert described.cluster_authorized_operations == 1 << DESCRIBE
    groups = DescribeGroupsRequest(groups=[HIDDEN], include_authorized_operations=True)
    (group,) = client.ask(DescribeGroupsResponse, groups, 5).groups
    assert group.authorized_operations == 1 << DESCRIBE


def test_groups_are_listed_for_who_may_see_them(port: OpenedPort, client: Client) -> None:
    allow(
        port,
        (ON_GROUP, "g", PREFIXED, READ, ALLOW),
        (ON_TOPIC, HIDDEN, LITERAL, READ, ALLOW),
    )
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(0, 1)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=HIDDEN, partitions=[partition])
    for group in ("g1", "other"):
        commit = OffsetCommitRequest(group_id=group, topics=[topic])
        as_admin(port, OffsetCommitResponse, commit, 8)
    listed = client.ask(ListGroupsResponse, ListGroupsRequest(), 4).groups
    assert [each.group_id for each in listed] == ["g1"]
    allow(port, (ON_CLUSTER, "kafka-cluster", LITERAL, DESCRIBE, ALLOW))
    listed = client.ask(ListGroupsResponse, ListGroupsRequest(), 4).groups
    assert {each.group_id for each in listed} == {"g1", "other"}


def test_a_regular_expression_matches_what_a_member_may_describe(
    port: OpenedPort, client: Client
) -> None:
    """Each member of a group by its own ACLs, also after these have changed; new topics as well."""
    for name in ("shop-a", "shop-b"):
        port.log.create_topic(name, TopicConfig(partitions=2))
    allow(port, (ON_GROUP, "g", LITERAL, READ, ALLOW), (ON_TOPIC, "shop-a", LITERAL, READ, ALLOW))
    client.ask(FindCoordinatorResponse, FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    me, admin = Matching("me"), Matching("admin")
    for _ in range(3):  # one gives up what the other gets
        assert me.beat(port, client) == {"shop-a"}
        found = admin.beat(port)
    assert {"shop-b", HIDDEN} <= found
    port.log.create_topic("shop-c", TopicConfig())
    allow(port, (ON_TOPIC, "shop-", PREFIXED, DESCRIBE, ALLOW))
    admin.epoch = LEAVES
    admin.beat(port)
    deadline_s = time.monotonic() + TIMEOUT_S
    while len(found := me.beat(port, client)) < 3 and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert found == {"shop-a", "shop-b", "shop-c"}


@dataclass
class Matching:
    """A member of group g that is subscribed to all topics, by a regular expression."""

    member_id: str
    epoch: int = 0
    owned: list[Any] = field(default_factory=list)

    def beat(self, port: OpenedPort, client: Client | None = None) -> set[str]:
        """Send a heartbeat, by default as a super user. Returns the topics of its partitions."""
        kind = ConsumerGroupHeartbeatRequest.TopicPartitions
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex=".*",
            topic_partitions=[kind(each.topic_id, each.partitions) for each in self.owned],
        )
        response_class = ConsumerGroupHeartbeatResponse
        if client is None:
            response = as_admin(port, response_class, request, 1)
        else:
            response = client.ask(response_class, request, 1)
        assert response.error_code == 0, response.error_message
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = response.assignment.topic_partitions
        return {port.log.topic_by_id(UUID(bytes=each.topic_id)).name for each in self.owned}


def test_acls_survive_a_restart(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"acls": True, "super_users": ("User:admin",)}
    with opened(tmp_path, **settings) as port:
        port.log.create_topic(HIDDEN, TopicConfig())
        allow(port, (ON_TOPIC, HIDDEN, LITERAL, READ, ALLOW))
    with opened(tmp_path, **settings) as port, port.client() as client:
        listed = client.ask(MetadataResponse, MetadataRequest(topics=None), 12)
        assert [each.name for each in listed.topics] == [HIDDEN]
