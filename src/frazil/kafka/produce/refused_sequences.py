"""RefusedSequences: if the first batch of a producer is refused, so are those in flight behind it.

The log accepts any first sequence of a producer that it does not know, as Kafka does, because it
may have forgotten the producer. A client has several batches in flight: if the first is refused
before it reaches the log, the second would be such a first one, and the retry of the first would
come too late. So the refused sequence is remembered until it is sent again, or a newer epoch is.
Of a producer that the log knows it finds a missing batch itself: there the refused one may be an
old one that came late.
"""

from __future__ import annotations

from frazil.errors import SequenceGap
from frazil.log import BatchHeader
from frazil.model import TopicPartition

PRODUCERS_MAX = 10_000
"""Above this the one remembered for longest is forgotten."""
SEQUENCE_HALF = 2**30
SEQUENCE_COUNT = 2**31


class RefusedSequences:
    """Owned by the event loop."""

    def __init__(self) -> None:
        self._refused: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        """Epoch and sequence, by partition and producer id."""

    def check(self, partition: TopicPartition, header: BatchHeader) -> None:
        """Raise `SequenceGap` if a batch follows a refused one."""
        refused = self._refused.get((partition, header.producer_id))
        if refused is None:
            return
        epoch, sequence = refused
        distance = (header.base_sequence - sequence) % SEQUENCE_COUNT
        if header.producer_epoch == epoch and 0 < distance < SEQUENCE_HALF:
            raise SequenceGap(
                f"producer {header.producer_id} sent sequence {header.base_sequence}, but "
                f"{sequence} was refused: send that batch first"
            )

    def forget(self, partition: TopicPartition, producer_id: int) -> None:
        """Forget a refused batch: the log knows its producer."""
        self._refused.pop((partition, producer_id), None)

    def accepted(self, partition: TopicPartition, header: BatchHeader) -> None:
        """Forget what was refused before this batch."""
        refused = self._refused.get((partition, header.producer_id))
        if refused is not None and refused[0] <= header.producer_epoch:
            self.forget(partition, header.producer_id)

    def refused(self, partition: TopicPartition, header: BatchHeader) -> None:
        """Remember a batch that did not reach the log."""
        if not header.has_producer or header.base_sequence < 0:
            return
        key = partition, header.producer_id
        known = self._refused.get(key)
        if known is not None and known[0] >= header.producer_epoch:
            return  # the first of an epoch counts, and no fenced producer
        self._refused[key] = header.producer_epoch, header.base_sequence
        if len(self._refused) > PRODUCERS_MAX:
            del self._refused[next(iter(self._refused))]
