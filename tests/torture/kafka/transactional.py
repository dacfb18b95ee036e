"""Transactional producers as librdkafka and as Java 4 are, and consume-transform-produce.

Version 0 adds partitions itself and keeps its epoch. A request of it that arrives after the end of
its transaction may hit the next one, which no broker can tell apart: such requests are not sent
late here. Version 2 has no such gap, so all of its requests may be late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from frazil.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from frazil.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from frazil.kafka.wire.messages.fetch import FetchResponse
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.model import TopicPartition
from tests.torture.kafka.clients import (
    FENCED,
    READ_COMMITTED,
    BatchProducer,
    Client,
    Died,
    FencedOff,
    MustAbort,
    Refused,
    SentBatch,
    check_producer,
    fetch_request,
    filtered,
)
from tests.torture.kafka.history import SentRecord, SentTransaction

TIMEOUT_MS = 10_000
KEYED, TWIN = TopicPartition("keyed", 0), TopicPartition("twin", 0)
"""The first is compacted, the second has the same records and is not."""
KEYS = 3
COPY_GROUP = "copier"


@dataclass(slots=True, eq=False)
class TransactionalProducer(BatchProducer):
    """Commits and aborts transactions. It dies now and then, and starts anew under its id."""

    targets: tuple[TopicPartition, ...] = ()
    is_implicit: bool = False
    """Whether it speaks version 2 of the protocol."""
    incarnation: int = 0
    is_unclear: bool = False
    """Whether a batch may still arrive that it does not wait for."""
    offset_number: int = 0
    ended_count: int = 0
    """Transactions that it has ended, or found nothing to do for."""
    versions: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rand = self.rand
        self.produce_version = 12 if self.is_implicit else rand.choice((7, 9, 11))
        self.versions = {
            "add": rand.choice((0, 3)),
            "add_offsets": rand.choice((0, 3, 4)),
            "commit": 5 if self.is_implicit else rand.choice((0, 3, 4)),
            "end": 5 if self.is_implicit else rand.choice((1, 3, 4)),
        }

    @property
    def source(self) -> str:
        return f"{self.name}.{self.incarnation}"

    async def run(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self.incarnation += 1
            try:
                await self._init(is_resuming=False)
                await self.prepare()
                while not is_over():
                    await self.transaction()
            except Died:
                await asyncio.sleep(self.rand.choice((0.01, 0.5, 3.0)))
            except FencedOff:
                self.node.fired["fenced"] += 1
                await asyncio.sleep(self.rand.choice((0.05, 2.0)))
            except Refused as error:
                self.history.verdict.add("untrue", f"{self.source} was refused: {error}")
                return

    async def prepare(self) -> None:
        """Do what is needed before the first transaction, and after an aborted one."""

    async def _init(self, *, is_resuming: bool) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=self.producer_id if is_resuming else -1,
            producer_epoch=self.epoch if is_resuming else -1,
        )
        code, response = await self.insist(
            InitProducerIdResponse, request, 4, lambda response: response.error_code
        )
        if code in FENCED:
            raise FencedOff
        if code is not ErrorCode.NONE:
            raise Refused(code)
        self._take_identity(response.producer_id, response.producer_epoch)
        self.is_unclear = False

    def _take_identity(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.node.fired["rotated"] += self.producer_id not in (-1, producer_id)
            self.sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch
        self.history.told(producer_id, epoch, self.source)

    async def transaction(self) -> None:
        """One transaction, from its first request to its end."""
        transaction = self.history.begin(self.source)
        is_commit = self.rand.random() < 0.7
        try:
            records = await self.records(transaction)
            if not records:
                self.ended_count += 1
                return
            batches = self._batches(records)
            if not self.is_implicit:
                await self._add(sorted({each.target for each in batches}))
            await self.deliver(batches, patience=0.8)
            await self.commit_offsets(transaction)
        except MustAbort:
            is_commit = False
            self.is_unclear = True
        await self._end(transaction, is_commit=is_commit)
        if not is_commit:
            if self.is_unclear and not self.is_implicit:
                await self._init(is_resuming=True)
            self.is_unclear = False
            await self.prepare()
        await asyncio.sleep(self.rand.choice((0.0, 0.1, 0.5)))

    async def records(self, transaction: SentTransaction) -> list[SentRecord]:
        """Return what a transaction writes: to some partitions, and the same to the twins."""
        rand, history = self.rand, self.history
        count = rand.choice((1, 2, len(self.targets)))
        found = [
            history.record(target, self.source)
            for target in rand.sample(self.targets, count)
            for _ in range(rand.choice((1, 1, 2, 4)))
        ]
        for _ in range(rand.choice((0, 1, 2))):
            key = b"%s/%d" % (self.name.encode(), rand.randrange(KEYS))
            is_tombstone = rand.random() < 0.2
            first = history.record(KEYED, self.source, key=key, is_tombstone=is_tombstone)
            second = history.record(
                TWIN, self.source, key=key, value=first.value, is_tombstone=is_tombstone
            )
            found += [first, second]
        transaction.records += found
        return found

    def _batches(self, records: list[SentRecord]) -> list[SentBatch]:
        """Number records, in batches of one or more."""
        batches = []
        for target in dict.fromkeys(each.target for each in records):
            mine = [each for each in records if each.target == target]
            while mine:
                size = self.rand.choice((1, 2, 5))
                batches.append(self.batch(mine[:size]))
                mine = mine[size:]
        return batches

    async def _add(self, targets: list[TopicPartition]) -> None:
        by_topic: dict[str, list[int]] = {}
        for each in targets:
            by_topic.setdefault(each.topic, []).append(each.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id or "",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(topic, indexes)
                for topic, indexes in by_topic.items()
            ],
        )
        code, _ = await self.insist(
            AddPartitionsToTxnResponse,
            request,
            self.versions["add"],
            lambda response: max(
                each.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ),
        )
        check_producer(code)

    async def commit_offsets(self, transaction: SentTransaction) -> None:
        """Commit an offset of its own now and then."""
        if self.rand.random() < 0.5:
            self.offset_number += 1
            target = TopicPartition(self.targets[0].topic, 0)
            await self.send_offset(transaction, f"of {self.name}", target, self.offset_number)

    async def send_offset(
        self, transaction: SentTransaction, group: str, target: TopicPartition, offset: int
    ) -> None:
        if not self.is_implicit:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id or "",
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            code, _ = await self.insist(
                AddOffsetsToTxnResponse,
                request,
                self.versions["add_offsets"],
                lambda response: response.error_code,
            )
            check_producer(code)
        each = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(target.partition, offset)
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(target.topic, [each])
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id or "",
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[topic],
        )
        code, _ = await self.insist(
            TxnOffsetCommitResponse,
            commit,
            self.versions["commit"],
            lambda response: response.topics[0].partitions[0].error_code,
            may_be_late=self.is_implicit,
        )
        check_producer(code)
        transaction.offsets[group, target] = offset

    async def _end(self, transaction: SentTransaction, *, is_commit: bool) -> None:
        if is_commit:
            transaction.decision = "commit_sent"
        request = EndTxnRequest(
            transactional_id=self.transactional_id or "",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        code, response = await self.insist(
            EndTxnResponse,
            request,
            self.versions["end"],
            lambda response: response.error_code,
            may_be_late=self.is_implicit,
        )
        if code in FENCED:
            raise FencedOff
        if code is ErrorCode.NONE:
            transaction.decision = "committed" if is_commit else "aborted"
            self.node.fired[transaction.decision] += 1
            self.ended_count += 1
            if self.is_implicit:
                self._take_identity(response.producer_id, response.producer_epoch)
        elif is_commit or self.is_implicit:
            raise FencedOff  # what became of it is not known


@dataclass(slots=True, eq=False)
class Copier(TransactionalProducer):
    """Copies what is committed in one partition to another, with its offsets: each record once."""

    source_partition: TopicPartition = KEYED
    position: int = 0

    async def prepare(self) -> None:
        """Go on where the last committed transaction ended."""
        self.position = max(0, await committed_offset(self, COPY_GROUP, self.source_partition))

    async def records(self, transaction: SentTransaction) -> list[SentRecord]:
        request = fetch_request(self.source_partition, self.position, READ_COMMITTED, 600)
        code, response = await self.insist(
            FetchResponse,
            request,
            11,
            lambda response: response.responses[0].partitions[0].error_code,
        )
        if code is not ErrorCode.NONE:
            raise MustAbort(code.name)
        found, position = filtered(response.responses[0].partitions[0], self.position)
        if not found:
            self.position = position
            await asyncio.sleep(0.5)
            return []
        (target,) = self.targets
        records = [
            self.history.record(target, self.source, value=copy_of(self.source_partition, offset))
            for offset, _, _ in found
        ]
        transaction.records += records
        self.position = position
        return records

    async def commit_offsets(self, transaction: SentTransaction) -> None:
        await self.send_offset(transaction, COPY_GROUP, self.source_partition, self.position)


def copy_of(partition: TopicPartition, offset: int) -> bytes:
    """Return the value of the copy of a record."""
    return b"copy:%s:%d:%d" % (partition.topic.encode(), partition.partition, offset)


async def committed_offset(client: Client, group: str, target: TopicPartition) -> int:
    """Return a committed offset that no open transaction changes; -1 if there is none."""
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(
        target.topic, partition_indexes=[target.partition]
    )
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
    request = OffsetFetchRequest(groups=[asked], require_stable=True)

    def code_of(response: OffsetFetchResponse) -> int:
        found = response.groups[0]
        return found.error_code or found.topics[0].partitions[0].error_code

    code, response = await client.insist(OffsetFetchResponse, request, 8, code_of)
    assert code is ErrorCode.NONE, code
    return response.groups[0].topics[0].partitions[0].committed_offset
