"""Bit rot: a closed log is damaged in one place, then opened and read.

Every damage must be *noticed* (`Corrupt`, with only correct data before it) or *harmless* (all
data complete and correct, duplicates still recognised). Anything else is silent corruption.
"""

from __future__ import annotations

from collections import Counter
from typing import get_args

from frazil.errors import Corrupt, FrazilError
from frazil.log import AtTime, Log, append_of_records
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.sim.disk import Faults, Rot, SimDisk
from tests.torture.checker import Identity, Verdict
from tests.torture.ids import identity_of, records_of
from tests.torture.log.actors import TOPIC
from tests.torture.log.sim import World, act, collect, make_world, observe, open_log

SUBSCRIBER = "reader"
Truth = dict[int, dict[int, Identity | None]]


def run_seed(seed: int) -> tuple[Verdict, Counter[str]]:
    """Build a log, damage it once, and check what is read."""
    world = make_world(seed)
    truth = build(world)
    rand = world.rand
    files = [f for f in world.disk.files() if f.startswith("log/")]
    weights = [6 if f.endswith(".log") else 1 for f in files]
    path, other = rand.choices(files, weights, k=2)
    kind = rand.choice(get_args(Rot))
    if world.disk.rot(path, rand, kind, other=other):
        judge(world, truth, f"{kind} of {path}")
    return world.verdict, world.fired


def build(world: World) -> Truth:
    """Run one life without faults, ended by a close or kill -9, and return the log's records."""
    world.disk.faults = Faults()
    world.has_power_cuts = False
    log = open_log(world)
    subscriber = log.subscribe(SUBSCRIBER, TOPIC, "earliest")
    for _ in range(world.rand.choice((20, 60, 120))):
        act(world, log, subscriber)
    while log.writer.step():
        pass
    collect(world)
    truth = {
        p.index: dict(observe(log, TOPIC, p.index).records) for p in log.topic(TOPIC).partitions
    }
    if world.rand.random() < 0.5:
        log.close()
    world.disk = world.disk.process_kill()
    return truth


def judge(world: World, truth: Truth, damage: str) -> None:
    """Open the damaged log, read it, repeat acknowledged batches, append, and open it again."""
    for round_number in range(2):
        try:
            log = open_log(world)
            for partition, records in truth.items():
                compare(world, log, partition, records, damage)
            if round_number == 0:
                extend(world, log, truth, damage)
            log.close()
        except Corrupt:
            world.fired["noticed"] += 1
            return
        except FrazilError as error:
            world.verdict.add("untrue", f"{damage}: {error!r}")
            return
        world.disk = world.disk.process_kill()
    world.fired["harmless"] += 1


def compare(
    world: World, log: Log, partition: int, truth: dict[int, Identity | None], damage: str
) -> None:
    """Check that readers return exactly the expected records."""
    first = min(truth, default=log.partition(TOPIC, partition).view.start_offset)
    starts = [log.reader(TOPIC, "earliest", partition=partition)]
    if truth:
        offset = world.rand.choice(list(truth))
        starts.append(log.reader(TOPIC, offset, partition=partition))
        log.reader(TOPIC, AtTime(timestamp_ms=1_700_000_000_000), partition=partition).close()
    for reader in starts:
        expected = max(reader.offset, first)
        while batches := reader.read(world.rand.choice((1, 100_000))):
            for record in (r for batch in batches for r in batch.records()):
                if record.offset < expected:
                    continue
                if record.offset != expected or identity_of(record.value) != truth.get(expected):
                    world.verdict.add("foreign", f"{damage}: {partition}/{record.offset}")
                expected += 1
        if expected != max(truth, default=expected - 1) + 1:
            world.verdict.add("lost", f"{damage}: {partition} ends at {expected}")
        reader.close()


def extend(world: World, log: Log, truth: Truth, damage: str) -> None:
    """Check that repeats are not stored again, and that appends leave old records intact."""
    rebuilt = any(p.recovered_rebuilt for p in log.topic(TOPIC).partitions)
    ends = {p.index: p.durable_watermark for p in log.topic(TOPIC).partitions}
    for actor in world.actors:
        actor.repeat(log)
    while log.writer.step():
        pass
    doubles: Verdict = Verdict()
    for actor in world.actors:
        actor.collect(doubles)
    moved = any(p.durable_watermark != ends[p.index] for p in log.topic(TOPIC).partitions)
    if moved and not rebuilt:
        world.verdict.add("duplicate", f"{damage}: {doubles.examples}")
    for actor in world.actors:
        actor.send(log)
    while log.writer.step():
        pass
    collect(world)
    for partition, records in truth.items():
        view = observe(log, TOPIC, partition)
        kept = {o: i for o, i in records.items() if o >= view.start_offset}
        if not kept.items() <= dict(view.records).items():
            world.verdict.add("lost", f"{damage}: an append to {partition} lost records")
        truth[partition] = dict(view.records)


def cut_everywhere(seed: int) -> tuple[Verdict, Counter[str]]:
    """Cut the last three frames at every byte, with acknowledged and unacknowledged batches."""
    verdict, fired = Verdict(), Counter[str]()
    for is_acknowledged in (True, False):
        world = small_world(seed)
        path, keep, ends = last_three_frames(world, is_acknowledged=is_acknowledged)
        base = world.disk
        for size in range(keep, ends[-1][1] + 1):
            disk = base.process_kill()
            disk.rot(path, Rand(0), "cut", size=size)
            whole = max([offset for offset, end in ends if end <= size])
            judge_cut(
                world, disk, verdict, is_acknowledged and size < ends[-1][1], whole, f"{size}"
            )
            fired["cut_promised" if is_acknowledged else "cut_torn"] += 1
    return verdict, fired


def flip_everywhere(seed: int) -> tuple[Verdict, Counter[str]]:
    """Flip every bit of a frame in the middle of the open segment; each must be noticed."""
    verdict, fired = Verdict(), Counter[str]()
    world = small_world(seed)
    path, begin, ends = last_three_frames(world, is_acknowledged=True)
    base, data = world.disk, world.disk.data(path)
    for bit in range(begin * 8, ends[1][1] * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        world.disk = base.process_kill()
        world.disk.rot(path, Rand(0), "replace", data=bytes(damaged))
        try:
            log = open_log(world)
            observe(log, TOPIC, 0)
        except Corrupt:
            fired["flip_noticed"] += 1
        except FrazilError as error:
            verdict.add("untrue", f"bit {bit} of {path} was flipped: {error!r}")
        else:
            verdict.add("foreign", f"bit {bit} of {path} was flipped without an error")
    return verdict, fired


def small_world(seed: int) -> World:
    """Make a world of one partition and small records: few bytes to damage one by one."""
    world = make_world(seed)
    world.topic = TopicConfig()
    for actor in world.actors:
        actor.partition = 0
        actor.size_max = 100
    return world


def last_three_frames(
    world: World, *, is_acknowledged: bool
) -> tuple[str, int, list[tuple[int, int]]]:
    """Leave a killed log whose last three batches were acknowledged, or only written.

    Return the file, the position of the first of the three, and (end offset, end position) of
    each batch boundary.
    """
    log = open_log(world)
    partition = log.partition(TOPIC, 0)
    actor = world.actors[0]
    while partition.durable_watermark < 3:
        actor.send(log)
        log.writer.step()
        actor.collect(world.verdict)
    if partition.needs_roll:
        partition.roll()
    ends = [(partition.durable_watermark, partition.view.segments[-1].info.size_bytes)]
    for _ in range(3):
        append = append_of_records(records_of(99, ends[-1][0], 1, 100))
        appended = partition.stage(append)
        ends.append((appended.end_offset, ends[-1][1] + 32 + len(append.payload)))
    partition.write()
    if is_acknowledged:
        partition.sync()
        partition.publish()
    path = partition.view.segments[-1].path
    world.disk = world.disk.process_kill()
    return path, ends[0][1], ends


def judge_cut(
    world: World, disk: SimDisk, verdict: Verdict, must_notice: bool, whole: int, what: str
) -> None:
    world.disk = disk
    try:
        log = open_log(world)
    except Corrupt:
        if not must_notice:
            verdict.add("untrue", f"a torn tail, cut at {what}, was reported as corrupt")
        return
    end = log.partition(TOPIC, 0).durable_watermark
    if must_notice:
        verdict.add("lost", f"acknowledged batches cut at {what} were not noticed")
    elif end != whole:
        verdict.add("lost", f"cut at {what}: the log ends at {end}, not {whole}")
    log.close()
