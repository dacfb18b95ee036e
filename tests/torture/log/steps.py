"""Seeded simulation of copies: positions of sources and the records copied with them always agree.

A source is a stream of numbers. A copier reads some from its position on, and appends them as a
step that leads to the next position. Each life of the log ends with a clean close, kill -9, or a
power cut in the middle of any storage call. Then the log must hold exactly the numbers below the
position that it remembers. An old instance of the copier goes on as if nothing had happened: it
never adds anything.
"""

from __future__ import annotations

import traceback
from collections import Counter
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field

from frazil.errors import Fenced, FrazilError, Overloaded, PositionMismatch
from frazil.log import AppendResult, Log, Record, SourceStep, append_of_records
from frazil.model import Rand
from frazil.settings import LogConfig, TopicConfig
from tests.sim.clock import SimClock
from tests.sim.disk import PowerCut, SimDisk
from tests.torture.checker import Verdict
from tests.torture.log.sim import Stopped, draw_faults

TOPIC = "copied"
KEYS = 5
KEEPING = TopicConfig(awaits_lake=True)
EXPIRING = TopicConfig(retention_ms=0)
COMPACTED = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.1, tombstone_grace_ms=5_000)

MUST_FIRE = ("acknowledged", "duplicate", "fenced", "mismatch", "end_close", "end_cut", "end_kill")


@dataclass(slots=True)
class Copier:
    """One copy: what its program knows."""

    source: str
    epoch: int = 0
    position: int = 0
    """Up to where it has read; steps in flight included."""
    durable: int = 0
    """Up to where steps were acknowledged."""
    waiting: list[tuple[SourceStep, Future[AppendResult]]] = field(default_factory=list)
    sent: list[SourceStep] = field(default_factory=list)


@dataclass(slots=True)
class CopyWorld:
    """The state of one seeded run."""

    rand: Rand
    disk: SimDisk
    config: LogConfig
    topic: TopicConfig
    copiers: list[Copier]
    clock: SimClock = field(default_factory=SimClock)
    verdict: Verdict = field(default_factory=Verdict)
    fired: Counter[str] = field(default_factory=Counter)
    has_failed: bool = False


def run_seed(seed: int) -> tuple[Verdict, Counter[str]]:
    """Run one seed. An unexpected error is a finding, too."""
    rand = Rand(seed)
    fired: Counter[str] = Counter()
    world = CopyWorld(
        rand,
        SimDisk(model=rand.choice(("ext4", "weak")), rand=Rand(rand.getrandbits(64)), fired=fired),
        LogConfig(
            segment_bytes_max=rand.choice((700, 2_000)),
            group_bytes_max=rand.choice((600, 4_000)),
            batch_bytes_max=4_000,
            disk_bytes_max=60_000,
            index_interval_bytes=500,
        ),
        rand.choice((KEEPING, EXPIRING, COMPACTED)),
        [Copier(f"source-{number}") for number in range(rand.choice((1, 3)))],
        fired=fired,
    )
    try:
        for _ in range(rand.randint(2, 5)):
            run_life(world)
            if not world.verdict.is_valid:
                break
    except Exception as error:  # noqa: BLE001 - every error belongs into the verdict
        frame = traceback.extract_tb(error.__traceback__)[-1]
        world.verdict.add("untrue", f"{error!r} in {frame.name} of {frame.filename}")
    return world.verdict, fired


def run_life(world: CopyWorld) -> None:
    """Open the log, compare, copy on, and end."""
    rand, disk = world.rand, world.disk
    disk.faults = draw_faults(rand, disk)
    world.has_failed = False
    end = rand.choice(("close", "kill", "cut"))
    try:
        log = open_log(world)
        for copier in world.copiers:
            resume(world, log, copier)
        check(world, log)
        for _ in range(rand.choice((5, 20, 60))):
            act(world, log)
            if world.has_failed:
                raise Stopped
        if end == "close":
            log.close()
    except PowerCut:
        end = "cut"
    except (Stopped, OSError):
        end = rand.choice(("kill", "cut"))
    except FrazilError as error:
        if not world.has_failed and not isinstance(error, Overloaded):
            raise
        end = rand.choice(("kill", "cut"))
    world.fired[f"end_{end}"] += 1
    for copier in world.copiers:
        collect(world, copier)
        copier.waiting.clear()
    world.disk = disk.crash(rand) if end == "cut" else disk.process_kill()


def open_log(world: CopyWorld) -> Log:
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
    return log


def resume(world: CopyWorld, log: Log, copier: Copier) -> None:
    """Start a new instance of a copier where the log says."""
    found = log.source_position(TOPIC, copier.source)
    position = 0 if found is None or found.position is None else int(found.position)
    if position < copier.durable:
        world.verdict.add("lost", f"{copier.source} is at {position}, was at {copier.durable}")
    if position not in {0, *(int(step.position) for step in copier.sent)}:
        world.verdict.add("untrue", f"{copier.source} is at {position}, which no step led to")
    copier.position = copier.durable = position
    copier.epoch += 1


def act(world: CopyWorld, log: Log) -> None:
    """Do one random action."""
    rand = world.rand
    choice = rand.random()
    copier = rand.choice(world.copiers)
    if choice < 0.5:
        send(world, log, copier)
    elif choice < 0.6 and copier.sent:
        repeat(world, log, copier)
    elif choice < 0.85:
        log.writer.step()
        for each in world.copiers:
            collect(world, each)
    elif choice < 0.95:
        world.clock.advance(rand.choice((1, 500, 6_000)))
        log.maintain()
    else:
        world.disk.faults.capacity_bytes = None


def send(world: CopyWorld, log: Log, copier: Copier) -> None:
    """Copy the next numbers, without waiting for the steps before."""
    begin = copier.position
    end = begin + world.rand.randint(1, 4)
    expected = b"%d" % begin if begin else None
    step = SourceStep(copier.source, copier.epoch, expected, b"%d" % end)
    try:
        answer = log.append(TOPIC, append_of_records(numbers(copier, begin, end), step=step))
    except Overloaded:
        return
    copier.waiting.append((step, answer))
    copier.sent.append(step)
    copier.position = end


def numbers(copier: Copier, begin: int, end: int) -> list[Record]:
    return [
        Record(
            offset=0,
            timestamp_ms=number,
            key=b"%s %d" % (copier.source.encode(), number % KEYS),
            value=b"%s %d" % (copier.source.encode(), number),
        )
        for number in range(begin, end)
    ]


def repeat(world: CopyWorld, log: Log, copier: Copier) -> None:
    """Send a step again, as an instance that lost the response, or as one that was replaced."""
    step = world.rand.choice(copier.sent[-3:])
    epoch = world.rand.choice((step.epoch, copier.epoch))
    records = numbers(copier, int(step.expected or 0), int(step.position))
    try:
        answer = log.append(TOPIC, append_of_records(records, step=step._replace(epoch=epoch)))
        log.writer.step()
        collect(world, copier)
        if answer.exception(0) is None:
            is_new = not answer.result(0).is_duplicate
            world.fired["duplicate"] += not is_new
            if is_new:  # the first one was refused, for want of space
                copier.position = copier.durable = int(step.position)
                copier.waiting.clear()
        elif isinstance(answer.exception(0), Fenced):
            world.fired["fenced"] += 1
        elif isinstance(answer.exception(0), PositionMismatch):
            world.fired["mismatch"] += 1
    except (Overloaded, TimeoutError):
        return


def collect(world: CopyWorld, copier: Copier) -> None:
    """Take the responses that have come. A refused step is read from its source again."""
    for step, answer in copier.waiting:
        if not answer.done():
            continue
        error = answer.exception()
        if error is None:
            copier.durable = max(copier.durable, int(step.position))
            world.fired["acknowledged"] += 1
        elif isinstance(error, (PositionMismatch, Overloaded)):
            copier.position = min(copier.position, int(step.expected or 0))
    copier.waiting = [(step, answer) for step, answer in copier.waiting if not answer.done()]
    if not copier.waiting:
        copier.position = copier.durable


def check(world: CopyWorld, log: Log) -> None:
    """Compare the numbers in the log with the positions."""
    found: dict[str, list[int]] = {copier.source: [] for copier in world.copiers}
    with closing(log.reader(TOPIC, "earliest")) as reader:
        while batches := reader.read():
            for record in (record for batch in batches for record in batch.records()):
                source, number = (record.value or b"").decode().split()
                found[source].append(int(number))
    for copier in world.copiers:
        copied = found[copier.source]
        wanted = list(range(copier.position))
        if copied != sorted(set(copied)):
            world.verdict.add("duplicate", f"{copier.source}: {copied}")
        elif set(copied) - set(wanted):
            world.verdict.add("untrue", f"{copier.source} is at {copier.position}: {copied}")
        elif world.topic is KEEPING and copied != wanted:
            world.verdict.add("lost", f"{copier.source} is at {copier.position}: {copied}")
        elif world.topic is EXPIRING and copied != wanted[len(wanted) - len(copied) :]:
            world.verdict.add("hole", f"{copier.source} is at {copier.position}: {copied}")
        elif world.topic is COMPACTED and not set(wanted[-KEYS:]) <= set(copied):
            world.verdict.add("lost", f"{copier.source} is at {copier.position}: {copied}")
