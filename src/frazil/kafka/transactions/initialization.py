"""Initialization: InitProducerId of a transactional id. It fences producers that had the id."""

from __future__ import annotations

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.member import Reply
from frazil.kafka.transactions.completion import Completion
from frazil.kafka.transactions.metadata import (
    NO_EPOCH,
    NO_PRODUCER,
    ProducerEpoch,
    TransactionMetadata,
    TransactionState,
)
from frazil.kafka.transactions.transactional_ids import Transactional, TransactionalIds
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.metrics import Counter

ID_BYTES_MAX = 1024
"""Longest transactional id."""

INITIALIZED = Counter("frazil.kafka.transaction.producers", "Transactional producers started.")


class Initialization:
    """Owned by one thread."""

    def __init__(self, ids: TransactionalIds, completion: Completion) -> None:
        self._ids = ids
        self._completion = completion

    def init(
        self, request: InitProducerIdRequest, fresh_id: int, reply: Reply[InitProducerIdResponse]
    ) -> None:
        """Give the client the next epoch of its id. A transaction of the producer before it is
        aborted first; until then the client is told to ask again. `fresh_id` is a producer id that
        nobody has."""
        error = self._check(request)
        if error is not ErrorCode.NONE:
            reply(InitProducerIdResponse(error_code=error))
            return
        assert request.transactional_id is not None
        entry = self._ids.get(request.transactional_id)
        if entry is None:
            if len(self._ids) >= self._ids.config.ids_max:
                reply(InitProducerIdResponse(error_code=ErrorCode.POLICY_VIOLATION))
                return
            metadata = TransactionMetadata(
                transactional_id=request.transactional_id, producer_id=fresh_id
            )
            entry = self._ids.put(metadata)
        self._init(entry, request, fresh_id, reply)

    def _check(self, request: InitProducerIdRequest) -> ErrorCode:
        if not 0 < len((request.transactional_id or "").encode()) <= ID_BYTES_MAX:
            return ErrorCode.INVALID_REQUEST
        if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH):
            return ErrorCode.INVALID_REQUEST
        if not 0 < request.transaction_timeout_ms <= self._ids.config.timeout_ms_max:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return ErrorCode.NONE

    def _init(
        self,
        entry: Transactional,
        request: InitProducerIdRequest,
        fresh_id: int,
        reply: Reply[InitProducerIdResponse],
    ) -> None:
        current = entry.current
        if entry.pending is not None or current.state.is_prepared:
            reply(InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS))
            return
        expected = None
        if request.producer_id != NO_PRODUCER:
            expected = ProducerEpoch(request.producer_id, request.producer_epoch)
        after = current.initialized(
            timeout_ms=request.transaction_timeout_ms,
            expected=expected,
            fresh_id=fresh_id,
            now_ms=self._ids.time.now_ms(),
        )
        if after is None:
            reply(InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED))
        elif current.state is TransactionState.ONGOING:
            self._abort(entry, reply)
        else:
            self._save(entry, after, reply)

    def _abort(self, entry: Transactional, reply: Reply[InitProducerIdResponse]) -> None:
        def prepared(error: ErrorCode) -> None:
            code = ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error
            reply(InitProducerIdResponse(error_code=code))

        self._completion.fence(entry, prepared)

    def _save(
        self,
        entry: Transactional,
        after: TransactionMetadata,
        reply: Reply[InitProducerIdResponse],
    ) -> None:
        def saved(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                if entry.current.epoch == NO_EPOCH:
                    self._ids.drop(entry)
                reply(InitProducerIdResponse(error_code=error))
                return
            INITIALIZED.add()
            reply(InitProducerIdResponse(producer_id=after.producer_id, producer_epoch=after.epoch))

        self._ids.save(entry, after, saved)
