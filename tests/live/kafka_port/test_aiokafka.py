"""aiokafka with a node: batches of every codec, a group of two, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.node import Node

aiokafka: Any = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
admin: Any = pytest.importorskip("aiokafka.admin")

WAIT_S = 60
PARTITIONS = 3
PER_CODEC = 60
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
COUNT = PER_CODEC * len(CODECS)
GROUP = "pair"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node") / "data"
    with Node(folder, "--set", "lake.enabled=false") as running:
        yield running


def consumer(address: str, topic: str, group: str) -> Any:
    return aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
    )


async def values_of(*members: Any, count: int) -> list[bytes]:
    """Return the values that members read, until there are enough."""
    found: list[bytes] = []
    async with asyncio.timeout(WAIT_S):
        while len(found) < count:
            for member in members:
                for records in (await member.getmany(timeout_ms=100)).values():
                    found += [record.value for record in records]
    return found


async def exercise(address: str) -> None:
    tools = admin.AIOKafkaAdminClient(bootstrap_servers=address)
    await tools.start()
    await tools.create_topics([admin.NewTopic("in", PARTITIONS, 1), admin.NewTopic("out", 1, 1)])
    sent: list[bytes] = []
    for codec in CODECS:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, compression_type=codec
        ) as producer:
            values = [b"%r %d" % (codec, number) for number in range(PER_CODEC)]
            for number, value in enumerate(values):
                await producer.send("in", value, partition=number % PARTITIONS)
            sent += values
    members = [consumer(address, "in", GROUP) for _ in range(2)]
    await asyncio.gather(*(member.start() for member in members))
    assert sorted(await values_of(*members, count=COUNT)) == sorted(sent)
    assert sorted(len(member.assignment()) for member in members) == [1, 2]
    await asyncio.gather(*(member.stop() for member in members))

    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=address, transactional_id="aio"
    ) as producer:
        for number in range(4):
            await producer.begin_transaction()
            await producer.send("out", b"%d" % number)
            position = {aiokafka.TopicPartition("in", 0): number + 1}
            await producer.send_offsets_to_transaction(position, GROUP)
            if number % 2:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    reader = consumer(address, "out", "reader")
    await reader.start()
    assert await values_of(reader, count=2) == [b"0", b"2"]
    await reader.stop()
    committed = await tools.list_consumer_group_offsets(GROUP)
    assert committed[aiokafka.TopicPartition("in", 0)].offset == 3
    await tools.close()


def test_aiokafka(node: Node) -> None:
    """Each record is read once by a group; what was aborted is not there, nor are its offsets."""
    asyncio.run(exercise(f"127.0.0.1:{node.kafka_port}"))
