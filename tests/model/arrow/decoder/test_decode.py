"""The decoder agrees with the reference for any bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from frazil.errors import TooLarge
from frazil.model.arrow.decoder import columns
from frazil.model.arrow.decoder import requests as requests_module
from frazil.model.arrow.decoder.decode import decode, decode_dictionary
from frazil.model.arrow.types import ExportRequest
from tests.fuzz import decode as fuzz
from tests.fuzz.corpus import varint
from tests.model.arrow.decoder.reference import CLASSES, Row, differences, double_text, reference
from tests.model.arrow.requests import Writer, bodies, numbered

SIGNALS = tuple(CLASSES)
SOURCE = Path(__file__).parents[4] / "src" / "frazil"
NAN, INFINITY = float("nan"), float("inf")


def assert_same(signal: str, requests: list[ExportRequest]) -> None:
    """The decoder gives what the reference gives."""
    rows, dead = reference(signal, requests)
    decoded = decode(signal, requests)
    assert differences(signal, decoded, rows, dead) == []
    assert fuzz.is_same(signal, decode_dictionary(signal, requests), decoded)


def rows_of(signal: str, *found: bytes | Message) -> list[Row]:
    """Rows of requests, which must all be well."""
    requests = numbered(
        each.SerializeToString() if isinstance(each, Message) else each for each in found
    )
    assert_same(signal, requests)
    decoded = decode(signal, requests)
    assert decoded.dead == []
    rows: list[Row] = decoded.batch.to_pylist()
    return rows


def field(number: int, content: bytes) -> bytes:
    """Something with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def inside(content: bytes, *numbers: int) -> bytes:
    """Content inside fields of these numbers, the outermost first."""
    for number in reversed(numbers):
        content = field(number, content)
    return content


def text(number: int, content: str) -> bytes:
    return field(number, content.encode())


def attribute(number: int, key: str, value: bytes) -> bytes:
    return field(number, text(1, key) + field(2, value))


# Anything.


@pytest.mark.parametrize("signal", SIGNALS)
def test_any_requests_decode_as_the_reference(signal: str) -> None:
    """Rows, dead letters and their order."""

    @settings(max_examples=60, suppress_health_check=[HealthCheck.data_too_large])
    @given(bodies(signal))
    def check(written: list[bytes]) -> None:
        assert_same(signal, numbered(written))

    check()


@pytest.mark.parametrize("signal", SIGNALS)
@given(data=st.data())
@settings(max_examples=100)
def test_random_bytes_are_one_dead_letter(signal: str, data: st.DataObject) -> None:
    assert_same(signal, numbered(data.draw(st.lists(st.binary(max_size=40), max_size=4))))


@pytest.mark.parametrize("signal", SIGNALS)
def test_truncated_requests_decode_as_protobuf_parses_them(signal: str) -> None:
    writer = Writer(Random(3), wildness=0.5)
    whole = next(body for _ in range(100) if 300 < len(body := writer.request(signal)) < 900)
    assert_same(signal, numbered(whole[:end] for end in range(len(whole))))


@pytest.mark.parametrize("signal", SIGNALS)
def test_the_fuzzer_finds_nothing(signal: str) -> None:
    found = fuzz.fuzz_signal(signal, 300, Random(5))
    assert found["disagreements"] == []
    assert found["rows"] > 100
    assert found["dead"] > 10


@pytest.mark.parametrize("signal", SIGNALS)
def test_no_requests_give_no_rows(signal: str) -> None:
    """With all columns."""
    assert_same(signal, [])
    assert_same(signal, numbered([b"", b""]))


# Values.


def value_of(**fields: Any) -> AnyValue:
    return AnyValue(**fields)


def array_of(*values: AnyValue) -> AnyValue:
    made = AnyValue()
    made.array_value.values.extend(values)
    return made


def kvlist_of(*pairs: tuple[str, AnyValue]) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.SetInParent()
    for key, value in pairs:
        made.kvlist_value.values.add(key=key, value=value)
    return made


VALUES: list[tuple[AnyValue, str, str, str | None]] = [
    (value_of(), "", "empty", None),
    (value_of(string_value=""), "", "string", ""),
    (value_of(string_value='a"\n'), 'a"\n', "string", 'a"\n'),
    (value_of(int_value=-(2**63)), str(-(2**63)), "int", str(-(2**63))),
    (value_of(int_value=2**63 - 1), str(2**63 - 1), "int", str(2**63 - 1)),
    (value_of(bool_value=True), "true", "bool", "true"),
    (value_of(bool_value=False), "false", "bool", "false"),
    (value_of(double_value=1.5), "1.5", "double", "1.5"),
    (value_of(double_value=100000.0), "100000", "double", "100000"),
    (value_of(double_value=1e21), "1e+21", "double", "1e+21"),
    (value_of(double_value=1e-7), "1e-7", "double", "1e-7"),
    (value_of(double_value=-0.0), "-0", "double", "-0"),
    (value_of(double_value=5e-324), "5e-324", "double", "5e-324"),
    (value_of(double_value=NAN), "NaN", "double", '"NaN"'),
    (value_of(double_value=-INFINITY), "-Infinity", "double", '"-Infinity"'),
    (value_of(bytes_value=b""), "", "bytes", '""'),
    (value_of(bytes_value=b"hello"), "aGVsbG8=", "bytes", '"aGVsbG8="'),
    (value_of(string_value_strindex=3), "", "empty", None),
    (array_of(), "[]", "array", "[]"),
    (kvlist_of(), "{}", "kvlist", "{}"),
    (
        array_of(value_of(), value_of(int_value=1), value_of(double_value=INFINITY), array_of()),
        '[null,1,"Infinity",[]]',
        "array",
        '[null,1,"Infinity",[]]',
    ),
    (
        kvlist_of(
            ("b", value_of(int_value=1)),
            ("é", value_of(bytes_value=b"\xff")),
            ("a", kvlist_of(("x", value_of(bool_value=True)))),
            ("b", value_of(string_value='\x00\x1f\b\f\n\r\t"\\/\x7f\u2028')),
        ),
        '{"a":{"x":true},"b":"\\u0000\\u001f\\b\\f\\n\\r\\t\\"\\\\/\x7f\u2028","é":"/w=="}',
        "kvlist",
        '{"a":{"x":true},"b":"\\u0000\\u001f\\b\\f\\n\\r\\t\\"\\\\/\x7f\u2028","é":"/w=="}',
    ),
]


@pytest.mark.parametrize(("value", "in_map", "body_type", "body"), VALUES)
def test_values_become_text(value: AnyValue, in_map: str, body_type: str, body: str | None) -> None:
    """The same text in maps and bodies, JSON for nested bodies."""
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add(body=value)
    record.attributes.add(key="a", value=value)
    (row,) = rows_of("logs", request)
    assert row["attributes"] == [("a", in_map)]
    assert (row["body_type"], row["body"]) == (body_type, body)


def test_doubles_have_the_shortest_text() -> None:
    """Over all magnitudes, next to powers of two and of ten, and for doubles of few digits."""
    rand = Random(7)
    doubles = [
        sign * base**power
        for sign in (1.0, -1.0)
        for base, powers in ((2.0, range(-1074, 1024)), (10.0, range(-323, 309)))
        for power in powers
    ]
    doubles += [rand.uniform(0, 10) * 10.0 ** rand.randint(-300, 300) for _ in range(20_000)]
    doubles += [
        round(rand.random() * 10 ** rand.randint(0, 9), rand.randint(0, 9)) for _ in range(20_000)
    ]
    doubles += [rand.getrandbits(53) * 5e-324 for _ in range(5_000)]
    # Halfway between two of these is often a shorter number, which is neither.
    doubles += [float(rand.randint(2**53, 2**60)) for _ in range(5_000)]
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    for number, double in enumerate(doubles):
        record.attributes.add(key=f"{number:06}").value.double_value = double
    (row,) = decode("logs", numbered([request.SerializeToString()])).batch.to_pylist()
    assert [value for _, value in row["attributes"]] == list(map(double_text, doubles))
    assert all(float(double_text(double)) == double for double in doubles)


def test_maps_are_sorted_by_bytes_and_the_last_of_equal_keys_counts() -> None:
    """Also if there are so many that they are merged."""
    rand = Random(9)
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for count in (3, 3, 3, 17, 5000, 4, 4):
        record = records.add()
        for number in range(count):
            key = rand.choice(("", "é", "z", "\U0001f600", "a" * 20)) + str(rand.randint(0, count))
            record.attributes.add(key=key).value.int_value = number
    rows_of("logs", request)


def test_very_many_attributes_are_sorted_in_time() -> None:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    for number in reversed(range(50_000)):
        record.attributes.add(key=f"{number:08}").value.string_value = str(number)
    (row,) = decode("logs", numbered([request.SerializeToString()])).batch.to_pylist()
    assert row["attributes"] == [(f"{number:08}", str(number)) for number in range(50_000)]


# What is said above the records.


def test_the_resource_may_come_last_and_in_pieces() -> None:
    record = inside(text(3, "INFO"), 2, 2)
    first = inside(attribute(1, "service.name", text(1, "shop")) + b"\x10\x05", 1)
    second = inside(attribute(1, "host.name", text(1, "h")), 1)
    scope = field(2, inside(text(3, "late"), 2) + text(3, "url") + inside(text(1, "lib"), 1))
    (row, other) = rows_of("logs", field(1, first + record + scope + second))
    assert row["service_name"] == other["service_name"] == "shop"
    assert row["host_name"] == other["host_name"] == "h"
    assert row["resource_attributes"] == [("host.name", "h"), ("service.name", "shop")]
    assert row["resource_dropped_attributes_count"] == 5
    assert (row["scope_name"], other["scope_name"]) == (None, "lib")
    assert (row["scope_schema_url"], other["scope_schema_url"]) == (None, "url")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (value_of(string_value="shop"), "shop"),
        (value_of(string_value=""), "unknown_service"),
        (value_of(int_value=7), "unknown_service"),
        (value_of(), "unknown_service"),
    ],
)
def test_service_name_has_a_default(value: AnyValue, name: str) -> None:
    request = ExportLogsServiceRequest()
    resource_logs = request.resource_logs.add()
    resource_logs.resource.attributes.add(key="service.name", value=value)
    resource_logs.scope_logs.add().log_records.add()
    (row,) = rows_of("logs", request)
    assert row["service_name"] == name


def test_promoted_columns_have_the_text_of_any_value() -> None:
    """The older key is the fallback."""
    request = ExportLogsServiceRequest()
    for old, new in (("a", None), ("a", "b"), (None, "")):
        resource_logs = request.resource_logs.add()
        attributes = resource_logs.resource.attributes
        if old is not None:
            attributes.add(key="deployment.environment").value.string_value = old
        if new is not None:
            attributes.add(key="deployment.environment.name").value.string_value = new
        attributes.add(key="host.name").value.int_value = 7
        resource_logs.scope_logs.add().log_records.add()
    rows = rows_of("logs", request)
    assert [row["deployment_environment"] for row in rows] == ["a", "b", ""]
    assert {row["host_name"] for row in rows} == {"7"}
    assert {row["k8s_pod_name"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (value_of(int_value=200), 200),
        (value_of(int_value=-1), -1),
        (value_of(int_value=2**31 - 1), 2**31 - 1),
        (value_of(int_value=2**31), None),
        (value_of(int_value=-(2**31) - 1), None),
        (value_of(string_value="404"), 404),
        (value_of(string_value="0404"), 404),
        (value_of(string_value="2147483648"), None),
        (value_of(string_value="-5"), None),
        (value_of(string_value="4" * 60), None),
        (value_of(string_value=""), None),
        (value_of(double_value=200.0), None),
    ],
)
def test_status_codes_are_numbers_or_digits(value: AnyValue, code: int | None) -> None:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.attributes.add(key="http.response.status_code", value=value)
    (row,) = rows_of("traces", request)
    assert row["http_response_status_code"] == code


# Time and place.


@pytest.mark.parametrize(
    ("event", "observed", "time_us"),
    [
        (1_700_000_000_123_456_789, 5000, 1_700_000_000_123_456),
        (999, 5000, 0),
        (0, 1_700_000_000_000_001_999, 1_700_000_000_000_001),
        (0, 0, 1_700_000_000_000_000),
        (2**63 - 1, 0, (2**63 - 1) // 1000),
    ],
)
def test_time_falls_back_to_observed_and_ingest_time(
    event: int, observed: int, time_us: int
) -> None:
    """Rounded down to microseconds."""
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(
        time_unix_nano=event, observed_time_unix_nano=observed
    )
    requests = numbered([request.SerializeToString()])
    assert_same("logs", requests)
    batch = decode("logs", requests).batch
    assert batch.column("time").cast(pa.int64()).to_pylist() == [time_us]
    assert batch.column("time_unix_nano").to_pylist() == [event]
    assert batch.column("ingest_time").cast(pa.int64()).to_pylist() == [1_700_000_000_000_000]


@pytest.mark.parametrize("ingest_time_ms", [0, -1, 2**63 - 1, -(2**63)])
def test_an_ingest_time_out_of_range_is_clamped(ingest_time_ms: int) -> None:
    body = inside(b"", 1, 2, 2)
    request = ExportRequest(partition=0, offset=0, ingest_time_ms=ingest_time_ms, body=body)
    (time_us,) = decode("logs", [request]).batch.column("ingest_time").cast(pa.int64()).to_pylist()
    limit = (2**63 - 1) // 1000
    assert time_us == max(-limit, min(limit, ingest_time_ms)) * 1000


def test_rows_have_partition_offset_and_index() -> None:
    request = ExportLogsServiceRequest()
    for _ in range(2):
        scope_logs = request.resource_logs.add().scope_logs.add()
        scope_logs.log_records.add()
        scope_logs.log_records.add()
    body = request.SerializeToString()
    requests = [
        ExportRequest(partition=partition, offset=offset, ingest_time_ms=0, body=body)
        for partition, offset in ((0, 5), (1, 2**40))
    ]
    batch = decode("logs", requests).batch
    names = ("_log_partition", "_offset", "_row")
    places = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    assert list(places) == [(p, o, row) for p, o in ((0, 5), (1, 2**40)) for row in range(4)]


@pytest.mark.parametrize(
    ("number", "text", "wanted"),
    [
        (0, "ERROR", 17),
        (0, " Warning ", 13),
        (0, "debug3", 7),
        (0, "Critical", 21),
        (0, "it hurts", 0),
        (0, "", 0),
        (9, "ERROR", 9),
        (-5, "ERROR", -5),
    ],
)
def test_severity_text_gives_the_number_that_is_missing(
    number: int, text: str, wanted: int
) -> None:
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    records.add(severity_number=13, severity_text="ERROR")
    records.add(severity_number=number, severity_text=text)
    rows = rows_of("logs", request)
    assert [row["severity_number"] for row in rows] == [13, wanted]
    assert rows[1]["severity_text"] == (text or None)


def test_a_span_that_ends_before_its_start_has_duration_zero() -> None:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        start_time_unix_nano=2**63 - 1, end_time_unix_nano=5
    )
    (row,) = rows_of("traces", request)
    assert (row["duration_nano"], row["end_time_unix_nano"]) == (0, 5)


def test_unknown_enum_values_are_digits() -> None:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for kind in (0, 1, 5, 6, -1, 2**31 - 1):
        spans.add(kind=kind).status.code = kind  # type: ignore[assignment]
    rows = rows_of("traces", request)
    assert [row["kind"] for row in rows] == [
        "UNSPECIFIED",
        "INTERNAL",
        "CONSUMER",
        "6",
        "-1",
        "2147483647",
    ]
    assert [row["status_code"] for row in rows] == ["UNSET", "OK", "5", "6", "-1", "2147483647"]


# Metrics.


def test_the_last_data_field_of_a_metric_wins() -> None:
    point = field(1, varint(3 << 3 | 1) + (1).to_bytes(8, "little"))
    gauge, total = field(5, point + point), field(7, point)
    name = text(1, "m")
    body = inside(name + gauge + total + name, 1, 2, 2) + inside(gauge + gauge, 1, 2, 2)
    rows = rows_of("metrics", body)
    assert [(row["metric_type"], row["_row"]) for row in rows] == [
        ("sum", 0),
        *(("gauge", number) for number in range(1, 5)),
    ]


def test_each_metric_type_has_its_columns() -> None:
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add().scope_metrics.add().metrics
    metrics.add(name="g").gauge.data_points.add(as_double=NAN)
    metrics.add(name="s").sum.data_points.add(as_int=-5)
    histogram = metrics.add(name="h").histogram.data_points.add(count=3, min=-0.0)
    histogram.bucket_counts.extend([1, 2])
    histogram.explicit_bounds.append(0.5)
    exponential = metrics.add(name="e").exponential_histogram.data_points.add(scale=-3)
    exponential.positive.offset = -7
    exponential.positive.bucket_counts.extend([300, 2**63 - 1])
    metrics.add(name="q").summary.data_points.add().quantile_values.add(quantile=0.5, value=2.0)
    metrics.add(name="none").gauge.data_points.add()
    rows = {row["metric_name"]: row for row in rows_of("metrics", request)}
    assert [row["metric_type"] for row in rows.values()] == [
        "gauge",
        "sum",
        "histogram",
        "exponential_histogram",
        "summary",
        "gauge",
    ]
    assert (rows["s"]["value_int"], rows["s"]["is_monotonic"]) == (-5, False)
    assert (rows["h"]["bucket_counts"], rows["h"]["explicit_bounds"]) == ([1, 2], [0.5])
    assert (rows["h"]["sum"], str(rows["h"]["min"])) == (None, "-0.0")
    assert (rows["e"]["scale"], rows["e"]["positive_offset"]) == (-3, -7)
    assert rows["e"]["positive_bucket_counts"] == [300, 2**63 - 1]
    assert rows["e"]["negative_bucket_counts"] is None
    assert rows["q"]["quantiles"] == [{"quantile": 0.5, "value": 2.0}]
    assert (rows["q"]["sum"], rows["q"]["aggregation_temporality"]) == (0.0, None)
    assert (rows["none"]["value_double"], rows["none"]["value_int"]) == (None, None)


# Dead letters.


def test_an_invalid_request_does_not_affect_others() -> None:
    """It is one dead letter with its bytes and the position of the error."""
    well = inside(text(3, "well"), 1, 2, 2)
    broken = well + inside(text(3, "lost"), 1, 2, 2) + b"\x0a\x05\x12"
    requests = numbered([well, broken, well])
    assert_same("logs", requests)
    decoded = decode("logs", requests)
    assert decoded.batch.column("_offset").to_pylist() == [100, 102]
    (letter,) = decoded.dead
    assert (letter.partition, letter.offset, letter.row) == (3, 101, None)
    assert letter.payload == broken
    assert letter.reason == (
        "not an OTLP request: a length reaches beyond the end of the message, at byte 24"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (field(9, b"short"), "LogRecord.trace_id must be 16 bytes long or empty"),
        (field(10, bytes(9)), "LogRecord.span_id must be 8 bytes long or empty"),
        (b"\x09" + b"\xff" * 8, "LogRecord.time_unix_nano must not be above 2^63-1"),
    ],
)
def test_an_invalid_record_is_a_dead_letter(content: bytes, reason: str) -> None:
    """The others keep their index."""
    well, bad = inside(text(3, "well"), 2), inside(content, 2)
    body = inside(well + bad + well, 1, 2)
    assert_same("logs", numbered([body]))
    decoded = decode("logs", numbered([body]))
    assert decoded.batch.column("_row").to_pylist() == [0, 2]
    (letter,) = decoded.dead
    assert (letter.row, letter.reason, letter.payload) == (1, reason, content)


@pytest.mark.parametrize(
    ("signal", "content", "reason"),
    [
        ("traces", inside(field(1, b"x"), 1, 2, 2, 13), "Link.trace_id must be"),
        ("traces", inside(b"\x09" + b"\xff" * 8, 1, 2, 2, 11), "Event.time_unix_nano must not be"),
        (
            "metrics",
            inside(field(6, b"\xff" * 8), 1, 2, 2, 9, 1),
            "HistogramDataPoint.bucket_counts must not be above 2^63-1",
        ),
        (
            "metrics",
            inside(field(2, b"\x01" + b"\xff" * 9 + b"\x01"), 1, 2, 2, 10, 1, 9),
            "ExponentialHistogramDataPoint.negative.bucket_counts must not be above 2^63-1",
        ),
        (
            "metrics",
            inside(varint(2 << 3) + b"\xff" * 9 + b"\x01", 1, 2, 2, 10, 1, 8),
            "ExponentialHistogramDataPoint.positive.bucket_counts must not be above 2^63-1",
        ),
        ("metrics", inside(field(4, b"x"), 1, 2, 2, 5, 1, 5), "Exemplar.span_id must be 8 bytes"),
    ],
)
def test_invalid_nested_messages_reject_the_record(
    signal: str, content: bytes, reason: str
) -> None:
    """Links, events, exemplars and buckets."""
    assert_same(signal, numbered([content]))
    decoded = decode(signal, numbered([content]))
    (letter,) = decoded.dead
    assert letter.row == 0
    assert reason in letter.reason


# What is too large.


def wide_request(records: int) -> bytes:
    """A resource with much to say, and many records."""
    resource = inside(attribute(1, "k", text(1, "x" * 10_000)), 1)
    return field(1, resource + field(2, inside(b"", 2) * records))


def test_rows_that_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that grows beyond the limit is a dead letter; several that do so only together
    are refused, and are decoded when they come in smaller numbers."""
    monkeypatch.setattr(columns, "BATCH_BYTES_MAX", 3_000_000)
    small, large = wide_request(100), wide_request(1000)
    requests = numbered([small, small, small])
    for each in (decode, decode_dictionary):
        (letter,) = each("logs", numbered([large])).dead
        assert (letter.row, letter.payload) == (None, large)
        assert "the rows would take more than 3000000 bytes" in letter.reason
        with pytest.raises(TooLarge):
            each("logs", requests)
        assert each("logs", requests[:2]).batch.num_rows == 200


@pytest.mark.parametrize("signal", SIGNALS)
def test_dictionaries_count_as_if_repeated(signal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms are too large for the same requests, so all views have the same dead letters."""
    writer = Writer(Random(3), wildness=0.1)
    requests = numbered(writer.request(signal) for _ in range(200))
    outcomes = set()
    for limit in range(500, 20_000, 1500):
        monkeypatch.setattr(columns, "BATCH_BYTES_MAX", limit)
        for request in requests:
            plain, other = decode(signal, [request]), decode_dictionary(signal, [request])
            assert fuzz.is_same(signal, other, plain)
            outcomes.add(bool(plain.batch.num_rows))
    assert outcomes == {True, False}


def test_keys_have_one_dictionary_entry_each() -> None:
    """Also short ones, and those alike at one end."""
    keys = ["", "a", "ab", "b", *(f"key.{n}.of.many" for n in range(40)), "aaaaaaaab", "baaaaaaab"]
    body = b"".join(attribute(6, key, text(1, "x")) for key in keys)
    request = field(1, field(2, field(2, body) * 50))
    column = decode_dictionary("logs", numbered([request])).batch["attributes"]
    assert sorted(column.keys.dictionary.to_pylist()) == sorted(keys)
    assert column.keys.to_pylist() == sorted(keys) * 50


def test_a_request_that_needs_too_much_memory_is_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = inside(b"\x12\x00" * 20_000, 1, 2)
    assert decode("logs", numbered([body])).batch.num_rows == 20_000
    monkeypatch.setattr(requests_module, "ARENA_WORDS_MAX", 100_000)
    (letter,) = decode("logs", numbered([body])).dead
    assert "bytes of memory" in letter.reason


def test_a_request_above_the_limit_is_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_module, "BODY_BYTES_MAX", 1000)
    (letter,) = decode("logs", numbered([bytes(1001)])).dead
    assert letter.reason == "requests of 1001 bytes, which is more than 1000"


# The compiler.


def test_threads_can_decode_concurrently() -> None:
    writer = Writer(Random(1))
    calls = [(s, numbered(writer.request(s) for _ in range(20))) for s in SIGNALS * 4]
    with ThreadPoolExecutor(4) as pool:
        decoded = list(pool.map(lambda call: decode(*call), calls))
    for (signal, requests), found in zip(calls, decoded, strict=True):
        assert differences(signal, found, *reference(signal, requests)) == []


@pytest.mark.parametrize(
    ("locators", "wanted"),
    [("IPythonCacheLocator", "None"), ("InTreeCacheLocator", "__pycache__")],
)
def test_compiled_code_is_cached_where_possible(locators: str, wanted: str) -> None:
    importing = "from frazil.model.arrow.decoder.walk import walk; print(walk.stats.cache_path)"
    done = subprocess.run(
        [sys.executable, "-c", importing],
        env=os.environ | {"NUMBA_CACHE_LOCATOR_CLASSES": locators},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(wanted)


WAITING = """
import sys
from frazil.model.arrow import warm
from frazil.model.arrow.decoder import buffers, walk
from frazil.model.arrow.decoder.values import value_types
warm()
functions = {
    name: each
    for room in (buffers, value_types, walk)
    for name, each in vars(room).items()
    if hasattr(each, "stats") and each.stats.cache_path
}
assert len(functions) > 10, functions
print(*(name for name, each in functions.items() if len(each.signatures) != 1))
from random import Random
from frazil.model.arrow import decode, decode_dictionary
from tests.model.arrow.requests import Writer, numbered
for signal in ("logs", "traces", "metrics"):
    writer = Writer(Random(2), wildness=0.5)
    requests = numbered(writer.request(signal) for _ in range(50))
    for each in (decode, decode_dictionary):
        each(signal, requests)
        each(signal, numbered([b"", b"\\xff"]))
        each(signal, [])
print(*(name for name, each in functions.items() if len(each.signatures) != 1))
"""


def test_after_warm_nothing_is_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n\n"), done.stderr


READ_ONLY = """
import errno, tempfile

def refuse(**options):
    raise OSError(errno.EROFS, "read-only", options["dir"])

tempfile.TemporaryFile = refuse
"""
"""How numba sees that it cannot write into a folder."""


def test_the_cache_on_disk(tmp_path: Path) -> None:
    """A change of any source recompiles. A cache that cannot be written, as in an image, is
    used."""
    shutil.copytree(SOURCE, tmp_path / "frazil", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import numpy, frazil.model.arrow.decoder.buffers as buffers;"
        "buffers.build_chain(numpy.zeros(8, numpy.int64), 0, 1);"
        "print(sum(buffers.build_chain.stats.cache_hits.values()))"
    )

    def hits(before: str = "") -> int:
        done = subprocess.run(
            [sys.executable, "-c", before + code],
            env=os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert (hits(), hits(), hits(READ_ONLY)) == (0, 1, 1)
    with (tmp_path / "frazil" / "model" / "arrow" / "decoder" / "values" / "sort_keys.py").open(
        "a"
    ) as file:
        file.write("# changed\n")
    assert hits(READ_ONLY) == 0
