"""After a power cut, a kill, a failed call or rot at any moment, the table is the fold of a prefix
of the log that has every acknowledged change."""

from __future__ import annotations

import errno
from uuid import UUID

import msgspec
import pytest

from frazil.model import Rand
from frazil.tables import Operation
from frazil.tables.definition_file import save_definition
from tests.sim.disk import Faults, Model, PowerCut, SimDisk
from tests.tables.build import Machine, Row, rows_of, start
from tests.tables.build import Model as Fold

RECORDS = 9


def record(number: int) -> tuple[Operation, list[Row]]:
    """The changes of an offset: inserts, whole and partial updates, deletes."""
    ids = [(number * 7 + n * 3) % 20 for n in range(6)]
    if number % 4 == 2:
        return Operation.UPDATE, [{"id": n, "amount": number} for n in ids]
    if number % 4 == 3:
        return Operation.DELETE, [{"id": n} for n in ids[:3]]
    return Operation.UPSERT, [{"id": n, "name": f"{number}.{n}", "amount": None} for n in ids]


FOLD = Fold(start(SimDisk()).definition)
for _number in range(RECORDS):
    FOLD.apply(*record(_number))


def live(disk: SimDisk, acknowledged: list[int]) -> Machine:
    """Write, seal, save, restart, and save again; notes how many records were acknowledged."""
    machine = start(disk)
    for number in range(RECORDS):
        machine.write(*record(number))
        acknowledged.append(number + 1)
        machine.table.step()
        if number % 3 == 1:
            machine.table.folds[0].seal()
        if number in (3, 7):
            machine.table.checkpoint()
        if number == 6:
            machine.close()
            machine = start(disk)
            machine.catch_up()
    return machine


def assert_prefix(machine: Machine, acknowledged: list[int]) -> None:
    """The rows are the fold of all records of the log, as of each offset; none that was
    acknowledged is missing."""
    view = machine.catch_up()
    end = view.offsets[0]
    assert end >= max(acknowledged, default=0)
    for offset in {0, end // 2, end}:
        assert rows_of(view.as_of({0: offset})) == FOLD.sorted_rows(offset)
    for key, row in FOLD.past[end].items():
        assert view.get(key[0]) == row


def traced() -> tuple[int, list[str]]:
    disk = SimDisk(trace=[])
    live(disk, [])
    assert disk.trace is not None
    return disk.calls, disk.trace


def calls_of_tables() -> list[int]:
    calls, trace = traced()
    return [n for n in range(1, calls + 1) if " tables" in trace[n - 1]]


def test_the_scenario_covers_all_operations() -> None:
    disk = SimDisk(trace=[])
    acknowledged: list[int] = []
    assert_prefix(live(disk, acknowledged), acknowledged)
    trace = "\n".join(disk.trace or [])
    assert trace.count("rename tables/orders/0/") >= 6
    assert trace.count("keys.index.tmp") > 4 and "map tables/orders/0/" in trace


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_power_cut_at_any_storage_call(model: Model) -> None:
    """Also after saving and another cut."""
    for crash_at in calls_of_tables():
        disk = SimDisk(model=model, faults=Faults(crash_at=crash_at), rand=Rand(crash_at))
        acknowledged: list[int] = []
        with pytest.raises(PowerCut):
            live(disk, acknowledged)
        again = start(disk.crash(Rand(crash_at)))
        assert_prefix(again, acknowledged)
        again.table.checkpoint()
        assert_prefix(start(again.disk.crash(Rand(crash_at + 1))), acknowledged)


def test_a_kill_at_any_storage_call() -> None:
    for crash_at in calls_of_tables():
        disk = SimDisk(faults=Faults(crash_at=crash_at), rand=Rand(crash_at))
        acknowledged: list[int] = []
        with pytest.raises(PowerCut):
            live(disk, acknowledged)
        assert_prefix(start(disk.process_kill()), acknowledged)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failed_storage_call_loses_nothing(code: int) -> None:
    """It raises; the same table, or the next start, has everything."""
    for number in calls_of_tables():
        disk = SimDisk(faults=Faults(fail_at=(number, code)))
        acknowledged: list[int] = []
        try:
            machine = live(disk, acknowledged)
        except OSError as error:
            assert error.errno == code
            machine = start(disk.process_kill())
        assert_prefix(machine, acknowledged)


def test_a_failed_seal_is_repeated_by_the_same_table() -> None:
    disk = SimDisk()
    machine = start(disk)
    for number in range(4):
        machine.write(*record(number))
    machine.catch_up()
    failures = 0
    for call in range(1, 12):
        disk.faults = Faults(fail_at=(disk.calls + call, errno.ENOSPC))
        try:
            machine.table.checkpoint()
        except OSError:
            failures += 1
        disk.faults = Faults()
        assert_prefix(machine, [4])
    assert failures > 5
    disk.faults = Faults()
    machine.table.checkpoint()
    assert_prefix(start(disk.process_kill()), [4])


def test_files_that_are_damaged_or_gone_are_rebuilt() -> None:
    """Each kind of rot in each file, and each file missing; then the same is saved again."""
    disk = SimDisk()
    acknowledged: list[int] = []
    machine = live(disk, acknowledged)
    machine.table.checkpoint()
    machine.close()
    paths = [path for path in disk.files() if path.startswith("tables/orders/0/")]
    assert len(paths) >= 5
    loaded = 0
    for path in paths:
        for kind in ("flip", "zero_page", "cut", "append_garbage", "gone"):
            damaged = disk.process_kill()
            if kind == "gone":
                damaged.unlink(path)
            else:
                damaged.rot(path, Rand(len(path)), kind)  # type: ignore[arg-type]
            again = start(damaged)
            loaded += again.table.folds[0].is_index_loaded
            assert_prefix(again, acknowledged)
            again.table.checkpoint()
            assert_prefix(start(damaged.process_kill()), acknowledged)
    assert not loaded, "an index that is ahead of the rows must not be used"
    whole = start(disk.process_kill())
    assert whole.table.folds[0].is_index_loaded and whole.table.folds[0].lag == 0


def test_files_of_another_table_are_not_used() -> None:
    """As after a drop and another create whose folder was not emptied."""
    disk = SimDisk()
    machine = live(disk, [])
    machine.table.checkpoint()
    machine.close()
    renamed = disk.process_kill()
    definition = msgspec.structs.replace(machine.definition, table_id=UUID(int=77))
    save_definition(renamed, definition)
    again = start(renamed)
    assert not again.table.folds[0].is_index_loaded and again.table.folds[0].lag == RECORDS
    assert_prefix(again, [RECORDS])
