"""PendingProduce: the response to a produce request, once all its batches are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from frazil.errors import FrazilError, reason_of
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.loop_inbox import LoopInbox
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


class PendingProduce:
    """Owned by the event loop; the log's writer thread reports through the inbox."""

    def __init__(self, inbox: LoopInbox, clock: Clock) -> None:
        self._inbox = inbox
        self._clock = clock
        self._begin_ns = clock.monotonic_ns()
        self._response = ProduceResponse()
        self._open_count = 1  # until `sealed`
        self.done: asyncio.Future[ProduceResponse] = asyncio.get_running_loop().create_future()
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
        result.record_errors = [
            ProduceResponse.BatchIndexAndErrorMessage(each, str(error)) for each in records
        ]

    def _add(
        self, index: int, error: FrazilError | None = None, code: ErrorCode | None = None
    ) -> ProduceResponse.PartitionProduceResponse:
        result = ProduceResponse.PartitionProduceResponse(index, ErrorCode.NONE, -1)
        if error is not None:
            _refuse(result, error, code)
        self._response.responses[-1].partition_responses.append(result)
        return result

    def await_append(
        self, partition: Partition, append: Append, appended: Future[AppendResult]
    ) -> None:
        """Answer a partition when its batch is durable."""
        result = self._add(partition.index)
        self._open_count += 1

        def settle() -> None:
            _settle(result, partition, append, appended)
            self._less()

        appended.add_done_callback(lambda _: self._inbox.put(settle))

    def sealed(self) -> asyncio.Future[Any]:
        """Return the future of the response: every partition has been submitted."""
        self._less()
        return self.done

    def _less(self) -> None:
        self._open_count -= 1
        if self._open_count == 0 and not self.done.done():
            ACK_MS.record((self._clock.monotonic_ns() - self._begin_ns) / NS_PER_MS)
            self.done.set_result(self._response)


def _settle(
    result: ProduceResponse.PartitionProduceResponse,
    partition: Partition,
    append: Append,
    appended: Future[AppendResult],
) -> None:
    error = appended.exception()
    if error is None:
        base_offset, _, is_duplicate = appended.result()
        result.base_offset = base_offset
        result.log_start_offset = partition.view.start_offset
        if append.header.uses_append_time:
            result.log_append_time_ms = append.header.max_timestamp_ms
        if is_duplicate:
            DUPLICATES.add()
        else:
            PRODUCED_BATCHES.add()
            PRODUCED_RECORDS.add(append.header.record_count)
            PRODUCED_BYTES.add(append.size_bytes)
    elif isinstance(error, FrazilError):
        _refuse(result, error)
    else:  # the log has ended the process already, or is about to
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR


def _refuse(
    result: ProduceResponse.PartitionProduceResponse,
    error: FrazilError,
    code: ErrorCode | None = None,
) -> None:
    REFUSED.add(reason=reason_of(error))
    result.error_code = error_code(error) if code is None else code
    result.error_message = str(error)
