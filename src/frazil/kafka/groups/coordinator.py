"""GroupCoordinator: all groups of the node. Synchronous; `handlers` connects it to the port.

request ──> coordinator ──> journal ──> log          responses that depend on a record wait
                ^              │                     until it is durable
                └── durable ───┘
"""

from __future__ import annotations

from frazil.errors import Unknown
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.administration import Administration
from frazil.kafka.groups.assignment import Assignment
from frazil.kafka.groups.consumer.descriptions import ConsumerDescriptions
from frazil.kafka.groups.consumer.heartbeats import ConsumerHeartbeats
from frazil.kafka.groups.consumer.known_topics import KnownTopics
from frazil.kafka.groups.consumer_group import ConsumerGroup
from frazil.kafka.groups.expiry import Expiry
from frazil.kafka.groups.group import ClassicGroup
from frazil.kafka.groups.groups import Groups
from frazil.kafka.groups.journal import Journal, Post
from frazil.kafka.groups.lag import GroupLag, RecentLag, lag_of
from frazil.kafka.groups.loader import load
from frazil.kafka.groups.membership import Membership
from frazil.kafka.groups.offset_commits import OffsetCommits
from frazil.kafka.groups.offset_queries import OffsetQueries
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.groups.rebalance import Rebalance
from frazil.kafka.groups.timers import GroupTimers
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.log import Log
from frazil.model import Clock, Rand, SteadyTime
from frazil.settings import GroupsConfig


class GroupCoordinator:
    """Owned by one thread: it calls every method, and runs what is posted and what is due."""

    def __init__(
        self,
        log: Log,
        config: GroupsConfig,
        *,
        clock: Clock,
        rand: Rand,
        post: Post,
        topics: ClientTopics | None = None,
        has_acls: bool = False,
    ) -> None:
        """Read `__consumer_offsets`, if it exists. `topics` are those that groups can read; without
        it, those of the log."""
        self._topics = topics or log
        self.recent_lag = RecentLag(self.lag, clock)
        self.timers = GroupTimers(clock)
        time = SteadyTime(clock)
        journal = Journal(log, time, post)
        self.groups = Groups(config, journal=journal, timers=self.timers, time=time, rand=rand)
        self.offsets = OffsetStore()
        if journal.has_topic:
            load(journal.partition, self.groups, self.offsets)
        self.known_topics = KnownTopics(self._topics, self.timers, has_acls=has_acls)
        self._rebalance = rebalance = Rebalance(self.groups)
        self.membership = Membership(self.groups, rebalance)
        self.assignment = Assignment(self.groups, rebalance)
        self.commits = OffsetCommits(self.groups, self.offsets, rebalance, self._partition_count)
        self.queries = OffsetQueries(self.groups, self.offsets)
        self.heartbeats = ConsumerHeartbeats(self.groups, self.known_topics)
        self.descriptions = ConsumerDescriptions(self.groups, self.known_topics)
        self.administration = Administration(
            self.groups, self.offsets, self.descriptions, self._partition_count
        )
        for group in self.groups:
            if isinstance(group, ConsumerGroup):
                self.heartbeats.resume(group)
            else:
                rebalance.resume(group)
        Expiry(self.groups, self.offsets, self.administration).start()

    def _partition_count(self, topic: str) -> int:
        try:
            return len(self._topics.topic(topic).partitions)
        except Unknown:
            return 0

    def stop(self) -> None:
        """Answer all members that wait: the port closes."""
        for group in self.groups:
            if isinstance(group, ClassicGroup):
                self._rebalance.abandon(group)

    def topic_deleted(self, topic: str) -> None:
        """Forget all offsets of a topic that no longer exists."""
        self.known_topics.refresh()
        for group_id in list(self.offsets.group_ids()):
            known = self.offsets.known_partitions(group_id)
            gone = [partition for partition in known if partition.topic == topic]
            if gone:
                self.administration.remove_offsets(group_id, gone, _ignore)

    def lag(self) -> list[GroupLag]:
        """Return how far each group is behind, by partition. Any thread may call it."""
        return lag_of(self._topics, self.groups, self.offsets)


def _ignore(_: ErrorCode) -> None:
    """Offsets of a deleted topic that stay do no harm: they expire with their group."""
