"""MarkerWriter: writes the markers of a transaction, until every partition has its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial

from frazil.errors import Fenced, Unknown
from frazil.kafka.groups.journal import TOPIC as OFFSETS_TOPIC
from frazil.kafka.groups.journal import Post, submit
from frazil.kafka.groups.offset_commits import OffsetCommits
from frazil.kafka.groups.timers import GroupTimers
from frazil.kafka.lone_client import LoneClient
from frazil.kafka.transactions.metadata import ProducerEpoch
from frazil.log import AppendResult, Log, Marker, append_of_marker
from frazil.metrics import Counter
from frazil.model import SteadyTime, TopicPartition

logger = logging.getLogger(__name__)

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
"""Where offsets of a transaction are. Their marker also applies them to their groups."""
COORDINATOR_EPOCH = 0
"""There is one coordinator, which never moves."""
RETRY_MS = 200
"""Pause before a marker is written again that the log did not take."""

MARKERS = Counter("frazil.kafka.transaction.markers", "Markers written to partitions.")
RETRIED = Counter(
    "frazil.kafka.transaction.retried.markers", "Markers that the log did not take at first."
)

Written = Callable[[], None]


class MarkerWriter:
    """Owned by one thread. The markers of one transaction share a group commit."""

    def __init__(
        self, log: Log, commits: OffsetCommits, *, timers: GroupTimers, time: SteadyTime, post: Post
    ) -> None:
        self._log = log
        self._commits = commits
        self._timers = timers
        self._time = time
        self._post = post

    def write(
        self,
        marker: Marker,
        producer: ProducerEpoch,
        partitions: Collection[TopicPartition],
        written: Written,
        *,
        lone: LoneClient | None = None,
    ) -> None:
        """Write a marker to each partition. Calls `written` when all are durable. The only one of a
        `lone` client is written by this thread."""
        missing = set(partitions)
        if not missing:
            written()

        def one_written(partition: TopicPartition) -> None:
            missing.remove(partition)
            if not missing:
                written()

        if len(missing) > 1:
            lone = None  # they share a group commit
        for partition in sorted(partitions):
            self._write(marker, producer, partition, partial(one_written, partition), lone)

    def _write(
        self,
        marker: Marker,
        producer: ProducerEpoch,
        partition: TopicPartition,
        written: Written,
        lone: LoneClient | None = None,
    ) -> None:
        def done(result: AppendResult | Exception | None) -> None:
            if isinstance(result, Exception) and not _is_moot(result, partition, producer):
                RETRIED.add()
                again = partial(self._write, marker, producer, partition, written)
                self._timers.after(RETRY_MS, again)
                return
            MARKERS.add()
            written()

        if partition == OFFSETS:
            self._commits.end_transaction(
                marker,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                coordinator_epoch=COORDINATOR_EPOCH,
                done=done,
            )
            return
        append = append_of_marker(
            marker,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=COORDINATOR_EPOCH,
            timestamp_ms=self._time.now_ms(),
        )
        submit(self._log, partition, append, self._post, done, frees_space=True, lone=lone)


def _is_moot(error: Exception, partition: TopicPartition, producer: ProducerEpoch) -> bool:
    """Return whether the partition needs no marker: it was deleted, or a later epoch has written
    there, which it could not before the transaction had ended."""
    if not isinstance(error, Unknown | Fenced):
        return False
    logger.warning(
        "a marker was not needed",
        extra={"partition": str(partition), "producer": producer.producer_id, "reason": str(error)},
    )
    return True
