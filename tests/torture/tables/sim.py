"""Seeded simulation of a keyed table: it is always the fold of a prefix of its log.

Random changes are written while the table steps, seals, saves and compacts; plans keep a lake, and
the log is trimmed up to it. Each life ends with a clean close, kill -9, or a power cut in the
middle of any storage call, often one of a compaction or of seeding from the lake; between lives
files of the table may be damaged or removed. Then the log must hold every acknowledged record where
it was acknowledged, and the table must equal a dictionary's fold of the log, row numbers included,
as of any offset that it knows; and so must views that were taken before.
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
    KeyedView,
    LogChanges,
    Operation,
    TableDefinition,
    create_table,
    decode_changes,
    find_table,
    finish_drops,
    freeze_plan,
    new_definition,
    table_appends,
    table_names,
)
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, PowerCut, Rot, SimDisk
from tests.torture.checker import Verdict
from tests.torture.log.sim import Stopped, draw_faults

COLUMNS = (("id", "int64"), ("name", "string"), ("amount", "int32"))
KEYS = (("id",), ("name",), ("id", "name"))
MUST_FIRE = (
    *("acknowledged", "checked", "damaged", "end_close", "end_cut", "end_kill"),
    *("index_loaded", "index_rebuilt", "saved", "sealed", "frozen", "trimmed"),
    *("compacted", "held", "past_forgotten", "seeded", "seeded_lost"),
    *(f"{end}_in_{what}" for end in ("cut", "kill", "fail") for what in ("compact", "seed")),
)
ACTS = (
    *("write", "write", "write", "write", "commit", "commit", "step", "step", "seal", "save"),
    *("compact", "compact", "freeze", "seed", "hold"),
)
LOG = LogConfig(
    segment_bytes_max=4_000,
    batch_bytes_max=8_000,
    disk_bytes_max=400_000,
    index_interval_bytes=500,
)

CALLS = {"compact": 20, "seed": 40}
"""Storage calls of an operation, about: it ends at one of them."""

Key = tuple[object, ...]
Row = dict[str, object]
Rows = dict[Key, Row]


@dataclass(frozen=True, slots=True)
class Past:
    """The table as of an offset, by a dictionary's fold."""

    rows: Rows
    numbers: dict[Key, int]
    next_row: int


@dataclass(slots=True)
class SimLake:
    """What the lake has: the rows as of an offset, by number."""

    offset: int = 0
    next_row: int = 0
    rows: dict[int, Row] = field(default_factory=dict)


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
    past: list[Past] = field(default_factory=lambda: [Past({}, {}, 0)])
    """As of each offset, also of those that the log no longer has."""
    horizon: int = 0
    """Nothing at or after it may be forgotten."""
    lake: SimLake = field(default_factory=SimLake)
    held: list[KeyedView] = field(default_factory=list)
    doing: str = ""
    """The operation that the power is cut in, on purpose."""


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
        end = rand.choice(("kill", "cut")) if world.doing else "cut"
        if world.doing:
            world.fired[f"{end}_in_{world.doing}"] += 1
    except (Stopped, OSError):
        end = rand.choice(("kill", "cut"))
        if world.doing and disk.faults.fail_at is not None:
            world.fired[f"fail_in_{world.doing}"] += 1
    except FrazilError as error:
        if not world.has_failed and not isinstance(error, Overloaded):
            raise
        end = rand.choice(("kill", "cut"))
    world.fired[f"end_{end}"] += 1
    world.doing = ""
    world.held.clear()
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
    table = KeyedTable(world.disk, LogChanges(log), definition, world.config)
    is_loaded = table.folds[0].is_index_loaded
    world.fired["index_loaded" if is_loaded else "index_rebuilt"] += 1
    return table


def act(world: TableWorld, log: Log, table: KeyedTable) -> None:
    """Write something, or let the owner of the table work."""
    rand = world.rand
    what = rand.choice(ACTS)
    if table.folds[0].needs_seed:  # a file could not be read after it was seeded
        seed(world, table)
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
    elif what == "save":
        table.checkpoint()
        world.fired["saved"] += 1
    elif what == "hold":
        world.held.append(table.view())
        world.fired["held"] += 1
    elif what == "compact":
        compact(world, log, table)
    elif what == "freeze":
        freeze(world, log, table)
    elif 0 < world.lake.offset >= log_start(world, log):
        seed(world, table)


def log_start(world: TableWorld, log: Log) -> int:
    return log.partition(world.definition.topic, 0).view.start_offset


def strike(world: TableWorld, what: str) -> None:
    """Let one of the next storage calls fail, or the power be cut there, now and then."""
    world.doing = what
    at = world.disk.calls + world.rand.randint(1, CALLS[what])
    chance = world.rand.random()
    if chance < 0.3:
        world.disk.faults = Faults(crash_at=at, capacity_bytes=world.disk.faults.capacity_bytes)
    elif chance < 0.4:
        world.disk.faults = Faults(fail_at=(at, 5))


def compact(world: TableWorld, log: Log, table: KeyedTable) -> None:
    """Compact at any horizon that the owner may choose: below what the lake has, once the log does
    not have everything."""
    table.step()
    table.folds[0].seal()
    view = table.view()
    limit = view.offsets[0] if log_start(world, log) == 0 else world.lake.offset
    horizons = (limit, world.rand.randint(0, limit))
    strike(world, "compact")
    for _ in range(world.rand.choice((1, 5))):
        horizon = world.rand.choice(horizons)
        world.horizon = max(world.horizon, horizon)
        if not table.compact({0: horizon}):
            break
        world.fired["compacted"] += 1
    world.doing = ""


def freeze(world: TableWorld, log: Log, table: KeyedTable) -> None:
    """Bring the lake to a later offset by a plan, then trim the log, perhaps."""
    lake, view = world.lake, table.view().partitions[0]
    if max(lake.offset, view.first_offset) > view.end_offset or lake.offset < view.first_offset:
        return
    end = world.rand.randint(lake.offset, view.end_offset)
    plan = freeze_plan(view.as_of(lake.offset), view.as_of(end))
    if plan.begin_row != lake.next_row:
        world.verdict.add("untrue", f"the plan begins at row {plan.begin_row}: {lake.next_row}")
    for row in plan.dead_rows.tolist():
        del lake.rows[row]
    made = [row for batch in plan.batches() for row in batch.to_pylist()]
    lake.rows |= {row["_row"]: row for row in made}
    lake.offset, lake.next_row = end, plan.end_row
    past = world.past[end] if end < len(world.past) else None
    if past is not None and len(lake.rows) != len(past.rows):
        world.verdict.add("untrue", f"{len(lake.rows)} rows in the lake as of {end}")
    world.fired["frozen"] += 1
    if world.rand.random() < 0.5 and past is not None:
        log.partition(world.definition.topic, 0).delete_records(end)
        world.fired["trimmed"] += 1


def seed(world: TableWorld, table: KeyedTable) -> None:
    """Make the files anew from the rows of the lake, in any order."""
    lake = world.lake
    rows = list(lake.rows.values())
    world.rand.shuffle(rows)
    fields = [*world.definition.schema, pa.field("_offset", pa.int64())]
    schema = pa.schema([*fields, pa.field("_row", pa.int64())])
    size = world.rand.choice((1, 3, 100))
    batches = [
        pa.RecordBatch.from_pylist(rows[begin : begin + size], schema)
        for begin in range(0, len(rows), size)
    ]
    strike(world, "seed")
    world.horizon = max(world.horizon, lake.offset)
    count = table.seed(0, batches, end_offset=lake.offset, next_row=lake.next_row)
    if count != len(rows):
        world.verdict.add("untrue", f"{count} of {len(rows)} rows were seeded")
    world.doing = ""
    world.fired["seeded"] += 1


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
    start = log_start(world, log)
    past = world.past[: start + 1]
    reader = log.reader(world.definition.topic, "earliest")
    while batches := reader.read():
        for batch in batches:
            expected = world.acknowledged.get(batch.base_offset)
            if expected is not None and expected != value_of(batch.payload):
                world.verdict.add("foreign", f"offset {batch.base_offset}")
            for record in batch.records():
                if record.offset >= start:
                    past.append(folded(world.definition, past[-1], record.value))
    reader.close()
    world.past = past
    end = len(past) - 1
    if any(offset >= end for offset in world.acknowledged):
        world.verdict.add("lost", f"acknowledged up to {max(world.acknowledged)}, the log: {end}")
    while table.folds[0].needs_seed:  # again, if a file could not be read after it was seeded
        world.fired["seeded_lost"] += 1
        seed(world, table)
    table.catch_up()
    view = table.view()
    if view.offsets != {0: end}:
        world.verdict.add("hole", f"the table is at {view.offsets}, the log at {end}")
        return
    world.fired["past_forgotten"] += view.first_offsets[0] > 0
    if view.first_offsets[0] > world.horizon:
        world.verdict.add("lost", f"the past before {view.first_offsets}, not {world.horizon}")
    for each in (view, *world.held):
        check_view(world, each)
    world.fired["checked"] += 1


def check_view(world: TableWorld, view: KeyedView) -> None:
    past, first, end = world.past, view.first_offsets[0], view.offsets[0]
    for offset in {end, world.rand.randint(first, end)}:
        shown = view.as_of({0: offset})
        (partition,) = shown.partitions
        rows = [r for b in partition.rows_between(0, partition.row_count) for r in b.to_pylist()]
        numbers = {key_of(world.definition, row): row.pop("_row") for row in rows}
        found = {key_of(world.definition, row): without_offset(row) for row in rows}
        if found != past[offset].rows or not len(rows) == len(found) == shown.live_count:
            world.verdict.add("untrue", f"as of {offset} of {end}: {found} != {past[offset].rows}")
        if (numbers, partition.row_count) != (past[offset].numbers, past[offset].next_row):
            world.verdict.add("moved", f"row numbers as of {offset} of {end}: {numbers}")
        for key in {*past[offset].rows, *past[-1].rows}:
            got = shown.get(key if len(key) > 1 else key[0])
            if got != past[offset].rows.get(key):
                world.verdict.add("untrue", f"get {key} as of {offset} of {end}: {got}")


def key_of(definition: TableDefinition, row: Row) -> Key:
    return tuple(row[name] for name in definition.key)


def without_offset(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "_offset"}


def folded(definition: TableDefinition, before: Past, value: bytes | None) -> Past:
    """Return the table after one record."""
    changes = decode_changes(definition, value)
    rows, numbers, next_row = dict(before.rows), dict(before.numbers), before.next_row
    for row in changes.batch.to_pylist():
        key = key_of(definition, row)
        if changes.operation is Operation.DELETE:
            rows.pop(key, None)
            numbers.pop(key, None)
        elif changes.operation is Operation.UPSERT or key in rows:
            rows[key] = {**rows.get(key, {}), **row}
            numbers[key] = next_row
            next_row += 1
    return Past(rows, numbers, next_row)


def damage(world: TableWorld) -> None:
    """Damage or remove a derived file, now and then."""
    paths = [path for path in world.disk.files() if path.endswith((".rows", ".index"))]
    if not paths or world.rand.random() < 0.5:
        return
    # The last row file, more often: those before it may be compacted up to a later offset.
    last = max(paths, key=lambda path: (path.endswith(".rows"), path))
    path = world.rand.choice((last, world.rand.choice(paths)))
    world.fired["damaged"] += 1
    if world.rand.random() < 0.3:
        world.disk.unlink(path)
    else:
        kinds: tuple[Rot, ...] = ("flip", "zero_page", "cut", "append_garbage")
        world.disk.rot(path, world.rand, world.rand.choice(kinds))
