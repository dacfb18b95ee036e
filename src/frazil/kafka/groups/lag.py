"""Lag: how many records a group has not committed yet, by partition."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import Unknown
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.offsets import OffsetStore
from frazil.log import Log
from frazil.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """One partition that a group has committed an offset of."""

    group_id: str
    state: str
    members: int
    partition: TopicPartition
    committed_offset: int
    end_offset: int
    """Last stable offset: what a consumer of committed records can read."""

    @property
    def lag(self) -> int:
        """Offsets that are not committed. After compaction there are fewer records than that."""
        return max(0, self.end_offset - self.committed_offset)


def lag_of(log: Log, groups: Groups, offsets: OffsetStore) -> list[GroupLag]:
    """Return the lag of all groups. Partitions that no longer exist have none."""
    found = []
    # `list` and `sorted` copy: the owner of the groups may change them meanwhile.
    for group in list(groups):
        for partition, committed in sorted(offsets.of_group(group.group_id).items()):
            try:
                view = log.partition(*partition).view
            except Unknown:
                continue
            found.append(
                GroupLag(
                    group_id=group.group_id,
                    state=group.state,
                    members=len(group.members),
                    partition=partition,
                    committed_offset=committed.offset,
                    end_offset=view.last_stable_offset,
                )
            )
    return found
