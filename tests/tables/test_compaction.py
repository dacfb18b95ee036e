"""Compaction and seeding: what is dead goes, nothing else does, whenever the process ends."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pyarrow as pa
import pytest

from frazil.errors import Malformed, OutOfRange
from frazil.model import KiB, Rand
from frazil.settings import TablesConfig
from frazil.tables import Operation, seed_partition
from frazil.tables.rows.mapped_pages import MappedPages
from tests.sim.disk import Faults, Model, PowerCut, SimDisk
from tests.tables.build import Machine, Row, orders, rows_of, start
from tests.tables.build import Model as Fold

RECORDS = 12
FROZEN = 9
CONFIG = TablesConfig(seal_bytes=8 * KiB, read_bytes=2 * KiB, checkpoint_bytes=20 * KiB)


def record(number: int) -> tuple[Operation, list[Row]]:
    ids = [(number * 5 + n * 3) % 14 for n in range(6)]
    if number % 4 == 2:
        return Operation.UPDATE, [{"id": n, "amount": number} for n in ids]
    if number % 4 == 3:
        return Operation.DELETE, [{"id": n} for n in ids[:2]]
    return Operation.UPSERT, [{"id": n, "name": f"{number}.{n}", "amount": None} for n in ids]


FOLD = Fold(start(SimDisk()).definition)
for _number in range(RECORDS):
    FOLD.apply(*record(_number))
EXPECTED = {offset: FOLD.sorted_rows(offset) for offset in range(RECORDS + 1)}


def prepared(disk: SimDisk) -> Machine:
    """A table in six files; the log begins where the lake ends."""
    machine = start(disk)
    for number in range(RECORDS):
        machine.write(*record(number))
        if number % 2:
            machine.catch_up()
            machine.table.folds[0].seal()
    machine.table.checkpoint()
    machine.log.partition(machine.definition.topic, 0).delete_records(FROZEN)
    return machine


def lake_rows(machine: Machine) -> tuple[list[pa.RecordBatch], int]:
    past = machine.table.view().partitions[0].as_of(FROZEN)
    return list(past.rows_between(0, past.row_count)), past.row_count


def assert_whole(machine: Machine) -> None:
    view = machine.catch_up()
    for offset in range(FROZEN, RECORDS + 1):
        assert rows_of(view.as_of({0: offset})) == EXPECTED[offset]
    for key in range(14):
        assert view.get(key) == FOLD.rows.get((key,))


def compacted(machine: Machine) -> None:
    while machine.table.compact({0: FROZEN}):
        pass


def calls_of(work: Callable[[Machine], object]) -> int:
    machine = prepared(SimDisk())
    before = machine.disk.calls
    work(machine)
    return machine.disk.calls - before


def struck(machine: Machine, work: Callable[[Machine], object], call: int) -> None:
    machine.disk.faults = Faults(crash_at=machine.disk.calls + call)
    with pytest.raises(PowerCut):
        work(machine)


def ends(disk: SimDisk, model: Model, call: int) -> list[SimDisk]:
    """A power cut, and a kill, which does not depend on the model."""
    return [disk.crash(Rand(call)), *([disk.process_kill()] if model == "ext4" else [])]


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_compaction_that_is_cut_or_killed_loses_nothing(model: Model) -> None:
    """The log cannot replace a file: it begins after all of them."""
    for call in range(1, calls_of(compacted) + 1):
        machine = prepared(SimDisk(model=model, rand=Rand(call)))
        struck(machine, compacted, call)
        for after in ends(machine.disk, model, call):
            again = start(after)
            assert not again.table.folds[0].needs_seed
            assert_whole(again)
            compacted(again)
            again.close()
            third = start(after.process_kill())
            assert_whole(third)
            paths = [path for path in third.disk.files() if path.endswith(".rows")]
            assert len(paths) == third.table.folds[0].file_count


def test_a_compaction_that_fails_can_be_repeated() -> None:
    for call in range(1, calls_of(compacted) + 1):
        machine = prepared(SimDisk())
        machine.disk.faults = Faults(fail_at=(machine.disk.calls + call, errno.EIO))
        with pytest.raises(OSError):
            compacted(machine)
        assert_whole(machine)
        machine.upsert({"id": 99, "name": "n", "amount": 1})
        machine.delete({"id": 99})
        machine.catch_up()
        for horizon in (FROZEN, RECORDS + 2):
            while machine.table.compact({0: horizon}):
                pass
        again = start(machine.disk.process_kill())
        assert not again.table.folds[0].needs_seed
        assert rows_of(again.catch_up()) == EXPECTED[RECORDS]


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_seed_that_is_cut_or_killed_is_repeated(model: Model) -> None:
    """A start uses the new files, or the old ones, or says that it needs a seed."""
    batches, next_row = lake_rows(prepared(SimDisk()))

    def seed(machine: Machine) -> None:
        machine.table.seed(0, batches, end_offset=FROZEN, next_row=next_row)

    outcomes = set()
    for call in range(1, calls_of(seed) + 1):
        machine = prepared(SimDisk(model=model, rand=Rand(call)))
        struck(machine, seed, call)
        for after in ends(machine.disk, model, call):
            again = start(after)
            outcomes.add(again.table.folds[0].needs_seed)
            if again.table.folds[0].needs_seed:
                with pytest.raises(OutOfRange, match="seed it from the lake"):
                    again.table.step()
                seed(again)
            assert_whole(again)
            assert_whole(start(after.process_kill()))
    assert False in outcomes


def test_a_seed_is_split_into_files_and_leaves_a_saved_index() -> None:
    source = start(SimDisk(), config=CONFIG)
    rows: list[Row] = [{"id": n, "name": "x" * (n % 50), "amount": n} for n in range(900)]
    for begin in range(0, 900, 10):
        source.upsert(*rows[begin : begin + 10])
    source.delete(*({"id": n} for n in range(0, 900, 9)))
    view = source.catch_up()
    assert source.seed(view.offsets[0], Rand(1)) == 800
    fold = source.table.folds[0]
    assert fold.file_count > 2 and fold.is_index_loaded and fold.lag == 0
    assert rows_of(source.table.view()) == [
        row for row in rows if row["id"] not in range(0, 900, 9)
    ]
    assert source.table.view().first_offsets == view.offsets
    source.upsert({"id": 3, "name": "later", "amount": 1})
    (now,) = source.catch_up().partitions
    assert (now.row_count, now.death_count, now.live_count) == (901, 101, 800)


GOOD: Row = {"id": 1, "name": "a", "amount": 1, "_offset": 3, "_row": 4}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([GOOD, {**GOOD, "_row": 5}], "key of row 4 is in another row"),
        ([GOOD, {**GOOD, "id": 2}], "row 4 is there twice"),
        ([GOOD, {**GOOD, "id": 2, "_row": 10}], "not in"),
        ([GOOD, {**GOOD, "id": 2, "_row": 5, "_offset": 9}], "after 9"),
        ([GOOD, {**GOOD, "id": 2, "_row": 5, "_offset": 2}], "row 4 or 4 is not in 6"),
        ([GOOD, {**GOOD, "id": None, "_row": 5}], "id is null"),
        ([{name: value for name, value in GOOD.items() if name != "_row"}], "no column _row"),
        ([{**GOOD, "amount": "many"}], "many"),
    ],
)
def test_rows_that_contradict_each_other_do_not_seed(rows: list[Row], reason: str) -> None:
    disk = SimDisk()
    batches = [pa.RecordBatch.from_pylist([row]) for row in rows]
    config = TablesConfig(seal_bytes=1)  # a run of its own for each
    with pytest.raises(Malformed, match=reason):
        seed_partition(disk, orders(), 0, batches, end_offset=9, next_row=10, config=config)
    assert disk.list("tables/orders/0") == []


def test_rows_of_another_partition_do_not_seed() -> None:
    batch = pa.RecordBatch.from_pylist([{**GOOD, "id": n, "_row": n} for n in range(10)])
    with pytest.raises(Malformed, match="another partition"):
        seed_partition(SimDisk(), orders(2), 0, [batch], end_offset=9, next_row=10)


def test_a_table_that_is_changed_for_ever_stays_small() -> None:
    """Files, deaths and bits are bounded by the live rows, whatever was there before."""
    machine = start(SimDisk())
    sizes = []
    for turn in range(30):
        rows = ({"id": n, "name": f"{turn}", "amount": turn} for n in range(turn % 7, 200, 2))
        machine.upsert(*rows)
        machine.delete(*({"id": n} for n in range(0, 200, 20)))
        view = machine.catch_up()
        machine.table.folds[0].seal()
        while machine.table.compact(view.offsets):
            pass
        sizes.append(machine.table.file_bytes)
    state = machine.table.folds[0].state
    assert max(sizes[10:]) < 3 * sizes[10]
    assert state.row_count > 2500 and sum(len(s.keys) for s in state.segments) < 500
    assert sum(len(part.rows) for part in state.deaths.sealed) < 500
    assert rows_of(start(machine.disk.process_kill()).catch_up()) == rows_of(machine.table.view())


def test_many_small_files_become_few_and_the_past_stays() -> None:
    machine = start(SimDisk())
    for number in range(20):
        machine.upsert({"id": number % 5, "name": f"{number}", "amount": number})
        machine.catch_up()
        machine.table.folds[0].seal()
    while machine.table.compact({0: 0}):
        pass
    view = machine.table.view()
    assert machine.table.folds[0].file_count < 8 and view.first_offsets == {0: 0}
    for offset in range(21):
        past = rows_of(view.as_of({0: offset}))
        assert [row["amount"] for row in past] == [
            max(n for n in range(offset) if n % 5 == key) for key in range(min(5, offset))
        ]
    assert rows_of(start(machine.disk.process_kill()).catch_up()) == rows_of(view)


class PageCounter:
    """A mapping that counts its releases."""

    def __init__(self, size: int) -> None:
        self.view = memoryview(bytes(size))
        self.releases = 0

    def release(self) -> None:
        self.releases += 1


def test_the_pages_that_were_not_used_for_longest_are_released() -> None:
    pages = MappedPages(300)
    files = [PageCounter(100) for _ in range(4)]
    for file in files[:3]:
        pages.used(file, 1000)
    pages.used(files[0], 10)
    assert pages.bytes == 300 and not any(file.releases for file in files)
    pages.used(files[3], 50)
    assert [file.releases for file in files] == [0, 1, 0, 0] and pages.bytes == 250
    del files[2], file  # nobody has it: unmapped
    assert pages.bytes == 150
