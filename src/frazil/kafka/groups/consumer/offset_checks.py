"""Who may commit and fetch offsets of a group whose partitions the server assigns."""

from __future__ import annotations

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.kafka.groups.groups import Group

MEMBER_EPOCH_VERSION = 9
"""From this version on OffsetCommit has the error STALE_MEMBER_EPOCH."""


def check_commit(
    group: ConsumerGroup, member_id: str, epoch: int, api_version: int | None
) -> ErrorCode:
    """Return the error of a commit. The version is that of OffsetCommit; None in a transaction."""
    if group.is_dead:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if epoch < 0 and group.is_removable:
        return ErrorCode.NONE  # a tool, or a consumer that assigns itself
    member = group.members.get(member_id)
    is_leaving = group.pending is not None and member_id not in group.pending.members
    if member is None or is_leaving:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if api_version is not None and api_version < MEMBER_EPOCH_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch != member.epoch:
        # TxnOffsetCommit has no STALE_MEMBER_EPOCH.
        return ErrorCode.ILLEGAL_GENERATION if api_version is None else ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def check_fetch(group: Group | None, member_id: str | None, epoch: int) -> ErrorCode:
    """Return the error of OffsetFetch. Clients before version 9, and tools, name no member."""
    if not isinstance(group, ConsumerGroup) or (member_id is None and epoch < 0):
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH
