"""PendingProduce: the response to a produce request, once all its batches are durable."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from frazil.errors import FrazilError, reason_of
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.loop_inbox import LoopInbox
from frazil.kafka.produce.otlp_batches import InvalidRecord, OnStored
from frazil.kafka.router import PendingReply
from frazil.kafka.wire.messages.produce import ProduceResponse
from frazil.log import Append, AppendResult, Partition
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS, Clock

PRODUCED_BATCHES = Counter("frazil.kafka.produced.batches", "Batches of clients made durable.")
PRODUCED_RECORDS = Counter("frazil.kafka.produced.records", "Records of clients made durable.")
PRODUCED_BYTES = Counter("frazil.kafka.produced.bytes", "Bytes of batches made durable.")
DUPLICATES = Counter(
    "frazil.kafka.duplicate.batches", "Repeated batches, answered with their first offset."
)
REFUSED = Counter("frazil.kafka.refused.batches", "Batches of clients refused, by reason.")
ACK_MS = Histogram(
    "frazil.kafka.ack.ms", "Time from a complete produce request to its durable acknowledgement."
)


NO_OFFSET = -1
"""For a batch that was refused, or whose records are not one behind the other: some were there."""


class Submitted(NamedTuple):
    """An append in the queue of the log."""

    append: Append
    appended: Future[AppendResult]
    on_stored: OnStored | None = None


class PendingProduce:
    """Owned by the event loop; the log's writer thread reports through the inbox."""

    def __init__(self, inbox: LoopInbox, clock: Clock) -> None:
        self._inbox = inbox
        self._clock = clock
        self._begin_ns = clock.monotonic_ns()
        self._response = ProduceResponse()
        self._open_count = 1  # until `sealed`
        self._reply = PendingReply()
        self.refusal: FrazilError | None = None
        """The last batch that was refused before it reached the log."""

    def topic(self, name: str) -> None:
        """Begin the next topic of the request."""
        self._response.responses.append(ProduceResponse.TopicProduceResponse(name))

    def refuse(
        self,
        index: int,
        error: FrazilError,
        code: ErrorCode | None = None,
        records: Sequence[int] = (),
    ) -> None:
        """Answer a partition with an error, and with the records to blame if not all are."""
        self.refusal = error
        result = self._add(index, error, code)
        result.record_errors += [
            ProduceResponse.BatchIndexAndErrorMessage(each, str(error)) for each in records
        ]

    def _add(
        self, index: int, error: FrazilError | None = None, code: ErrorCode | None = None
    ) -> ProduceResponse.PartitionProduceResponse:
        result = ProduceResponse.PartitionProduceResponse(index, ErrorCode.NONE, NO_OFFSET)
        if error is not None:
            _refuse(result, error, code)
        self._response.responses[-1].partition_responses.append(result)
        return result

    def await_appends(
        self, index: int, partition: Partition, submitted: Sequence[Submitted]
    ) -> None:
        """Answer a partition when all appends of its batch are durable. `index` is what the client
        calls it."""
        result = self._add(index)
        self._open_count += 1
        waiting = len(submitted)

        def settle() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                _settle(result, partition, submitted)
                self._less()

        for each in submitted:
            if each.appended.done():  # written by the loop itself
                settle()
            else:
                each.appended.add_done_callback(lambda _: self._inbox.put(settle))

    def sealed(self) -> PendingReply:
        """Return the response that follows: every partition has been submitted."""
        self._less()
        return self._reply

    def _less(self) -> None:
        self._open_count -= 1
        if self._open_count == 0:
            ACK_MS.record((self._clock.monotonic_ns() - self._begin_ns) / NS_PER_MS)
            self._reply.complete(self._response)


def _settle(
    result: ProduceResponse.PartitionProduceResponse,
    partition: Partition,
    submitted: Sequence[Submitted],
) -> None:
    end_offset = None
    for append, appended, on_stored in submitted:
        error = appended.exception()
        if isinstance(error, FrazilError):
            _refuse(result, error)
        elif error is not None:  # the log has ended the process already, or is about to
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        if error is not None:
            continue
        base_offset, next_offset, is_duplicate = appended.result()
        if end_offset is None:
            result.base_offset = base_offset
        elif base_offset != end_offset:
            result.base_offset = NO_OFFSET
        end_offset = next_offset
        _count(append, is_duplicate=is_duplicate)
        if on_stored is not None:
            on_stored(is_duplicate)
        if append.header.uses_append_time:
            result.log_append_time_ms = append.header.max_timestamp_ms
    if result.error_code == ErrorCode.NONE:
        result.log_start_offset = partition.view.start_offset
    else:
        result.base_offset = NO_OFFSET


def _count(append: Append, *, is_duplicate: bool) -> None:
    if is_duplicate:
        DUPLICATES.add()
    else:
        PRODUCED_BATCHES.add()
        PRODUCED_RECORDS.add(append.header.record_count)
        PRODUCED_BYTES.add(append.size_bytes)


def _refuse(
    result: ProduceResponse.PartitionProduceResponse,
    error: FrazilError,
    code: ErrorCode | None = None,
) -> None:
    REFUSED.add(reason=reason_of(error))
    result.error_code = error_code(error) if code is None else code
    result.error_message = str(error)
    if isinstance(error, InvalidRecord):
        result.record_errors = [ProduceResponse.BatchIndexAndErrorMessage(error.index, str(error))]
