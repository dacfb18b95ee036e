"""Expiry: forgets offsets that nobody asked for in a long time, and groups without any."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.administration import Administration
from frazil.kafka.groups.group import ClassicGroup
from frazil.kafka.groups.groups import Group, Groups
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.groups.records import NO_TIME, CommittedOffset
from frazil.metrics import Counter
from frazil.model import TopicPartition

OFFSETS_PER_STEP = 5_000
"""Offsets looked at in one go, so that members never wait long for their answers."""
PAUSE_MS = 20
REMOVED_PER_STEP = 1_000

EXPIRED = Counter("frazil.kafka.group.expired.offsets", "Offsets of groups that have expired.")


class Expiry:
    """Owned by one thread."""

    def __init__(
        self, groups: Groups, offsets: OffsetStore, administration: Administration
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._administration = administration

    def start(self) -> None:
        """Look at all groups, again and again."""
        self._groups.timers.after(self._groups.config.expiry_interval_ms, self._begin)

    def _begin(self) -> None:
        self._continue([group.group_id for group in self._groups])

    def _continue(self, group_ids: list[str]) -> None:
        looked_at = 0
        while group_ids and looked_at < OFFSETS_PER_STEP:
            group = self._groups.get(group_ids.pop())
            if group is not None and group.is_removable:
                looked_at += 1 + len(self._offsets.of_group(group.group_id))
                self._expire(group)
        if group_ids:
            self._groups.timers.after(PAUSE_MS, partial(self._continue, group_ids))
        else:
            self.start()

    def _expire(self, group: Group) -> None:
        known = self._offsets.known_partitions(group.group_id)
        if not known:
            self._remove(group)
            return
        offsets = self._offsets.of_group(group.group_id)
        expired = [each for each in self._old(group, offsets) if not self._is_busy(group, each)]
        for at in range(0, len(expired), REMOVED_PER_STEP):
            some = expired[at : at + REMOVED_PER_STEP]
            EXPIRED.add(len(some))
            self._administration.remove_offsets(group.group_id, some, _ignore)

    def _old(
        self, group: Group, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> list[TopicPartition]:
        now_ms = self._groups.time.now_ms()
        retention_ms = self._groups.config.offsets_retention_ms
        found = []
        for partition, each in offsets.items():
            since_ms = each.commit_ms
            if not isinstance(group, ClassicGroup) or group.protocol_type is not None:
                since_ms = max(since_ms, group.state_ms)
            expire_ms = since_ms + retention_ms
            if each.expire_ms != NO_TIME:
                expire_ms = each.expire_ms
            if now_ms >= expire_ms:
                found.append(partition)
        return found

    def _is_busy(self, group: Group, partition: TopicPartition) -> bool:
        return self._offsets.is_busy(group.group_id, partition)

    def _remove(self, group: Group) -> None:
        """Remove a group without members and offsets."""
        if not group.is_saved and not group.old_records:
            self._groups.remove(group)
            return
        self._groups.set_dead(group, True)

        def removed(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._groups.remove(group)
            else:
                self._groups.set_dead(group, False)

        self._administration.remove_offsets(group.group_id, (), removed, group=group)


def _ignore(_: ErrorCode) -> None:
    """An offset that could not be removed is looked at again next time."""
