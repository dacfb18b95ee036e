"""TransactionMetadata: what the coordinator knows of a transactional id, and how it changes.

Empty ──add──> Ongoing ──end──> PrepareCommit ──markers──> CompleteCommit ──add──> Ongoing
                  │                                             │
                  └──end, timeout, new producer──> PrepareAbort ──markers──> CompleteAbort

InitProducerId leads from Empty and Complete to Empty, with the next epoch. Everything here is a
value: a change returns another one, which counts once its record is durable.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from frazil.log import Marker
from frazil.model import TopicPartition

NO_PRODUCER = -1
NO_EPOCH = -1
NO_TIME = -1
EPOCH_MAX = 2**15 - 1
"""Never told to a client: only fencing and the end of the last transaction use it."""
EPOCH_LAST = EPOCH_MAX - 1
"""After this epoch a transactional id gets another producer id."""
IMPLICIT_VERSION = 2
"""Version of the protocol that adds partitions implicitly and bumps the epoch at each end."""


class TransactionState(enum.IntEnum):
    """Numbers are those of Kafka's record format."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def label(self) -> str:
        """The name that Kafka's tools show: `PrepareCommit`."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the transaction is decided, and its markers are not all written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_open(self) -> bool:
        """Whether partitions may have records without a marker."""
        return self is TransactionState.ONGOING or self.is_prepared


class ProducerEpoch(NamedTuple):
    """A producer id with its epoch."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id at one moment."""

    transactional_id: str
    producer_id: int
    epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    """Takes effect when the markers are written: the epochs of the current one are used up."""
    last_epoch: int = NO_EPOCH
    """The epoch before the current one, if the same client had it. Not stored."""
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    update_ms: int = NO_TIME
    client_version: int = 0
    """Version of the protocol that the client used for this transaction: 0 or 2."""

    @property
    def producer(self) -> ProducerEpoch:
        return ProducerEpoch(self.producer_id, self.epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the next epoch needs another producer id."""
        return self.epoch >= EPOCH_LAST

    @property
    def marker(self) -> Marker:
        """The marker of a prepared transaction."""
        assert self.state.is_prepared
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        return Marker.COMMIT if is_commit else Marker.ABORT

    def initialized(
        self, *, timeout_ms: int, expected: ProducerEpoch | None, fresh_id: int, now_ms: int
    ) -> TransactionMetadata | None:
        """Return this id for a producer that starts, or goes on after an error as `expected`. None
        if another producer has taken the id over."""
        if expected is not None and not self._may_continue(expected):
            return None
        producer_id, previous_id = self.producer_id, self.previous_producer_id
        epoch, last_epoch = self.epoch + 1, NO_EPOCH if expected is None else self.epoch
        if self.is_exhausted and (expected is None or expected.epoch == self.epoch):
            producer_id, previous_id, epoch = fresh_id, self.producer_id, 0
        elif expected is not None and self.epoch not in (NO_EPOCH, expected.epoch):
            if expected.epoch != self.last_epoch:
                return None
            epoch, last_epoch = self.epoch, self.last_epoch  # the answer was lost
        return replace(
            self,
            producer_id=producer_id,
            epoch=epoch,
            previous_producer_id=previous_id,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIME,
            update_ms=now_ms,
            client_version=0,
        )

    def _may_continue(self, expected: ProducerEpoch) -> bool:
        is_used_up = expected.epoch >= EPOCH_LAST
        return (
            self.epoch == NO_EPOCH
            or expected.producer_id == self.producer_id
            or (expected.producer_id == self.previous_producer_id and is_used_up)
        )

    def extended(
        self, partitions: Iterable[TopicPartition], *, client_version: int, now_ms: int
    ) -> TransactionMetadata:
        """Return this with more partitions; the first ones begin a transaction."""
        is_ongoing = self.state is TransactionState.ONGOING
        return replace(
            self,
            state=TransactionState.ONGOING,
            partitions=self.partitions.union(partitions),
            start_ms=self.start_ms if is_ongoing else now_ms,
            update_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, marker: Marker, *, client_version: int, fresh_id: int, now_ms: int
    ) -> TransactionMetadata:
        """Return this with its transaction decided. With version 2 the client gets another epoch:
        late requests of the ended transaction are fenced."""
        is_commit = marker is Marker.COMMIT
        is_open = self.state is TransactionState.ONGOING
        bumps = client_version >= IMPLICIT_VERSION
        return replace(
            self,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            epoch=self.epoch + bumps,
            last_epoch=self.epoch if bumps else self.last_epoch,
            next_producer_id=fresh_id if bumps and self.is_exhausted else NO_PRODUCER,
            partitions=self.partitions if is_open else frozenset(),
            start_ms=self.start_ms if is_open else now_ms,
            update_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, now_ms: int) -> TransactionMetadata:
        """Return this with its transaction aborted, and its client out of date."""
        assert self.epoch < EPOCH_MAX
        return replace(
            self,
            state=TransactionState.PREPARE_ABORT,
            epoch=self.epoch + 1,
            last_epoch=NO_EPOCH,
            update_ms=now_ms,
            client_version=0,  # so that a late EndTxn is not taken for a repeated one
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """Return this with all markers written."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        is_rotated = self.next_producer_id != NO_PRODUCER
        return replace(
            self,
            state=TransactionState.COMPLETE_COMMIT
            if is_commit
            else TransactionState.COMPLETE_ABORT,
            producer_id=self.next_producer_id if is_rotated else self.producer_id,
            epoch=0 if is_rotated else self.epoch,
            previous_producer_id=self.producer_id if is_rotated else self.previous_producer_id,
            next_producer_id=NO_PRODUCER,
            partitions=frozenset(),
            update_ms=now_ms,
        )

    def has_ended_for(self, client: ProducerEpoch) -> bool:
        """Return whether this is what version 2 made of a transaction of `client`: it repeats its
        request because the answer was lost."""
        if self.client_version < IMPLICIT_VERSION:
            return False
        if client.producer_id == self.producer_id:
            return self.epoch == client.epoch + 1
        is_before = client == ProducerEpoch(self.previous_producer_id, EPOCH_LAST)
        return is_before and self.epoch == 0
