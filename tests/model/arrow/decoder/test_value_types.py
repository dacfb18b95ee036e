"""Type words of values that became text."""

from __future__ import annotations

import re
import struct
from random import Random
from typing import Any

import numpy as np
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from frazil.errors import TooLarge
from frazil.model.arrow.decoder import columns
from frazil.model.arrow.decoder.columns import Arena
from frazil.model.arrow.decoder.decode import decode
from frazil.model.arrow.decoder.values.value_types import Values
from tests.model.arrow.decoder.reference import CLASSES, reference
from tests.model.arrow.decoder.test_decode import (
    array_of,
    attribute,
    field,
    inside,
    kvlist_of,
    rows_of,
    text,
    value_of,
)
from tests.model.arrow.requests import Writer, numbered

TEXT, INT = value_of(string_value="x"), value_of(int_value=200)
DOUBLE, BYTES = value_of(double_value=1.5), value_of(bytes_value=b"ab")
TRUE, NOTHING = value_of(bool_value=True), value_of()
WORDS: list[tuple[AnyValue, str]] = [
    (value_of(string_value=""), "s"),
    (value_of(int_value=0), "i"),
    (value_of(double_value=0.0), "d"),
    (value_of(bool_value=False), "b"),
    (value_of(bytes_value=b""), "y"),
    (NOTHING, "e"),
    (value_of(string_value_strindex=3), "e"),
    (array_of(), "[]"),
    (kvlist_of(), "{}"),
    (array_of(TEXT), "[s]"),
    (array_of(NOTHING, TEXT, INT, DOUBLE, TRUE, BYTES, array_of()), "[esidby[]]"),
    (array_of(array_of(array_of(TEXT), INT), kvlist_of(("a", TEXT)), DOUBLE), "[[[s]i]{s}d]"),
    (kvlist_of(("b", INT), ("c", TRUE), ("a", TEXT)), "{sib}"),
    (kvlist_of(("b", INT), ("a", DOUBLE), ("b", BYTES), ("b", NOTHING)), "{de}"),
    (kvlist_of(("z", kvlist_of(("k", INT), ("j", TEXT))), ("", array_of(TRUE))), "{[b]{si}}"),
]


def add(attributes: Any, **values: AnyValue) -> None:
    for key, value in values.items():
        attributes.add(key=key, value=value)


def log_types(record: bytes) -> str | None:
    """What is said of a log record with these bytes."""
    (row,) = rows_of("logs", inside(record, 1, 2, 2))
    types: str | None = row["_value_types"]
    return types


@pytest.mark.parametrize(("value", "word"), WORDS)
def test_each_kind_of_value_has_its_word(value: AnyValue, word: str) -> None:
    """Each kind of value has its word, in a map and as a body; that of a string alone is left
    out."""
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    records.add(body=value)
    add(records.add().attributes, a=value)
    add(records.add(body=value).attributes, a=INT, b=value, c=INT)
    alone, in_map, together = (row["_value_types"] for row in rows_of("logs", request))
    assert alone == in_map == (None if word == "s" else f"||{word}")
    assert together == f"||i{word}i{word}"


def test_logs_have_three_parts() -> None:
    """Resource, scope, record: attributes by key, then the body."""
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    add(resource_logs.resource.attributes, pid=INT, name=TEXT)
    scope_logs = resource_logs.scope_logs.add()
    add(scope_logs.scope.attributes, a=DOUBLE)
    add(scope_logs.log_records.add(body=TEXT).attributes, user=TEXT, status=INT)
    scope_logs.log_records.add(body=TEXT)
    scope_logs = resource_logs.scope_logs.add()
    add(scope_logs.scope.attributes, a=TEXT)
    scope_logs.log_records.add(body=TRUE)
    scope_logs = request.resource_logs.add().scope_logs.add()
    add(scope_logs.log_records.add(body=TEXT).attributes, http=INT, user=TEXT)
    add(scope_logs.log_records.add(body=TEXT).attributes, user=TEXT)
    rows = rows_of("logs", request)
    wanted = ["si|d|iss", "si|d|", "si||b", "||iss", None]
    assert [row["_value_types"] for row in rows] == wanted


def test_words_of_events_and_links_belong_to_the_span() -> None:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    add(resource_spans.resource.attributes, a=BYTES)
    scope_spans = resource_spans.scope_spans.add()
    span = scope_spans.spans.add()
    add(span.links.add().attributes, a=TRUE, b=array_of(INT))
    add(span.events.add().attributes, b=INT, a=TEXT)
    span.links.add()
    add(span.links.add().attributes, a=DOUBLE)
    span.events.add()
    add(span.events.add().attributes, a=kvlist_of(("k", TEXT)))
    add(span.attributes, z=NOTHING, a=BYTES)
    for holder in (scope_spans.spans.add(), scope_spans.spans.add().links.add()):
        add(holder.attributes, a=TEXT)
    add(scope_spans.spans.add().events.add().attributes, a=TEXT, b=INT)
    rows = rows_of("traces", request)
    wanted = ["y||yesi{s}b[i]d", "y||", "y||", "y||si"]
    assert [row["_value_types"] for row in rows] == wanted


def test_metrics_have_four_parts() -> None:
    """Exemplars belong to their point."""
    request = ExportMetricsServiceRequest()
    scope_metrics = request.resource_metrics.add().scope_metrics.add()
    add(scope_metrics.scope.attributes, a=NOTHING)
    metric = scope_metrics.metrics.add()
    add(metric.metadata, b=INT, a=array_of())
    point = metric.gauge.data_points.add()
    add(point.exemplars.add().filtered_attributes, a=INT)
    point.exemplars.add()
    add(point.exemplars.add().filtered_attributes, b=DOUBLE, a=TEXT)
    add(point.attributes, a=TEXT)
    add(metric.gauge.data_points.add().attributes, a=TEXT)
    scope_metrics.metrics.add().sum.data_points.add()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add()
    add(metric.histogram.data_points.add().attributes, a=TRUE)
    metric.histogram.data_points.add()
    rows = rows_of("metrics", request)
    wanted = ["|e|[]i|sisd", "|e|[]i|", "|e||", "|||b", None]
    assert [row["_value_types"] for row in rows] == wanted


@pytest.mark.parametrize(
    ("record", "types"),
    [
        (b"", None),
        (field(5, b""), "||e"),
        (field(5, b"\x18\x01"), "||i"),
        (field(5, b"\x18\x01") + field(5, b""), "||i"),
        (field(5, b"\x18\x01") + field(5, text(1, "x")), None),
        (field(5, text(1, "x")) + field(5, b"\x18\x01"), "||i"),
        (field(5, inside(b"\x18\x01", 5, 1)) + field(5, inside(b"\x10\x01", 5, 1)), "||[ib]"),
        (attribute(6, "a", text(1, "x")), None),
        (attribute(6, "a", text(1, "x")) + field(5, b""), "||se"),
        (attribute(6, "a", b"\x18\x01"), "||i"),
        (attribute(6, "a", b"\x18\x01") + attribute(6, "a", text(1, "x")), None),
        (attribute(6, "a", text(1, "x")) + attribute(6, "a", b"\x18\x01"), "||i"),
        (attribute(6, "a", b"\x18\x01" + text(1, "x")), None),
        (field(6, text(1, "a")), "||e"),
        (field(6, field(2, b"\x18\x01") + field(2, b"\x10\x01") + text(1, "a")), "||b"),
    ],
)
def test_words_follow_protobuf_semantics(record: bytes, types: str | None) -> None:
    """Absent, repeated and merged bodies and values."""
    assert log_types(record) == types


@pytest.mark.parametrize(
    ("item", "word"),
    [
        (b"", "e"),
        (text(1, "\x01"), "s"),
        (text(1, "\x01" * 100), "s"),
        (b"\x10\x00", "b"),
        (b"\x18\x00", "i"),
        (b"\x21" + struct.pack("<d", -1.2345678901234567e-300), "d"),
        (b"\x21" + struct.pack("<d", float("-inf")), "d"),
        (field(7, b""), "y"),
        (field(5, b""), "[]"),
        (field(6, b""), "{}"),
        (inside(b"", 5, 1, 5, 1, 6, 1), "[[{e}]]"),
    ],
)
def test_there_is_room_for_values_that_grow(item: bytes, word: str) -> None:
    count = 500
    elements, members = (field(1, inner) * count for inner in (item, field(2, item)))
    assert log_types(inside(elements, 5, 5)) == f"||[{word * count}]"
    assert log_types(inside(members, 5, 6)) == f"||{{{word}}}"
    keyed = b"".join(field(1, text(1, chr(n + 161)) + field(2, item)) for n in range(count))
    assert log_types(inside(keyed, 6, 2, 6) + field(5, b"")) == f"||{{{word * count}}}e"


def test_an_invalid_record_has_no_words() -> None:
    records = (
        attribute(6, "a", b"\x18\x01"),
        attribute(6, "a", b"\x10\x01") + text(9, "an id that is none"),
        attribute(6, "a", field(7, b"ab")),
    )
    body = inside(b"".join(field(2, record) for record in records), 1, 2)
    decoded = decode("logs", numbered([body]))
    assert len(decoded.dead) == 1
    assert decoded.batch.column("_value_types").to_pylist() == ["||i", "||y"]


REACHED = (
    *"sidbye",
    *map(re.escape, ("[]", "{}", "[[", "[{", "{{", "{[")),
    *(rf"\[[^]]*{letter}" for letter in "sidbye"),
    *(rf"{{[^}}]*{letter}" for letter in "sidbye"),
    r"^[^|]+\|",
    r"\|[^|]+\|",
    r"[^|]$",
    r"^\|",
    r"\|$",
    r"\|\|",
)
"""Every word, alone and inside others; each part told, and each part left out."""


@pytest.mark.parametrize("signal", CLASSES)
def test_random_requests_cover_every_word(signal: str) -> None:
    writer = Writer(Random(4))
    rows, _ = reference(signal, numbered(writer.request(signal) for _ in range(500)))
    types = [row["_value_types"] for row in rows]
    told = [each for each in types if each is not None]
    assert [wanted for wanted in REACHED if not any(map(re.compile(wanted).search, told))] == []
    assert len(told) < len(types)
    if signal == "logs":
        bodies = {(row["body_type"], row["_value_types"] is None) for row in rows}
        assert {("empty", True), ("empty", False), ("string", True), ("string", False)} <= bodies


def test_words_count_towards_the_batch_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(np.zeros(64, np.int64), 0, 0)
    letters = np.frombuffer(b"sis", np.uint8)
    values = Values(np.array([0, 2, 3], np.int32), np.zeros(3, np.int64), letters)
    monkeypatch.setattr(columns, "BATCH_BYTES_MAX", 2 + 6)
    offsets, data = arena.types(2, [values])
    assert (offsets.tolist(), bytes(data[:2])) == ([0, 2, 2], b"si")
    addresses = np.full((3, 2), data.ctypes.data, np.int64)
    lengths = np.array([[0, 0], [2, 0], [2, 0]], np.int64)
    offsets, joined = arena.join(addresses, lengths)
    assert (offsets.tolist(), bytes(joined[:6])) == ([0, 6, 6], b"|si|si")
    with pytest.raises(TooLarge):
        arena.types(2, [values])
    with pytest.raises(TooLarge):
        arena.join(addresses, lengths)
