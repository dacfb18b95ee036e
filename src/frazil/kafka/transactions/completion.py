"""Completion: EndTxn, timeouts, and what was left undone before a restart.

PREPARE durable ──> markers in all partitions durable ──> answer, COMPLETE
"""

from __future__ import annotations

from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.member import Reply
from frazil.kafka.transactions.markers import MarkerWriter
from frazil.kafka.transactions.metadata import (
    IMPLICIT_VERSION,
    NO_PRODUCER,
    ProducerEpoch,
    TransactionMetadata,
    TransactionState,
)
from frazil.kafka.transactions.transactional_ids import Saved, Transactional, TransactionalIds
from frazil.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from frazil.log import Marker
from frazil.metrics import Counter

RETRY_MS = 100
"""Pause before a timeout is tried again, because the transaction is just changing."""

ENDED = Counter("frazil.kafka.transaction.ended", "Transactions ended, by outcome.")
TIMED_OUT = Counter(
    "frazil.kafka.transaction.timed_out", "Transactions aborted because they took too long."
)


class Completion:
    """Owned by one thread."""

    def __init__(self, ids: TransactionalIds, markers: MarkerWriter) -> None:
        self._ids = ids
        self._markers = markers
        self._replies: dict[str, Reply[EndTxnResponse]] = {}
        """Who waits for the markers, by transactional id."""

    def end(
        self,
        request: EndTxnRequest,
        client_version: int,
        fresh_id: int,
        reply: Reply[EndTxnResponse],
    ) -> None:
        """Commit or abort, and answer when every partition has its marker. Clients with version 2
        get their next epoch; `fresh_id` is for the one whose epochs are used up."""
        entry = self._ids.get(request.transactional_id)
        client = ProducerEpoch(request.producer_id, request.producer_epoch)
        marker = Marker.COMMIT if request.committed else Marker.ABORT
        error = _check(entry, client, marker, client_version)
        if entry is None or error is not ErrorCode.NONE:
            reply(EndTxnResponse(error_code=error))
            return
        current = entry.current
        if _is_ended(current, client, client_version, marker):
            reply(_answer(current))
            return
        if client_version >= IMPLICIT_VERSION and current.is_exhausted and fresh_id == NO_PRODUCER:
            reply(EndTxnResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS))
            return
        after = current.prepared(
            marker,
            client_version=client_version,
            fresh_id=fresh_id,
            now_ms=self._ids.time.now_ms(),
        )

        def prepared(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                reply(EndTxnResponse(error_code=error))
                return
            self._replies[request.transactional_id] = reply
            self.finish(entry)

        self._ids.save(entry, after, prepared)

    def fence(self, entry: Transactional, prepared: Saved) -> None:
        """Abort the transaction of a producer, which is out of date from then on. Calls `prepared`
        when that is decided, before the markers are written."""

        def saved(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self.finish(entry)
            prepared(error)

        self._ids.save(entry, entry.current.fenced(self._ids.time.now_ms()), saved)

    def watch(self, entry: Transactional) -> None:
        """Abort an ongoing transaction when its time is over."""
        current = entry.current
        over_ms = current.start_ms + current.timeout_ms - self._ids.time.now_ms()
        self._watch(entry, min(max(0, over_ms), current.timeout_ms))

    def _watch(self, entry: Transactional, delay_ms: int) -> None:
        if entry.timeout is not None:
            entry.timeout.cancel()
        entry.timeout = self._ids.timers.after(delay_ms, partial(self._time_out, entry))

    def _time_out(self, entry: Transactional) -> None:
        entry.timeout = None
        if entry.current.state is not TransactionState.ONGOING:
            return
        if entry.pending is not None:
            self._watch(entry, RETRY_MS)
            return

        def prepared(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                TIMED_OUT.add()
            else:
                self._watch(entry, RETRY_MS)

        self.fence(entry, prepared)

    def finish(self, entry: Transactional) -> None:
        """Write the markers of a prepared transaction, then take it as complete."""
        current = entry.current
        if entry.timeout is not None:
            entry.timeout.cancel()
            entry.timeout = None

        def written() -> None:
            assert entry.current is current
            ENDED.add(outcome="commit" if current.marker is Marker.COMMIT else "abort")
            after = current.completed(self._ids.time.now_ms())
            self._ids.complete(entry, after)
            reply = self._replies.pop(current.transactional_id, None)
            if reply is not None:
                reply(_answer(after))

        self._markers.write(
            current.marker,
            current.producer,
            current.partitions,
            written,
            lone=self._ids.lone(entry),
        )


def _check(
    entry: Transactional | None, client: ProducerEpoch, marker: Marker, client_version: int
) -> ErrorCode:
    """Return why a client may not end a transaction this way; NONE if it may, or already has."""
    if entry is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    current = entry.current
    is_implicit = client_version >= IMPLICIT_VERSION
    is_repeated = is_implicit and entry.pending is None and current.has_ended_for(client)
    if not is_repeated:
        if client.producer_id != current.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if client.epoch != current.epoch:
            return ErrorCode.PRODUCER_FENCED
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_commit = marker is Marker.COMMIT
    invalid = ErrorCode.INVALID_TXN_STATE
    match current.state:
        case TransactionState.ONGOING:
            # A transaction that began since: the request is late.
            return ErrorCode.PRODUCER_FENCED if is_repeated else ErrorCode.NONE
        case TransactionState.PREPARE_COMMIT:
            return ErrorCode.CONCURRENT_TRANSACTIONS if is_commit else invalid
        case TransactionState.PREPARE_ABORT:
            return invalid if is_commit else ErrorCode.CONCURRENT_TRANSACTIONS
        case TransactionState.EMPTY:
            return ErrorCode.NONE if is_implicit and not is_commit else invalid
        case TransactionState.COMPLETE_COMMIT:
            if is_implicit and not is_repeated:  # nothing was written since
                return invalid if is_commit else ErrorCode.NONE
            return ErrorCode.NONE if is_commit else invalid
        case TransactionState.COMPLETE_ABORT:
            return invalid if is_commit else ErrorCode.NONE


def _is_ended(
    current: TransactionMetadata, client: ProducerEpoch, client_version: int, marker: Marker
) -> bool:
    """Return whether the client repeats a request that has been done."""
    if client_version >= IMPLICIT_VERSION:
        return current.has_ended_for(client)
    is_commit = marker is Marker.COMMIT
    outcome = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    return current.state is outcome


def _answer(ended: TransactionMetadata) -> EndTxnResponse:
    return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.epoch)
