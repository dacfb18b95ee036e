"""Seeded simulation: one seed runs several lives of a log on a simulated disk.

Each life opens the log, runs producers, subscribers and maintenance in random order, and ends with
a clean close, kill -9, a power cut in the middle of any storage call, or a failed sync. Then all
records are read and checked. The same seed repeats the same run.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from frazil.errors import FrazilError, Overloaded
from frazil.log import DEAD_LETTERS, AtTime, Log, Subscriber, SubscriberConfig
from frazil.model import Rand
from frazil.settings import LogConfig, TopicConfig
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, PowerCut, SimDisk
from tests.torture.checker import Identity, Observed, Verdict, check
from tests.torture.ids import identity_of
from tests.torture.log import keyed
from tests.torture.log.actors import KINDS, TOPIC, Actor
from tests.torture.log.keyed import KeyedProducer

SUBSCRIBER = "reader"


class Stopped(Exception):
    """The log called `fatal`: storage failed."""


@dataclass(slots=True)
class World:
    """The state of one seeded run."""

    rand: Rand
    disk: SimDisk
    config: LogConfig
    topic: TopicConfig
    actors: list[Actor]
    keyed_producer: KeyedProducer | None
    clock: SimClock = field(default_factory=SimClock)
    verdict: Verdict = field(default_factory=Verdict)
    seen: dict[int, dict[int, Identity]] = field(default_factory=dict)
    finished: dict[int, set[int]] = field(default_factory=dict)
    published: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    has_failed: bool = False
    has_power_cuts: bool = True
    fired: Counter[str] = field(default_factory=Counter)


def make_world(seed: int) -> World:
    """Draw the log's sizes, near their limits, its topics and its producers."""
    rand = Rand(seed)
    segment_bytes = rand.choice((700, 2_000, 8_000))
    partitions = rand.choice((1, 1, 2))
    config = LogConfig(
        segment_bytes_max=segment_bytes,
        segment_age_ms_max=rand.choice((1_000, 3_600_000)),
        group_bytes_max=rand.choice((600, 4_000, 100_000)),
        batch_bytes_max=4_000,
        queue_count_max=rand.choice((3, 1_000)),
        disk_bytes_max=6 * segment_bytes + 10_000 + rand.choice((0, 5_000, 100_000)),
        when_full=rand.choice(("backpressure", "backpressure", "drop_oldest")),
        index_interval_bytes=rand.choice((1, 500, 5_000)),
        digest_window_ms=10**15,
    )
    topic = TopicConfig(
        partitions=partitions,
        awaits_lake=rand.random() < 0.5,
        retention_ms=rand.choice((0, 10_000)),
    )
    actors = [
        Actor(number, rand.choice(KINDS), rand.randrange(partitions), Rand(rand.random()))
        for number in range(1, rand.choice((2, 4)))
    ]
    keyed_producer = KeyedProducer(Rand(rand.getrandbits(64))) if rand.random() < 0.4 else None
    fired: Counter[str] = Counter()
    disk = SimDisk(
        model=rand.choice(("ext4", "weak")), rand=Rand(rand.getrandbits(64)), fired=fired
    )
    return World(rand, disk, config, topic, actors, keyed_producer, fired=fired)


def run_seed(seed: int) -> tuple[Verdict, Counter[str]]:
    """Run one seed. An unexpected error is a finding, too."""
    world = make_world(seed)
    try:
        for _ in range(world.rand.randint(1, 4)):
            run_life(world)
            if not world.verdict.is_valid:
                break
        if world.verdict.is_valid:
            run_last_life(world)
    except Exception as error:  # noqa: BLE001 - every error belongs into the verdict
        frame = traceback.extract_tb(error.__traceback__)[-1]
        world.verdict.add("untrue", f"{error!r} in {frame.name} of {frame.filename}")
    world.fired["acknowledged"] += sum(len(a.acknowledged) for a in world.actors)
    return world.verdict, world.fired


def run_life(world: World) -> None:
    """Run one life, from opening the log to its end."""
    rand, disk = world.rand, world.disk
    disk.faults = draw_faults(rand, disk)
    world.has_failed = False
    end = rand.choice(("close", "kill", "cut"))
    try:
        log = open_log(world)
        check_log(world, log)
        if rand.random() < 0.6:
            disk.watcher = watcher_of(world, log)
        subscriber = log.subscribe(
            SUBSCRIBER, TOPIC, "earliest", SubscriberConfig(in_flight_max=20, tries_max=3)
        )
        for _ in range(rand.choice((5, 20, 60))):
            full_count = world.fired["full"]
            act(world, log, subscriber)
            if world.has_failed:
                raise Stopped
            if world.fired["full"] > full_count and rand.random() < 0.5:
                raise PowerCut("right after a refusal: the removed batch must not come back")
        if end == "close":
            log.close()
            collect(world)
    except PowerCut:
        end = "cut"
    except Stopped:
        end = rand.choice(("kill", "cut"))
    except OSError as error:
        # A call failed outside the writer: a real process would end with a traceback.
        world.fired["errors"] += 1
        assert error.errno is not None
        end = rand.choice(("kill", "cut"))
    except FrazilError as error:
        if not world.has_failed and not isinstance(error, Overloaded):
            world.verdict.add("untrue", f"{type(error).__name__}: {error}")
            return
        end = rand.choice(("kill", "cut"))
    world.fired[f"end_{end}"] += 1
    collect(world)
    for actor in world.actors:
        actor.drop_requests()
    if world.keyed_producer is not None:
        world.keyed_producer.drop_requests()
    world.disk = disk.crash(rand) if end == "cut" else disk.process_kill()


def watcher_of(world: World, log: Log) -> Callable[[], None]:
    """Return a hook that reads from the log while a group is being synced."""
    rand = Rand(world.rand.getrandbits(64))

    def watch() -> None:
        if rand.random() < 0.7:
            peek(world, log, rand)

    return watch


def draw_faults(rand: Rand, disk: SimDisk) -> Faults:
    faults = Faults(short_writes=rand.random() < 0.3)
    kind = rand.choice(("none", "none", "crash", "crash", "sync", "full", "full", "fail"))
    if kind == "crash":
        faults.crash_at = rand.randint(1, rand.choice((30, 100, 400)))
    elif kind == "sync":
        faults.fail_sync_at = rand.randint(1, rand.choice((8, 40)))
    elif kind == "full":
        used = sum(len(disk.data(path)) for path in disk.files())
        faults.capacity_bytes = used + rand.choice((3_000, 5_000, 7_000, 10_000, 20_000))
    elif kind == "fail":
        faults.fail_at = (rand.randint(20, 300), 5)
    return faults


def open_log(world: World) -> Log:
    """Open the log, and create the topics unless an earlier life did."""

    def fatal(error: BaseException) -> None:
        world.has_failed = True
        if isinstance(error, PowerCut):
            raise error

    log = Log.open(
        world.disk,
        world.config,
        clock=world.clock,
        rand=Rand(world.rand.getrandbits(64)),
        fatal=fatal,
        threaded=False,
    )
    log.create_topic(TOPIC, world.topic)
    if world.keyed_producer is not None:
        log.create_topic(keyed.TOPIC, keyed.CONFIG)
    return log


def act(world: World, log: Log, subscriber: Subscriber) -> None:
    """Do one random action."""
    rand = world.rand
    choice = rand.random()
    if choice < 0.08 and world.keyed_producer is not None:
        send_keyed(world, world.keyed_producer, log)
    elif choice < 0.45:
        rand.choice(world.actors).send(log)
    elif choice < 0.50:
        rand.choice(world.actors).repeat(log)
    elif choice < 0.75:
        log.writer.step()
        collect(world)
    elif choice < 0.85:
        consume(world, subscriber)
    elif choice < 0.88:
        subscriber.step()
    elif choice < 0.93:
        publish(world, log)
        maintain(world, log)
    elif choice < 0.96:
        peek(world, log, rand)
    elif choice < 0.98:
        world.clock.advance(rand.choice((1, 500, 5_000, 20_000)))
    elif choice < 0.99:
        world.clock.jump_wall(rand.choice((-3_600_000, 86_400_000 * 365 * 200, -1_700_000_000_000)))
    else:
        world.disk.faults.capacity_bytes = None


def send_keyed(world: World, keyed_producer: KeyedProducer, log: Log) -> None:
    """Append many records of few keys, so that there is something to compact."""
    for _ in range(world.rand.choice((1, 8))):
        keyed_producer.send(log)
        log.writer.step()
    maintain(world, log)


def maintain(world: World, log: Log) -> None:
    """Run one round of maintenance, sometimes with a power cut in the middle."""
    if world.has_power_cuts and world.rand.random() < 0.2:
        world.disk.faults.crash_at = world.disk.calls + world.rand.randint(1, 60)
    log.maintain()
    check_retention(world, log)


def collect(world: World) -> None:
    for actor in world.actors:
        actor.collect(world.verdict)
    if world.keyed_producer is not None:
        world.keyed_producer.collect()


def consume(world: World, subscriber: Subscriber) -> None:
    """Claim a few batches, and ack, nack, defer or ignore them in random order."""
    rand = world.rand
    claims = subscriber.claim(rand.choice((1, 5, 20)))
    rand.shuffle(claims)
    for claim in claims:
        batch = claim.batch
        offsets = range(batch.base_offset, batch.end_offset)
        finished = world.finished.setdefault(claim.partition.index, set())
        outcome = rand.random()
        if outcome < 0.6:
            finished.update(offsets)
            claim.ack()
        elif outcome < 0.7:
            claim.nack("again", is_permanent=False)
            if claim.tries + 1 >= subscriber.config.tries_max:
                finished.update(offsets)
        elif outcome < 0.75:
            finished.update(offsets)
            claim.nack("never", is_permanent=True)
        elif outcome < 0.9:
            claim.defer()
    del claims


def publish(world: World, log: Log) -> None:
    """Publish part of the log to the lake."""
    for partition in log.topic(TOPIC).partitions:
        watermark = world.rand.randint(0, partition.durable_watermark)
        known = world.published.get(partition.index, 0)
        world.published[partition.index] = max(known, watermark)
        log.publish(TOPIC, partition.index, watermark)


def check_retention(world: World, log: Log) -> None:
    """Check that retention stays behind the lake and the subscriber, unless set to drop."""
    for partition in log.topic(TOPIC).partitions:
        start = partition.view.start_offset
        if world.config.when_full == "drop_oldest":
            continue
        finished = world.finished.get(partition.index, set())
        late = [o for o in range(world.starts.get(partition.index, 0), start) if o not in finished]
        if late or (world.topic.awaits_lake and start > world.published.get(partition.index, 0)):
            world.verdict.add("lost", f"{partition.index} trimmed to {start}, unread {late[:5]}")
        world.starts[partition.index] = start


def peek(world: World, log: Log, rand: Rand) -> None:
    """Read from a random offset or time; what is returned must never change later."""
    partition = rand.choice(log.topic(TOPIC).partitions)
    view = partition.view
    offset = rand.randint(view.start_offset, view.durable_watermark)
    start = rand.choice((offset, AtTime(timestamp_ms=1_700_000_000_000 + offset)))
    reader = log.reader(TOPIC, start, partition=partition.index)
    expected = reader.offset
    for batch in reader.read(rand.choice((1, 1_000))):
        if batch.end_offset <= expected or batch.base_offset > expected:
            world.verdict.add("hole", f"reader at {expected} got {batch.base_offset}")
        expected = batch.end_offset
        for record in batch.records():
            remember(world, partition.index, record.offset, identity_of(record.value))
    reader.close()


def remember(world: World, partition: int, offset: int, identity: Identity | None) -> None:
    seen = world.seen.setdefault(partition, {})
    if identity is None or seen.setdefault(offset, identity) != identity:
        world.verdict.add("retracted", f"{partition}/{offset} is {identity}, was {seen[offset]}")


def check_log(world: World, log: Log) -> None:
    """Read all records and check them."""
    observed = {p.index: observe(log, TOPIC, p.index) for p in log.topic(TOPIC).partitions}
    history = [sent for actor in world.actors for sent in actor.history()]
    seen = {p: s for p, s in world.seen.items() if p in observed}
    world.verdict.merge(check(history, observed, seen), "")
    for partition, view in observed.items():
        for offset, identity in view.records:
            remember(world, partition, offset, identity)
    if world.keyed_producer is not None:
        world.keyed_producer.check(log, world.verdict)
    letters: Counter[tuple[int, int]] = Counter()
    if DEAD_LETTERS in [topic.name for topic in log.topics()]:
        reader = log.reader(DEAD_LETTERS, "earliest")
        while batches := reader.read():
            for batch in batches:
                headers = dict(batch.records()[0].headers)
                letters[int(headers["partition"] or 0), int(headers["offset"] or 0)] += 1
        reader.close()
    for source, count in letters.items():
        if count > 1:
            world.verdict.add("duplicate", f"{count} dead letters of {source}")


def observe(log: Log, topic: str, partition: int) -> Observed:
    """Return all records that a new reader returns."""
    reader = log.reader(topic, "earliest", partition=partition)
    start_offset = reader.offset
    records = []
    while batches := reader.read():
        for batch in batches:
            records += [(r.offset, identity_of(r.value)) for r in batch.records()]
    end_offset = reader.offset
    reader.close()
    return Observed(start_offset=start_offset, end_offset=end_offset, records=tuple(records))


def run_last_life(world: World) -> None:
    """Check that without faults the log opens, retries succeed and readers catch up."""
    world.disk.faults = Faults()
    world.has_failed = False
    try:
        log = open_log(world)
        check_log(world, log)
        for _ in range(30):
            for actor in world.actors:
                if actor.open and not actor.waiting:
                    actor.send(log, in_flight_max=0)
            while log.writer.step():
                pass
            collect(world)
            drain(world, log)
            publish_all(log)
            log.maintain()
        for actor in world.actors:
            if actor.open:
                world.verdict.add("untrue", f"{actor.kind} producer is stuck with {actor.open}")
            actor.repeat(log)
        while log.writer.step():
            pass
        collect(world)
        check_log(world, log)
        log.close()
    except FrazilError as error:
        world.verdict.add("untrue", f"{type(error).__name__}: {error}")


def publish_all(log: Log) -> None:
    for partition in log.topic(TOPIC).partitions:
        log.publish(TOPIC, partition.index, partition.durable_watermark)


def drain(world: World, log: Log) -> None:
    """Consume the rest of the topic, and check that the subscriber finished every record."""
    subscriber = log.subscribe(SUBSCRIBER, TOPIC, "earliest")
    for _ in range(200):
        world.clock.advance(60_000)
        claims = subscriber.claim()
        for claim in claims:
            batch = claim.batch
            finished = world.finished.setdefault(claim.partition.index, set())
            finished.update(range(batch.base_offset, batch.end_offset))
            claim.ack()
        log.writer.step()
        subscriber.step()
        if not claims and subscriber.lag() == 0:
            break
    else:
        world.verdict.add("untrue", f"the subscriber is stuck with a lag of {subscriber.lag()}")
    if world.config.when_full == "drop_oldest":
        return
    for partition in log.topic(TOPIC).partitions:
        finished = world.finished.get(partition.index, set())
        missed = [o for o in range(partition.durable_watermark) if o not in finished]
        if missed:
            world.verdict.add("lost", f"the subscriber never finished {missed[:5]}")
