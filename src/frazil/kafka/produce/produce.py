"""Produce: checks the batches of a request and submits them to the log, in the order of arrival.

The handler returns as soon as every batch is queued, so that the next request of the connection
begins: batches in flight share one fdatasync. While the log's queue is full, the handler waits, and
the connection reads nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import islice, zip_longest

from frazil.errors import FrazilError, Malformed, Overloaded, Rejected, SequenceGap
from frazil.httpd import WorkerThreads
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.lone_client import LoneClient
from frazil.kafka.loop_inbox import LoopInbox
from frazil.kafka.produce.otlp_batches import CheckedBatch, OtlpBatches
from frazil.kafka.produce.pending import PendingProduce, Submitted
from frazil.kafka.produce.refused_sequences import RefusedSequences
from frazil.kafka.router import ApiRouter, PendingReply
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.topics.topics import why_read_only
from frazil.kafka.transactions.handlers import TransactionHandlers
from frazil.kafka.wire.messages.produce import ProduceRequest
from frazil.log import (
    Append,
    AppendResult,
    BatchHeader,
    Compression,
    is_compressed,
    parse_header,
    read_records,
)
from frazil.log.produce import CrcMismatch, append_of_batch, stored_as
from frazil.model import Clock, MiB, Signal, TopicPartition

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
        log: ClientTopics,
        inbox: LoopInbox,
        clock: Clock,
        threads: WorkerThreads,
        transactions: TransactionHandlers,
        otlp: OtlpBatches | None = None,
    ) -> None:
        """Without `otlp` the topics of telemetry cannot be written to."""
        self._log = log
        self._inbox = inbox
        self._clock = clock
        self._threads = threads
        self._transactions = transactions
        self._otlp = otlp
        self._refused = RefusedSequences()
        self._lone = LoneClient(clock)

    def register(self, router: ApiRouter) -> None:
        # librdkafka compresses only if a broker names the versions 0 to 2, which nobody uses.
        router.add(PRODUCE, "3-12", self.produce, advertised="0-12", at_once=self.produce_at_once)

    def produce_at_once(
        self, request: ProduceRequest, context: RequestContext
    ) -> PendingReply | None:
        """Queue the only batch of a request, unless it has to wait for something."""
        only = _only_batch(request)
        if only is None or self._joins(request, context):
            return None
        target, records = only
        if self._log.signal_of(target.topic) is not None or not _is_checked_inline(records):
            return None
        if self._log.has_topic(target.topic) and self._stored_form(target.topic) != (None, None):
            return None
        pending = PendingProduce(self._inbox, self._clock)
        pending.topic(target.topic)
        try:
            self._check_writable(target)
            append = _valid(records)
            if self._lacks_keys(target, append):
                return None
            self._refused.check(target, append.header)
            appended = self._written(request, context, target, append)
        except (Overloaded, SequenceGap):
            return None  # `produce` waits for room, or for what the log knows of the producer
        except (FrazilError, _Refused) as refused:
            self._note_refused(target, records)
            pending.refuse(target.partition, *_reason(refused))
        else:
            self._refused.accepted(target, append.header)
            pending.await_appends(
                target.partition, self._log.partition(*target), [Submitted(append, appended)]
            )
        return pending.sealed()

    async def produce(
        self, request: ProduceRequest, context: RequestContext
    ) -> PendingReply | None:
        """Queue all batches. The response follows when they are durable."""
        pending = PendingProduce(self._inbox, self._clock)
        joined = ErrorCode.NONE
        if request.transactional_id is not None and self._joins(request, context):
            joined = await self._join(request.transactional_id, request)
        for topic in request.topic_data:
            pending.topic(topic.name)
            for data in topic.partition_data:
                target = TopicPartition(topic.name, data.index)
                records = memoryview(data.records or b"")
                try:
                    await self._produce(request, context, joined, target, records, pending)
                except (FrazilError, _Refused) as refused:
                    pending.refuse(data.index, *_reason(refused))
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
        records: memoryview,
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
            self._check_writable(target)
            batch = await self._checked(target.topic, records)
            header = batch.appends[0].header
            await self._check_refused(target, header)
            await self._check_keys(target, batch.appends[0], records)
            if header.is_transactional and joined is not ErrorCode.NONE:
                raise _Refused(joined, Rejected("the partition is no part of the transaction"))
            submitted = []
            for append, on_stored in zip_longest(batch.appends, batch.on_stored):
                appended = await self._submitted_when_free(request, context, target, append)
                submitted.append(Submitted(append, appended, on_stored))
        except (FrazilError, _Refused):
            self._note_refused(target, records)
            raise
        self._refused.accepted(target, header)
        pending.await_appends(target.partition, self._log.partition(*target), submitted)

    def _check_writable(self, target: TopicPartition) -> None:
        """Raise if clients cannot write to a partition."""
        why = why_read_only(self._log.partition(*target).topic)
        if self._log.signal_of(target.topic) is not None and self._otlp is None:
            why = f"topic {target.topic} holds telemetry, which cannot be checked here"
        if why is not None:
            raise _Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, Rejected(why))

    async def _checked(self, topic: str, records: memoryview) -> CheckedBatch:
        """Return a valid batch for a topic."""
        signal = self._log.signal_of(topic)
        if signal is not None:
            assert self._otlp is not None
            return await self._threads.run(_valid_otlp, self._otlp, signal, records)
        if _is_checked_inline(records):
            append = _valid(records)
        else:
            append = await self._threads.run(_valid, records)
        compression, append_time_ms = self._stored_form(topic)
        if append_time_ms is not None or compression not in (None, append.header.compression):
            append = await self._threads.run(stored_as, append, compression, append_time_ms)
        return CheckedBatch((append,))

    def _stored_form(self, topic: str) -> tuple[Compression | None, int | None]:
        """Return the compression and the append time that the settings of a topic demand."""
        config = self._log.topic(topic).config
        compression = None
        if config.compression != "producer":
            compression = Compression[config.compression.upper()]
        return compression, self._clock.wall_ms() if config.timestamps == "append" else None

    async def _check_refused(self, target: TopicPartition, header: BatchHeader) -> None:
        """Raise `SequenceGap` if a batch follows a refused one, unless the log knows its producer,
        and finds missing batches by itself."""
        try:
            self._refused.check(target, header)
        except SequenceGap:
            partition = self._log.partition(*target)
            known = self._log.writer.run(lambda: partition.producers.is_known(header.producer_id))
            if not await asyncio.wrap_future(known):
                raise
            self._refused.forget(target, header.producer_id)

    def _lacks_keys(self, target: TopicPartition, append: Append) -> bool:
        """Return whether a record has no key, which a compacted topic needs."""
        if append.keyless_index is None:
            return False
        return self._log.topic(target.topic).config.is_compacted

    async def _check_keys(
        self, target: TopicPartition, append: Append, records: memoryview
    ) -> None:
        """Refuse a batch for a compacted topic, and name the records that have no key."""
        if self._lacks_keys(target, append):
            error = Malformed(f"topic {target.topic} is compacted: every record needs a key")
            keyless = await self._threads.run(_keyless, bytes(records))
            raise _Refused(ErrorCode.INVALID_RECORD, error, keyless)

    def _submitted(
        self,
        request: ProduceRequest,
        context: RequestContext,
        target: TopicPartition,
        append: Append,
    ) -> Future[AppendResult]:
        """Queue a batch. It is checked in the same turn of the loop: its transaction may have ended
        while it waited. Raises `Overloaded` if there is no room."""
        self._check_transaction(request, context, target, append.header)
        return self._log.append(target.topic, append, partition=target.partition)

    def _written(
        self,
        request: ProduceRequest,
        context: RequestContext,
        target: TopicPartition,
        append: Append,
    ) -> Future[AppendResult]:
        """Write the batch of a lone producer, or queue it."""
        connection, size_bytes = context.connection, append.size_bytes
        if self._lone.is_lone(connection, waits=context.is_only, size_bytes=size_bytes):
            self._check_transaction(request, context, target, append.header)
            done = self._log.append_if_idle(target.topic, append, target.partition)
            if done is not None:
                self._lone.written()
                self._inbox.call_soon(self._log.writer.wake_readers)
                return done
        return self._submitted(request, context, target, append)

    async def _submitted_when_free(
        self,
        request: ProduceRequest,
        context: RequestContext,
        target: TopicPartition,
        append: Append,
    ) -> Future[AppendResult]:
        """Queue a batch, waiting for room if there is none."""
        waited_s = 0.0
        while True:
            try:
                return self._submitted(request, context, target, append)
            except Overloaded:
                if waited_s >= FULL_WAIT_S_MAX:
                    raise
            await asyncio.sleep(FULL_PAUSE_S)
            waited_s += FULL_PAUSE_S

    def _joins(self, request: ProduceRequest, context: RequestContext) -> bool:
        """Return whether a request adds its partitions to a transaction."""
        return request.transactional_id is not None and self._transactions.is_implicit(context)

    async def _join(self, transactional_id: str, request: ProduceRequest) -> ErrorCode:
        """Add the partitions of a request to its transaction, with one write."""
        targets: dict[TopicPartition, BatchHeader] = {}
        for topic in request.topic_data:
            for data in topic.partition_data:
                target = TopicPartition(topic.name, data.index)
                try:
                    stored = self._log.stored(target)
                    header = parse_header(memoryview(data.records or b""))
                except FrazilError:
                    continue  # refused later, with its reason
                if header.is_transactional and why_read_only(target.topic) is None:
                    targets[stored] = header
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
        stored = self._log.stored(target)
        code = self._transactions.check_produced(request.transactional_id, header, stored, context)
        if code is not ErrorCode.NONE:
            raise _Refused(code, Rejected(_WHY_NOT.get(code, "the producer is not known")))

    def _note_refused(self, target: TopicPartition, records: memoryview) -> None:
        try:
            header = parse_header(records)
        except Malformed:
            return  # it does not say whose it is
        self._refused.refused(target, header)


def _only_batch(request: ProduceRequest) -> tuple[TopicPartition, memoryview] | None:
    """Return the batch of a request that has one and wants a response."""
    if len(request.topic_data) != 1 or request.acks not in (ALL, LEADER):
        return None
    (topic,) = request.topic_data
    if len(topic.partition_data) != 1:
        return None
    (data,) = topic.partition_data
    return TopicPartition(topic.name, data.index), memoryview(data.records or b"")


def _is_checked_inline(records: memoryview) -> bool:
    """Return whether the event loop itself checks a batch."""
    if is_compressed(records):
        return len(records) <= COMPRESSED_INLINE_BYTES_MAX
    return len(records) <= INLINE_BYTES_MAX


def _valid(records: memoryview) -> Append:
    """Return a batch, checked with all its records."""
    try:
        return append_of_batch(records)
    except CrcMismatch as error:
        raise _Refused(ErrorCode.CORRUPT_MESSAGE, error) from None


def _valid_otlp(otlp: OtlpBatches, signal: Signal, records: memoryview) -> CheckedBatch:
    """Return a batch of OTLP requests, each of them checked."""
    try:
        return otlp.checked(signal, records)
    except CrcMismatch as error:
        raise _Refused(ErrorCode.CORRUPT_MESSAGE, error) from None


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


def _reason(
    refused: FrazilError | _Refused,
) -> tuple[FrazilError, ErrorCode | None, Sequence[int]]:
    """Return why a batch was refused, the code if it does not follow from that, and the records to
    blame if not all are."""
    if isinstance(refused, _Refused):
        return refused.error, refused.code, refused.records
    return refused, None, ()
