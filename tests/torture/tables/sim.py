"""Seeded simulation of a keyed table: it is always the fold of a prefix of its log.

Random changes are written while the table steps, seals and saves. Each life ends with a clean
close, kill -9, or a power cut in the middle of any storage call; between lives files of the table
may be damaged or removed. Then the log must hold every acknowledged record where it was
acknowledged, and the table must equal a dictionary's fold of the log, as of any offset.
"""

from __future__ import annotations

import traceback
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.errors import FrazilError, Overloaded
from frazil.log import AppendResult, Log
from frazil.model import Rand
from frazil.settings import LogConfig, TablesConfig
from frazil.tables import (
    KeyedTable,
    Operation,
    TableDefinition,
    create_table,
    decode_changes,
    find_table,
    finish_drops,
    new_definition,
    table_appends,
    table_names,
)
from tests.sim.clock import SimClock
from tests.sim.disk import PowerCut, Rot, SimDisk
from tests.torture.checker import Verdict
from tests.torture.log.sim import Stopped, draw_faults

COLUMNS = (("id", "int64"), ("name", "string"), ("amount", "int32"))
KEYS = (("id",), ("name",), ("id", "name"))
MUST_FIRE = (
    *("acknowledged", "checked", "damaged", "end_close", "end_cut", "end_kill"),
    *("index_loaded", "index_rebuilt", "saved", "sealed"),
)
LOG = LogConfig(
    segment_bytes_max=4_000,
    batch_bytes_max=8_000,
    disk_bytes_max=400_000,
    index_interval_bytes=500,
)

Key = tuple[object, ...]
Rows = dict[Key, dict[str, object]]


@dataclass(slots=True)
class TableWorld:
    """The state of one seeded run."""

    rand: Rand
    disk: SimDisk
    definition: TableDefinition
    config: TablesConfig
    verdict: Verdict = field(default_factory=Verdict)
    fired: Counter[str] = field(default_factory=Counter)
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    """Offset to the bytes that were acknowledged there."""
    waiting: list[tuple[bytes, Future[AppendResult]]] = field(default_factory=list)
    has_failed: bool = False


def run_seed(seed: int) -> tuple[Verdict, Counter[str]]:
    """Run one seed. An unexpected error is a finding, too."""
    rand = Rand(seed)
    fired: Counter[str] = Counter()
    world = TableWorld(
        rand,
        SimDisk(model=rand.choice(("ext4", "weak")), rand=Rand(rand.getrandbits(64)), fired=fired),
        new_definition("t", COLUMNS, rand.choice(KEYS), rand=Rand(rand.getrandbits(64))),
        TablesConfig(
            seal_bytes=rand.choice((500, 4_000)),
            read_bytes=rand.choice((300, 3_000)),
            checkpoint_bytes=rand.choice((1, 5_000)),
        ),
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


def run_life(world: TableWorld) -> None:
    """Open log and table, compare, go on, and end."""
    rand, disk = world.rand, world.disk
    disk.faults = draw_faults(rand, disk)
    world.has_failed = False
    end = rand.choice(("close", "kill", "cut"))
    try:
        log = open_log(world)
        table = open_table(world, log)
        check(world, log, table)
        for _ in range(rand.choice((5, 20, 40))):
            act(world, log, table)
            if world.has_failed:
                raise Stopped
        check(world, log, table)
        if end == "close":
            table.close()
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
    collect(world)
    world.waiting.clear()
    world.disk = disk.crash(rand) if end == "cut" else disk.process_kill()
    damage(world)


def open_log(world: TableWorld) -> Log:
    def fatal(error: BaseException) -> None:
        world.has_failed = True
        if isinstance(error, PowerCut):
            raise error

    return Log.open(
        world.disk,
        LOG,
        clock=SimClock(),
        rand=Rand(world.rand.getrandbits(64)),
        fatal=fatal,
        threaded=False,
    )


def open_table(world: TableWorld, log: Log) -> KeyedTable:
    finish_drops(world.disk, log)
    if world.definition.name not in table_names(world.disk):
        create_table(world.disk, log, world.definition)
    definition = find_table(world.disk, world.definition.name)
    table = KeyedTable(world.disk, log, definition, world.config)
    is_loaded = table.folds[0].is_index_loaded
    world.fired["index_loaded" if is_loaded else "index_rebuilt"] += 1
    return table


def act(world: TableWorld, log: Log, table: KeyedTable) -> None:
    """Write something, or let the owner of the table work."""
    rand = world.rand
    what = rand.choice(("write", "write", "write", "commit", "commit", "step", "seal", "save"))
    if what == "write":
        operation = rand.choice(tuple(Operation))
        rows = [draw_row(world, operation) for _ in range(rand.randint(1, 6))]
        ((_, append),) = table_appends(
            world.definition, operation, pa.Table.from_pylist(rows), timestamp_ms=1
        )
        try:
            future = log.append(world.definition.topic, append)
        except Overloaded:
            return
        world.waiting.append((append.payload, future))
    elif what == "commit":
        log.writer.step()
        collect(world)
    elif what == "step":
        table.step()
    elif what == "seal":
        table.folds[0].seal()
        world.fired["sealed"] += 1
    else:
        table.checkpoint()
        world.fired["saved"] += 1


def draw_row(world: TableWorld, operation: Operation) -> dict[str, object]:
    rand = world.rand
    row: dict[str, object] = {
        "id": rand.randint(0, 15),
        "name": "n" * rand.randint(0, 3),
        "amount": rand.randint(0, 1000),
    }
    if operation is Operation.DELETE:
        return {name: row[name] for name in world.definition.key}
    if operation is Operation.UPDATE:
        return {name: row[name] for name in (*world.definition.key, "amount")}
    return row


def collect(world: TableWorld) -> None:
    """Note which writes were acknowledged."""
    for payload, future in list(world.waiting):
        if future.done():
            world.waiting.remove((payload, future))
            if future.exception() is None:
                world.acknowledged[future.result().base_offset] = value_of(payload)
                world.fired["acknowledged"] += 1


def value_of(payload: bytes) -> bytes:
    """What a batch has behind the header that the log completes."""
    return payload[61:]


def check(world: TableWorld, log: Log, table: KeyedTable) -> None:
    """Compare the log with what was acknowledged, and the table with the log."""
    past: list[Rows] = [{}]
    reader = log.reader(world.definition.topic, "earliest")
    while batches := reader.read():
        for batch in batches:
            expected = world.acknowledged.get(batch.base_offset)
            if expected is not None and expected != value_of(batch.payload):
                world.verdict.add("foreign", f"offset {batch.base_offset}")
            for record in batch.records():
                past.append(folded(world.definition, past[-1], record.value))
    reader.close()
    end = len(past) - 1
    if any(offset >= end for offset in world.acknowledged):
        world.verdict.add("lost", f"acknowledged up to {max(world.acknowledged)}, the log: {end}")
    table.catch_up()
    view = table.view()
    if view.offsets != {0: end}:
        world.verdict.add("hole", f"the table is at {view.offsets}, the log at {end}")
        return
    for offset in {end, world.rand.randint(0, end)}:
        shown = view.as_of({0: offset})
        rows = [row for batch in shown.batches() for row in batch.to_pylist()]
        found = {tuple(row[name] for name in world.definition.key): row for row in rows}
        if found != past[offset] or len(rows) != len(found):
            world.verdict.add("untrue", f"as of {offset} of {end}: {found} != {past[offset]}")
        for key in {*past[offset], *past[end]}:
            got = shown.get(key if len(key) > 1 else key[0])
            if got != past[offset].get(key):
                world.verdict.add("untrue", f"get {key} as of {offset} of {end}: {got}")
    world.fired["checked"] += 1


def folded(definition: TableDefinition, rows: Rows, value: bytes | None) -> Rows:
    """Return the rows after one record."""
    changes = decode_changes(definition, value)
    after = dict(rows)
    for row in changes.batch.to_pylist():
        key = tuple(row[name] for name in definition.key)
        if changes.operation is Operation.DELETE:
            after.pop(key, None)
        elif changes.operation is Operation.UPSERT or key in after:
            after[key] = {**after.get(key, {}), **row}
    return after


def damage(world: TableWorld) -> None:
    """Damage or remove a derived file, now and then."""
    paths = [path for path in world.disk.files() if path.endswith((".rows", ".index"))]
    if not paths or world.rand.random() < 0.5:
        return
    path = world.rand.choice(paths)
    world.fired["damaged"] += 1
    if world.rand.random() < 0.3:
        world.disk.unlink(path)
    else:
        kinds: tuple[Rot, ...] = ("flip", "zero_page", "cut", "append_garbage")
        world.disk.rot(path, world.rand, world.rand.choice(kinds))
