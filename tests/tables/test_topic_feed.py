"""Records of Kafka clients as changes: rows by key, and change events as Debezium sends them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.load.formats.json_values import parse_document, rows_to_table
from frazil.log import Record
from frazil.model import Rand
from frazil.tables.changes import Operation
from frazil.tables.definition import TableDefinition, TableFeed, new_definition
from frazil.tables.topic_feed import FeedCodec, Truncate, UnfitRecord, fed_changes

CODEC = FeedCodec(parse_document, rows_to_table)
COLUMNS = (("id", "int64"), ("name", "string"), ("paid", "decimal(30,2)"))
Told = tuple[str, list[dict[str, Any]], list[int]]


def table(
    form: Literal["upsert", "debezium"] = "upsert",
    columns: Sequence[tuple[str, str]] = COLUMNS,
    key: Sequence[str] = ("id",),
    partitions: int = 1,
) -> TableDefinition:
    feed = TableFeed(topic="orders", format=form)
    return new_definition(
        "orders", columns, key, rand=Rand(1), partitions=partitions, feed=feed, not_null=()
    )


def record(offset: int, key: Any, value: Any) -> Record:
    return Record(
        offset=offset,
        timestamp_ms=1,
        key=key if isinstance(key, bytes | None) else json.dumps(key).encode(),
        value=value if isinstance(value, bytes | None) else json.dumps(value).encode(),
    )


def told(definition: TableDefinition, *records: Record) -> list[Told | UnfitRecord | Truncate]:
    return [
        each
        if isinstance(each, UnfitRecord | Truncate)
        else (each[0].operation.name, each[0].batch.to_pylist(), each[1].tolist())
        for each in fed_changes(definition, records, CODEC)
    ]


def test_a_value_is_the_row_of_its_key_and_no_value_deletes_it() -> None:
    changes = told(
        table(),
        record(3, {"id": 1}, {"name": "a", "paid": "0.10", "unknown": 7}),
        record(4, 2, {"id": 2, "name": "b"}),
        record(5, {"id": 1}, None),
        record(6, 1, {"name": "c"}),
    )
    assert changes == [
        (
            "UPSERT",
            [
                {"id": 1, "name": "a", "paid": Decimal("0.10")},
                {"id": 2, "name": "b", "paid": None},
            ],
            [3, 4],
        ),
        ("DELETE", [{"id": 1}], [5]),
        ("UPSERT", [{"id": 1, "name": "c", "paid": None}], [6]),
    ]


def test_a_key_that_changes_is_two_changes_or_none() -> None:
    """A record that does not fit changes nothing, not even the row of its old key."""
    before = {"id": 1}
    changes = told(
        table("debezium"),
        record(1, 1, {"op": "u", "before": before, "after": {"id": 2, "name": "b"}}),
        record(2, 1, {"op": "u", "before": before, "after": {"id": 3, "name": 7}}),
    )
    assert changes[0] == ("DELETE", [{"id": 1}], [1])
    assert changes[1] == ("UPSERT", [{"id": 2, "name": "b", "paid": None}], [1])
    assert [type(each) for each in changes[2:]] == [UnfitRecord]


def test_a_text_key_stays_text() -> None:
    named = table(columns=(("id", "string"), ("name", "string")))
    changes = told(named, record(0, b"42", {"name": "a"}), record(1, b"caf\xc3\xa9", None))
    assert changes == [
        ("UPSERT", [{"id": "42", "name": "a"}], [0]),
        ("DELETE", [{"id": "café"}], [1]),
    ]


def test_keys_of_several_columns_are_objects() -> None:
    pairs = table(columns=(("a", "int32"), ("b", "string"), ("v", "int64")), key=("a", "b"))
    changes = told(
        pairs, record(0, {"a": 1, "b": "x"}, {"v": 5}), record(1, 7, {"v": 5}), record(2, None, {})
    )
    assert changes == [
        ("UPSERT", [{"a": 1, "b": "x", "v": 5}], [0]),
        UnfitRecord(1, "the key is no JSON object with a, b"),
        UnfitRecord(2, "the record has no key"),
    ]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ({"id": 1}, {"id": 2}, "id is 2 in the value, and 1 in the key"),
        ({"id": 1}, {"name": 5}, "name: 5 is not a string"),
        ({"id": 1}, {"paid": "1.234"}, 'paid: "1.234" is not of type decimal128(30, 2)'),
        ({"id": 2**63}, {}, "id: 9223372036854775808 is not a BIGINT"),
        ({"id": "1"}, {}, 'id: "1" is not a BIGINT'),
        ({"name": "x"}, {}, "the key has no id"),
        ({"id": 1}, [1], "the value is no JSON object"),
        ({"id": 1}, b"{", "it is not JSON: Expecting property name"),
        ({"id": 1}, b'{"name":"a","name":"b"}', "the name 'name' appears twice"),
    ],
)
def test_a_record_that_does_not_fit_changes_nothing(key: Any, value: Any, reason: str) -> None:
    (unfit,) = told(table(), record(9, key, value))
    assert isinstance(unfit, UnfitRecord)
    assert unfit.offset == 9
    assert unfit.reason.startswith(reason)


def test_the_records_around_an_unfit_one_count() -> None:
    changes = told(
        table(), record(0, 1, {"name": "a"}), record(1, 2, {"name": 1}), record(2, 3, {})
    )
    assert changes == [
        UnfitRecord(1, "name: 1 is not a string"),
        (
            "UPSERT",
            [{"id": 1, "name": "a", "paid": None}, {"id": 3, "name": None, "paid": None}],
            [0, 2],
        ),
    ]


def event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "ts_ms": 1, "source": {"lsn": 5}}


def test_change_events_put_and_delete() -> None:
    row = {"id": 1, "name": "a", "paid": None}
    moved = {**row, "id": 2}
    changes = told(
        table("debezium"),
        record(0, {"id": 1}, event("r", None, row)),
        record(1, {"id": 1}, event("u", row, moved)),
        record(2, {"id": 2}, event("d", moved)),
        record(3, {"id": 2}, None),
        record(4, {"id": 9}, event("d")),
        record(5, None, event("t")),
        record(6, None, event("m")),
        record(7, None, event("x")),
    )
    assert changes == [
        ("UPSERT", [row], [0]),
        ("DELETE", [{"id": 1}], [1]),
        ("UPSERT", [moved], [1]),
        ("DELETE", [{"id": 2}, {"id": 9}], [2, 4]),
        Truncate(5),
        UnfitRecord(7, "op is 'x'; change events have c, r, u, d or t"),
    ]


def test_a_value_that_did_not_change_is_kept() -> None:
    """PostgreSQL does not tell large values that an update leaves alone."""
    after = {"id": 1, "name": "__debezium_unavailable_value", "paid": "5.00"}
    changes = told(table("debezium"), record(0, None, event("u", None, after)))
    assert changes == [("UPDATE", [{"id": 1, "paid": Decimal("5.00")}], [0])]


def test_a_truncate_needs_the_only_partition() -> None:
    (unfit,) = told(table("debezium", partitions=2), record(0, None, event("t")))
    assert isinstance(unfit, UnfitRecord)


def test_times_and_decimals_are_read_by_the_schema_of_the_event() -> None:
    columns = (
        ("id", "int64"),
        ("at", "timestamp"),
        ("zoned", "timestamptz"),
        ("day", "date"),
        ("paid", "decimal(38,4)"),
    )
    unscaled = -(10**37) - 1
    fields = [
        {"field": "id", "type": "int64"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "zoned", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {
            "field": "paid",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "4"},
        },
    ]
    row = {
        "id": 1,
        "at": 1_700_000_000_000_001,
        "zoned": "2026-11-18T10:00:00.5Z",
        "day": 20_000,
        "paid": base64.b64encode(unscaled.to_bytes(16, "big", signed=True)).decode(),
    }
    message = {
        "schema": {"fields": [{"field": "after", "fields": fields}]},
        "payload": event("c", None, row),
    }
    changes = told(table("debezium", columns), record(0, None, message))
    assert changes == [
        (
            "UPSERT",
            [
                {
                    "id": 1,
                    "at": datetime(2023, 11, 14, 22, 13, 20, 1, tzinfo=UTC).replace(tzinfo=None),
                    "zoned": datetime(2026, 11, 18, 10, 0, 0, 500_000, tzinfo=UTC),
                    "day": date(2024, 10, 4),
                    "paid": Decimal(f"-1{'0' * 33}.0001"),
                }
            ],
            [0],
        )
    ]


def test_a_time_as_a_number_needs_a_schema() -> None:
    columns = (("id", "int64"), ("at", "timestamptz"))
    (unfit,) = told(
        table("debezium", columns), record(0, None, event("c", None, {"id": 1, "at": 5}))
    )
    assert isinstance(unfit, UnfitRecord)


KEYS = st.integers(0, 4)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.text(max_size=3)),
        st.tuples(st.just("gone"), KEYS, st.just("")),
        st.tuples(st.just("unfit"), KEYS, st.just("")),
    ),
    max_size=30,
)


@given(EVENTS)
def test_order_and_offsets_are_kept(events: list[tuple[str, int, str]]) -> None:
    """Applied to a dictionary, the changes give what the records give one by one."""
    records, expected = [], dict[int, str]()
    for offset, (kind, key, text) in enumerate(events):
        if kind == "put":
            expected[key] = text
            records.append(record(offset, key, {"name": text}))
        elif kind == "gone":
            expected.pop(key, None)
            records.append(record(offset, key, None))
        else:
            records.append(record(offset, key, {"name": 1}))
    found = dict[int, str]()
    seen, last = 0, -1
    for each in fed_changes(table(), records, CODEC):
        if isinstance(each, UnfitRecord | Truncate):
            assert events[each.offset][0] == "unfit"
            seen += 1
            continue
        changes, offsets = each
        assert offsets[0] > last
        last = int(offsets[-1])
        seen += len(offsets)
        for row in changes.batch.to_pylist():
            if changes.operation is Operation.DELETE:
                found.pop(row["id"], None)
            else:
                found[row["id"]] = row["name"]
    assert (found, seen) == (expected, len(events))
