"""One seed: clients of all kinds, some lives of a node, and a judge after each start."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from frazil.disk import DurableCounter, make_directories
from frazil.errors import FrazilError
from frazil.kafka.producer_ids import PATH, RESERVED
from frazil.kafka.transactions.coordinator import TOPIC as TRANSACTIONS_TOPIC
from frazil.kafka.transactions.coordinator import TOPIC_CONFIG as TRANSACTIONS_CONFIG
from frazil.kafka.transactions.metadata import TransactionMetadata, TransactionState
from frazil.kafka.transactions.records import transaction_record
from frazil.log import Record, append_of_records
from frazil.model import KiB, Rand, TopicPartition
from frazil.settings import GroupsConfig, KafkaPortConfig, LogConfig
from tests.sim.disk import Faults, PowerCut, SimDisk
from tests.torture.checker import Verdict
from tests.torture.kafka.clients import (
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Client,
    PlainProducer,
    fetch_all,
    list_offset,
)
from tests.torture.kafka.history import History
from tests.torture.kafka.judge import Judge, PartitionReading, read_directly
from tests.torture.kafka.members import GROUP, Generations, Member, TopicKeeper, Trimmer
from tests.torture.kafka.network import Weather
from tests.torture.kafka.node import APIS, SimNode
from tests.torture.kafka.transactional import (
    COPY_GROUP,
    KEYED,
    TIMEOUT_MS,
    TWIN,
    Copier,
    TransactionalProducer,
    committed_offset,
)

TARGETS = (*dict.fromkeys(APIS.values()), "compaction")
TRIMMED = TopicPartition("trimmed", 0)
EPOCHS = (None, None, 32_760, 32_765, 32_766)
FINISH_S = 120.0
"""Simulated time in which clients finish once all is well."""

Run = Callable[[Callable[[], bool]], Coroutine[Any, Any, None]]


@dataclass(slots=True, eq=False)
class World:
    """Everything of one seed."""

    rand: Rand
    node: SimNode
    history: History
    judge: Judge
    verdict: Verdict
    partitions: int
    clients: list[tuple[str, Run]] = field(default_factory=list)
    copies: dict[TopicPartition, TopicPartition] = field(default_factory=dict)
    trimmer: Trimmer | None = None
    groups: set[tuple[str, TopicPartition]] = field(default_factory=set)
    lone: list[TransactionalProducer] = field(default_factory=list)
    """Those that share their transactional id with nobody."""
    is_over: bool = False

    @property
    def topics(self) -> list[TopicPartition]:
        main = [TopicPartition("main", index) for index in range(self.partitions)]
        copies = [TopicPartition("copies", 0), TopicPartition("copies", 1)]
        return [*main, *copies, KEYED, TWIN, TRIMMED]


def make_world(seed: int) -> World:
    """Draw sizes, faults of the network, and clients."""
    rand = Rand(seed)
    verdict, fired = Verdict(), Counter[str]()
    is_rough = rand.random() < 0.7
    weather = Weather(
        rand=Rand(rand.getrandbits(64)),
        fired=fired,
        lost_request=0.01 * is_rough,
        lost_response=0.02 * is_rough,
        late_request=0.02 * is_rough,
    )
    disk = SimDisk(
        model=rand.choice(("ext4", "weak")), rand=Rand(rand.getrandbits(64)), fired=fired
    )
    log_config = LogConfig(
        segment_bytes_max=rand.choice((1 * KiB, 4 * KiB, 16 * KiB)),
        batch_bytes_max=64 * KiB,
        queue_bytes_max=256 * KiB,
        queue_count_max=rand.choice((4, 1000)),
        disk_bytes_max=8 * 1024 * KiB,
        index_interval_bytes=rand.choice((1, 512)),
    )
    kafka_config = KafkaPortConfig(
        groups=GroupsConfig(initial_rebalance_delay_ms=rand.choice((1, 300)))
    )
    node = SimNode(rand, disk, log_config, kafka_config, weather, verdict, fired)
    history = History(verdict)
    judge = Judge(history, verdict, frozenset({KEYED}))
    world = World(rand, node, history, judge, verdict, rand.choice((3, 3, 10)))
    draw_clients(world)
    return world


def draw_clients(world: World) -> None:
    """Draw who uses the port."""
    rand = world.rand
    main = tuple(TopicPartition("main", index) for index in range(world.partitions))

    def fields(name: str) -> dict[str, object]:
        return {
            "node": world.node,
            "history": world.history,
            "name": name,
            "rand": Rand(rand.getrandbits(64)),
        }

    def add(name: str, client: object) -> None:
        world.clients.append((name, client.run))  # type: ignore[attr-defined]

    for number in range(rand.choice((0, 1, 2))):
        targets = main if number else (*main[:2], TRIMMED)
        name = f"plain{number}"
        add(name, PlainProducer(**fields(name), targets=targets, mortality=0.01))  # type: ignore[arg-type]
    for number in range(rand.choice((1, 1, 2))):
        transactional_id = f"x{number}"
        is_implicit = rand.random() < 0.5
        count = rand.choice((1, 1, 1, 2))
        for zombie in range(count):
            name = f"txn{number}{'ab'[zombie]}"
            client = TransactionalProducer(
                **fields(name),  # type: ignore[arg-type]
                transactional_id=transactional_id,
                targets=main,
                is_implicit=is_implicit,
                mortality=rand.choice((0.0, 0.01, 0.04)),
            )
            add(name, client)
            world.lone += [client] * (count == 1)
            world.groups.add((f"of {name}", main[0]))
    for number in range(rand.choice((0, 0, 1, 2))):
        source, target = main[number], TopicPartition("copies", number)
        world.copies[source] = target
        world.groups.add((COPY_GROUP, source))
        is_implicit = rand.random() < 0.5
        count = rand.choice((1, 1, 1, 2))
        for zombie in range(count):
            name = f"copier{number}{'ab'[zombie]}"
            copier = Copier(
                **fields(name),  # type: ignore[arg-type]
                transactional_id=f"copy{number}",
                targets=(target,),
                is_implicit=is_implicit,
                mortality=rand.choice((0.0, 0.01, 0.04)),
                source_partition=source,
            )
            add(name, copier)
            world.lone += [copier] * (count == 1)
    if rand.random() < 0.3:
        generations = Generations()
        for number in range(rand.choice((1, 2, 3))):
            name = f"member{number}"
            member = Member(
                **fields(name),  # type: ignore[arg-type]
                generations=generations,
                partitions=main,
                mortality=rand.choice((0.0, 0.02)),
            )
            add(name, member)
    if rand.random() < 0.2:
        add("keeper", TopicKeeper(**fields("keeper"), is_patient=True))  # type: ignore[arg-type]
    if rand.random() < 0.2:
        world.trimmer = Trimmer(**fields("trimmer"), target=TRIMMED)  # type: ignore[arg-type]
        add("trimmer", world.trimmer)


def run_seed(seed: int) -> tuple[Verdict, Counter[str]]:
    """Run one seed. An unexpected error is a finding, too."""
    world = make_world(seed)
    loop = world.node.loop
    try:
        with world.node.simulated():
            use_up_epochs(world)
            loop.run_until_complete(live(world))
    except Exception as error:  # noqa: BLE001 - every error belongs into the verdict
        frame = traceback.extract_tb(error.__traceback__)[-1]
        world.verdict.add("untrue", f"{error!r} in {frame.name} of {frame.filename}")
    finally:
        loop.close()
    return world.verdict, world.node.fired


def use_up_epochs(world: World) -> None:
    """Give the transactional ids a long past, in some seeds: few epochs are left."""
    epoch = world.rand.choice(EPOCHS)
    if epoch is None:
        return
    disk = world.node.disk
    log = world.node.open_log()
    log.create_topic(TRANSACTIONS_TOPIC, TRANSACTIONS_CONFIG)
    make_directories(disk, "kafka")
    producer_ids = DurableCounter.open(disk, PATH, floor=0, reserve_count=RESERVED)
    for name in ("x0", "x1", "x2", "copy0", "copy1"):
        metadata = TransactionMetadata(
            transactional_id=name,
            producer_id=producer_ids.next(),
            epoch=epoch,
            timeout_ms=TIMEOUT_MS,
            state=TransactionState.EMPTY,
            update_ms=world.node.clock.wall_ms(),
        )
        key, value = transaction_record(metadata)
        record = Record(offset=0, timestamp_ms=0, key=key, value=value)
        log.append(TRANSACTIONS_TOPIC, append_of_records([record]))
        log.writer.step()
    producer_ids.close()
    log.close()


async def live(world: World) -> None:
    """Some lives with faults, and a last one without."""
    node, rand = world.node, world.rand
    await node.start()
    await set_up(world)
    tasks = [
        asyncio.create_task(run(lambda: world.is_over), name=name) for name, run in world.clients
    ]
    maintaining = asyncio.create_task(maintain(world))
    for _ in range(rand.randint(1, 3)):
        await end_life(world)
        if not world.verdict.is_valid:
            break
        await begin_life(world)
    if world.verdict.is_valid:
        await finish(world, tasks)
    maintaining.cancel()
    for task in tasks:
        task.cancel()


async def set_up(world: World) -> None:
    keeper = TopicKeeper(world.node, world.history, "setup", Rand(0), is_patient=True)
    await keeper.create("main", world.partitions)
    await keeper.create("copies", 2)
    await keeper.create(TRIMMED.topic, 1)
    await keeper.create(TWIN.topic, 1)
    await keeper.create(
        KEYED.topic,
        1,
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.1",
        delete_retention_ms="1000",
    )
    keeper.drop()


async def maintain(world: World) -> None:
    while True:
        await asyncio.sleep(world.rand.choice((0.2, 1.0)))
        try:
            world.node.maintain()
        except PowerCut:
            continue  # the node notices
        except OSError:
            if not world.node.is_dead:  # a process would end here
                world.node.kill("cut")
        except FrazilError as error:
            if not world.node.is_dead:
                world.verdict.add("untrue", f"maintenance failed: {error!r}")


async def end_life(world: World) -> None:
    """Let clients work for a while, then end this life of the node in one of many ways."""
    node, rand = world.node, world.rand
    how = rand.choice(("call", "api", "api", "api", "kill", "cut", "close", "sync", "full"))
    node.end_as = rand.choice(("kill", "cut"))
    node.target = ""
    life_s = rand.choice((0.3, 1.0, 3.0))
    faults = node.disk.faults
    faults.short_writes = rand.random() < 0.3
    if how == "api":
        node.target = rand.choice(TARGETS)
    elif how == "call":
        faults.crash_at = node.disk.calls + rand.randint(1, rand.choice((30, 300, 2000)))
    elif how == "sync":
        faults.fail_sync_at = node.disk.syncs + rand.randint(1, rand.choice((5, 60)))
        node.end_as = "cut"
    elif how == "full":
        used = sum(len(node.disk.data(path)) for path in node.disk.files())
        faults.capacity_bytes = used + rand.choice((2_000, 10_000))
    try:
        await asyncio.wait_for(node.down.wait(), life_s)
    except TimeoutError:
        if how == "close":
            await node.close()
        else:
            node.target = ""
            node.kill(node.end_as)
        await node.down.wait()


async def begin_life(world: World) -> None:
    """Start the node, sometimes with a power cut while it starts, and read everything."""
    node, rand = world.node, world.rand
    await asyncio.sleep(rand.choice((0.0, 0.2, 15.0)))
    if rand.random() < 0.25:
        node.disk.faults = Faults(crash_at=node.disk.calls + rand.randint(1, 150))
        node.target, node.end_as = "start", rand.choice(("kill", "cut"))
    node.is_observed = True
    while not await node.start():
        node.disk.faults = Faults()
    node.disk.faults.crash_at = None
    node.target = ""
    await observe(world, is_last=False)
    node.is_observed = False


async def observe(world: World, *, is_last: bool) -> dict[TopicPartition, PartitionReading]:
    """Read all partitions in all ways, and let the judge compare."""
    node = world.node
    client = Client(node, world.history, "observer", Rand(1), is_observer=True)
    readings = {}
    for target in world.topics:
        committed = await fetch_all(client, target, READ_COMMITTED)
        uncommitted = await fetch_all(client, target, READ_UNCOMMITTED)
        if committed is None or uncommitted is None or node.log is None:
            world.verdict.add("lost", f"{target} cannot be read")
            continue
        readings[target] = PartitionReading(
            committed=committed,
            uncommitted=uncommitted,
            reader=read_directly(node.log, target),
            latest_committed=await list_offset(client, target, LATEST, READ_COMMITTED),
            latest_uncommitted=await list_offset(client, target, LATEST, READ_UNCOMMITTED),
        )
    client.drop()
    world.judge.check(readings, is_last=is_last)
    if world.trimmer is not None and TRIMMED in readings:
        start = readings[TRIMMED].committed.start_offset
        if start < world.trimmer.start_offset:
            world.verdict.add("retracted", f"deleted records are back, from {start} on")
    return readings


async def finish(world: World, tasks: list[asyncio.Task[None]]) -> None:
    """Without faults clients finish, and what they left open is decided without them."""
    node = world.node
    weather = node.weather
    weather.lost_request = weather.lost_response = weather.late_request = 0.0
    await asyncio.sleep(world.rand.choice((0.5, 3.0)))
    await make_progress(world)
    world.is_over = True
    _, stuck = await asyncio.wait(tasks, timeout=FINISH_S)
    for task in stuck:
        world.verdict.add("untrue", f"client {task.get_name()} is stuck: {task.get_stack()}")
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is not None:
            world.verdict.add("untrue", f"client {task.get_name()} failed: {task.exception()!r}")
    await asyncio.sleep(TIMEOUT_MS / 1000 + 5)
    node.is_observed = True
    await observe_all(world)
    node.kill(world.rand.choice(("kill", "cut")))
    await node.down.wait()
    if world.verdict.is_valid and await node.start():
        await asyncio.sleep(1.0)
        await observe_all(world)
        node.fired["checked"] += 1


async def make_progress(world: World) -> None:
    """Check that every producer that nobody fences can end transactions."""
    before = {each.name: each.ended_count for each in world.lone}
    for _ in range(60):
        stuck = [each for each in world.lone if each.ended_count == before[each.name]]
        if not stuck:
            return
        await asyncio.sleep(1.0)
        for each in world.lone:
            each.mortality = 0.0
    for each in stuck:
        world.verdict.add("untrue", f"{each.source} cannot end a transaction any more")


async def observe_all(world: World) -> None:
    """Check everything, offsets included. Nobody writes any more."""
    node = world.node
    readings = await observe(world, is_last=True)
    if not world.verdict.is_valid:
        return
    client = Client(node, world.history, "observer", Rand(1), is_observer=True)
    keys = {*world.groups, *world.history.commits}
    offsets = {key: await committed_offset(client, *key) for key in sorted(keys)}
    world.judge.check_offsets(offsets, readings, world.copies)
    world.judge.check_twins(readings)
    client.drop()
    node.fired["members"] += any(group == GROUP for group, _ in keys)
