"""A plan leads from the rows of any offset to those of any later one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import OutOfRange
from frazil.tables import Operation, RowsView, freeze_plan
from tests.sim.disk import SimDisk
from tests.tables.build import Row, start

Numbered = dict[int, Row]


def numbered(view: RowsView) -> Numbered:
    """The live rows by number, with their offsets."""
    rows = [row for b in view.rows_between(0, view.row_count) for row in b.to_pylist()]
    return {row.pop("_row"): row for row in rows}


ids = st.lists(st.integers(0, 8), min_size=1, max_size=6)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from([Operation.UPSERT, Operation.DELETE]), ids), max_size=12),
    st.data(),
)
def test_a_plan_leads_from_one_view_to_the_other(
    records: list[tuple[Operation, list[int]]], data: st.DataObject
) -> None:
    machine = start(SimDisk())
    for number, (operation, keys) in enumerate(records):
        rows: list[Row] = [{"id": key} for key in keys]
        if operation is Operation.UPSERT:
            rows = [{**row, "name": f"n{number}", "amount": number} for row in rows]
        machine.write(operation, rows)
        if number % 4 == 0:
            machine.catch_up()
            machine.table.folds[0].seal()
    view = machine.catch_up().partitions[0]
    begin = data.draw(st.integers(0, view.end_offset))
    end = data.draw(st.integers(begin, view.end_offset))
    plan = freeze_plan(view.as_of(begin), view.as_of(end))
    rows_max = data.draw(st.integers(1, 5))
    lake = numbered(plan.then)
    for row in plan.dead_rows.tolist():
        del lake[row]
    appended = 0
    for first, last in plan.slices(rows_max):
        slice_rows = [row for batch in plan.batches(first, last) for row in batch.to_pylist()]
        assert 1 <= len(slice_rows) <= rows_max
        appended += len(slice_rows)
        lake |= {row.pop("_row"): row for row in slice_rows}
    assert appended == plan.row_count
    assert sorted(lake) == list(lake)
    assert lake == numbered(plan.now)
    assert all(begin <= row["_offset"] < end for n, row in lake.items() if n >= plan.begin_row)  # type: ignore[operator]


def test_a_plan_from_later_to_earlier_is_refused() -> None:
    machine = start(SimDisk())
    machine.upsert({"id": 1, "name": "a", "amount": 1})
    view = machine.catch_up().partitions[0]
    with pytest.raises(OutOfRange, match="after"):
        freeze_plan(view, view.as_of(0))
