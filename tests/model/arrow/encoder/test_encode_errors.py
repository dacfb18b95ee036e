"""Invalid rows are refused with row and column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError

from frazil.errors import Malformed
from frazil.model import Signal
from frazil.model.arrow import TABLES, encode
from frazil.model.arrow.encoder.value_types import words_of
from tests.fuzz.encode import rows_of
from tests.model.arrow.decoder.reference import CLASSES

ROW = 1
"""The one that is wrong."""


def good(signal: str) -> pa.RecordBatch:
    """Three rows in which nothing is wrong, with one attribute and no words."""
    request: Any = CLASSES[signal]()
    for _ in range(3):
        if signal == "logs":
            record = request.resource_logs.add().scope_logs.add().log_records.add()
        elif signal == "traces":
            record = request.resource_spans.add().scope_spans.add().spans.add()
            record.events.add()
            record.links.add()
        else:
            metric = request.resource_metrics.add().scope_metrics.add().metrics.add()
            record = metric.exponential_histogram.data_points.add(positive={})
            record.exemplars.add()
        record.attributes.add(key="a").value.string_value = "x"
    return rows_of(signal, [request.SerializeToString()])


def spoiled(signal: str, **cells: Any) -> pa.RecordBatch:
    """The same, but for these columns of the second row. None is null."""
    rows = good(signal).to_pylist()
    rows[ROW] |= cells
    return pa.RecordBatch.from_pylist(rows, TABLES[Signal(signal).table])


EVENT = {"time_unix_nano": 0, "name": "", "attributes": [], "dropped_attributes_count": 0}
LINK = {
    "trace_id": "",
    "span_id": "",
    "trace_state": "",
    "attributes": [],
    "dropped_attributes_count": 0,
    "flags": 0,
}
EXEMPLAR = {"time_unix_nano": 0, "trace_id": "", "span_id": "", "filtered_attributes": []}
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    # Numbers.
    ("logs", {"time_unix_nano": -1}, "time_unix_nano", "-1 is below 0"),
    ("logs", {"observed_time_unix_nano": -5}, "observed_time_unix_nano", "below 0"),
    ("logs", {"dropped_attributes_count": -1}, "dropped_attributes_count", "below 0"),
    ("logs", {"resource_dropped_attributes_count": -1}, "resource_dropped_", "below 0"),
    ("logs", {"scope_dropped_attributes_count": -1}, "scope_dropped_", "below 0"),
    ("traces", {"end_time_unix_nano": -1}, "end_time_unix_nano", "below 0"),
    ("traces", {"events": [EVENT, EVENT | {"time_unix_nano": -1}]}, "events.time", "below 0"),
    ("metrics", {"count": -1}, "count", "below 0"),
    ("metrics", {"positive_bucket_counts": [1, -1]}, "positive_bucket_counts", "below 0"),
    # Null.
    ("logs", {"severity_number": None}, "severity_number", "None is not a value"),
    ("logs", {"attributes": None}, "attributes", "None is not a value"),
    ("traces", {"name": None}, "name", "None is not a value"),
    ("traces", {"links": None}, "links", "None is not a value"),
    ("metrics", {"count": None}, "count", "None is not a value"),
    ("metrics", {"scale": None}, "scale", "None is not a value"),
    ("metrics", {"positive_offset": None}, "positive_offset", "does not fit"),
    ("metrics", {"negative_offset": 1}, "negative_offset", "does not fit"),
    # Ids.
    ("logs", {"trace_id": "ab"}, "trace_id", "'ab' is not an id of 16 bytes"),
    ("logs", {"span_id": "0" * 15 + "g"}, "span_id", "is not hex"),
    ("traces", {"trace_id": "0" * 30 + "é"}, "trace_id", "is not hex"),
    ("traces", {"parent_span_id": "0" * 15}, "parent_span_id", "of 8 bytes"),
    ("traces", {"links": [LINK, LINK | {"span_id": "x" * 16}]}, "links.span_id", "is not hex"),
    ("metrics", {"exemplars": [EXEMPLAR | {"trace_id": "1"}]}, "exemplars.trace_id", "16 bytes"),
    # Words that stand for numbers.
    ("traces", {"kind": "server"}, "kind", "'server' is not one of UNSPECIFIED, INTERNAL"),
    ("traces", {"kind": "2147483648"}, "kind", "or a number"),
    ("traces", {"status_code": ""}, "status_code", "is not one of UNSET"),
    ("metrics", {"metric_type": "1"}, "metric_type", "'1' is not one of gauge"),
    ("metrics", {"aggregation_temporality": "x"}, "aggregation_temporality", "'x' is not one of"),
    # Choices, and what a kind of metric does not have.
    (
        "metrics",
        {"metric_type": "sum", "value_double": 1.0, "value_int": 1},
        "value_int",
        "there is also a value in value_double",
    ),
    (
        "metrics",
        {"exemplars": [EXEMPLAR | {"value_double": 1.0, "value_int": 1}]},
        "exemplars.value_int",
        "also a value in exemplars.value_double",
    ),
    (
        "metrics",
        {"metric_type": "summary", "sum": 1.0, "quantiles": [], "exemplars": [EXEMPLAR]},
        "exemplars",
        "a summary",
    ),
    # What the values were.
    ("logs", {"_value_types": ""}, "_value_types", "is not 3 parts"),
    ("logs", {"_value_types": "|i"}, "_value_types", "is not 3 parts"),
    ("logs", {"_value_types": "|||i"}, "_value_types", "is not 3 parts"),
    ("metrics", {"_value_types": "||i"}, "_value_types", "is not 4 parts"),
    ("logs", {"_value_types": "||x"}, "_value_types", "of words"),
    ("logs", {"_value_types": "||[i}"}, "_value_types", "of words"),
    ("logs", {"_value_types": "||[i"}, "_value_types", "of words"),
    ("logs", {"_value_types": "||i]"}, "_value_types", "of words"),
    ("logs", {"_value_types": "i||"}, "_value_types", "has 1 words for 0 values"),
    ("logs", {"_value_types": "|ii|"}, "_value_types", "has 2 words for 0 values"),
    ("logs", {"_value_types": "||iii"}, "_value_types", "has 3 words for 1 values"),
    ("metrics", {"_value_types": "||i|"}, "_value_types", "has 1 words for 0 values"),
    ("traces", {"_value_types": "||ii"}, "_value_types", "has 2 words for 1 values"),
    # Values that were something else. The attribute is "x".
    ("logs", {"_value_types": "||i"}, "attributes", "'x' is not what its word says"),
    ("logs", {"_value_types": "||d"}, "attributes", "'x' is not what its word says"),
    ("logs", {"_value_types": "||b"}, "attributes", "'x' is not a bool"),
    ("logs", {"_value_types": "||y"}, "attributes", "'x' is not what its word says"),
    ("logs", {"_value_types": "||e"}, "attributes", "'x' is text where there was no value"),
    ("logs", {"_value_types": "||[s]"}, "attributes", "'x' is not what its word says"),
    ("metrics", {"_value_types": "|||{}"}, "attributes", "'x' is not what its word says"),
    ("traces", {"_value_types": "||i"}, "attributes", "'x' is not what its word says"),
    # Bodies.
    ("logs", {"_value_types": "||is"}, "body", "None is not what its word says"),
    ("logs", {"_value_types": "||[]", "body": "b"}, "body", "'b' has no word"),
    ("logs", {"_value_types": "||se", "body": "b"}, "body", "is not what its word says"),
    ("logs", {"_value_types": "||si", "body": "b"}, "body", "is not what its word says"),
    ("logs", {"_value_types": "||sd", "body": '"1.5"'}, "body", "is not 'd'"),
    ("logs", {"_value_types": "||sd", "body": "NaN"}, "body", "is not JSON"),
    ("logs", {"_value_types": "||sy", "body": "aGVsbG8="}, "body", "is not what"),
]


@pytest.mark.parametrize(("signal", "cells", "column", "why"), BAD)
def test_invalid_rows_are_refused(
    signal: str, cells: dict[str, Any], column: str, why: str
) -> None:
    """The error names the row, the column and what is wrong."""
    with pytest.raises(Malformed) as raised:
        list(encode(signal, spoiled(signal, **cells)))
    message = str(raised.value)
    assert f"row {ROW}, column {column}" in message
    assert why in message


def test_row_numbers_count_over_the_whole_table() -> None:
    rows = pa.Table.from_batches([good("logs")] * 5000 + [spoiled("logs", flags=5, span_id="x")])
    written = encode("logs", rows)
    with pytest.raises(Malformed, match="row 15001, column span_id: 'x' is not an id"):
        list(written)


TEXTS: list[tuple[str, str]] = [
    ("i", ""),
    ("i", "1.0"),
    ("i", "0x10"),
    ("i", "+1"),
    ("i", " 1"),
    ("i", "1\n"),
    ("i", "9223372036854775808"),
    ("i", "-9223372036854775809"),
    ("i", "1" * 5000),
    ("i", "٣"),
    ("d", ""),
    ("d", "inf"),
    ("d", "nan"),
    ("d", "-NaN"),
    ("d", "+1"),
    ("d", "1."),
    ("d", "1e999"),
    ("d", "1e"),
    ("b", "True"),
    ("b", "1"),
    ("y", "aGVsbG8"),
    ("y", "aGVs bG8="),
    ("y", "aGVsbG8=="),
    ("[i]", "[]"),
    ("[]", "[1]"),
    ("[i]", "[1,2]"),
    ("[ii]", "[1]"),
    ("[i]", "[1.5]"),
    ("[i]", '["1"]'),
    ("[i]", "[true]"),
    ("[i]", "[9223372036854775808]"),
    ("[s]", "[1]"),
    ("[b]", "[1]"),
    ("[d]", '["1.5"]'),
    ("[d]", "[NaN]"),
    ("[d]", "[1e999]"),
    ("[y]", "[1]"),
    ("[y]", '["x"]'),
    ("[e]", "[0]"),
    ("[e]", '[""]'),
    ("[s]", '["\\ud800"]'),
    ("[s]", "[null]"),
    ("[]", "{}"),
    ("{}", "[]"),
    ("[]", ""),
    ("[]", "[]]"),
    ("{i}", '{"a":"1"}'),
    ("{}", '{"a":1}'),
    ("{i}", "{}"),
    ("{s}", '{"\\udfff":"x"}'),
    ("[[]]", "[" * 100_000 + "]" * 100_000),
]


@pytest.mark.parametrize(("word", "text"), TEXTS)
def test_values_that_do_not_match_their_type_are_refused(word: str, text: str) -> None:
    """In maps of any level."""
    words = f"s{word}s"
    attributes = [("a", "x"), ("b", text), ("c", "x")]
    cells: list[tuple[str, dict[str, Any]]] = [
        ("attributes", {"attributes": attributes, "_value_types": f"||{words}"}),
        ("resource_attributes", {"resource_attributes": attributes, "_value_types": f"{words}||"}),
        ("scope_attributes", {"scope_attributes": attributes, "_value_types": f"|{words}|"}),
    ]
    for column, spoilt in cells:
        with pytest.raises(Malformed, match=f"row {ROW}, column {column}: "):
            list(encode("logs", spoiled("logs", **spoilt)))
    inner = {"events": [EVENT, EVENT | {"attributes": attributes}], "_value_types": f"||s{words}"}
    with pytest.raises(Malformed, match=f"row {ROW}, column events.attributes: "):
        list(encode("traces", spoiled("traces", **inner)))


@pytest.mark.parametrize(
    ("name", "column", "why"),
    [
        ("flags", pa.array(["a"]), "rows 0 to 0, column flags: Failed to parse string: 'a'"),
        ("flags", pa.array([2**40]), "rows 0 to 0, column flags: Integer value 1099511627776"),
        ("attributes", pa.array([5]), "column attributes is of int64, not map<string, string"),
        ("body", pa.array([[1]]), "column body is of list<item: int64>, not string"),
    ],
)
def test_columns_of_another_type_are_cast_or_refused(name: str, column: pa.Array, why: str) -> None:
    table = pa.Table.from_batches([good("logs").slice(0, 1)])
    place = table.column_names.index(name)
    with pytest.raises(Malformed, match=why):
        list(encode("logs", table.set_column(place, name, column)))


def test_text_that_is_not_utf8_is_refused() -> None:
    """A server would refuse the whole request."""
    for column in ("body", "scope_name", "attributes", "resource_attributes"):
        table = pa.Table.from_batches([good("logs")])
        place = table.column_names.index(column)
        kind = table.schema.field(column).type
        texts = [b"a", b"\xff", b"b"]
        if pa.types.is_map(kind):
            plain = pa.array([[("k", "0")], [("k", "1")], [("k", "2")]], kind)
            flat = pa.StructArray.from_arrays(
                [plain.keys, _text(texts)], fields=[kind.key_field, kind.item_field]
            )
            spoilt = pa.Array.from_buffers(kind, 3, plain.buffers()[:2], children=[flat])
        else:
            spoilt = _text(texts)
        with pytest.raises(Malformed, match=f"row {ROW}, column {column}: .*UTF8"):
            list(encode("logs", table.set_column(place, column, spoilt)))


def _text(values: list[bytes]) -> pa.Array:
    """Text, whatever the bytes are."""
    column = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), column.buffers())


# How deep values may go: as deep as protobuf reads, and not deeper.

Spot = tuple[str, str, str, int]
SPOTS: list[Spot] = [
    ("logs", "resource_attributes", "%s||", 4),
    ("logs", "scope_attributes", "|%s|", 5),
    ("logs", "attributes", "||%s", 5),
    ("logs", "body", "||s%s", 4),
    ("traces", "attributes", "||%s", 5),
    ("traces", "events", "||s%s", 6),
    ("traces", "links", "||s%s", 6),
    ("metrics", "metadata", "||%s|", 5),
    ("metrics", "attributes", "|||%s", 7),
    ("metrics", "exemplars", "|||s%s", 8),
]


def nested(depth: int) -> tuple[str, str]:
    """The text and the word of a value with this many messages inside each other, below it."""
    count = (depth + 1) // 2
    text = word = "[" * count + "]" * count
    if depth % 2 == 0:
        # A kvlist instead of the outermost array is a message more.
        text, word = '{"":' + text[1:-1] + "}", "{" + word[1:-1] + "}"
    return text, word


def at(spot: Spot, text: str, word: str) -> pa.RecordBatch:
    """Rows with a value at a spot."""
    signal, column, types, _ = spot
    entries = [("a", text)]
    inner = {
        "body": text,
        "events": [EVENT | {"attributes": entries}],
        "links": [LINK | {"attributes": entries}],
        "exemplars": [EXEMPLAR | {"filtered_attributes": entries}],
    }
    cells = {column: inner.get(column, entries), "_value_types": types % word}
    return spoiled(signal, **cells)


@pytest.mark.parametrize("spot", SPOTS)
def test_values_may_be_as_deep_as_protobuf_allows(spot: Spot) -> None:
    signal, column, _, depth = spot
    for text, word in (nested(99 - depth), nested(100 - depth)):
        (body,) = encode(signal, at(spot, text, word))
        CLASSES[signal].FromString(body)
        again = rows_of(signal, [body]).slice(ROW, 1)
        wanted = at(spot, text, word).slice(ROW, 1)
        assert again["_value_types"].equals(wanted["_value_types"])
        assert again[column].equals(wanted[column])
    with pytest.raises(Malformed, match=f"row {ROW}, column {column}.*deeper than protobuf"):
        list(encode(signal, at(spot, *nested(101 - depth))))


def test_deeper_values_are_refused_by_protobuf() -> None:
    value = b""
    for depth in range(1, 60):
        value = b"\x2a" + _length(b"\x0a" + _length(value))
        messages = 4 + 2 * depth
        body = b"\x2a" + _length(value)
        request = b"\x0a" + _length(b"\x12" + _length(b"\x12" + _length(body)))
        if messages <= 100:
            CLASSES["logs"].FromString(request)
        else:
            with pytest.raises(DecodeError):
                CLASSES["logs"].FromString(request)


def _length(content: bytes) -> bytes:
    size = len(content)
    prefix = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return prefix + content


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("", []),
        ("sidbye", list("sidbye")),
        ("s[]i", ["s", "[]", "i"]),
        ("{s[i{}]}[e]", ["{s[i{}]}", "[e]"]),
        ("[", None),
        ("]", None),
        ("[}", None),
        ("s t", None),
        ("[" * 200_000 + "}", None),
    ],
)
def test_type_words_are_split(part: str, words: list[str] | None) -> None:
    assert words_of(part) == words
