"""Groups whose partitions the server assigns: who owns what, and who is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.records import by_topic
from frazil.kafka.groups.consumer_group import ConsumerGroup, MemberState
from frazil.kafka.groups.group import GroupState
from frazil.kafka.groups.member import JoiningClient
from frazil.kafka.wire.codec import encode
from frazil.kafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from frazil.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from frazil.kafka.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from frazil.kafka.wire.messages.describe_groups import DescribeGroupsRequest
from frazil.kafka.wire.messages.list_groups import ListGroupsRequest
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest
from frazil.kafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from frazil.settings import GroupsConfig, TopicConfig
from tests.kafka.groups.build import GROUP, REBALANCE_MS, TOPIC, Box, Consumer, Node, code_of
from tests.kafka.groups.build import settle as settle_classic
from tests.kafka.groups.server_assigned import (
    BEAT_MS,
    ServerConsumer,
    group_of,
    partitions_of,
    settle,
)
from tests.sim.disk import Faults

SESSION_MS = GroupsConfig().consumer_session_timeout_ms


@pytest.fixture
def node() -> Node:
    return Node()


def ask(node: Node, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
    """Send one request. By default it joins with what a member must send."""
    defaults = {"member_epoch": 0, "rebalance_timeout_ms": 1000, "topic_partitions": []}
    names = {"subscribed_topic_names": [TOPIC], "group_id": GROUP, "member_id": "m"}
    request = ConsumerGroupHeartbeatRequest(**{**defaults, **names, **fields})
    box: Box[ConsumerGroupHeartbeatResponse] = Box()
    client = JoiningClient(client_id="c", client_host="/here", api_version=version)
    node.coordinator.heartbeats.heartbeat(request, client, box)
    node.run()
    return box.got


def code(node: Node, version: int = 1, **fields: Any) -> ErrorCode:
    return ErrorCode(ask(node, version, **fields).error_code)


def test_members_share_the_partitions(node: Node) -> None:
    """They get even shares; one that joins later waits until the others have given up theirs."""
    first = ServerConsumer(node, "a")
    first.send()
    node.run()
    first.look()
    assert first.owned == partitions_of(node, TOPIC) and first.epoch == 1
    second = ServerConsumer(node, "b")
    second.send()
    node.run()
    second.look()
    assert second.owned == frozenset() and second.epoch == 2
    first.send()
    node.run()
    first.look()
    assert first.epoch == 1 and len(first.owned) == 3 and len(first.assigned) == 2
    settle(node, second, rounds=1)
    assert second.owned == frozenset(), "the first has not given it up yet"
    assert group_of(node).state is GroupState.RECONCILING
    settle(node, first, second)
    assert sorted(len(each.owned) for each in (first, second)) == [1, 2]
    assert first.owned | second.owned == partitions_of(node, TOPIC)
    assert group_of(node).state is GroupState.STABLE


@pytest.mark.parametrize("how", ["leave", "vanish", "keep what it must give up"])
def test_the_others_take_over(node: Node, how: str) -> None:
    first, second = ServerConsumer(node, "a"), ServerConsumer(node, "b")
    settle(node, first, second)
    old_epoch, owned = second.epoch, {each.partition for each in second.owned}
    match how:
        case "leave":
            second.leave()
            settle(node, first)
        case "vanish":
            settle(node, first, rounds=SESSION_MS // BEAT_MS + 2)
        case _:
            third = ServerConsumer(node, "c")
            node.log.add_partitions(TOPIC, 6)
            settle(node, first, second)
            assert len(second.owned) == 3
            for _ in range(REBALANCE_MS // BEAT_MS + 2):
                settle(node, first, third, rounds=1)
                if second.waiting is None:
                    second.send()  # without `revoke`
                node.run()
                second.look()
            assert ErrorCode.UNKNOWN_MEMBER_ID in second.errors
            return
    assert first.owned == partitions_of(node, TOPIC)
    stale = node.commit(min(owned), 5, generation=old_epoch, member_id="b")
    node.run()
    assert code_of(stale.got) is ErrorCode.UNKNOWN_MEMBER_ID and node.fetch() == {}


def test_new_partitions_and_topics_are_assigned(node: Node) -> None:
    """Also those that match a regular expression; internal ones never do."""
    named = ServerConsumer(node, "a", topics=(TOPIC, "later"))
    matched = ServerConsumer(node, "b", topics=(), regex="[lt].*|__.*")
    settle(node, named, matched)
    assert named.owned | matched.owned == partitions_of(node, TOPIC)
    epoch = group_of(node).data.epoch
    settle(node, named, matched)
    assert group_of(node).data.epoch == epoch, "nothing has changed"
    node.log.create_topic("later", TopicConfig(partitions=2))
    node.log.create_topic("lonely", TopicConfig(partitions=2))
    node.log.add_partitions(TOPIC, 5)
    settle(node, named, matched)
    assert named.owned | matched.owned == partitions_of(node, TOPIC, "later", "lonely")
    assert not named.owned & matched.owned
    assert partitions_of(node, "lonely") <= matched.owned
    node.log.delete_topic("later")
    node.coordinator.topic_deleted("later")
    settle(node, named, matched)
    assert named.owned | matched.owned == partitions_of(node, TOPIC, "lonely")


def test_the_assignor_that_members_ask_for(node: Node) -> None:
    node.log.add_partitions(TOPIC, 4)
    members = [ServerConsumer(node, name, assignor="range") for name in "ab"]
    settle(node, *members)
    assert [{p.partition for p in each.owned} for each in members] == [{0, 1}, {2, 3}]
    request = ConsumerGroupDescribeRequest(group_ids=[GROUP, "none"])
    found, missing = node.coordinator.descriptions.describe(request).groups
    assert (found.assignor_name, found.group_state) == ("range", "Stable")
    assert found.group_epoch == found.assignment_epoch == found.members[0].member_epoch
    assert [m.assignment.topic_partitions[0].partitions for m in found.members] == [[0, 1], [2, 3]]
    assert found.members[0].assignment == found.members[0].target_assignment
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_comes_back(node: Node) -> None:
    """It keeps its partitions if it comes back in time; nobody else can take its place before it
    has left."""
    static, other = ServerConsumer(node, "a", instance_id="one"), ServerConsumer(node, "b")
    settle(node, static, other)
    owned, epoch = static.owned, group_of(node).data.epoch
    thief = ServerConsumer(node, "c", instance_id="one")
    settle(node, thief, rounds=1)
    assert thief.errors == [ErrorCode.UNRELEASED_INSTANCE_ID]
    left = static.leave(-2)
    node.run()
    assert left.got.member_epoch == -2
    settle(node, other, rounds=2)
    settle(node, thief, rounds=1)
    assert thief.owned == owned and group_of(node).data.epoch == epoch
    assert code(node, member_id="a", member_epoch=epoch, instance_id="one") is (
        ErrorCode.FENCED_INSTANCE_ID
    )
    thief.leave(-2)
    settle(node, other, rounds=SESSION_MS // BEAT_MS + 2)
    assert other.owned == partitions_of(node, TOPIC)


def test_a_lost_answer(node: Node) -> None:
    """A member may repeat a request with its last epoch, as often as answers are lost."""
    first, second = ServerConsumer(node, "a"), ServerConsumer(node, "b")
    first.send()
    node.run()
    first.lose()
    settle(node, second, rounds=2)
    for _ in range(3):
        first.send()
        node.run()
        first.lose()
    settle(node, first, second)
    assert first.errors == second.errors == []
    assert first.owned | second.owned == partitions_of(node, TOPIC)


def test_an_old_request_is_fenced(node: Node) -> None:
    """One that was delayed claims partitions which its member has given up."""
    first, second = ServerConsumer(node, "a"), ServerConsumer(node, "b")
    settle(node, first, rounds=1)
    every = first.owned
    settle(node, first, second)
    assert (first.epoch, len(first.owned)) == (2, 2)
    kind = ConsumerGroupHeartbeatRequest.TopicPartitions
    for owned, expected in (
        (every, ErrorCode.FENCED_MEMBER_EPOCH),
        (first.owned, ErrorCode.NONE),
    ):
        listed = [kind(*each) for each in by_topic(owned).items()]
        assert code(node, member_id="a", member_epoch=1, topic_partitions=listed) is expected


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        (ErrorCode.INVALID_REQUEST, {"group_id": ""}),
        (ErrorCode.INVALID_REQUEST, {"member_id": ""}),
        (ErrorCode.INVALID_REQUEST, {"member_epoch": -3}),
        (ErrorCode.INVALID_REQUEST, {"member_epoch": -2}),
        (ErrorCode.INVALID_REQUEST, {"instance_id": ""}),
        (ErrorCode.INVALID_REQUEST, {"rebalance_timeout_ms": -1}),
        (ErrorCode.INVALID_REQUEST, {"topic_partitions": None}),
        (ErrorCode.INVALID_REQUEST, {"subscribed_topic_names": None}),
        (ErrorCode.INVALID_REQUEST, {"subscribed_topic_names": ["x" * 300_000]}),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, {"server_assignor": "sticky"}),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, {"subscribed_topic_regex": "a("}),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, {"subscribed_topic_regex": "(?=a)"}),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, {"subscribed_topic_regex": "((a{99}){99}){99}"}),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, {"subscribed_topic_regex": "a" * 1001}),
        (ErrorCode.UNKNOWN_MEMBER_ID, {"member_epoch": 1}),
        (ErrorCode.UNKNOWN_MEMBER_ID, {"member_epoch": -1}),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, {"group_id": "other"}),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, {}),
        (ErrorCode.FENCED_MEMBER_EPOCH, {"member_id": "a", "member_epoch": 7}),
        (ErrorCode.FENCED_MEMBER_EPOCH, {"member_id": "b"}),
        (ErrorCode.NONE, {"member_id": "a"}),
    ],
)
def test_who_is_refused(expected: ErrorCode, fields: dict[str, Any]) -> None:
    node = Node(config=GroupsConfig(members_max=2, groups_max=1))
    members = [ServerConsumer(node, name) for name in "ba"]
    settle(node, *members, rounds=3)
    answer = ask(node, **fields)
    assert ErrorCode(answer.error_code) is expected
    assert (answer.error_message is None) == (expected is ErrorCode.NONE)


def test_version_0_gets_its_member_id(node: Node) -> None:
    found = ask(node, 0, member_id="")
    assert found.member_id and found.member_epoch == 1
    assert encode(found, 0)


def test_offsets_need_the_current_epoch(node: Node) -> None:
    """Also in transactions and when they are fetched. Tools commit only without members."""
    member = ServerConsumer(node, "a")
    settle(node, member, rounds=1)
    codes = []
    for epoch, name in ((1, "a"), (0, "a"), (1, "x"), (-1, "")):
        box = node.commit(0, 5, generation=epoch, member_id=name)
        node.run()
        codes.append(code_of(box.got))
    unknown, stale = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH
    assert codes == [ErrorCode.NONE, stale, unknown, unknown]
    taken: Box[Any] = Box()
    each = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(0, 9)
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(TOPIC, [each])
    request = TxnOffsetCommitRequest(
        group_id=GROUP, member_id="a", generation_id=0, producer_id=1, topics=[topic]
    )
    node.coordinator.commits.commit_in_transaction(request, taken)
    assert code_of(taken.got) is ErrorCode.ILLEGAL_GENERATION
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    asked = [group_class(GROUP, name, epoch) for epoch, name in ((1, "a"), (0, "a"), (1, "x"))]
    asked.append(group_class(GROUP))
    answers = node.coordinator.queries.fetch(OffsetFetchRequest(groups=asked), 9).groups
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE, stale, unknown, 0]
    member.leave()
    box = node.commit(0, 6)
    node.run()
    tool = node.commit(0, 7)
    node.run()
    assert code_of(box.got) is unknown and code_of(tool.got) is ErrorCode.NONE
    assert node.fetch() == {0: (7, "", 0)}


def test_after_a_kill_members_go_on(node: Node) -> None:
    """Same epoch, same partitions, no rebalance; also in the middle of one."""
    first, second = ServerConsumer(node, "a", instance_id="i"), ServerConsumer(node, "b")
    third = ServerConsumer(node, "c", topics=(), regex=TOPIC)
    settle(node, first, second)
    data = group_of(node).data
    node.kill()
    loaded = group_of(node).data
    assert loaded.__dict__ == data.__dict__
    settle(node, first, second, rounds=1)
    assert group_of(node).data.epoch == data.epoch
    settle(node, third, rounds=1)
    first.send()
    node.run()
    assert group_of(node).members["a"].state is MemberState.UNREVOKED_PARTITIONS
    data = group_of(node).data
    node.kill()
    assert group_of(node).data.__dict__ == data.__dict__
    first.lose()
    settle(node, first, second, third)
    assert [len(each.owned) for each in (first, second, third)] == [1, 1, 1]
    assert first.errors == second.errors == third.errors == []
    node.kill()
    settle(node, first, third, rounds=SESSION_MS // BEAT_MS + 2)
    assert first.owned | third.owned == partitions_of(node, TOPIC)


def test_a_group_changes_its_protocol_when_it_is_empty(node: Node) -> None:
    """Numbers go on; while it has members, those of the other protocol are refused."""
    server, classic = ServerConsumer(node, "a"), Consumer(node)
    settle(node, server, rounds=1)
    settle_classic(node, classic, rounds=1)
    assert classic.errors == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    node.commit(0, 5, generation=1, member_id="a")
    server.leave()
    node.run()
    settle_classic(node, classic, rounds=4)
    assert classic.owned == {0, 1, 2} and classic.generation == 3
    settle(node, server, rounds=1)
    assert server.errors == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    node.kill()
    assert classic.heartbeat() is ErrorCode.NONE and node.fetch() == {0: (5, "", 0)}
    classic.leave()
    node.run()
    settle(node, server, rounds=2)
    assert server.owned == partitions_of(node, TOPIC) and server.epoch == 5
    node.kill()
    assert group_of(node).data.epoch == 5 and node.fetch() == {0: (5, "", 0)}


def test_tools_see_both_kinds(node: Node) -> None:
    member = ServerConsumer(node, "a")
    settle(node, member, rounds=1)
    node.commit(0, 1, group="classic")
    node.commit(0, 0, generation=1, member_id="a")
    node.run()
    lags = {each.group_id: each for each in node.coordinator.lag()}
    assert (lags[GROUP].state, lags[GROUP].members) == ("Stable", 1)
    for types, expected in (
        ([], {"classic": "Classic", GROUP: "Consumer"}),
        (["consumer"], {GROUP: "Consumer"}),
        (["Classic"], {"classic": "Classic"}),
    ):
        listed = node.coordinator.administration.list_groups(ListGroupsRequest(types_filter=types))
        assert {each.group_id: each.group_type for each in listed.groups} == expected
    request = DescribeGroupsRequest(groups=[GROUP])
    (found,) = node.coordinator.administration.describe(request, 6).groups
    assert (found.group_state, found.protocol_data) == ("Stable", "uniform")
    assert [each.member_id for each in found.members] == ["a"]
    codes = []
    for _ in range(2):
        box: Box[DeleteGroupsResponse] = Box()
        node.coordinator.administration.delete(DeleteGroupsRequest([GROUP]), box)
        node.run()
        codes.append(box.got.results[0].error_code)
        member.leave()
        node.run()
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    node.kill()
    assert node.coordinator.groups.get(GROUP) is None


def test_a_full_disk_changes_nothing(node: Node) -> None:
    """What is not stored is not told, and happens once there is space."""
    first, second = ServerConsumer(node, "a"), ServerConsumer(node, "b")
    settle(node, first, rounds=1)
    before = group_of(node).data
    node.disk.faults = Faults(capacity_bytes=0)
    settle(node, second, first, rounds=2)
    assert second.errors[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group_of(node).data is before and first.errors == []
    node.pass_time(2 * SESSION_MS)
    assert group_of(node).data is before, "its end could not be stored"
    node.disk.faults = Faults()
    node.log.maintain()
    node.pass_time(2 * BEAT_MS)
    assert group_of(node).state is GroupState.EMPTY
    settle(node, second, first)
    assert first.owned | second.owned == partitions_of(node, TOPIC)


PARTITION_LISTS = st.none() | st.lists(
    st.builds(
        ConsumerGroupHeartbeatRequest.TopicPartitions,
        st.sampled_from([bytes(16), b"x" * 16]),
        st.lists(st.integers(-1, 3), max_size=3),
    ),
    max_size=2,
)
REQUESTS = st.builds(
    ConsumerGroupHeartbeatRequest,
    group_id=st.just(GROUP),
    member_id=st.sampled_from(["a", "b", "c"]),
    member_epoch=st.integers(-3, 4) | st.just(0) | st.just(0),
    instance_id=st.none() | st.sampled_from(["i", "j"]),
    rebalance_timeout_ms=st.sampled_from([-1, 0, 1000]),
    subscribed_topic_names=st.none() | st.lists(st.sampled_from([TOPIC, "", "none"]), max_size=2),
    subscribed_topic_regex=st.sampled_from([None, "", ".*", "("]),
    server_assignor=st.sampled_from([None, "range", ""]),
    topic_partitions=st.just([]) | PARTITION_LISTS,
)


@given(st.lists(st.tuples(REQUESTS, st.sampled_from([0, 0, 1, SESSION_MS])), max_size=30))
def test_any_request_is_answered(steps: list[tuple[ConsumerGroupHeartbeatRequest, int]]) -> None:
    """Whatever clients send, together or one after the other; and a restart finds what was
    stored."""
    node = Node()
    boxes: list[Box[ConsumerGroupHeartbeatResponse]] = []
    client = JoiningClient(client_id="c", client_host="/here", api_version=1)
    for request, ms in steps:
        boxes.append(Box())
        node.coordinator.heartbeats.heartbeat(request, client, boxes[-1])
        if ms:
            node.pass_time(ms)
    node.run()
    for box in boxes:
        assert encode(box.got, 1)
    group = node.coordinator.groups.get(GROUP)
    if isinstance(group, ConsumerGroup) and group.is_saved:
        node.kill()
        assert group_of(node).data.__dict__ == group.data.__dict__
