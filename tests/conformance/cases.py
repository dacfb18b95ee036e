"""Requests in protobuf, sent over gRPC and HTTP with the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from frazil.model import Signal

LOGS, TRACES, METRICS = Signal.LOGS, Signal.TRACES, Signal.METRICS
INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
NOW_NS = 1_790_000_000_000_000_000
TRACE_ID = bytes(range(16))
SPAN_ID = bytes(range(8))
BODY_BYTES_MAX = 4 * 1024 * 1024
"""The body limit of the servers in these tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request: how many of its records are stored and how many rejected, or why it is refused.

    `body` gets a number that no other case gets, so that no request repeats another one.
    """

    row: str
    signal: Signal
    body: Callable[[int], bytes]
    stored: int = 0
    rejected: int = 0
    refused: str = ""
    says: str = ""
    warns: str = ""
    """What the response says of records that were stored with less."""


def log(number: int, **fields: object) -> LogRecord:
    record = LogRecord(time_unix_nano=NOW_NS + number)
    record.body.string_value = f"case {number}"
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def logs(*records: LogRecord) -> bytes:
    request = ExportLogsServiceRequest()
    scope_logs = request.resource_logs.add().scope_logs.add()
    scope_logs.log_records.extend(records)
    return request.SerializeToString()


def span(number: int, **fields: object) -> Span:
    made = Span(trace_id=TRACE_ID, span_id=SPAN_ID, name=f"case {number}")
    made.start_time_unix_nano = made.end_time_unix_nano = NOW_NS + number
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def spans(*made: Span) -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.extend(made)
    return request.SerializeToString()


def metric(number: int) -> Metric:
    return Metric(name=f"case {number}")


def metrics(*made: Metric) -> bytes:
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.extend(made)
    return request.SerializeToString()


def nested_arrays(depth: int) -> AnyValue:
    value = AnyValue(string_value="deep")
    for _ in range(depth):
        outer = AnyValue()
        outer.array_value.values.append(value)
        value = outer
    return value


def field(number: int, content: bytes, wire_type: int = 2) -> bytes:
    """Encode one field; content of wire type 2 gets a length."""
    tag = varint(number << 3 | wire_type)
    return tag + (varint(len(content)) + content if wire_type == 2 else content)


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def in_log_record(content: bytes) -> Callable[[int], bytes]:
    """Return a request with one log record that holds these bytes beside its time."""

    def body(number: int) -> bytes:
        record = log(number).SerializeToString() + content
        return field(1, field(2, field(2, record)))

    return body


def plain(content: bytes) -> Callable[[int], bytes]:
    return lambda _: content


def behind(content: bytes) -> Callable[[int], bytes]:
    """Return a valid request followed by these bytes."""
    return lambda number: logs(log(number)) + content


def _attributes(count: int, key: Callable[[int], str]) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        record = log(number)
        for n in range(count):
            record.attributes.add(key=key(n)).value.int_value = n
        return logs(record)

    return body


def _bad_among_good(number: int) -> bytes:
    """Return a hundred spans; the ids of three have the wrong length."""
    made = [span(number + n) for n in range(100)]
    made[3].trace_id = b"\1" * 15
    made[50].span_id = b"\1" * 9
    made[99].parent_span_id = b"\1" * 7
    return spans(*made)


def _with_link(trace_id: bytes, span_id: bytes) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = span(number)
        made.links.add(trace_id=trace_id, span_id=span_id)
        return spans(made, span(number))

    return body


def _with_event(time_ns: int) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = span(number)
        made.events.add(name="event", time_unix_nano=time_ns)
        return spans(made)

    return body


def _gauge(value: float) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = metric(number)
        made.gauge.data_points.add(time_unix_nano=NOW_NS, as_double=value)
        return metrics(made)

    return body


def _histogram(**fields: object) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = metric(number)
        made.histogram.data_points.add(time_unix_nano=NOW_NS, count=1)
        made.histogram.data_points.add(time_unix_nano=NOW_NS, **fields)
        return metrics(made)

    return body


def _exponential(side: str, counts: list[int], zero_count: int = 0) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = metric(number)
        point = made.exponential_histogram.data_points.add(
            time_unix_nano=NOW_NS, count=1, zero_count=zero_count
        )
        getattr(point, side).bucket_counts.extend(counts)
        return metrics(made)

    return body


def _summary(count: int) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = metric(number)
        made.summary.data_points.add(time_unix_nano=NOW_NS, count=count)
        return metrics(made)

    return body


def _exemplar(**fields: object) -> Callable[[int], bytes]:
    def body(number: int) -> bytes:
        made = metric(number)
        point = made.sum.data_points.add(time_unix_nano=NOW_NS, as_int=1)
        point.exemplars.add(**fields)
        made.sum.data_points.add(time_unix_nano=NOW_NS, as_int=2)
        return metrics(made)

    return body


def _all_kinds(number: int) -> bytes:
    gauge, total, spread, wide, summary = (metric(number + n) for n in range(5))
    gauge.gauge.data_points.add(as_int=-(2**63))
    total.sum.data_points.add(as_double=0.1)
    total.sum.is_monotonic = True
    spread.histogram.data_points.add(count=3, bucket_counts=[1, 2], explicit_bounds=[5.0], sum=7)
    wide.exponential_histogram.data_points.add(scale=-3, zero_count=1)
    summary.summary.data_points.add(count=2).quantile_values.add(quantile=0.5, value=1)
    return metrics(gauge, total, spread, wide, summary)


TEXTS = {
    "four-byte letters": "\U0001f600\U0010ffff",
    "right to left": "שלום \u202e",
    "a zero byte": "a\0b",
    "empty": "",
    "non-characters": "\ufffe\uffff",
}
NOT_UTF8 = {
    "a byte that never occurs": b"\xff",
    "a lone continuation": b"\x80",
    "a cut letter": b"\xe2\x82",
    "an overlong letter": b"\xc0\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "above the last letter": b"\xf4\x90\x80\x80",
}
DOUBLES = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "minus zero": -0.0,
    "the smallest denormal": 5e-324,
    "the largest": 1.7976931348623157e308,
}

CASES: dict[str, Case] = {
    "one log record": Case(row="D4", signal=LOGS, body=lambda n: logs(log(n)), stored=1),
    "one span": Case(row="D4", signal=TRACES, body=lambda n: spans(span(n)), stored=1),
    "all kinds of metrics": Case(row="D4", signal=METRICS, body=_all_kinds, stored=5),
    "nothing at all": Case(row="D4", signal=LOGS, body=plain(b"")),
    "an empty envelope": Case(row="D4", signal=LOGS, body=plain(field(1, b""))),
    "an empty envelope in an envelope": Case(
        row="D4", signal=TRACES, body=plain(field(1, field(2, b"")))
    ),
    "a metric without points": Case(
        row="D4", signal=METRICS, body=lambda n: metrics(metric(n)), stored=0
    ),
    "an empty log record": Case(
        row="D4", signal=LOGS, body=lambda n: logs(LogRecord(), log(n)), stored=2
    ),
    "three bad of a hundred": Case(
        row="D4", signal=TRACES, body=_bad_among_good, stored=97, rejected=3, says="trace_id"
    ),
    "all bad": Case(
        row="D4",
        signal=LOGS,
        body=lambda n: logs(*[log(n, trace_id=b"short")] * 4),
        rejected=4,
        says="trace_id",
    ),
    "a body above the limit": Case(
        row="D2",
        signal=LOGS,
        body=lambda n: logs(log(n, severity_text="x" * (BODY_BYTES_MAX + 1))),
        refused="too large",
    ),
    "a body just below the limit": Case(
        row="D2",
        signal=LOGS,
        body=lambda n: logs(log(n, severity_text="x" * (BODY_BYTES_MAX - 1000))),
        stored=1,
    ),
    "a cut varint": Case(row="D7", signal=LOGS, body=behind(b"\x80"), refused="malformed"),
    "a varint of 11 bytes": Case(
        row="D7", signal=LOGS, body=behind(b"\x78" + b"\x80" * 10 + b"\1"), refused="malformed"
    ),
    "a varint of 10 bytes": Case(
        row="D7", signal=LOGS, body=behind(b"\x78" + b"\xff" * 9 + b"\1"), stored=1
    ),
    "field 0": Case(row="D7", signal=LOGS, body=behind(b"\x02\x00"), refused="malformed"),
    "wire type 6": Case(row="D7", signal=LOGS, body=behind(b"\x0e\x00"), refused="malformed"),
    "wire type 7": Case(row="D7", signal=LOGS, body=behind(b"\x0f\x00"), refused="malformed"),
    "a group": Case(row="D7", signal=LOGS, body=behind(b"\x7b\x7c"), refused="malformed"),
    "a group that never ends": Case(
        row="D7", signal=LOGS, body=behind(b"\x7b"), refused="malformed"
    ),
    "the end of no group": Case(row="D7", signal=LOGS, body=behind(b"\x7c"), refused="malformed"),
    "a length beyond the end": Case(
        row="D7", signal=LOGS, body=behind(b"\x0a\x05\0\0"), refused="malformed"
    ),
    "a length of 4 GiB": Case(
        row="D7", signal=LOGS, body=behind(b"\x0a\xff\xff\xff\xff\x0f"), refused="malformed"
    ),
    "a length beyond its envelope": Case(
        row="D7", signal=LOGS, body=plain(b"\x0a\x04\x12\x02\x12\x05"), refused="malformed"
    ),
    "a cut fixed number": Case(
        row="D7", signal=LOGS, body=in_log_record(b"\x09\0\0\0\0"), refused="malformed"
    ),
    "a known field of another wire type": Case(
        row="D7", signal=LOGS, body=in_log_record(b"\x08\x05"), stored=1
    ),
    "an unknown field": Case(
        row="D7", signal=LOGS, body=in_log_record(field(1000, b"new")), stored=1
    ),
    "packed numbers cut": Case(
        row="D7",
        signal=METRICS,
        body=plain(field(1, field(2, field(2, field(9, field(1, field(6, b"1234567"))))))),
        refused="malformed",
    ),
    "a tag of six bytes": Case(
        row="D7", signal=LOGS, body=behind(b"\x8a\x80\x80\x80\x80\x00\x00"), refused="malformed"
    ),
    "words": Case(row="D7", signal=LOGS, body=plain(b"hello, world"), refused="malformed"),
    "JSON sent as protobuf": Case(
        row="D7", signal=LOGS, body=plain(b'{"resourceLogs":[]}'), refused="malformed"
    ),
    "zeros": Case(row="D7", signal=LOGS, body=plain(bytes(100)), refused="malformed"),
    "gzip without saying so": Case(
        row="D7", signal=LOGS, body=plain(b"\x1f\x8b\x08\0\0\0\0\0"), refused="malformed"
    ),
    "nested as deep as allowed": Case(row="D8", signal=LOGS, body=lambda n: _deep(n, 40), stored=1),
    "nested 10,000 deep": Case(
        row="D8", signal=LOGS, body=lambda n: _deep_bytes(n, 10_000), refused="malformed"
    ),
    "nested 60 deep": Case(
        row="D8", signal=LOGS, body=lambda n: _deep_bytes(n, 60), refused="malformed"
    ),
    **{
        f"text: {name}": Case(
            row="D9",
            signal=LOGS,
            body=lambda n, text=text: logs(log(n, severity_text=text)),  # type: ignore[misc]
            stored=1,
        )
        for name, text in TEXTS.items()
    },
    **{
        f"no text: {name}": Case(
            row="D9", signal=LOGS, body=in_log_record(field(3, content)), refused="malformed"
        )
        for name, content in NOT_UTF8.items()
    },
    "no text in an attribute": Case(
        row="D9", signal=LOGS, body=in_log_record(field(6, field(1, b"\xff"))), refused="malformed"
    ),
    "bytes that are no text": Case(
        row="D9", signal=LOGS, body=in_log_record(field(5, field(7, b"\xff"))), stored=1
    ),
    **{
        f"number: {name}": Case(row="D10", signal=METRICS, body=_gauge(value), stored=1)
        for name, value in DOUBLES.items()
    },
    "time 0": Case(row="D11", signal=LOGS, body=lambda n: logs(log(n, time_unix_nano=0)), stored=1),
    "time 1": Case(
        row="D11", signal=TRACES, body=lambda n: spans(span(n, start_time_unix_nano=1)), stored=1
    ),
    "the last time that fits": Case(
        row="D11", signal=LOGS, body=lambda n: logs(log(n, time_unix_nano=INT64_MAX)), stored=1
    ),
    "a time one later": Case(
        row="D11",
        signal=LOGS,
        body=lambda n: logs(log(n, time_unix_nano=INT64_MAX + 1)),
        rejected=1,
        says="time_unix_nano",
    ),
    "an observed time too late": Case(
        row="D11",
        signal=LOGS,
        body=lambda n: logs(log(n), log(n, observed_time_unix_nano=UINT64_MAX)),
        stored=1,
        rejected=1,
        says="observed_time_unix_nano",
    ),
    "a start too late": Case(
        row="D11",
        signal=TRACES,
        body=lambda n: spans(span(n, start_time_unix_nano=INT64_MAX + 1)),
        rejected=1,
        says="start_time_unix_nano",
    ),
    "an end too late": Case(
        row="D11",
        signal=TRACES,
        body=lambda n: spans(span(n, end_time_unix_nano=UINT64_MAX)),
        rejected=1,
        says="end_time_unix_nano",
    ),
    "an end before the start": Case(
        row="D11", signal=TRACES, body=lambda n: spans(span(n, end_time_unix_nano=1)), stored=1
    ),
    "an event too late": Case(
        row="D11", signal=TRACES, body=_with_event(INT64_MAX + 1), rejected=1, says="time_unix_nano"
    ),
    "an event in time": Case(row="D11", signal=TRACES, body=_with_event(INT64_MAX), stored=1),
    "a point too late": Case(
        row="D11",
        signal=METRICS,
        body=lambda n: metrics(_late_point(n)),
        rejected=1,
        says="time_unix_nano",
    ),
    "an exemplar too late": Case(
        row="D11",
        signal=METRICS,
        body=_exemplar(time_unix_nano=UINT64_MAX, as_int=1),
        stored=1,
        rejected=1,
        says="time_unix_nano",
    ),
    "a count that fits": Case(
        row="D11", signal=METRICS, body=_histogram(count=INT64_MAX), stored=2
    ),
    "a count too large": Case(
        row="D11",
        signal=METRICS,
        body=_histogram(count=INT64_MAX + 1),
        stored=1,
        rejected=1,
        says="count",
    ),
    "a bucket count too large": Case(
        row="D11",
        signal=METRICS,
        body=_histogram(count=1, bucket_counts=[0, UINT64_MAX], explicit_bounds=[1.0]),
        stored=1,
        rejected=1,
        says="bucket_counts",
    ),
    "a positive bucket too large": Case(
        row="D11",
        signal=METRICS,
        body=_exponential("positive", [1, UINT64_MAX]),
        rejected=1,
        says="bucket_counts",
    ),
    "a negative bucket too large": Case(
        row="D11",
        signal=METRICS,
        body=_exponential("negative", [INT64_MAX + 1]),
        rejected=1,
        says="bucket_counts",
    ),
    "a zero count too large": Case(
        row="D11",
        signal=METRICS,
        body=_exponential("positive", [1], zero_count=UINT64_MAX),
        rejected=1,
        says="zero_count",
    ),
    "exponential buckets that fit": Case(
        row="D11", signal=METRICS, body=_exponential("positive", [INT64_MAX, 0]), stored=1
    ),
    "a summary's count too large": Case(
        row="D11", signal=METRICS, body=_summary(UINT64_MAX), rejected=1, says="count"
    ),
    "a summary's count that fits": Case(
        row="D11", signal=METRICS, body=_summary(INT64_MAX), stored=1
    ),
    "10,000 attributes": Case(
        row="D13",
        signal=LOGS,
        body=_attributes(10_000, lambda n: f"key.{n}"),
        stored=1,
        warns="8976 attributes dropped",
    ),
    "a key of 1 MB": Case(
        row="D13",
        signal=LOGS,
        body=_attributes(1, lambda _: "k" * 1_000_000),
        stored=1,
        warns="1 keys cut",
    ),
    "a value of 1 MB": Case(
        row="D13",
        signal=LOGS,
        body=lambda n: logs(log(n, severity_text="v" * 1_000_000)),
        stored=1,
    ),
    "200,000 empty records": Case(
        row="D13",
        signal=LOGS,
        body=lambda n: field(
            1, field(2, field(2, log(n).SerializeToString()) + b"\x12\0" * 200_000)
        ),
        stored=200_001,
    ),
    "duplicate keys": Case(row="D14", signal=LOGS, body=_attributes(3, lambda _: "same"), stored=1),
    "empty keys": Case(row="D14", signal=LOGS, body=_attributes(2, lambda _: ""), stored=1),
    "no trace id": Case(
        row="D14", signal=TRACES, body=lambda n: spans(span(n, trace_id=b"")), stored=1
    ),
    "a trace id of zeros": Case(
        row="D14", signal=TRACES, body=lambda n: spans(span(n, trace_id=bytes(16))), stored=1
    ),
    "a trace id of 15 bytes": Case(
        row="D14",
        signal=TRACES,
        body=lambda n: spans(span(n, trace_id=bytes(15))),
        rejected=1,
        says="trace_id must be",
    ),
    "a trace id of 17 bytes": Case(
        row="D14",
        signal=LOGS,
        body=lambda n: logs(log(n), log(n, trace_id=bytes(17))),
        stored=1,
        rejected=1,
        says="trace_id must be",
    ),
    "a span id of 16 bytes": Case(
        row="D14",
        signal=LOGS,
        body=lambda n: logs(log(n, span_id=bytes(16))),
        rejected=1,
        says="span_id must be",
    ),
    "a parent of 1 byte": Case(
        row="D14",
        signal=TRACES,
        body=lambda n: spans(span(n, parent_span_id=b"\1")),
        rejected=1,
        says="parent_span_id must be",
    ),
    "a link with good ids": Case(
        row="D14", signal=TRACES, body=_with_link(TRACE_ID, SPAN_ID), stored=2
    ),
    "a link with a bad trace id": Case(
        row="D14",
        signal=TRACES,
        body=_with_link(b"x", SPAN_ID),
        stored=1,
        rejected=1,
        says="trace_id",
    ),
    "a link with a bad span id": Case(
        row="D14",
        signal=TRACES,
        body=_with_link(TRACE_ID, b"x"),
        stored=1,
        rejected=1,
        says="span_id",
    ),
    "an exemplar with good ids": Case(
        row="D14",
        signal=METRICS,
        body=_exemplar(trace_id=TRACE_ID, span_id=SPAN_ID, as_double=1.5),
        stored=2,
    ),
    "an exemplar with a bad id": Case(
        row="D14",
        signal=METRICS,
        body=_exemplar(trace_id=b"12345", as_int=1),
        stored=1,
        rejected=1,
        says="trace_id",
    ),
    "an attribute that is a number": Case(
        row="D18", signal=LOGS, body=lambda n: _typed(n, AnyValue(int_value=7)), stored=1
    ),
    "the same attribute as text": Case(
        row="D18", signal=LOGS, body=lambda n: _typed(n, AnyValue(string_value="7")), stored=1
    ),
    "the same attribute as nothing": Case(
        row="D18", signal=LOGS, body=lambda n: _typed(n, AnyValue()), stored=1
    ),
}


def _late_point(number: int) -> Metric:
    made = metric(number)
    made.gauge.data_points.add(time_unix_nano=INT64_MAX + 1, as_int=1)
    return made


def _typed(number: int, value: AnyValue) -> bytes:
    record = log(number)
    record.attributes.add(key="chameleon").value.CopyFrom(value)
    return logs(record)


def _deep(number: int, depth: int) -> bytes:
    record = log(number)
    record.attributes.add(key="deep").value.CopyFrom(nested_arrays(depth))
    return logs(record)


def _deep_bytes(number: int, depth: int) -> bytes:
    """Nest deeper than protobuf's own serialiser: built from the inside out."""
    value = field(1, b"deep")
    for _ in range(depth):
        value = field(5, field(1, value))
    record = log(number).SerializeToString() + field(6, field(1, b"deep") + field(2, value))
    return field(1, field(2, field(2, record)))
