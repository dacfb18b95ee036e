"""TransactionQueries: DescribeTransactions and ListTransactions."""

from __future__ import annotations

from collections.abc import Callable

from frazil.errors import Malformed
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
from frazil.model import TopicPartition

PATTERN_CHARACTERS_MAX = 1000
"""Longest pattern of transactional ids."""
LABELS = {state.label for state in TransactionState}


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    """Return whether a whole id matches. RE2 takes linear time, whatever a client asks for."""
    if not pattern:
        return lambda _: True
    import re2  # few clients have a pattern

    options = re2.Options()
    options.log_errors = False
    try:
        if len(pattern) > PATTERN_CHARACTERS_MAX:
            raise Malformed(f"a pattern of {len(pattern)} characters")
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise Malformed(f"no pattern: {error}") from None
    return lambda text: compiled.fullmatch(text) is not None


class TransactionQueries:
    """Owned by one thread."""

    def __init__(self, ids: TransactionalIds) -> None:
        self._ids = ids

    def describe(
        self,
        request: DescribeTransactionsRequest,
        name_of: Callable[[TopicPartition], TopicPartition] = lambda stored: stored,
    ) -> DescribeTransactionsResponse:
        """Return the states of these ids. `name_of` tells what clients call a partition."""
        return DescribeTransactionsResponse(
            transaction_states=[self._describe(each, name_of) for each in request.transactional_ids]
        )

    def _describe(
        self, transactional_id: str, name_of: Callable[[TopicPartition], TopicPartition]
    ) -> DescribeTransactionsResponse.TransactionState:
        entry = self._ids.get(transactional_id)
        if entry is None:
            return DescribeTransactionsResponse.TransactionState(
                error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
            )
        current = entry.current
        by_topic: dict[str, list[int]] = {}
        for topic, index in sorted(map(name_of, current.partitions)):
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
        try:
            is_asked = _matcher(request.transactional_id_pattern)
        except Malformed:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
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
                and is_asked(entry.current.transactional_id)
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
