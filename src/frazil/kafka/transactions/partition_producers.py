"""describe_producers: who has written to a partition, and since when a transaction is open."""

from __future__ import annotations

from frazil.kafka.wire.messages.describe_producers import DescribeProducersResponse
from frazil.log import Partition

NO_SEQUENCE = -1
NO_OFFSET = -1


def describe_producers(partition: Partition) -> list[DescribeProducersResponse.ProducerState]:
    """Return the producers of a partition. Call it on the log's writer thread, which owns them."""
    open_offsets = partition.transactions.open_offsets
    return [
        DescribeProducersResponse.ProducerState(
            producer_id=producer_id,
            producer_epoch=known.epoch,
            last_sequence=known.past[-1].last_sequence if known.past else NO_SEQUENCE,
            last_timestamp=known.seen_ms,
            current_txn_start_offset=open_offsets.get(producer_id, NO_OFFSET),
        )
        for producer_id, known in partition.producers.items()
    ]
