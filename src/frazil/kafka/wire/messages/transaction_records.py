"""records of `__transaction_state`. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class TransactionLogKey(KafkaMessage):
    """Message in versions 0."""

    VERSIONS = Versions("TransactionLogKey", "0", api_key=0)

    transactional_id: Annotated[str, Field("string", "0")] = ""
    """The transactional id of the transaction."""


class TransactionLogValue(KafkaMessage):
    """Message in versions 0-1, flexible in 1+.

    Version 1 is the first flexible version. KIP-915: bumping the version will no longer make
    this record backward compatible. We suggest to add/remove only tagged fields to maintain
    backward compatibility.
    """

    VERSIONS = Versions("TransactionLogValue", "0-1", flexible="1+", api_key=0)

    class PartitionsSchema(Struct):
        """Partitions involved in the transaction."""

        topic: Annotated[str, Field("string", "0+")] = ""
        """Topic involved in the transaction."""
        partition_ids: Annotated[list[int], Field("[]int32", "0+")] = []
        """Partition ids involved in the transaction."""

    producer_id: Annotated[int, Field("int64", "0+")] = 0
    """Producer id in use by the transactional id."""
    previous_producer_id: Annotated[int, Field("int64", "1+", tagged="1+", tag=0)] = -1
    """Producer id used by the last committed transaction."""
    next_producer_id: Annotated[int, Field("int64", "1+", tagged="1+", tag=1)] = -1
    """Latest producer ID sent to the producer for the given transactional id."""
    producer_epoch: Annotated[int, Field("int16", "0+")] = 0
    """Epoch associated with the producer id."""
    next_producer_epoch: Annotated[int, Field("int16", "1+", tagged="1+", tag=3)] = -1
    """Producer epoch associated with the NextProducerId"""
    transaction_timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """Transaction timeout in milliseconds."""
    transaction_status: Annotated[int, Field("int8", "0+")] = 0
    """TransactionState the transaction is in."""
    transaction_partitions: Annotated[
        list[TransactionLogValue.PartitionsSchema] | None,
        Field("[]PartitionsSchema", "0+", nullable="0+"),
    ] = []
    """Partitions involved in the transaction."""
    transaction_last_update_timestamp_ms: Annotated[int, Field("int64", "0+")] = 0
    """Time the transaction was last updated."""
    transaction_start_timestamp_ms: Annotated[int, Field("int64", "0+")] = 0
    """Time the transaction was started."""
    client_transaction_version: Annotated[int, Field("int16", "1+", tagged="1+", tag=2)] = 0
    """The transaction version used by the client."""


RECORDS: dict[int, tuple[type[KafkaMessage], type[KafkaMessage]]] = {
    0: (TransactionLogKey, TransactionLogValue),
}
"""Type of a record: classes of key and value."""
