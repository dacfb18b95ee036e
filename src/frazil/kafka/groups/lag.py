"""Lag: how many records a group has not committed yet, by partition."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from frazil.errors import Unknown
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.log import Log
from frazil.model import Clock, TopicPartition

COST_FACTOR = 20
"""A report is kept for this many times the time that it took."""


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


def lag_of(log: Log | ClientTopics, groups: Groups, offsets: OffsetStore) -> list[GroupLag]:
    """Return the lag of all groups. Partitions that no longer exist have none."""
    found = []
    # `list` and `sorted` copy: the owner of the groups may change them meanwhile.
    for group in list(groups):
        state, members = group.state, len(group.members)
        for partition, committed in sorted(offsets.of_group(group.group_id).items()):
            try:
                view = log.partition(*partition).view
            except Unknown:
                continue
            found.append(
                GroupLag(
                    group_id=group.group_id,
                    state=state,
                    members=members,
                    partition=partition,
                    committed_offset=committed.offset,
                    end_offset=view.last_stable_offset,
                )
            )
    return found


class RecentLag:
    """The lag of all groups for a status that is asked for often: with many offsets it is computed
    less often, so that it takes at most a twentieth of the time. Any thread may ask."""

    def __init__(self, compute: Callable[[], list[GroupLag]], clock: Clock) -> None:
        self._compute = compute
        self._clock = clock
        self._lock = threading.Lock()
        self._found: list[GroupLag] = []
        self._due_ns = clock.monotonic_ns()

    def get(self) -> list[GroupLag]:
        with self._lock:
            begin_ns = self._clock.monotonic_ns()
            if begin_ns >= self._due_ns:
                self._found = self._compute()
                end_ns = self._clock.monotonic_ns()
                self._due_ns = end_ns + COST_FACTOR * (end_ns - begin_ns)
            return self._found
