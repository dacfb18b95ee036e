"""A transaction coordinator over a log on a simulated disk, and producers that use it.

Nothing happens by itself: `run` completes appends and replies, `pass_time` fires timers.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from frazil.disk import DurableCounter, make_directories
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.timers import GroupTimers
from frazil.kafka.transactions.coordinator import TransactionCoordinator
from frazil.kafka.transactions.markers import OFFSETS
from frazil.kafka.transactions.metadata import (
    EPOCH_LAST,
    IMPLICIT_VERSION,
    ProducerEpoch,
    TransactionMetadata,
    TransactionState,
)
from frazil.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.log import Append, AppendResult, Reader, Record, encode_batch, parse_header
from frazil.model import TopicPartition
from frazil.settings import GroupsConfig, TransactionsConfig
from tests.kafka.groups.build import CONFIG, GROUP, TOPIC, Box
from tests.kafka.groups.build import Node as GroupNode
from tests.sim.disk import SimDisk

TIMEOUT_MS = 60_000
IDS = "kafka/producer_ids.ckpt"


class Node(GroupNode):
    """A node with both coordinators. It can be killed and started again."""

    def __init__(
        self,
        disk: SimDisk | None = None,
        config: GroupsConfig = CONFIG,
        transactions: TransactionsConfig | None = None,
    ) -> None:
        self.transactions_config = transactions or TransactionsConfig()
        super().__init__(disk, config)

    def start(self) -> None:
        super().start()
        make_directories(self.disk, "kafka")
        known = (p.producers.id_max for topic in self.log.topics() for p in topic.partitions)
        self.producer_ids = DurableCounter.open(
            self.disk, IDS, floor=1 + max(known), reserve_count=3
        )
        self.transactions = TransactionCoordinator(
            self.log,
            self.transactions_config,
            self.coordinator,
            clock=self.clock,
            post=self.posted.append,
        )
        self.transactions.journal.create_topic()
        self.transactions.start()

    def _all_timers(self) -> tuple[GroupTimers, ...]:
        return self.coordinator.timers, self.transactions.timers

    def pass_time(self, ms: int) -> None:
        """Fire the timers of both, one after the other, with what follows from each."""
        end_ms = self.transactions.timers.now_ms() + ms
        while True:
            self.run()
            now_ms = self.transactions.timers.now_ms()
            due = [t.next_ms for t in self._all_timers() if t.next_ms is not None]
            next_ms = min(due, default=end_ms + 1)
            if next_ms > end_ms:
                self.clock.advance(end_ms - now_ms)
                return
            self.clock.advance(max(0, next_ms - now_ms))
            for timers in self._all_timers():
                timers.run_due()

    def set_epoch(self, transactional_id: str, epoch: int) -> None:
        """Make an id that has used many epochs."""
        metadata = TransactionMetadata(
            transactional_id=transactional_id,
            producer_id=self.producer_ids.next(),
            epoch=epoch,
            timeout_ms=TIMEOUT_MS,
            state=TransactionState.EMPTY,
            update_ms=self.clock.wall_ms(),
        )
        ids = self.transactions.ids
        ids.save(ids.put(metadata), metadata, lambda _: None)
        self.run()

    def visible(self, partition: int) -> list[bytes]:
        """Return what a committed reader sees."""
        reader = Reader(self.log.partition(TOPIC, partition), 0)
        found = []
        while batches := reader.read():
            found += [
                record.value or b""
                for batch in batches
                if not batch.header.is_control
                for record in batch.records()
            ]
        reader.close()
        return found

    def is_stable(self) -> bool:
        """Return whether no partition has an open transaction."""
        return all(
            p.view.last_stable_offset == p.view.durable_watermark
            for topic in self.log.topics()
            for p in topic.partitions
        )


@dataclass(eq=False)
class Producer:
    """Sends what a client library sends. With `version` 2 it adds no partitions itself."""

    node: Node
    transactional_id: str = "x"
    version: int = 0
    timeout_ms: int = TIMEOUT_MS
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[int, int] = field(default_factory=dict)

    @property
    def identity(self) -> ProducerEpoch:
        return ProducerEpoch(self.producer_id, self.epoch)

    def init(self, *, is_resuming: bool = False) -> Box[InitProducerIdResponse]:
        """Send InitProducerId; `take` takes the answer."""
        box: Box[InitProducerIdResponse] = Box()
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=self.producer_id if is_resuming else -1,
            producer_epoch=self.epoch if is_resuming else -1,
        )
        fresh_id = self.node.producer_ids.next()
        self.node.transactions.initialization.init(request, fresh_id, box)
        return box

    def take(self, response: InitProducerIdResponse | EndTxnResponse) -> ErrorCode:
        """Take the epoch from an answer."""
        code = ErrorCode(response.error_code)
        identity = ProducerEpoch(response.producer_id, response.producer_epoch)
        if code is ErrorCode.NONE and identity != self.identity:
            self.producer_id, self.epoch = identity
            self.sequences = {}
        return code

    def started(self) -> Producer:
        """Init, again while a transaction of the producer before it is aborted."""
        for _ in range(3):
            box = self.init()
            self.node.run()
            code = self.take(box.got)
            if code is ErrorCode.NONE:
                return self
            assert code is ErrorCode.CONCURRENT_TRANSACTIONS, code
        raise AssertionError("the transaction before it was not aborted")

    def add(self, *partitions: int, offsets: bool = False) -> Box[ErrorCode]:
        """Send AddPartitionsToTxn, AddOffsetsToTxn, or what Produce does implicitly."""
        box: Box[ErrorCode] = Box()
        targets = [TopicPartition(TOPIC, each) for each in partitions] + [OFFSETS] * offsets
        part = self.node.transactions.participation
        if self.version >= IMPLICIT_VERSION:
            part.add_implicitly(self.transactional_id, self.identity, targets, box)
        else:
            part.add(self.transactional_id, self.identity, targets, box)
        return box

    def produce(self, partition: int, value: bytes) -> Future[AppendResult] | ErrorCode:
        """Send a batch of one record, if the coordinator lets it through."""
        sequence = self.sequences.get(partition, 0)
        payload = encode_batch(
            [Record(offset=0, timestamp_ms=0, key=None, value=value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        append = Append(parts=(payload,), header=parse_header(payload))
        target = TopicPartition(TOPIC, partition)
        check = self.node.transactions.participation.check
        code = check(self.transactional_id, append.header, target)
        if code is not ErrorCode.NONE:
            return code
        self.sequences[partition] = sequence + 1
        return self.node.log.append(TOPIC, append, partition=partition)

    def commit_offset(self, partition: int, offset: int) -> Box[TxnOffsetCommitResponse]:
        """Send TxnOffsetCommit of one partition."""
        box: Box[TxnOffsetCommitResponse] = Box()
        each = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=GROUP,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[each])
            ],
        )
        self.node.transactions.participation.commit_offsets(
            request, box, client_version=self.version
        )
        return box

    def end(self, *, is_commit: bool) -> Box[EndTxnResponse]:
        """Send EndTxn; `take` takes the answer."""
        box: Box[EndTxnResponse] = Box()
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        fresh_id = self.node.producer_ids.next() if self.epoch >= EPOCH_LAST else -1
        self.node.transactions.completion.end(request, self.version, fresh_id, box)
        return box

    def ended(self, *, is_commit: bool) -> ErrorCode:
        """End the transaction, and wait for the answer."""
        box = self.end(is_commit=is_commit)
        self.node.run()
        return self.take(box.got)


def written(result: Future[AppendResult] | ErrorCode) -> bool:
    """Return whether a batch is durable."""
    return isinstance(result, Future) and result.done() and result.exception() is None


def code_of(response: TxnOffsetCommitResponse) -> ErrorCode:
    """The error of a response with one partition."""
    return ErrorCode(response.topics[0].partitions[0].error_code)
