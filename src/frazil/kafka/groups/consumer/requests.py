"""What a ConsumerGroupHeartbeat asks for, and whether it may: checks before anything changes."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from frazil.errors import Malformed
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer.assignors import ASSIGNORS
from frazil.kafka.groups.consumer.known_topics import compile_regex
from frazil.kafka.groups.consumer.records import read_partitions
from frazil.kafka.groups.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupData,
    ConsumerMember,
    Partitions,
)
from frazil.kafka.groups.member import JoiningClient
from frazil.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from frazil.settings import GroupsConfig

MEMBER_ID_VERSION = 1
"""From this version on clients make their own member ids (KIP-1082)."""
REGEXES_MAX = 50
"""Different regular expressions of one group. Each is compared with all topics when they change."""
NOT_SENT = -1


class Refusal(NamedTuple):
    """Why a request is refused."""

    code: ErrorCode
    message: str

    def response(self) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(error_code=self.code, error_message=self.message)


def owned_partitions(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    """Return what a member says it owns; None if that did not change."""
    return None if request.topic_partitions is None else read_partitions(request.topic_partitions)


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a member says all about itself, and wants to know all: it joins, or an answer
    was lost."""
    has_topics = (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None)
    is_whole = request.rebalance_timeout_ms != NOT_SENT and request.topic_partitions is not None
    return request.member_epoch == JOIN_EPOCH or (has_topics and is_whole)


def check_request(
    request: ConsumerGroupHeartbeatRequest, client: JoiningClient, config: GroupsConfig
) -> Refusal | None:
    """Check a request by itself."""
    problem = _problem(request, client.api_version)
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        names = ", ".join(ASSIGNORS)
        message = f"there is no assignor {request.server_assignor}; there are: {names}"
        return Refusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    if request.subscribed_topic_regex:
        try:
            compile_regex(request.subscribed_topic_regex)
        except Malformed as error:
            message = f"the regular expression cannot be used: {error}"
            return Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    if updated(new_member(request), request, client).size_bytes > config.member_bytes_max:
        message = "the member sends more than kafka.groups.member_bytes_max"
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return None


def _problem(request: ConsumerGroupHeartbeatRequest, api_version: int) -> str | None:
    epoch = request.member_epoch
    if not request.group_id:
        return "the group id is empty"
    if request.instance_id == "" or request.rack_id == "":
        return "the instance id or the rack id is empty; send null for none"
    if not request.member_id and (api_version >= MEMBER_ID_VERSION or epoch != JOIN_EPOCH):
        return "the member id is empty"
    if epoch < LEAVE_STATIC_EPOCH:
        return f"{epoch} is no member epoch"
    if epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        return "only a member with an instance id can leave for a while"
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms < 0:
            return "a member must send its rebalance timeout when it joins"
        if request.topic_partitions is None or request.topic_partitions:
            return "a member must own nothing when it joins"
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return "a member must send its subscription when it joins"
    elif request.rebalance_timeout_ms < NOT_SENT:
        return "the rebalance timeout is negative"
    return None


def new_member(request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return a member as it is before it has said anything."""
    return ConsumerMember(
        member_id=request.member_id,
        instance_id=None,
        rack_id=None,
        client_id="",
        client_host="",
        rebalance_timeout_ms=NOT_SENT,
        topics=(),
        regex=None,
        assignor=None,
    )


def updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: JoiningClient
) -> ConsumerMember:
    """Return the member with what it sent; the same one if nothing is new."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    instance_id, rack_id = request.instance_id, request.rack_id
    regex, assignor = request.subscribed_topic_regex, request.server_assignor
    found = replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=member.rack_id if rack_id is None else rack_id,
        client_id=client.client_id,
        client_host=client.client_host,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == NOT_SENT else timeout_ms
        ),
        topics=member.topics if names is None else tuple(sorted(set(names))),
        regex=member.regex if regex is None else regex or None,
        assignor=member.assignor if assignor is None else assignor,
    )
    return member if found == member else found


def find_member(
    data: ConsumerGroupData, request: ConsumerGroupHeartbeatRequest, config: GroupsConfig
) -> ConsumerMember | Refusal:
    """Return the member that sent a heartbeat: a known one, a new one, or a static one that comes
    back with another id."""
    known = data.members.get(request.member_id)
    if request.instance_id is None:
        if known is not None:
            return _check_epoch(known, request)
        return _check_new(data, request, config)
    holder = data.members.get(data.static.get(request.instance_id, ""))
    if request.member_epoch != JOIN_EPOCH:
        return _check_static(holder, request) or _check_epoch(_present(holder), request)
    if known is not None:
        if known.instance_id != request.instance_id:
            message = f"member {known.member_id} has another instance id, or none"
            return Refusal(ErrorCode.INVALID_REQUEST, message)
        return _check_epoch(known, request)
    if holder is None:
        return _check_new(data, request, config)
    if holder.epoch != LEAVE_STATIC_EPOCH:
        message = f"the member with instance id {request.instance_id} has not left yet"
        return Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    return replace(holder, member_id=request.member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)


def find_leaving(
    data: ConsumerGroupData, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember | Refusal:
    """Return the member that leaves."""
    if request.instance_id is None:
        known = data.members.get(request.member_id)
        return known or _unknown(request.member_id)
    holder = data.members.get(data.static.get(request.instance_id, ""))
    return _check_static(holder, request) or _present(holder)


def _present(member: ConsumerMember | None) -> ConsumerMember:
    assert member is not None
    return member


def _unknown(member_id: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no member {member_id}")


def _check_static(
    holder: ConsumerMember | None, request: ConsumerGroupHeartbeatRequest
) -> Refusal | None:
    if holder is None:
        return _unknown(f"with instance id {request.instance_id}")
    if holder.member_id != request.member_id:
        message = f"instance id {request.instance_id} belongs to another member now"
        return Refusal(ErrorCode.FENCED_INSTANCE_ID, message)
    return None


def _check_new(
    data: ConsumerGroupData, request: ConsumerGroupHeartbeatRequest, config: GroupsConfig
) -> ConsumerMember | Refusal:
    if request.member_epoch != JOIN_EPOCH:
        return _unknown(request.member_id)
    if len(data.members) >= config.members_max:
        return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group has too many members")
    return new_member(request)


def _check_epoch(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember | Refusal:
    """A member may also come with its previous epoch, if the answer with the last one was lost:
    then it owns no partition that it has not now."""
    if request.member_epoch == member.epoch:
        return member
    owned = owned_partitions(request)
    if (
        request.member_epoch == member.previous_epoch < member.epoch
        and owned is not None
        and owned <= member.assigned | member.revoking
    ):
        return member
    message = (
        f"the epoch of member {member.member_id} is {member.epoch}, not {request.member_epoch}; "
        "it must give up its partitions and join again"
    )
    return Refusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def check_limits(
    data: ConsumerGroupData, member: ConsumerMember, config: GroupsConfig
) -> Refusal | None:
    """Check the size of the group with what this member has sent."""
    known = data.members.get(member.member_id)
    growth_bytes = member.size_bytes - (0 if known is None else known.size_bytes)
    if growth_bytes > 0 and data.size_bytes + growth_bytes > config.group_bytes_max:
        message = "the subscriptions of the group exceed kafka.groups.group_bytes_max"
        return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    if member.regex is None or member.regex in data.regexes or len(data.regexes) < REGEXES_MAX:
        return None
    message = f"the group has {REGEXES_MAX} regular expressions already"
    return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def is_leaving(request: ConsumerGroupHeartbeatRequest) -> bool:
    return request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)
