"""Members of a group, and topics that are made, trimmed and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from frazil.kafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from frazil.kafka.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from frazil.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from frazil.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from frazil.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from frazil.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from frazil.kafka.wire.records import encode_versioned
from frazil.model import TopicPartition
from tests.torture.kafka.clients import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Client,
    Died,
    PlainProducer,
    Refused,
    fetch_all,
    list_offset,
)
from tests.torture.kafka.network import Lost

GROUP = "members"
MADE = TopicPartition("made", 0)
SESSION_MS = 6_000


class _JoinAgain(Exception):
    """The generation is over."""


@dataclass(slots=True, eq=False)
class Generations:
    """Who was told to own what. Shared by the members of a group."""

    owners: dict[tuple[int, int], str] = field(default_factory=dict)
    number: int = 0
    """Of the last commit: they grow, whoever sends them."""


@dataclass(slots=True, eq=False)
class Member(Client):
    """Follows the classic protocol: joins, takes an assignment, commits, dies or stays."""

    generations: Generations = field(default_factory=Generations)
    partitions: tuple[TopicPartition, ...] = ()
    member_id: str = ""
    generation: int = -1

    async def run(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            try:
                await self.find_coordinator()
                owned = await self._join()
                while not is_over():
                    await self._live(owned)
            except (_JoinAgain, Lost):
                await asyncio.sleep(0.05)
            except Died:
                self.member_id = ""
                await asyncio.sleep(self.rand.choice((0.1, 8.0)))

    async def _join(self) -> list[int]:
        """Return the partitions that it owns in a new generation."""
        subscription = encode_versioned(
            ConsumerProtocolSubscription(topics=[self.partitions[0].topic]), 1
        )
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=3_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol("range", subscription)],
        )
        joined = await self.ask(JoinGroupResponse, request, 5)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
        self._check(joined.error_code)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        members = sorted(each.member_id for each in joined.members)
        assignments = [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member, bytes(range(number, len(self.partitions), len(members)))
            )
            for number, member in enumerate(members)
        ]
        synced = await self.ask(
            SyncGroupResponse,
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                assignments=assignments if joined.leader == self.member_id else [],
            ),
            3,
        )
        self._check(synced.error_code)
        owned = list(synced.assignment)
        for index in owned:
            owner = self.generations.owners.setdefault((self.generation, index), self.member_id)
            if owner != self.member_id:
                self.history.verdict.add(
                    "untrue", f"generation {self.generation}: {owner} and {self.member_id}"
                )
        self.node.fired["generations"] += 1
        return owned

    def _check(self, code: int) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code != ErrorCode.NONE:
            raise _JoinAgain

    async def _live(self, owned: list[int]) -> None:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.generation, member_id=self.member_id
        )
        beat = await self.ask(HeartbeatResponse, request, 3)
        self._check(beat.error_code)
        if owned and self.rand.random() < 0.7:
            await self._commit(self.rand.choice(owned))
        await asyncio.sleep(self.rand.choice((0.05, 0.5, 2.0)))

    async def _commit(self, index: int) -> None:
        target = self.partitions[index]
        self.generations.number += 1
        number = self.generations.number
        each = OffsetCommitRequest.OffsetCommitRequestPartition(target.partition, number)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequest.OffsetCommitRequestTopic(target.topic, partitions=[each])],
        )
        sent = self.history.commits.setdefault((GROUP, target), [])
        sent.append((number, False))
        response = await self.ask(OffsetCommitResponse, request, 7, may_be_late=False)
        code = response.topics[0].partitions[0].error_code
        if code == ErrorCode.NONE:
            sent.append((number, True))
        self._check(code)


@dataclass(slots=True, eq=False)
class TopicKeeper(PlainProducer):
    """Makes a topic, writes to it, deletes it, and makes it again. Nobody else uses it."""

    async def run(self, is_over: Callable[[], bool]) -> None:
        round_number = 0
        while not is_over():
            round_number += 1
            await self._life(f"{self.name}.{round_number}")

    async def _life(self, source: str) -> None:
        await self.create(MADE.topic, 1)
        await self._init(source)
        sent = [self.history.record(MADE, source) for _ in range(self.rand.randint(1, 8))]
        try:
            await self.deliver([self.batch([each]) for each in sent])
        except Refused as error:
            self.history.verdict.add("untrue", f"{source} was refused: {error}")
            return
        await asyncio.sleep(self.rand.choice((0.0, 0.5, 3.0)))
        for isolation in (READ_COMMITTED, READ_UNCOMMITTED):
            found = await fetch_all(self, MADE, isolation)
            values = None if found is None else [value for _, _, value in found.records]
            if values != [each.value for each in sent]:
                self.history.verdict.add("lost", f"{source} wrote {sent}, and reads {values}")
        await self.delete(MADE.topic)
        if await list_offset(self, MADE, EARLIEST, READ_COMMITTED) >= 0:
            self.history.verdict.add("retracted", f"{source}: a deleted topic is there")
        self.node.fired["made"] += 1

    async def create(self, topic: str, partitions: int, **configs: str) -> None:
        """Create a topic, unless that was done without an answer."""
        asked = CreateTopicsRequest.CreatableTopic(
            topic,
            partitions,
            -1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name.replace("_", "."), value)
                for name, value in configs.items()
            ],
        )
        code, _ = await self.insist(
            CreateTopicsResponse,
            CreateTopicsRequest(topics=[asked], timeout_ms=1000),
            5,
            lambda response: response.topics[0].error_code,
            may_be_late=False,
        )
        assert code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), code

    async def delete(self, topic: str) -> None:
        code, _ = await self.insist(
            DeleteTopicsResponse,
            DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000),
            3,
            lambda response: response.responses[0].error_code,
            may_be_late=False,
        )
        assert code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), code


@dataclass(slots=True, eq=False)
class Trimmer(Client):
    """Deletes the first records of a partition."""

    target: TopicPartition = MADE
    start_offset: int = 0
    """What was acknowledged: the log starts here, or later."""

    async def run(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            await asyncio.sleep(self.rand.choice((0.1, 1.0)))
            end = await list_offset(self, self.target, LATEST, READ_COMMITTED)
            before = self.rand.randint(0, max(0, end))
            partition = DeleteRecordsRequest.DeleteRecordsPartition(self.target.partition, before)
            topic = DeleteRecordsRequest.DeleteRecordsTopic(self.target.topic, [partition])
            code, response = await self.insist(
                DeleteRecordsResponse,
                DeleteRecordsRequest(topics=[topic], timeout_ms=1000),
                1,
                lambda response: response.topics[0].partitions[0].error_code,
            )
            if code is ErrorCode.NONE:
                low = response.topics[0].partitions[0].low_watermark
                self.start_offset = max(self.start_offset, low)
                self.node.fired["trimmed"] += 1
            elif code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                self.history.verdict.add("untrue", f"DeleteRecords: {code.name}")
