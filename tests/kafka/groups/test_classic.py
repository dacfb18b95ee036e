"""Classic groups: who owns what, and who is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.group import ClassicGroup, GroupState
from frazil.kafka.wire.codec import encode
from frazil.kafka.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from frazil.kafka.wire.messages.describe_groups import DescribeGroupsRequest
from frazil.kafka.wire.messages.leave_group import LeaveGroupRequest
from frazil.kafka.wire.messages.list_groups import ListGroupsRequest
from frazil.settings import GroupsConfig
from tests.kafka.groups.build import (
    GROUP,
    PARTITIONS,
    SESSION_MS,
    Box,
    Consumer,
    Node,
    code_of,
    settle,
)


@pytest.fixture
def node() -> Node:
    return Node()


def group_of(node: Node) -> ClassicGroup:
    group = node.coordinator.groups.classic(GROUP)
    assert group is not None
    return group


def owned(*consumers: Consumer) -> list[int]:
    """All partitions that are owned, sorted: each once if all is well."""
    return sorted(number for each in consumers for number in each.owned)


def test_members_share_the_partitions(node: Node) -> None:
    """Three members get one partition each, in one generation."""
    consumers = [Consumer(node, f"c{number}") for number in range(3)]
    settle(node, *consumers)
    assert owned(*consumers) == list(range(PARTITIONS))
    assert {each.generation for each in consumers} == {1}
    assert group_of(node).state is GroupState.STABLE


@pytest.mark.parametrize("how", ["leave", "vanish"])
def test_the_others_take_over(node: Node, how: str) -> None:
    """A member that leaves, or is silent for too long, loses its partitions."""
    first, second = Consumer(node, "first"), Consumer(node, "second")
    settle(node, first, second)
    if how == "leave":
        second.leave()
    settle(node, first, rounds=30)
    assert first.owned == frozenset(range(PARTITIONS))
    stale = node.commit(0, 5, generation=second.generation, member_id=second.member_id or "x")
    node.run()
    assert code_of(stale.got) is ErrorCode.UNKNOWN_MEMBER_ID
    assert node.fetch() == {}


def test_an_old_generation_cannot_commit(node: Node) -> None:
    """A member that missed a rebalance is refused, until it has joined again."""
    first = Consumer(node, "first")
    settle(node, first)
    generation = first.generation
    settle(node, first, Consumer(node, "second"))
    assert first.generation > generation
    late = node.commit(0, 5, generation=generation, member_id=first.member_id)
    now = node.commit(0, 6, generation=first.generation, member_id=first.member_id)
    node.run()
    assert code_of(late.got) is ErrorCode.ILLEGAL_GENERATION
    assert code_of(now.got) is ErrorCode.NONE
    assert node.fetch() == {0: (6, "", 0)}


def test_a_static_member_keeps_its_assignment(node: Node) -> None:
    """Its new process gets the same partitions without a rebalance; the old one is fenced."""
    static, other = Consumer(node, "s", instance_id="one"), Consumer(node, "d")
    settle(node, static, other)
    again = Consumer(node, "s", instance_id="one")
    settle(node, again, rounds=2)
    assert again.owned == static.owned
    assert again.generation == static.generation == other.generation
    assert static.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    assert other.heartbeat() is ErrorCode.NONE


def test_after_a_kill_members_go_on(node: Node) -> None:
    """The group is still there: same generation, same assignment, no rebalance."""
    consumers = [Consumer(node, f"c{number}") for number in range(2)]
    settle(node, *consumers)
    before = [each.owned for each in consumers]
    box = node.commit(1, 7, generation=1, member_id=consumers[0].member_id, metadata="note")
    node.run()
    assert code_of(box.got) is ErrorCode.NONE
    node.kill()
    assert [each.heartbeat() for each in consumers] == [ErrorCode.NONE] * 2
    assert node.fetch() == {1: (7, "note", 0)}
    assert [each.owned for each in consumers] == before
    node.pass_time(SESSION_MS + 1)
    assert consumers[0].heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_kill_before_the_assignment(node: Node) -> None:
    """Members that know their generation find it again, and the leader assigns in it. Others get
    another number."""
    consumers = [Consumer(node, f"c{number}") for number in range(2)]
    for each in consumers:
        each.join()
        each.look()
    node.pass_time(1100)
    assert all(each.joining is not None and each.joining.value for each in consumers)
    node.kill()
    for each in consumers:
        each.look()
    node.run()
    for each in consumers:
        each.look()
    assert owned(*consumers) == list(range(PARTITIONS))
    assert {each.generation for each in consumers} == {1}
    late = Consumer(node, "late")
    settle(node, late, *consumers)
    assert owned(late, *consumers) == list(range(PARTITIONS))
    assert late.generation > 1


def test_answers_wait_for_the_disk() -> None:
    """Members hear of a generation, and of its assignment, when it is durable and not before."""
    node = Node(config=GroupsConfig(initial_rebalance_delay_ms=0))
    member = Consumer(node, "c", version=3)
    member.join()
    assert member.joining is not None and member.joining.value is None
    node.run()
    member.look()
    assert member.syncing is not None and member.syncing.value is None
    node.run()
    member.look()
    assert member.owned == frozenset(range(PARTITIONS))


@pytest.mark.parametrize("version", range(10))
def test_every_version_can_be_answered(node: Node, version: int) -> None:
    """Responses have no field that an old version lacks, with static members and others."""
    static = Consumer(node, "s", instance_id="one", version=9)
    member = Consumer(node, "c", version=version)
    boxes: list[Box[Any] | None] = []
    for _ in range(4):
        for each in (member, static):
            if each.is_idle:
                each.join()
            boxes.append(each.joining)
            boxes.append(each.syncing)
        node.pass_time(1100)
        for box in boxes:
            if box is not None and box.value is not None:
                kind = type(box.value).VERSIONS
                encode(box.value, min(version, kind.valid.last))
        boxes = []
        member.look()
        static.look()
        node.run()
    administration = node.coordinator.administration
    described = administration.describe(DescribeGroupsRequest(groups=[GROUP, "none"]), version)
    encode(described, min(version, 6))
    encode(administration.list_groups(ListGroupsRequest()), min(version, 5))
    request = LeaveGroupRequest(group_id=GROUP, member_id=member.member_id)
    encode(node.coordinator.membership.leave(request, min(version, 5)), min(version, 5))


def test_a_client_that_never_comes_back(node: Node) -> None:
    """An id that was given and not used holds a rebalance up for a session, not for ever."""
    ghost, real = Consumer(node, "ghost"), Consumer(node, "real")
    settle(node, real)
    ghost.join()
    settle(node, real, rounds=1)
    other = Consumer(node, "other")
    settle(node, real, other, rounds=30)
    assert owned(real, other) == list(range(PARTITIONS))


def test_limits_have_codes() -> None:
    """Too many members, too many groups, too large metadata: each is refused by its code."""
    node = Node(config=GroupsConfig(members_max=1, groups_max=1, metadata_bytes_max=3))
    first, second = Consumer(node, "first"), Consumer(node, "second")
    settle(node, first)
    second.join()
    assert second.joining is not None
    assert second.joining.got.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    long = node.commit(0, 1, generation=1, member_id=first.member_id, metadata="four")
    other = node.commit(0, 1, group="another")
    node.run()
    assert code_of(long.got) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert code_of(other.got) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_tools_see_and_delete_groups(node: Node) -> None:
    """A group with members is described and kept; without members it can be deleted for good."""
    member = Consumer(node, "c")
    settle(node, member)
    node.commit(0, 5, generation=member.generation, member_id=member.member_id)
    administration = node.coordinator.administration
    (described,) = administration.describe(DescribeGroupsRequest(groups=[GROUP]), 6).groups
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert described.members[0].member_assignment == bytes(range(PARTITIONS))
    assert [g.group_id for g in administration.list_groups(ListGroupsRequest()).groups] == [GROUP]
    codes = []
    for _ in range(2):
        box: Box[DeleteGroupsResponse] = Box()
        administration.delete(DeleteGroupsRequest(groups_names=[GROUP]), box)
        node.run()
        codes.append(box.got.results[0].error_code)
        if member.member_id:
            member.leave()
            node.run()
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    node.kill()
    assert node.fetch() == {} and not len(node.coordinator.groups)


def test_a_deleted_group_stays_deleted(node: Node) -> None:
    """Its deletion covers a commit that is on its way, and nobody can use it meanwhile."""
    before = node.commit(0, 5)
    box: Box[DeleteGroupsResponse] = Box()
    node.coordinator.administration.delete(DeleteGroupsRequest(groups_names=[GROUP]), box)
    meanwhile = node.commit(1, 6)
    node.run()
    assert box.got.results[0].error_code == ErrorCode.NONE
    assert code_of(before.got) is ErrorCode.NONE
    assert code_of(meanwhile.got) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.kill()
    assert node.fetch() == {}
