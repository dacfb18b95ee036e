"""ListTransactions, API 66, versions 0-2. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class ListTransactionsRequest(KafkaMessage):
    """Request in versions 0-2, flexible in 0+.

    Version 1: adds DurationFilter to list transactions older than specified duration

    Version 2: adds TransactionalIdPattern to list transactions with the same pattern(KIP-1152)
    """

    VERSIONS = Versions("ListTransactionsRequest", "0-2", flexible="0+", api_key=66)

    state_filters: Annotated[list[str], Field("[]string", "0+")] = []
    """The transaction states to filter by: if empty, all transactions are returned; if
    non-empty, then only transactions matching one of the filtered states will be returned."""
    producer_id_filters: Annotated[list[int], Field("[]int64", "0+")] = []
    """The producerIds to filter by: if empty, all transactions will be returned; if non-empty,
    only transactions which match one of the filtered producerIds will be returned."""
    duration_filter: Annotated[int, Field("int64", "1+")] = -1
    """Duration (in millis) to filter by: if < 0, all transactions will be returned; otherwise,
    only transactions running longer than this duration will be returned."""
    transactional_id_pattern: Annotated[str | None, Field("string", "2+", nullable="2+")] = None
    """The transactional ID regular expression pattern to filter by: if it is empty or null, all
    transactions are returned; Otherwise then only the transactions matching the given regular
    expression will be returned."""


class ListTransactionsResponse(KafkaMessage):
    """Response in versions 0-2, flexible in 0+.

    Version 1 is the same as version 0 (KIP-994). This API can return InvalidRegularExpression
    (KIP-1152).
    """

    VERSIONS = Versions("ListTransactionsResponse", "0-2", flexible="0+", api_key=66)

    class TransactionState(Struct):
        """The current state of the transaction for the transactional id."""

        transactional_id: Annotated[str, Field("string", "0+")] = ""
        """The transactional id."""
        producer_id: Annotated[int, Field("int64", "0+")] = 0
        """The producer id."""
        transaction_state: Annotated[str, Field("string", "0+")] = ""
        """The current transaction state of the producer."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    unknown_state_filters: Annotated[list[str], Field("[]string", "0+")] = []
    """Set of state filters provided in the request which were unknown to the transaction
    coordinator."""
    transaction_states: Annotated[
        list[ListTransactionsResponse.TransactionState], Field("[]TransactionState", "0+")
    ] = []
    """The current state of the transaction for the transactional id."""
