"""Requests to rows and back: nothing is lost except what docs/schemas.md lists."""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from frazil.errors import Malformed
from frazil.model import Signal
from frazil.model.arrow import TABLES
from frazil.model.arrow import encode as door
from frazil.model.arrow.encoder.encode import NEEDED, REQUEST_BYTES_MAX, encode
from frazil.model.arrow.schemas import PROMOTED_RESOURCE, PROMOTED_SPAN
from frazil.settings import IngestConfig
from tests.fuzz import encode as fuzz
from tests.fuzz.encode import row_differences, rows_of, there_and_back
from tests.model.arrow.decoder.reference import CLASSES
from tests.model.arrow.requests import Writer, bodies

MODULE = importlib.import_module("frazil.model.arrow.encoder.encode")
"""Its door has a function of that name."""
SIGNALS = tuple(CLASSES)
NAN_BITS = 0xFFF0_0000_DEAD_BEEF
NAN = struct.unpack("<d", struct.pack("<Q", NAN_BITS))[0]
"""A NaN that is not the usual one."""
INFINITY = math.inf


def back(signal: str, *requests: Message) -> Any:
    """What becomes of requests: the only one that comes back."""
    rows = rows_of(signal, [request.SerializeToString() for request in requests])
    (body,) = encode(signal, rows)
    return CLASSES[signal].FromString(body)


def assert_kept(signal: str, request: Message) -> None:
    """A request comes back as it was, to the last bit."""
    found = back(signal, request).SerializeToString(deterministic=True)
    assert found == request.SerializeToString(deterministic=True)


def log_request(**fields: Any) -> Any:
    """A request of one log record."""
    request: Any = CLASSES["logs"]()
    request.resource_logs.add().scope_logs.add().log_records.add(**fields)
    return request


def span_request(**fields: Any) -> Any:
    """A request of one span."""
    request: Any = CLASSES["traces"]()
    request.resource_spans.add().scope_spans.add().spans.add(**fields)
    return request


def metric_request(kind: str, **fields: Any) -> Any:
    """A request of one data point."""
    request: Any = CLASSES["metrics"]()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    getattr(metric, kind).data_points.add(**fields)
    return request


def many(signal: str, count: int, seed: int = 11) -> pa.RecordBatch:
    """Rows of this many requests."""
    writer = Writer(Random(seed), wildness=0.1)
    return rows_of(signal, [writer.request(signal) for _ in range(count)])


# Anything.


@pytest.mark.parametrize("signal", SIGNALS)
def test_any_requests_round_trip(signal: str) -> None:
    """Rows and records come back the same, in normal form."""

    @settings(max_examples=60, suppress_health_check=[HealthCheck.data_too_large])
    @given(bodies(signal))
    def check(written: list[bytes]) -> None:
        assert there_and_back(signal, written, has_groups=True)[2] == []

    check()


@pytest.mark.parametrize("signal", SIGNALS)
def test_the_fuzzer_finds_nothing(signal: str) -> None:
    found = fuzz.fuzz_signal(signal, 300, Random(5))
    assert found["disagreements"] == []
    assert found["rows"] > 100
    assert 0 < found["requests_back"] < found["requests"]


@pytest.mark.parametrize("signal", SIGNALS)
def test_no_rows_give_no_request(signal: str) -> None:
    assert list(encode(signal, rows_of(signal, []))) == []


# What is kept.


def value_of(**fields: Any) -> AnyValue:
    return AnyValue(**fields)


def array_of(*values: AnyValue) -> AnyValue:
    made = AnyValue()
    made.array_value.SetInParent()
    made.array_value.values.extend(values)
    return made


def kvlist_of(**members: AnyValue) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.SetInParent()
    for key, value in members.items():
        made.kvlist_value.values.add(key=key, value=value)
    return made


DOUBLES = (
    0.0,
    -0.0,
    1.5,
    1e21,
    1e-7,
    5e-324,
    1.7976931348623157e308,
    math.nan,
    INFINITY,
    -INFINITY,
)
VALUES = [
    value_of(),
    value_of(string_value=""),
    value_of(string_value="200"),
    value_of(string_value='"\\\x00\n\u2028\U0001f600'),
    *(value_of(int_value=number) for number in (0, 7, -1, 127, 128, 2**63 - 1, -(2**63))),
    *(value_of(double_value=number) for number in DOUBLES),
    value_of(bool_value=False),
    value_of(bool_value=True),
    value_of(bytes_value=b""),
    value_of(bytes_value=bytes(range(256))),
    array_of(),
    kvlist_of(),
    array_of(array_of(), kvlist_of(), array_of(array_of(value_of()))),
]
VALUES.append(array_of(*VALUES))
VALUES.append(kvlist_of(**{f"{place:02}": value for place, value in enumerate(VALUES)}))


@pytest.mark.parametrize("value", VALUES)
def test_values_round_trip(value: AnyValue) -> None:
    """Every kind of value, in maps and as a body."""
    attributes = [
        KeyValue(key="a", value=value_of(string_value="x")),
        KeyValue(key="b", value=value),
        KeyValue(key="c", value=value_of(int_value=5)),
    ]
    request = log_request(body=value, attributes=attributes)
    request.resource_logs[0].resource.attributes.extend(attributes)
    request.resource_logs[0].scope_logs[0].scope.attributes.extend(attributes)
    assert_kept("logs", request)
    assert_kept("logs", log_request(body=value))
    spans = span_request(attributes=attributes)
    span = spans.resource_spans[0].scope_spans[0].spans[0]
    for inner in (span.events, span.links):
        inner.add()
        inner.add(attributes=attributes)
        inner.add(attributes=attributes[1:2])
    assert_kept("traces", spans)
    points = metric_request("gauge", attributes=attributes, as_int=0)
    metric = points.resource_metrics[0].scope_metrics[0].metrics[0]
    metric.metadata.extend(attributes)
    metric.gauge.data_points[0].exemplars.add(filtered_attributes=attributes)
    assert_kept("metrics", points)


def test_a_body_without_a_value_round_trips() -> None:
    """Also beside attributes that are all strings."""
    text = KeyValue(key="a", value=value_of(string_value="x"))
    number = KeyValue(key="a", value=value_of(int_value=1))
    for attributes in ([], [text], [number]):
        for resource in ([], [number]):
            for fields in ({}, {"body": value_of()}, {"body": value_of(string_value="")}):
                request = log_request(attributes=attributes, **fields)
                request.resource_logs[0].resource.attributes.extend(resource)
                if not resource:
                    request.resource_logs[0].ClearField("resource")
                assert_kept("logs", request)


SCALARS: list[tuple[str, Any]] = [
    ("logs", log_request(time_unix_nano=2**63 - 1, observed_time_unix_nano=1)),
    ("logs", log_request(severity_number=-5, severity_text="odd", event_name="e")),
    ("logs", log_request(severity_number=2**31 - 1, flags=2**32 - 1)),
    ("logs", log_request(trace_id=bytes(16), span_id=bytes(range(8)))),
    ("logs", log_request(dropped_attributes_count=2**31 - 1)),
    ("traces", span_request(start_time_unix_nano=9, end_time_unix_nano=5, name="n", kind=3)),
    ("traces", span_request(kind=-1, flags=2**31, trace_state="a=b")),
    ("traces", span_request(trace_id=b"\xff" * 16, span_id=b"12345678", parent_span_id=b"x" * 8)),
    ("traces", span_request(dropped_events_count=1, dropped_links_count=300)),
    ("metrics", metric_request("gauge")),
    ("metrics", metric_request("gauge", as_double=NAN, flags=2**32 - 1)),
    ("metrics", metric_request("gauge", as_double=0.0)),
    ("metrics", metric_request("sum", as_double=-0.0)),
    ("metrics", metric_request("sum", as_int=-(2**63), time_unix_nano=5)),
    ("metrics", metric_request("histogram")),
    ("metrics", metric_request("histogram", count=2**63 - 1, sum=0.0, min=-0.0, max=NAN)),
    ("metrics", metric_request("histogram", bucket_counts=[0, 5, 2**63 - 1], explicit_bounds=[1])),
    ("metrics", metric_request("histogram", explicit_bounds=[-INFINITY, -0.0, NAN])),
    ("metrics", metric_request("exponential_histogram", scale=-(2**31), zero_threshold=-0.0)),
    ("metrics", metric_request("exponential_histogram", positive={}, sum=1.0)),
    ("metrics", metric_request("exponential_histogram", negative={"offset": -1})),
    (
        "metrics",
        metric_request(
            "exponential_histogram",
            scale=2**31 - 1,
            zero_count=7,
            positive={"bucket_counts": [0, 127, 128, 2**63 - 1], "offset": 2**31 - 1},
            negative={"bucket_counts": [0]},
            max=0.0,
        ),
    ),
    ("metrics", metric_request("summary", sum=NAN, count=5)),
    ("metrics", metric_request("summary", quantile_values=[{}, {"quantile": 1, "value": NAN}])),
    ("metrics", metric_request("sum", exemplars=[{}, {"as_int": 0}, {"as_double": 0}])),
    (
        "metrics",
        metric_request(
            "histogram",
            exemplars=[{"as_double": NAN, "span_id": b"s" * 8}, {"trace_id": b"t" * 16}],
        ),
    ),
]


@pytest.mark.parametrize(("signal", "request_"), SCALARS)
def test_fields_round_trip(signal: str, request_: Message) -> None:
    """Limits, signed zeros, NaNs of any bits, and presence."""
    assert_kept(signal, request_)


def test_every_field_of_otlp_round_trips() -> None:
    """Unless docs/schemas.md lists it as lost."""
    seen: set[str] = set()
    for signal in SIGNALS:
        writer = Writer(Random(4), wildness=0)
        rows = rows_of(signal, [writer.request(signal) for _ in range(300)])
        for body in encode(signal, rows):
            _note(CLASSES[signal].FromString(body), seen)
    known: set[str] = set()
    for signal in SIGNALS:
        message: Any = CLASSES[signal]
        _know(message.DESCRIPTOR, known)
    assert known - seen == {
        "AnyValue.string_value_strindex",
        "KeyValue.key_strindex",
        "Resource.entity_refs",
    }


def _note(message: Any, seen: set[str]) -> None:
    for field, value in message.ListFields():
        seen.add(f"{message.DESCRIPTOR.name}.{field.name}")
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                _note(each, seen)


def _know(message: Any, known: set[str]) -> None:
    for field in message.fields:
        name = f"{message.name}.{field.name}"
        if name not in known:
            known.add(name)
            if field.message_type is not None and field.name != "entity_refs":
                _know(field.message_type, known)


# What is not kept.


def changed(request: Any, change: Callable[[Any], object]) -> Any:
    """A copy that is not quite the same."""
    copy = type(request)()
    copy.CopyFrom(request)
    change(copy)
    return copy


def _record(request: Any) -> Any:
    return request.resource_logs[0].scope_logs[0].log_records[0]


A, B, NONE = (KeyValue(key=key, value=value_of(string_value=key)) for key in "abn")
NONE.value.ClearField("value")
PLAIN = log_request(attributes=[A, B, NONE], dropped_attributes_count=2**31 - 1)
INDEXED = KeyValue(key="n", value=value_of(string_value_strindex=5))
NAN_LOG = log_request(body=value_of(double_value=math.nan))


@pytest.mark.parametrize(
    ("change", "comes_back"),
    [
        pytest.param(lambda r: _record(r).attributes.reverse(), PLAIN, id="order"),
        pytest.param(lambda r: _record(r).attributes.insert(0, A), PLAIN, id="duplicates"),
        pytest.param(lambda r: _record(r).attributes[2].ClearField("value"), PLAIN, id="no value"),
        pytest.param(lambda r: _record(r).attributes[2].CopyFrom(INDEXED), PLAIN, id="index"),
        pytest.param(
            lambda r: setattr(_record(r).attributes[0], "key_strindex", 5), PLAIN, id="key index"
        ),
        pytest.param(
            lambda r: setattr(_record(r), "dropped_attributes_count", 2**31), PLAIN, id="dropped"
        ),
        pytest.param(lambda r: r.resource_logs[0].resource.SetInParent(), PLAIN, id="resource"),
        pytest.param(
            lambda r: r.resource_logs[0].resource.entity_refs.add(type="t"), PLAIN, id="entities"
        ),
        pytest.param(
            lambda r: r.resource_logs[0].scope_logs[0].scope.SetInParent(), PLAIN, id="scope"
        ),
        pytest.param(lambda r: r.resource_logs.add(schema_url="u"), PLAIN, id="no scopes"),
        pytest.param(
            lambda r: r.resource_logs[0].scope_logs.add(schema_url="u"), PLAIN, id="no records"
        ),
        pytest.param(lambda r: r.MergeFromString(b"\xf8\x3f\x05"), PLAIN, id="unknown field"),
        pytest.param(
            lambda r: r.CopyFrom(log_request(body=value_of(double_value=NAN))),
            NAN_LOG,
            id="which NaN",
        ),
    ],
)
def test_listed_losses_are_exact(change: Callable[[Any], object], comes_back: Any) -> None:
    """The list of docs/schemas.md, one by one."""
    request = changed(PLAIN, change)
    assert request.SerializeToString() != comes_back.SerializeToString()
    assert_kept("logs", comes_back)
    found = back("logs", request).SerializeToString(deterministic=True)
    assert found == comes_back.SerializeToString(deterministic=True)


def test_an_empty_status_is_not_kept() -> None:
    request = span_request(status={})
    assert back("traces", request) == span_request() != request


def test_metrics_without_points_are_not_kept() -> None:
    request = metric_request("sum", as_int=1)
    metrics = request.resource_metrics[0].scope_metrics[0].metrics
    bare = changed(request, lambda _: None)
    metrics.add(name="none")
    metrics.add(name="empty").gauge.SetInParent()
    assert back("metrics", request) == bare


# How rows are put together.


def test_consecutive_equal_rows_share_their_messages() -> None:
    request: Any = CLASSES["metrics"]()
    for url, scope, names in (
        ("", "x", "mm"),
        ("", "x", "mn"),
        ("", "y", "n"),
        ("u", "y", "nn"),
        ("", "y", "n"),
    ):
        outer = request.resource_metrics.add(schema_url=url)
        inner = outer.scope_metrics.add(scope={"name": scope})
        for name in names:
            inner.metrics.add(name=name).gauge.data_points.add()
    found = [
        (
            resource.schema_url,
            [
                (scope.scope.name, [(m.name, len(m.gauge.data_points)) for m in scope.metrics])
                for scope in resource.scope_metrics
            ],
        )
        for resource in back("metrics", request).resource_metrics
    ]
    assert found == [
        ("", [("x", [("m", 3), ("n", 1)]), ("y", [("n", 1)])]),
        ("u", [("y", [("n", 2)])]),
        ("", [("y", [("n", 1)])]),
    ]


def _resource(**attributes: str) -> Callable[[Any], object]:
    """Give a resource these attributes."""
    return lambda m: m.resource_metrics[0].resource.attributes.extend(
        KeyValue(key=key, value=value_of(string_value=text)) for key, text in attributes.items()
    )


APART: list[tuple[Callable[[Any], object], Callable[[Any], object]]] = [
    (_resource(a="x"), _resource()),
    (_resource(a="x"), _resource(a="x", b="")),
    # With the same letters in a row.
    (_resource(a="x", bb="y"), _resource(ab="x", b="y")),
    (_resource(a="x", b="yz"), _resource(a="xy", b="z")),
    (
        lambda m: m.resource_metrics[0].scope_metrics[0].scope.attributes.append(A),
        lambda m: (
            m.resource_metrics[0]
            .scope_metrics[0]
            .scope.attributes.add(key="a", value={"bytes_value": b"i\xb7"})
        ),
    ),
    (
        lambda m: setattr(_metric(m).sum, "is_monotonic", True),
        lambda m: setattr(_metric(m).sum, "is_monotonic", False),
    ),
    (
        lambda m: setattr(_metric(m).sum, "aggregation_temporality", 1),
        lambda m: setattr(_metric(m).sum, "aggregation_temporality", 9),
    ),
    (lambda m: None, lambda m: _metric(m).gauge.data_points.add()),
    (
        lambda m: _metric(m).metadata.add(key="a", value={"int_value": 1}),
        lambda m: _metric(m).metadata.add(key="a", value={"string_value": "1"}),
    ),
]


def _metric(request: Any) -> Any:
    return request.resource_metrics[0].scope_metrics[0].metrics[0]


@pytest.mark.parametrize(("one", "other"), APART)
def test_different_rows_do_not_share_messages(
    one: Callable[[Any], object], other: Callable[[Any], object]
) -> None:
    requests = [changed(metric_request("sum", as_int=1), change) for change in (one, other)]
    wrong = there_and_back("metrics", [request.SerializeToString() for request in requests])[2]
    assert wrong == []
    found = back("metrics", *requests)
    metrics = [
        metric
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    assert len(metrics) == 2


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("bytes_max", [1, 2000, 9000])
def test_a_request_is_within_its_limit(
    signal: str, bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless a single row is larger."""
    rows = many(signal, 60)
    monkeypatch.setattr(MODULE, "REQUEST_BYTES_MAX", bytes_max)
    written = list(encode(signal, rows))
    counts = [rows_of(signal, [body]).num_rows for body in written]
    assert all(
        len(body) <= bytes_max or count == 1 for body, count in zip(written, counts, strict=True)
    )
    assert (max(counts) == 1) == (bytes_max == 1)
    # The next row would not have fitted, give or take the lengths of messages.
    assert all(len(one) + len(next_) + 100 > bytes_max for one, next_ in pairwise(written))
    assert row_differences(rows, rows_of(signal, written)) == []


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_table_is_processed_in_pieces(signal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = many(signal, 60)
    monkeypatch.setattr(MODULE, "REQUEST_ROWS_MAX", 7)
    assert len(list(encode(signal, rows))) == -(-rows.num_rows // 7)
    monkeypatch.setattr(MODULE, "PIECE_BYTES_MAX", 2000)
    written = list(encode(signal, rows))
    assert len(written) > -(-rows.num_rows // 7)
    assert row_differences(rows, rows_of(signal, written)) == []


@pytest.mark.parametrize("signal", SIGNALS)
def test_requests_are_as_short_as_those_of_protobuf(signal: str) -> None:
    for body in encode(signal, many(signal, 100)):
        message = CLASSES[signal].FromString(body)
        assert len(body) == message.ByteSize()


def test_requests_fit_our_receiver() -> None:
    assert IngestConfig().body_bytes_max > 2 * REQUEST_BYTES_MAX


# Tables of other shapes.


def shapes(rows: pa.RecordBatch, signal: str) -> Iterable[pa.Table]:
    """The same rows, some after others."""
    table = pa.Table.from_batches([rows])
    count = rows.num_rows
    yield pa.concat_tables(table.slice(at, 3) for at in range(0, count, 3))
    yield pa.concat_tables([table.slice(2), table]).slice(count - 2)
    yield table.select(table.column_names[::-1])
    yield table.select([*NEEDED[signal], "_value_types"])
    yield table.append_column("more", pa.array(range(count)))
    columns = [
        column.cast(pa.string_view()) if column.type == pa.string() else column
        for column in table.columns
    ]
    yield pa.table(columns, names=table.column_names)
    columns = [
        column.dictionary_encode() if column.type == pa.string() else column
        for column in table.columns
    ]
    yield pa.table(columns, names=table.column_names)


@pytest.mark.parametrize("signal", SIGNALS)
def test_slices_chunks_and_projections_give_the_same_requests(signal: str) -> None:
    rows = many(signal, 30)
    wanted = list(encode(signal, rows))
    for table in shapes(rows, signal):
        assert list(encode(signal, table)) == wanted


@pytest.mark.parametrize("signal", SIGNALS)
def test_without_value_types_all_values_are_strings(signal: str) -> None:
    rows = many(signal, 30)
    table = pa.Table.from_batches([rows]).drop_columns("_value_types")
    again = rows_of(signal, encode(signal, table))
    assert set(again["_value_types"].to_pylist()) == {None}
    assert again["attributes"].equals(rows["attributes"])
    assert again["resource_attributes"].equals(rows["resource_attributes"])
    nulls = table.append_column("_value_types", pa.nulls(rows.num_rows, pa.string()))
    assert list(encode(signal, nulls)) == list(encode(signal, table))


def test_columns_of_other_metric_types_are_ignored() -> None:
    request = metric_request("gauge", as_int=1)
    (row,) = rows_of("metrics", [request.SerializeToString()]).to_pylist()
    odd = row | {"is_monotonic": True, "aggregation_temporality": "DELTA", "bucket_counts": [5]}
    (body,) = encode("metrics", pa.RecordBatch.from_pylist([odd], TABLES["metrics"]))
    assert body == back("metrics", request).SerializeToString()


def test_null_lists_are_empty() -> None:
    """Whatever Arrow has behind the null."""
    request = metric_request("exponential_histogram", count=1)
    rows = rows_of("metrics", [request.SerializeToString()])
    place = rows.schema.names.index("positive_bucket_counts")
    kind = rows.schema.field(place).type
    valid = pa.array([[1, 2, 3]], kind)
    hidden = pa.Array.from_buffers(
        kind, 1, [pa.py_buffer(b"\0"), valid.buffers()[1]], children=[valid.values]
    )
    assert hidden.to_pylist() == [None]
    assert hidden.values.to_pylist() == [1, 2, 3]
    table = pa.Table.from_batches([rows])
    (body,) = encode("metrics", table.set_column(place, rows.schema.field(place), hidden))
    assert CLASSES["metrics"].FromString(body) == request


def test_encode_is_exported() -> None:
    assert door is encode
    assert {Signal(signal).table for signal in NEEDED} == TABLES.keys() - {"dead_letters"}


def test_only_derived_columns_are_optional() -> None:
    """docs/schemas.md has the same list."""
    derived = {"_log_partition", "_offset", "_row", "time", "ingest_time", "service_name"}
    derived |= {"body_type", "duration_nano", *PROMOTED_RESOURCE, *PROMOTED_SPAN, "_value_types"}
    for signal, names in NEEDED.items():
        assert set(TABLES[Signal(signal).table].names) - set(names) <= derived
        assert not derived & set(names)


def test_missing_or_duplicate_columns_are_refused() -> None:
    for signal, names in NEEDED.items():
        rows = pa.Table.from_batches([many(signal, 3)])
        for name in names:
            with pytest.raises(Malformed, match=f"have no column {name}$"):
                encode(signal, rows.drop_columns(name))
        for name in (*names, "_value_types"):
            with pytest.raises(Malformed, match=f"have two columns {name}$"):
                encode(signal, rows.append_column(name, rows[name]))
