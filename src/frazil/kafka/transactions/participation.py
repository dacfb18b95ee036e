"""Participation: AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, and which batches may be
written.

The check of a batch and its submission to the log happen in one turn of the owner, and so do the
end of a transaction and the submission of its markers: no batch can follow its marker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.member import Reply
from frazil.kafka.groups.offset_commits import OffsetCommits, staged_response
from frazil.kafka.transactions.completion import Completion
from frazil.kafka.transactions.markers import OFFSETS
from frazil.kafka.transactions.metadata import (
    IMPLICIT_VERSION,
    ProducerEpoch,
    TransactionState,
)
from frazil.kafka.transactions.transactional_ids import Transactional, TransactionalIds
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.log import BatchHeader
from frazil.model import TopicPartition

Added = Callable[[ErrorCode], None]
"""Called once: NONE when the partitions are part of the transaction."""


class Participation:
    """Owned by one thread."""

    def __init__(
        self, ids: TransactionalIds, completion: Completion, commits: OffsetCommits
    ) -> None:
        self._ids = ids
        self._completion = completion
        self._commits = commits

    def add(
        self,
        transactional_id: str,
        client: ProducerEpoch,
        partitions: Collection[TopicPartition],
        added: Added,
        *,
        client_version: int = 0,
    ) -> None:
        """Make partitions part of the transaction; the first ones begin it."""
        entry = self._ids.get(transactional_id)
        error = _check(entry, client)
        if entry is not None and error is ErrorCode.NONE:
            is_busy = entry.pending is not None or entry.current.state.is_prepared
            error = ErrorCode.CONCURRENT_TRANSACTIONS if is_busy else ErrorCode.NONE
        if entry is None or error is not ErrorCode.NONE:
            added(error)
            return
        current = entry.current
        is_ongoing = current.state is TransactionState.ONGOING
        if is_ongoing and current.partitions.issuperset(partitions):
            added(ErrorCode.NONE)
            return
        after = current.extended(
            partitions, client_version=client_version, now_ms=self._ids.time.now_ms()
        )

        def saved(error: ErrorCode) -> None:
            if error is ErrorCode.NONE and not is_ongoing:
                self._completion.watch(entry)
            added(error)

        self._ids.save(entry, after, saved)

    def add_implicitly(
        self,
        transactional_id: str,
        client: ProducerEpoch,
        partitions: Collection[TopicPartition],
        added: Added,
    ) -> None:
        """Make partitions part of the transaction before something is written to them. Waits
        while another change is on its way to the disk."""
        entry = self._ids.get(transactional_id)
        again = partial(self.add_implicitly, transactional_id, client, partitions, added)
        if entry is not None and entry.pending is not None:
            entry.when_settled.append(again)
            return
        self.add(transactional_id, client, partitions, added, client_version=IMPLICIT_VERSION)

    def check(
        self, transactional_id: str | None, header: BatchHeader, partition: TopicPartition
    ) -> ErrorCode:
        """Return why a batch may not be written now; NONE if it may. Submit it before anything
        else happens."""
        if not header.is_transactional:
            # Such a batch would be committed even if the transaction is aborted.
            is_foreign = header.has_producer and self._ids.of_producer(header.producer_id)
            return ErrorCode.INVALID_TXN_STATE if is_foreign else ErrorCode.NONE
        if transactional_id is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        client = ProducerEpoch(header.producer_id, header.producer_epoch)
        return self._check_part(transactional_id, client, partition)

    def _check_part(
        self, transactional_id: str, client: ProducerEpoch, partition: TopicPartition
    ) -> ErrorCode:
        entry = self._ids.get(transactional_id)
        error = _check(entry, client)
        if entry is None or error is not ErrorCode.NONE:
            is_fenced = error is ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_PRODUCER_EPOCH if is_fenced else error
        is_ending = entry.pending is not None and entry.pending.state.is_prepared
        is_part = (
            entry.current.state is TransactionState.ONGOING
            and not is_ending
            and partition in entry.current.partitions
        )
        return ErrorCode.NONE if is_part else ErrorCode.INVALID_TXN_STATE

    def commit_offsets(
        self,
        request: TxnOffsetCommitRequest,
        reply: Reply[TxnOffsetCommitResponse],
        *,
        client_version: int = 0,
    ) -> None:
        """Store offsets that count when the transaction is committed."""
        client = ProducerEpoch(request.producer_id, request.producer_epoch)

        def added(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                error = self._check_part(request.transactional_id, client, OFFSETS)
            if error is ErrorCode.NONE:
                self._commits.commit_in_transaction(request, reply)
            else:
                fenced = ErrorCode.INVALID_PRODUCER_EPOCH
                code = fenced if error is ErrorCode.PRODUCER_FENCED else error
                reply(staged_response(request, {}, code))

        if client_version >= IMPLICIT_VERSION:
            self.add_implicitly(request.transactional_id, client, [OFFSETS], added)
        else:
            added(ErrorCode.NONE)


def _check(entry: Transactional | None, client: ProducerEpoch) -> ErrorCode:
    if entry is None or client.producer_id != entry.current.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if client.epoch != entry.current.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
