"""reconcile: one step of a member from what it owns to what it shall own.

             target without some of its partitions
    Stable ───────────────────────────────────────> UnrevokedPartitions
      ^  │ others own some of its target                  │ it has given them up
      │  v                                                │
      │  UnreleasedPartitions <──────┬────────────────────┘
      └──── all are free ────────────┘

A partition is given to a member only when no other one owns it, or may still own it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from frazil.kafka.groups.consumer_group import (
    NO_PARTITIONS,
    ConsumerMember,
    IdPartition,
    MemberState,
    Partitions,
)


def is_reconciled(member: ConsumerMember, target_epoch: int) -> bool:
    """Return whether a member owns its target."""
    return member.state is MemberState.STABLE and member.epoch == target_epoch


def reconcile(
    member: ConsumerMember,
    *,
    told_epoch: int,
    owned: Partitions | None,
    target: Partitions,
    target_epoch: int,
    owners: Mapping[IdPartition, str],
) -> ConsumerMember:
    """Return the member after this step; the same one if it must wait.

    `told_epoch` is the last epoch that the member knows, and `owned` the partitions that it says
    it owns; None if it does not say.
    """
    if is_reconciled(member, target_epoch):
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(owned, member.revoking):
            return member
        epoch += 1
    assigned = member.assigned & target
    revoking = member.assigned - target
    state = MemberState.UNREVOKED_PARTITIONS
    if not (revoking and _still_owns(owned, revoking)):
        missing = target - assigned
        free = {each for each in missing if owners.get(each) in (None, member.member_id)}
        is_complete = len(free) == len(missing)
        state = MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS
        epoch, assigned, revoking = target_epoch, assigned | free, NO_PARTITIONS
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.previous_epoch if epoch == member.epoch else told_epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )


def _still_owns(owned: Partitions | None, revoking: Partitions) -> bool:
    return owned is None or not owned.isdisjoint(revoking)
