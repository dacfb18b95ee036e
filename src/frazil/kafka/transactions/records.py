"""Records of `__transaction_state`, in Kafka's own format. See `docs/formats/transaction-state.md`.

The version is the one that Kafka 4.2 writes, so that its tools read the topic.
"""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.kafka.groups.journal import KeyValue
from frazil.kafka.transactions.metadata import TransactionMetadata, TransactionState
from frazil.kafka.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue
from frazil.kafka.wire.records import decode_key, decode_versioned, encode_key, encode_versioned
from frazil.model import TopicPartition

VERSION = 1


def transaction_key(transactional_id: str) -> bytes:
    """Return the key of a transactional id."""
    return encode_key(TransactionLogKey(transactional_id=transactional_id))


def transaction_record(metadata: TransactionMetadata) -> KeyValue:
    """Return the record of a transactional id. An empty transaction has no list of partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(metadata.partitions):
        by_topic.setdefault(topic, []).append(index)
    is_empty = metadata.state is TransactionState.EMPTY
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        producer_epoch=metadata.epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if is_empty
        else [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic.items()
        ],
        transaction_last_update_timestamp_ms=metadata.update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_version,
    )
    return transaction_key(metadata.transactional_id), encode_versioned(value, VERSION)


def read_transaction(key: bytes, value: bytes) -> TransactionMetadata:
    """Return the transactional id in a record. Raises `Malformed`."""
    found = decode_versioned(TransactionLogValue, value)
    try:
        state = TransactionState(found.transaction_status)
    except ValueError:
        raise Malformed(f"unknown state {found.transaction_status}") from None
    return TransactionMetadata(
        transactional_id=decode_key(TransactionLogKey, key).transactional_id,
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        previous_producer_id=found.previous_producer_id,
        next_producer_id=found.next_producer_id,
        timeout_ms=found.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in found.transaction_partitions or ()
            for index in each.partition_ids
        ),
        start_ms=found.transaction_start_timestamp_ms,
        update_ms=found.transaction_last_update_timestamp_ms,
        client_version=found.client_transaction_version,
    )
