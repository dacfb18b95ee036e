"""TransactionQueries: DescribeTransactions and ListTransactions."""

from __future__ import annotations

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.transactions.metadata import NO_TIME, TransactionMetadata, TransactionState
from frazil.kafka.transactions.transactional_ids import TransactionalIds
from frazil.kafka.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from frazil.kafka.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

LABELS = {state.label for state in TransactionState}


class TransactionQueries:
    """Owned by one thread."""

    def __init__(self, ids: TransactionalIds) -> None:
        self._ids = ids

    def describe(self, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
        """Return the states of these ids."""
        return DescribeTransactionsResponse(
            transaction_states=[self._describe(each) for each in request.transactional_ids]
        )

    def _describe(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        entry = self._ids.get(transactional_id)
        if entry is None:
            return DescribeTransactionsResponse.TransactionState(
                error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
            )
        current = entry.current
        by_topic: dict[str, list[int]] = {}
        for topic, index in sorted(current.partitions):
            by_topic.setdefault(topic, []).append(index)
        return DescribeTransactionsResponse.TransactionState(
            transactional_id=transactional_id,
            transaction_state=current.state.label,
            transaction_timeout_ms=current.timeout_ms,
            transaction_start_time_ms=current.start_ms if current.state.is_open else NO_TIME,
            producer_id=current.producer_id,
            producer_epoch=current.epoch,
            topics=[
                DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes)
                for topic, indexes in by_topic.items()
            ],
        )

    def list_transactions(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """Return the ids that all filters let through."""
        return ListTransactionsResponse(
            unknown_state_filters=[each for each in request.state_filters if each not in LABELS],
            transaction_states=[
                ListTransactionsResponse.TransactionState(
                    transactional_id=entry.current.transactional_id,
                    producer_id=entry.current.producer_id,
                    transaction_state=entry.current.state.label,
                )
                for entry in self._ids
                if self._matches(entry.current, request)
            ],
        )

    def _matches(self, current: TransactionMetadata, request: ListTransactionsRequest) -> bool:
        if request.state_filters and current.state.label not in request.state_filters:
            return False
        if request.producer_id_filters and current.producer_id not in request.producer_id_filters:
            return False
        if request.duration_filter < 0:
            return True
        age_ms = self._ids.time.now_ms() - current.start_ms
        return current.state.is_open and age_ms > request.duration_filter
