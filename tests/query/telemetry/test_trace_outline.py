"""A trace as columns: the same as its waterfall says, and what is found in it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import TooLarge
from frazil.model.arrow import SPANS
from frazil.query.telemetry.trace_outline import find_in_trace, outline, outline_of, span_of_trace
from frazil.query.telemetry.traces import Trace, subtree, tree_of
from frazil.query.telemetry.waterfall import waterfall

BEGIN = 1_700_000_000_000_000_001

Row = dict[str, Any]


def row(number: int, parent: int | None, begin: int, length: int, **more: Any) -> Row:
    return {
        "span_id": f"{number:016x}",
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "time_unix_nano": BEGIN + begin,
        "duration_nano": length,
        "service_name": ("shop", "bank")[number % 2],
        "name": f"work {number % 3}",
        "kind": "INTERNAL",
        "status_code": "ERROR" if number % 4 == 0 else "UNSET",
        **more,
    }


def table(rows: list[Row]) -> pa.Table:
    columns = list(row(0, None, 0, 0))
    schema = pa.schema([SPANS.field(name) for name in columns])
    return pa.Table.from_pylist(rows, schema=schema)


rows_of = st.lists(
    st.tuples(st.none() | st.integers(0, 12), st.integers(0, 50), st.integers(0, 50)),
    min_size=1,
    max_size=12,
).map(
    lambda all: sorted(
        (row(number, *each) for number, each in enumerate(all)),
        key=lambda each: (each["time_unix_nano"], each["span_id"]),
    )
)


@given(rows_of)
def test_the_outline_equals_the_waterfall(rows: list[Row]) -> None:
    """Whatever the spans are: orphans, circles, children that outlive their parents."""
    found = outline_of("ab", table(rows), is_cut=False)
    lines = waterfall(
        Trace(trace_id="ab", roots=tree_of(list(rows)), span_count=len(rows), is_cut=False)
    )
    assert found.span_id == [line.span["span_id"] for line in lines]
    assert found.offset_nano == [line.offset_nano for line in lines]
    assert found.length_nano == [line.duration_nano for line in lines]
    assert found.self_nano == [line.self_nano for line in lines]
    assert found.duration_nano == max(line.offset_nano + line.duration_nano for line in lines)
    depths: list[int] = []
    for above in found.parent:
        depths.append(0 if above < 0 else depths[above] + 1)
    assert depths == [line.depth for line in lines]
    for place, line in enumerate(lines):
        assert found.services[found.service[place]] == line.span["service_name"]
        assert found.names[found.name[place]] == line.span["name"]
        assert (place in found.failed) == (line.span["status_code"] == "ERROR")
        assert (place in found.orphans) == line.is_orphan
        parts = zip(found.critical[::3], found.critical[1::3], found.critical[2::3], strict=True)
        assert line.critical_nano == sum(high - low for whose, low, high in parts if whose == place)


def test_the_start_has_nanoseconds() -> None:
    found = outline_of("ab", table([row(0, None, 0, 1)]), is_cut=True)
    assert found.begin == "2023-11-14T22:13:20.000000001Z"
    assert found.is_cut


def whole(number: int, parent: int | None, **more: Any) -> Row:
    empty: Row = {field.name: None for field in SPANS if field.nullable}
    for field in SPANS:
        if not field.nullable:
            empty[field.name] = [] if pa.types.is_nested(field.type) else 0
            if field.type == pa.string():
                empty[field.name] = ""
    return {**empty, **row(number, parent, number, 10), "trace_id": "ab", **more}


def asked(rows: list[Row]) -> Any:
    """Answers every question with those of the rows that it names the ids of."""
    all_rows = pa.Table.from_pylist(rows, schema=SPANS)

    def ask(sql: str) -> pa.Table:
        ids = [span for span in all_rows["span_id"].to_pylist() if f"'{span}'" in sql]
        spans = all_rows["span_id"].to_pylist()
        fits = pa.array([span in ids or not ids for span in spans], pa.bool_())
        kept = all_rows.filter(fits)
        named = sql.removeprefix("SELECT ").split(" FROM ")[0]
        return kept if named == "*" else kept.select(named.split(", "))

    return ask


EVENT = {
    "time_unix_nano": BEGIN,
    "name": "exception",
    "attributes": [("exception.type", "NoMoney")],
    "dropped_attributes_count": 0,
}
THERE = [
    whole(1, None, attributes=[("order.id", "A-17")]),
    whole(2, 1, resource_attributes=[("host.name", "node-a")]),
    whole(3, 2, events=[EVENT]),
    whole(4, 1, status_message="No Money left"),
]


@pytest.mark.parametrize(
    ("search", "wanted"),
    [
        ("a-17", [1]),
        ("NODE", [2]),
        ("nomoney", [3]),
        ("money", [3, 4]),
        ("bank", [1, 3]),
        ("order.id", []),
        ("%", []),
        ("", [1, 2, 3, 4]),
    ],
)
def test_search_covers_names_values_and_events(search: str, wanted: list[int]) -> None:
    """In values, not in keys, which all spans share; and nothing is a pattern."""
    found = find_in_trace(asked(THERE), "ab", search=search)
    assert found == [f"{number:016x}" for number in wanted]


def test_search_without_matches_is_empty() -> None:
    ask = asked([])
    assert outline(ask, "ab") is None
    assert subtree(ask, "ab", "01") is None
    assert span_of_trace(ask, "ab", "01") is None
    assert find_in_trace(ask, "ab", search="x") == []


def test_a_subtree_has_a_span_and_its_descendants() -> None:
    found = subtree(asked(THERE), "AB", f"{2:016X}")
    assert found is not None
    (root,) = found.roots
    assert [node.span["span_id"] for _, node in root.walk()] == [f"{2:016x}", f"{3:016x}"]
    assert subtree(asked(THERE), "ab", f"{9:016x}") is None


def test_a_large_subtree_is_refused() -> None:
    many = [whole(1, None), *(whole(number, 1) for number in range(2, 1003))]
    with pytest.raises(TooLarge, match="1002 spans"):
        subtree(asked(many), "ab", f"{1:016x}")
