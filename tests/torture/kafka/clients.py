"""What client libraries do: connect again, retry, number their batches, filter what was aborted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.headers import decode_response
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from frazil.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from frazil.kafka.wire.schema import KafkaMessage
from frazil.log import Marker, Record, encode_batch, marker_of, parse_header, read_records
from frazil.model import Rand, TopicPartition
from tests.torture.kafka.history import History, SentRecord
from tests.torture.kafka.network import Lost, Wire
from tests.torture.kafka.node import SimNode

R = TypeVar("R", bound=KafkaMessage)

RETRIED = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
COORDINATOR_MOVED = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
FENCED = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}
ABORTED = {ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE}
EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
IN_FLIGHT = 5


class Died(Exception):
    """The client is gone, in the middle of whatever it did."""


class FencedOff(Exception):
    """Another producer has taken over; this one starts anew."""


class MustAbort(Exception):
    """The transaction cannot be committed."""


@dataclass(slots=True, eq=False)
class Client:
    """A client library with one connection, made again when it is lost."""

    node: SimNode
    history: History
    name: str
    rand: Rand
    mortality: float = 0.0
    """How likely it dies at each request."""
    is_patient: bool = False
    """Whether it waits for lost requests to have arrived: none of its requests is late."""
    is_observer: bool = False
    """Whether it only reads, and may do so before all others."""
    _wire: Wire | None = None

    async def wire(self) -> Wire:
        while self._wire is None or self._wire.is_lost:
            try:
                self._wire = await self.node.connect(is_observer=self.is_observer)
            except Lost:
                await asyncio.sleep(0.2)
        return self._wire

    async def ask(
        self, kind: type[R], request: KafkaMessage, version: int, *, may_be_late: bool = True
    ) -> R:
        """Send a request once. Raises `Lost` or `Died`."""
        may_be_late = may_be_late and not self.is_patient
        if self.rand.random() < self.mortality:
            wire = await self.wire()
            wire.send(request, version, may_be_late=may_be_late).add_done_callback(_ignored)
            await asyncio.sleep(0.003 * self.rand.random())
            self.drop()
            raise Died
        wire = await self.wire()
        return await wire.ask(kind, request, version, may_be_late=may_be_late)

    def drop(self) -> None:
        """Give up the connection."""
        if self._wire is not None:
            self._wire.cut()
            self._wire = None

    async def insist(
        self,
        kind: type[R],
        request: KafkaMessage,
        version: int,
        code_of: Callable[[R], int],
        *,
        may_be_late: bool = True,
    ) -> tuple[ErrorCode, R]:
        """Send a request until it gets a response that is not to be retried."""
        while True:
            try:
                response = await self.ask(kind, request, version, may_be_late=may_be_late)
            except Lost:
                await asyncio.sleep(0.05)
                continue
            code = ErrorCode(code_of(response))
            if code not in RETRIED:
                return code, response
            if code in COORDINATOR_MOVED:
                await self.find_coordinator()
            await asyncio.sleep(self.rand.choice((0.02, 0.2)))

    async def find_coordinator(self) -> None:
        """Look for the coordinator of groups: the first client that does has its topic created."""
        try:
            await self.ask(FindCoordinatorResponse, FindCoordinatorRequest(key="g"), 2)
        except Lost:
            return  # what it is needed for is tried again


def _ignored(future: asyncio.Future[bytes]) -> None:
    if not future.cancelled():
        future.exception()


def check_producer(code: ErrorCode) -> None:
    """Raise what a transactional client does about a code."""
    if code in FENCED:
        raise FencedOff
    if code is not ErrorCode.NONE:
        raise MustAbort(code.name)


@dataclass(slots=True, eq=False)
class SentBatch:
    """A batch that is to be written once, however often it is sent."""

    target: TopicPartition
    records: list[SentRecord]
    payload: bytes


@dataclass(slots=True, eq=False)
class BatchProducer(Client):
    """An idempotent producer. `transactional_id` makes its batches transactional."""

    transactional_id: str | None = None
    producer_id: int = -1
    epoch: int = -1
    produce_version: int = 9
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    def batch(self, records: list[SentRecord]) -> SentBatch:
        """Number records of one partition."""
        target = records[0].target
        sequence = self.sequences.get(target, 0)
        self.sequences[target] = sequence + len(records)
        now_ms = self.node.clock.wall_ms()
        payload = encode_batch(
            [
                Record(offset=number, timestamp_ms=now_ms, key=each.key, value=each.value)
                for number, each in enumerate(records)
            ],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=self.transactional_id is not None,
        )
        return SentBatch(target, records, payload)

    async def deliver(self, batches: Sequence[SentBatch], patience: float = 1.0) -> None:
        """Send batches, several in flight, again and again in their order until all are written.
        `patience` is how likely it tries again."""
        pending = list(batches)
        while pending:
            if self.rand.random() < self.mortality:
                await self._die_sending(pending)
            wire = await self.wire()
            sent = pending[:IN_FLIGHT]
            futures = [self._send(wire, each) for each in sent]
            answers = await asyncio.gather(*futures, return_exceptions=True)
            left: list[SentBatch] = []
            for batch, answer in zip(sent, answers, strict=True):
                if isinstance(answer, Lost):
                    left.append(batch)
                elif isinstance(answer, BaseException):
                    raise answer
                elif not self._take(batch, answer, left):
                    left.append(batch)
            pending = left + pending[len(sent) :]
            if left:
                if self.rand.random() > patience:
                    raise MustAbort("tired of it")
                await asyncio.sleep(0.02)

    async def _die_sending(self, batches: list[SentBatch]) -> None:
        wire = await self.wire()
        for each in batches[:IN_FLIGHT]:
            self._send(wire, each).add_done_callback(_ignored)
        await asyncio.sleep(0.003 * self.rand.random())
        self.drop()
        raise Died

    def _send(self, wire: Wire, batch: SentBatch) -> asyncio.Future[bytes]:
        is_patient = self.is_patient
        return wire.send(self._request(batch), self.produce_version, may_be_late=not is_patient)

    def _request(self, batch: SentBatch) -> ProduceRequest:
        data = ProduceRequest.PartitionProduceData(batch.target.partition, batch.payload)
        topic = ProduceRequest.TopicProduceData(batch.target.topic, partition_data=[data])
        return ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=1000, topic_data=[topic]
        )

    def _take(self, batch: SentBatch, answer: bytes, left: list[SentBatch]) -> bool:
        """Take a response. Returns whether the batch is written."""
        _, response = decode_response(ProduceResponse, self.produce_version, answer)
        ((result,),) = (each.partition_responses for each in response.responses)
        code = ErrorCode(result.error_code)
        if code is ErrorCode.NONE:
            for number, record in enumerate(batch.records):
                if record.offset not in (-1, result.base_offset + number):
                    self.history.verdict.add("moved", f"{record} is told another offset")
                record.offset = result.base_offset + number
            return True
        if code in RETRIED:
            return False
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and any(
            each.target == batch.target for each in left
        ):
            return False
        if code in FENCED:
            raise FencedOff
        if code in ABORTED:
            raise MustAbort(code.name)
        raise Refused(code)


class Refused(Exception):
    """A batch was refused for good."""


@dataclass(slots=True, eq=False)
class PlainProducer(BatchProducer):
    """An idempotent producer without transactions."""

    targets: tuple[TopicPartition, ...] = ()
    may_be_refused: bool = False
    """Whether its topics are deleted under it."""

    async def run(self, is_over: Callable[[], bool]) -> None:
        incarnation = 0
        while not is_over():
            incarnation += 1
            source = f"{self.name}.{incarnation}"
            try:
                await self._init(source)
                while not is_over():
                    await self._round(source)
            except Died:
                await asyncio.sleep(0.1)
            except Refused as error:
                if not self.may_be_refused:
                    self.history.verdict.add("untrue", f"{self.name} was refused: {error}")
                await asyncio.sleep(0.1)

    async def _init(self, source: str) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        code, response = await self.insist(
            InitProducerIdResponse, request, 4, lambda response: response.error_code
        )
        assert code is ErrorCode.NONE, code
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.history.told(self.producer_id, self.epoch, source)
        self.sequences.clear()

    async def _round(self, source: str) -> None:
        batches = []
        for _ in range(self.rand.choice((1, 2, 7))):
            target = self.rand.choice(self.targets)
            records = [
                self.history.record(target, source) for _ in range(self.rand.choice((1, 1, 3)))
            ]
            self.history.plain += records
            batches.append(self.batch(records))
        await self.deliver(batches)
        await asyncio.sleep(self.rand.choice((0.05, 0.5)))


# Reading.


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What one consumer read of a partition."""

    start_offset: int
    end_offset: int
    """Where it ended: the last stable offset, or the durable watermark."""
    records: tuple[tuple[int, bytes | None, bytes | None], ...]
    """Offset, key and value."""


def fetch_request(
    target: TopicPartition, offset: int, isolation: int, bytes_max: int
) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=target.partition, fetch_offset=offset, partition_max_bytes=bytes_max
    )
    topic = FetchRequest.FetchTopic(target.topic, partitions=[partition])
    return FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=10**6, isolation_level=isolation, topics=[topic]
    )


def filtered(
    data: FetchResponse.PartitionData, offset: int
) -> tuple[list[tuple[int, bytes | None, bytes | None]], int]:
    """Return the records that a client shows its application, and where it goes on, as librdkafka
    does: by the list of aborted transactions and the markers between the batches."""
    records = bytes(data.records or b"")
    aborted = sorted(
        (each.first_offset, each.producer_id) for each in data.aborted_transactions or ()
    )
    skipped: set[int] = set()
    found = []
    position = 0
    while position < len(records):
        header = parse_header(records, position)
        end = position + header.size_bytes
        payload = records[position:end]
        position = end
        last = header.base_offset + header.last_offset_delta
        while aborted and aborted[0][0] <= last:
            skipped.add(aborted.pop(0)[1])
        next_offset = max(offset, last + 1)
        if header.is_control:
            if marker_of(payload) is Marker.ABORT:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            found += [
                (each.offset, each.key, each.value)
                for each in read_records(payload)
                if each.offset >= offset
            ]
        offset = next_offset
    return found, offset


async def list_offset(client: Client, target: TopicPartition, time: int, isolation: int) -> int:
    """Return the start or the end of a partition; -1 if there is no such partition."""
    topic = ListOffsetsRequest.ListOffsetsTopic(
        target.topic,
        [ListOffsetsRequest.ListOffsetsPartition(target.partition, timestamp=time)],
    )
    request = ListOffsetsRequest(isolation_level=isolation, topics=[topic])
    code, response = await client.insist(
        ListOffsetsResponse,
        request,
        7,
        lambda response: response.topics[0].partitions[0].error_code,
    )
    return response.topics[0].partitions[0].offset if code is ErrorCode.NONE else -1


async def fetch_all(client: Client, target: TopicPartition, isolation: int) -> Fetched | None:
    """Read a partition from its start to its end; None if it is gone, or was trimmed meanwhile."""
    start = offset = await list_offset(client, target, EARLIEST, isolation)
    if start < 0:
        return None
    records: list[tuple[int, bytes | None, bytes | None]] = []
    while True:
        bytes_max = client.rand.choice((500, 10**6))
        request = fetch_request(target, offset, isolation, bytes_max)
        code, response = await client.insist(
            FetchResponse,
            request,
            client.rand.choice((5, 11, 12)),
            lambda response: response.responses[0].partitions[0].error_code,
        )
        if code is not ErrorCode.NONE:
            return None
        data = response.responses[0].partitions[0]
        found, next_offset = filtered(data, offset)
        records += found
        is_committed = isolation == READ_COMMITTED
        end = data.last_stable_offset if is_committed else data.high_watermark
        if next_offset == offset:
            return Fetched(start_offset=start, end_offset=end, records=tuple(records))
        offset = next_offset
