"""The fold equals a dictionary's, as of every offset that it knows, however it is cut into steps
and files, compacted and seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Conflict, Malformed, OutOfRange, Overloaded
from frazil.log import Record, append_of_records
from frazil.model import KiB, Rand
from frazil.settings import TablesConfig
from frazil.tables import KeyedView, Operation, alter_table, table_appends
from frazil.tables.keys.key_index import bytes_for
from tests.sim.disk import SimDisk
from tests.tables.build import Machine, Model, Row, orders, rows_of, start


@dataclass(frozen=True)
class At:
    """Something that is done as of an offset: a percentage of those that are known."""

    what: str
    percent: int


Step = str | At | tuple[Operation, list[Row]]
"""Something the owner does, or a record."""
OWNER = ["step", "seal", "checkpoint", "restart", "hold", "compact", "compact", "seed"]
KEYS = (("id",), ("name",), ("id", "name"))
VALUES: dict[str, st.SearchStrategy[object]] = {
    "id": st.integers(0, 12),
    "name": st.text("ab", max_size=3),
    "amount": st.none() | st.integers(-5, 5),
}


@st.composite
def steps(draw: st.DrawFn, key: Sequence[str]) -> list[Step]:
    """Records of all operations with any columns, and what the owner does in between."""
    drawn: list[Step] = []
    for _ in range(draw(st.integers(8, 30))):
        what = draw(st.sampled_from([*OWNER, *4 * list(Operation)]))
        if what in ("compact", "seed"):
            drawn.append(At(str(what), draw(st.sampled_from([20, 50, 80, 100]))))
        elif isinstance(what, Operation):
            others = [name for name in VALUES if name not in key]
            if what is Operation.UPDATE:
                others = draw(st.lists(st.sampled_from(others), min_size=1, unique=True))
            names = [*key, *(() if what is Operation.DELETE else others)]
            row = st.fixed_dictionaries({name: VALUES[name] for name in names})
            drawn.append((what, draw(st.lists(row, min_size=1, max_size=8))))
        else:
            drawn.append(str(what))
    return drawn


def check_all(machine: Machine, model: Model, held: Sequence[KeyedView] = ()) -> None:
    view = machine.catch_up()
    for each in (view, *held):
        check_view(each, model)
    if machine.table.folds[0].first_offset:
        with pytest.raises(OutOfRange, match="older ones are in the lake"):
            view.as_of({0: view.first_offsets[0] - 1})
    check_changes(machine, model)
    check_history(machine, model)
    numbers = numbers_of(view)
    machine.close()
    disk = machine.disk.process_kill()
    for path in [path for path in disk.files() if path.endswith((".rows", ".index"))]:
        disk.unlink(path)
    assert numbers_of(start(disk, machine.definition).catch_up()) == numbers


def numbers_of(view: KeyedView) -> tuple[int, int, list[Row]]:
    """Row numbers never change, whatever became of the files."""
    (rows,) = view.partitions
    numbered = [row for batch in rows.rows_between(0, rows.row_count) for row in batch.to_pylist()]
    return rows.row_count, rows.death_count, numbered


def check_view(view: KeyedView, model: Model) -> None:
    first, end = view.first_offsets[0], view.offsets[0]
    for offset in range(first, end + 1):
        past = view.as_of({0: offset})
        assert rows_of(past) == model.sorted_rows(offset)
        assert past.live_count == len(model.past[offset])
    past = view.as_of({0: (first + end) // 2})
    expected = model.past[(first + end) // 2]
    for key in {*expected, *model.past[end], *model.rows}:
        assert past.get(key if len(key) > 1 else key[0]) == expected.get(key)


def check_history(machine: Machine, model: Model) -> None:
    """The versions of a key are what the dictionary had at their offsets."""
    view = machine.table.view()
    first, end = view.first_offsets[0], view.offsets[0]
    for key in {key for past in model.past for key in past}:
        versions = view.history(key if len(key) > 1 else key[0]).to_pylist()
        assert [v["_offset"] for v in versions] == sorted(v["_offset"] for v in versions)
        for offset in range(first, end + 1):
            below = [dict(v) for v in versions if v["_offset"] < offset]
            last = below[-1] if below and below[-1]["_change"] != "delete" else {}
            assert model.past[offset].get(key, {}) == {
                name: value for name, value in last.items() if not name.startswith("_")
            }
        kinds = [v["_change"] for v in versions]
        for before, after in pairwise(["delete", *kinds]):
            assert after is None or (after == "insert") == (before == "delete")
        assert None not in kinds[1:] and (None not in kinds or versions[0]["_offset"] < first)


def check_changes(machine: Machine, model: Model) -> None:
    """The changes lead from any state to any later one."""
    view = machine.table.view().partitions[0]
    for begin in (view.first_offset, (view.first_offset + view.end_offset) // 2):
        rows = dict(model.past[begin])
        for change in view.changes(begin, view.end_offset).to_pylist():
            kind = change.pop("_change")
            offset = change.pop("_offset")
            assert begin <= offset < view.end_offset
            key = tuple(change[name] for name in machine.definition.key)
            assert (key in rows) == (kind != "insert")
            if kind == "delete":
                assert rows.pop(key) == change
            else:
                rows[key] = change
        assert rows == model.past[view.end_offset]


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=40)
@given(data=st.data())
def test_the_fold_equals_that_of_a_dictionary(key: tuple[str, ...], data: st.DataObject) -> None:
    """Upserts, updates, deletes; keys of one width, of any length, of two columns; sealed, saved,
    compacted, seeded and opened again in between, while views are held."""
    definition = orders(key=key)
    seal_bytes = data.draw(st.sampled_from([200, 8 * KiB]))
    config = TablesConfig(seal_bytes=seal_bytes, read_bytes=2 * KiB, checkpoint_bytes=20 * KiB)
    machine, model = start(SimDisk(), definition, config), Model(definition)
    held: list[KeyedView] = []
    for step in data.draw(steps(key)):
        if step == "step":
            machine.table.step()
        elif step == "seal":
            machine.table.folds[0].seal()
        elif step == "checkpoint":
            machine.table.checkpoint()
        elif step == "restart":
            machine.close()
            machine = start(machine.disk.process_kill(), definition, config)
        elif step == "hold":
            held.append(machine.table.view())
        elif isinstance(step, tuple):
            machine.write(*step)
            model.apply(*step)
        elif isinstance(step, At):
            view = machine.catch_up()
            first, end = view.first_offsets[0], view.offsets[0]
            offset = first + (end - first) * step.percent // 100
            machine.table.folds[0].seal()
            if step.what == "compact":
                while machine.table.compact({0: offset}):
                    pass
            elif offset > 0:
                assert machine.seed(offset, Rand(offset)) == len(model.past[offset])
    check_all(machine, model, held)


def test_a_pinned_view_does_not_change_while_the_fold_goes_on() -> None:
    machine = start(SimDisk())
    machine.upsert(*({"id": n, "name": f"n{n}", "amount": n} for n in range(100)))
    pinned = machine.catch_up()
    before = rows_of(pinned)
    machine.upsert(*({"id": n, "name": "later", "amount": 0} for n in range(0, 100, 3)))
    machine.delete(*({"id": n} for n in range(0, 100, 2)))
    machine.upsert(
        {"id": 4, "name": "again", "amount": 1}, {"id": 1000, "name": "new", "amount": 1}
    )
    machine.catch_up()
    machine.table.checkpoint()
    assert rows_of(pinned) == before
    assert [pinned.get(row["id"]) for row in before] == before
    assert pinned.get(1000) is None
    assert pinned.get_many([5, 1000, 4, 0]).to_pylist() == [before[5], before[4], before[0]]
    now = machine.table.view()
    assert now.get(4) == {"id": 4, "name": "again", "amount": 1}
    assert now.get(2) is None and now.get_many([2, 1000]).num_rows == 1


def test_partitions_share_the_keys_and_keep_their_rows() -> None:
    machine = start(SimDisk(), orders(partitions=4))
    rows: list[Row] = [{"id": n, "name": f"n{n}", "amount": None} for n in range(300)]
    token = machine.upsert(*rows)
    assert len(token) == 4 and not machine.table.has(token)
    view = machine.catch_up()
    assert machine.table.has(token)
    assert rows_of(view) == rows
    wanted = [7, 3, 299, 1000, 0]
    assert view.get_many(wanted).to_pylist() == [rows[n] for n in (7, 3, 299, 0)]
    assert all(view.get(n) == rows[n] for n in range(300)) and view.get(300) is None
    assert sum(batch.num_rows for batch in view.scan(10, 50)) == 40
    assert min(part.live_count for part in view.partitions) > 40


def test_an_update_of_a_key_that_does_not_exist_is_a_dead_change() -> None:
    machine = start(SimDisk())
    machine.upsert({"id": 1, "name": "a", "amount": 1})
    machine.update({"id": 9, "amount": 3}, {"id": 1, "amount": 2}, {"id": 8, "amount": 3})
    assert rows_of(machine.catch_up()) == [{"id": 1, "name": "a", "amount": 2}]
    dead = machine.table.folds[0].dead
    assert [(each.offset, each.row) for each in dead] == [(1, 0), (1, 2)]


def test_a_record_that_is_no_change_is_skipped_and_reported() -> None:
    machine = start(SimDisk())
    machine.upsert({"id": 1, "name": "a", "amount": 1})
    values = [None, b"", b"x" * 100, bytes(16)]
    for value in values:
        record = Record(offset=0, timestamp_ms=1, key=None, value=value)
        machine.log.append(machine.definition.topic, append_of_records([record]))
    machine.log.writer.step()
    machine.upsert({"id": 2, "name": "b", "amount": 1})
    assert [row["id"] for row in rows_of(machine.catch_up())] == [1, 2]
    assert machine.table.folds[0].dead_count == len(values)


def test_new_keys_are_refused_above_the_budget_and_nothing_is_lost() -> None:
    config = TablesConfig(key_bytes_max=bytes_for(200))
    machine = start(SimDisk(), config=config)
    rows: list[Row] = [{"id": n, "name": "a", "amount": 1} for n in range(190)]
    machine.upsert(*rows)
    machine.catch_up()
    with pytest.raises(Overloaded, match="key_bytes_max"):
        machine.upsert(*({"id": n, "name": "a", "amount": 1} for n in range(500, 600)))
    machine.upsert(*({**row, "amount": 2} for row in rows))
    machine.delete({"id": 0})
    assert rows_of(machine.catch_up()) == [{**row, "amount": 2} for row in rows[1:]]
    machine.close()
    small = start(machine.disk.process_kill(), config=TablesConfig(key_bytes_max=1))
    assert len(rows_of(small.catch_up())) == 189 and small.table.pressure == "full"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": None, "name": "a", "amount": 1}, "id of row 0 is null"),
        ({"name": "a", "amount": 1}, "part of the key"),
        ({"id": 1, "other": 1}, "no column other"),
    ],
)
def test_rows_that_do_not_fit_are_refused(row: Row, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        table_appends(orders(), Operation.UPSERT, pa.Table.from_pylist([row]), timestamp_ms=1)


def test_columns_are_added_and_widened_and_old_records_keep_their_meaning() -> None:
    """In files, in memory, and in records that are read again from the beginning."""
    machine = start(SimDisk())
    machine.upsert({"id": 1, "name": "a", "amount": 1}, {"id": 2, "name": "b", "amount": None})
    machine.catch_up()
    machine.table.checkpoint()
    machine.upsert({"id": 3, "name": "c", "amount": 3})
    before = machine.catch_up()
    wider = machine.definition.add_column("note", "string").widen_column("amount", "int64")
    with pytest.raises(Conflict):
        alter_table(machine.disk, wider)  # one version after the other
    alter_table(machine.disk, machine.definition.add_column("note", "string"))
    alter_table(machine.disk, wider)
    machine.table.change_definition(wider)
    machine.update({"id": 1, "amount": 1 << 40}, {"id": 3, "amount": 1 << 41})
    machine.upsert({"id": 4, "name": "d", "amount": 4, "note": "new"})
    expected = [
        {"id": 1, "name": "a", "amount": 1 << 40, "note": None},
        {"id": 2, "name": "b", "amount": None, "note": None},
        {"id": 3, "name": "c", "amount": 1 << 41, "note": None},
        {"id": 4, "name": "d", "amount": 4, "note": "new"},
    ]
    view = machine.catch_up()
    assert rows_of(view) == expected and [view.get(n) for n in (1, 2, 3, 4)] == expected
    assert rows_of(before)[2] == {"id": 3, "name": "c", "amount": 3}
    machine.close()
    again = start(machine.disk.process_kill())
    assert rows_of(again.catch_up()) == expected
    again.table.checkpoint()
    assert again.table.compact({0: again.table.view().offsets[0]})
    assert rows_of(again.table.view()) == expected
    again.close()
    third = machine.disk.process_kill()
    for path in third.files():
        if path.endswith((".rows", ".index")):
            third.unlink(path)
    assert rows_of(start(third).catch_up()) == expected
