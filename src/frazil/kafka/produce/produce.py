"""Produce: checks the batches of a request and submits them to the log, in the order of arrival.

The handler returns as soon as every batch is queued, so that the next request of the connection
begins: batches in flight share one fdatasync. While the log's queue is full, the handler waits, and
the connection reads nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from typing import Any

from frazil.errors import FrazilError, Malformed, Overloaded, Rejected
from frazil.httpd import WorkerThreads
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.loop_inbox import LoopInbox
from frazil.kafka.produce.pending import PendingProduce
from frazil.kafka.produce.refused_sequences import RefusedSequences
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.topics import why_read_only
from frazil.kafka.transactions.handlers import TransactionHandlers
from frazil.kafka.wire.messages.produce import ProduceRequest
from frazil.log import (
    Append,
    AppendResult,
    BatchHeader,
    Compression,
    Log,
    parse_header,
    read_records,
)
from frazil.log.produce import CrcMismatch, append_of_batch, stored_as
from frazil.model import Clock, MiB, TopicPartition

PRODUCE = 0
ACKS = (-1, 0, 1)
ALL, LEADER = -1, 1

INLINE_BYTES_MAX = MiB
"""Larger batches are checked in a worker thread, and so are compressed ones, of which few bytes can
become many."""
COMPRESSED_INLINE_BYTES_MAX = 1024
"""Below this the change of threads costs more than any bomb."""
FULL_WAIT_S_MAX = 5.0
"""How long a batch waits for room in the log before it is refused."""
FULL_PAUSE_S = 0.02
RECORD_ERRORS_MAX = 10_000
"""Records without a key that a refusal names. Clients fail the others of the batch as well."""


class Produce:
    """Owned by the event loop."""

    def __init__(
        self,
        log: Log,
        inbox: LoopInbox,
        clock: Clock,
        threads: WorkerThreads,
        transactions: TransactionHandlers,
    ) -> None:
        self._log = log
        self._inbox = inbox
        self._clock = clock
        self._threads = threads
        self._transactions = transactions
        self._refused = RefusedSequences()

    def register(self, router: ApiRouter) -> None:
        # librdkafka compresses only if a broker names the versions 0 to 2, which nobody uses.
        router.add(PRODUCE, "3-12", self.produce, advertised="0-12")

    async def produce(
        self, request: ProduceRequest, context: RequestContext
    ) -> asyncio.Future[Any] | None:
        """Queue all batches. The response follows when they are durable."""
        pending = PendingProduce(self._inbox, self._clock)
        joined = ErrorCode.NONE
        if request.transactional_id is not None and self._transactions.is_implicit(context):
            joined = await self._join(request.transactional_id, request)
        for topic in request.topic_data:
            pending.topic(topic.name)
            for data in topic.partition_data:
                partition = TopicPartition(topic.name, data.index)
                try:
                    await self._produce(request, context, joined, partition, data.records, pending)
                except _Refused as refused:
                    pending.refuse(data.index, refused.error, refused.code, refused.records)
                except FrazilError as error:
                    pending.refuse(data.index, error)
        done = pending.sealed()
        if request.acks != 0:
            return done
        if pending.refusal is not None:
            raise pending.refusal  # no response can tell: the connection is closed, as Kafka does
        return None

    async def _produce(
        self,
        request: ProduceRequest,
        context: RequestContext,
        joined: ErrorCode,
        target: TopicPartition,
        records: bytes | bytearray | memoryview | None,
        pending: PendingProduce,
    ) -> None:
        if request.acks not in ACKS:
            raise _Refused(
                ErrorCode.INVALID_REQUIRED_ACKS,
                Malformed(f"acks is {request.acks}; it must be -1, 0 or 1"),
            )
        if not records:
            raise Malformed("a produce request needs one batch per partition, and has none")
        try:
            append = await self._stored(target, await self._admitted(target, memoryview(records)))
            if append.header.is_transactional and joined is not ErrorCode.NONE:
                raise _Refused(joined, Rejected("the partition is no part of the transaction"))
            check = partial(self._check_transaction, request, context, target, append.header)
            appended = await self._submitted(target, append, check)
        except (FrazilError, _Refused):
            self._note_refused(target, memoryview(records))
            raise
        self._refused.accepted(target, append.header)
        pending.await_append(self._log.partition(*target), append, appended)

    async def _admitted(self, target: TopicPartition, records: memoryview) -> Append:
        """Return a valid batch that may be written to this topic."""
        partition = self._log.partition(*target)
        why = why_read_only(partition.topic)
        if why is not None:
            raise _Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, Rejected(why))
        append = await self._checked(records)
        self._refused.check(target, append.header)
        if append.keyless_index is not None and self._log.topic(target.topic).config.is_compacted:
            error = Malformed(f"topic {target.topic} is compacted: every record needs a key")
            keyless = await self._threads.run(_keyless, bytes(records))
            raise _Refused(ErrorCode.INVALID_RECORD, error, keyless)
        return append

    async def _checked(self, records: memoryview) -> Append:
        is_compressed = parse_header(records).compression is not Compression.NONE
        inline_max = COMPRESSED_INLINE_BYTES_MAX if is_compressed else INLINE_BYTES_MAX
        try:
            if len(records) <= inline_max:
                return append_of_batch(records)
            return await self._threads.run(append_of_batch, records)
        except CrcMismatch as error:
            raise _Refused(ErrorCode.CORRUPT_MESSAGE, error) from None

    async def _stored(self, target: TopicPartition, append: Append) -> Append:
        """Return a batch as the settings of its topic want it."""
        config = self._log.topic(target.topic).config
        compression = None
        if config.compression != "producer":
            compression = Compression[config.compression.upper()]
        append_time_ms = None
        if config.timestamps == "append":
            append_time_ms = self._clock.wall_ms()
        if append_time_ms is None and compression in (None, append.header.compression):
            return append
        return await self._threads.run(stored_as, append, compression, append_time_ms)

    async def _join(self, transactional_id: str, request: ProduceRequest) -> ErrorCode:
        """Add the partitions of a request to its transaction, with one write."""
        targets: dict[TopicPartition, BatchHeader] = {}
        for topic in request.topic_data:
            for data in topic.partition_data:
                target = TopicPartition(topic.name, data.index)
                try:
                    self._log.partition(*target)
                    header = parse_header(memoryview(data.records or b""))
                except FrazilError:
                    continue  # refused later, with its reason
                if header.is_transactional and why_read_only(target.topic) is None:
                    targets[target] = header
        if not targets:
            return ErrorCode.NONE
        header = next(iter(targets.values()))
        return await self._transactions.add_produced(transactional_id, header, targets)

    def _check_transaction(
        self,
        request: ProduceRequest,
        context: RequestContext,
        target: TopicPartition,
        header: BatchHeader,
    ) -> None:
        code = self._transactions.check_produced(request.transactional_id, header, target, context)
        if code is not ErrorCode.NONE:
            raise _Refused(code, Rejected(_WHY_NOT.get(code, "the producer is not known")))

    async def _submitted(
        self, target: TopicPartition, append: Append, check: Callable[[], None]
    ) -> Future[AppendResult]:
        """Queue a batch, waiting for room if there is none. It is checked in the same turn of the
        loop: its transaction may have ended while it waited."""
        waited_s = 0.0
        while True:
            check()
            try:
                return self._log.append(target.topic, append, partition=target.partition)
            except Overloaded:
                if waited_s >= FULL_WAIT_S_MAX:
                    raise
            await asyncio.sleep(FULL_PAUSE_S)
            waited_s += FULL_PAUSE_S

    def _note_refused(self, target: TopicPartition, records: memoryview) -> None:
        try:
            header = parse_header(records)
        except Malformed:
            return  # it does not say whose it is
        self._refused.refused(target, header)


_WHY_NOT = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "a producer with the same transactional id has started since",
    ErrorCode.INVALID_TXN_STATE: "the partition is no part of an open transaction of the producer",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction is over: abort it and begin another",
}


def _keyless(batch: bytes) -> list[int]:
    """Return which records of a batch have no key."""
    found = (index for index, record in enumerate(read_records(batch)) if record.key is None)
    return list(islice(found, RECORD_ERRORS_MAX))


class _Refused(Exception):
    """A refused batch whose code does not follow from the error."""

    def __init__(self, code: ErrorCode, error: FrazilError, records: Sequence[int] = ()) -> None:
        """`records` are those because of which the whole batch is refused, if not all are."""
        super().__init__(str(error))
        self.code = code
        self.error = error
        self.records = records
