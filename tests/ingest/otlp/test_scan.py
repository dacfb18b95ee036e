"""The scanner agrees with protobuf's parser on any bytes, and judges their records."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.ingest.otlp.messages import REQUESTS
from frazil.ingest.otlp.scan import ScanResult, prune, scan
from frazil.ingest.otlp.scan_tables import ID_BYTES, RECORDS, messages_in
from frazil.model import Signal
from tests.fuzz import wire as fuzz
from tests.fuzz.corpus import varint

LOGS, TRACES, METRICS = Signal.LOGS, Signal.TRACES, Signal.METRICS
HUGE = 2**63
HUGE_BYTES = HUGE.to_bytes(8, "little")
FEW_BYTES = (1).to_bytes(8, "little")
VARINT_HUGE = b"\x80" * 9 + b"\x01"


def field(number: int, wire_type: int, value: bytes) -> bytes:
    return varint(number << 3 | wire_type) + value


def inside(content: bytes, *numbers: int) -> bytes:
    """Wrap content in length-prefixed fields of these numbers, outermost first."""
    for number in reversed(numbers):
        content = field(number, 2, varint(len(content)) + content)
    return content


def log(content: bytes) -> bytes:
    """Return a request with one log record."""
    return inside(content, 1, 2, 2)


def attribute(value: bytes) -> bytes:
    return log(inside(value, 6, 2))


def nested(count: int) -> bytes:
    """Return a request whose innermost message is `count` deep: an attribute's value is 5 deep, and
    each array adds 2."""
    value = b"" if count % 2 else inside(b"", 5)
    for _ in range((count - 5) // 2):
        value = inside(value, 5, 1)
    return attribute(value)


def metric(content: bytes) -> bytes:
    return inside(content, 1, 2, 2)


def histogram(content: bytes) -> bytes:
    return metric(inside(content, 9, 1))


def exponential(content: bytes) -> bytes:
    return metric(inside(content, 10, 1, 8))


def is_accepted(signal: Signal, body: bytes) -> bool:
    try:
        scan(signal, body)
    except Malformed:
        return False
    return True


def is_parsed(signal: Signal, body: bytes) -> bool:
    try:
        fuzz.CLASSES[signal].FromString(body)
    except DecodeError:
        return False
    return True


GOOD = {
    "nothing": (LOGS, b""),
    "an empty resource": (LOGS, b"\x0a\x00"),
    "an empty record": (LOGS, log(b"")),
    "unknown varint": (LOGS, log(field(99, 0, b"\x01"))),
    "unknown fixed64": (LOGS, log(field(99, 1, b"\xff" * 8))),
    "unknown bytes": (LOGS, log(inside(b"\xff\xff", 99))),
    "unknown fixed32": (LOGS, log(field(99, 5, b"\xff" * 4))),
    "unknown bytes that look like groups": (LOGS, log(inside(b"\x0b" * 300, 99))),
    "the largest field number": (LOGS, field(2**29 - 1, 0, b"\x00")),
    "a number just beyond the known ones": (TRACES, inside(field(17, 0, b"\x00"), 1, 2, 2)),
    "a tag of two bytes that is known": (TRACES, inside(field(16, 5, b"\x00" * 4), 1, 2, 2)),
    "a resource as varint": (LOGS, field(1, 0, b"\x05")),
    "a resource as fixed64": (LOGS, field(1, 1, b"\x05" * 8)),
    "a resource as fixed32": (LOGS, field(1, 5, b"\x05" * 4)),
    "a text as varint": (LOGS, inside(field(3, 0, b"\x80\x01"), 1)),
    "a time as varint": (LOGS, log(field(1, 0, VARINT_HUGE))),
    "a time as bytes": (LOGS, log(inside(b"\xff" * 3, 1))),
    "an id as varint": (LOGS, log(field(9, 0, b"\x05"))),
    "a flag as bytes": (LOGS, log(inside(b"\xff", 8))),
    "a tag padded to five bytes": (LOGS, b"\x8a\x80\x80\x80\x00\x00"),
    "a length padded to five bytes": (LOGS, b"\x0a\x80\x80\x80\x80\x00"),
    "a number of ten bytes": (LOGS, log(field(2, 0, b"\xff" * 9 + b"\x01"))),
    "a tenth byte with bits too many": (LOGS, log(field(2, 0, b"\xff" * 9 + b"\x7f"))),
    "a number padded to ten bytes": (LOGS, log(field(7, 0, b"\x80" * 9 + b"\x00"))),
    "an unknown enum value": (LOGS, log(field(2, 0, b"\xff\x7f"))),
    "a bool of 300": (LOGS, attribute(field(2, 0, b"\xac\x02"))),
    "packed counts": (METRICS, histogram(inside(FEW_BYTES * 2, 6))),
    "counts one by one": (METRICS, histogram(field(6, 1, FEW_BYTES) * 2)),
    "no packed counts": (METRICS, histogram(inside(b"", 6))),
    "packed doubles": (METRICS, histogram(inside(b"\xff" * 16, 7))),
    "packed varints": (METRICS, exponential(inside(b"\x01\xac\x02", 2))),
    "varints one by one": (METRICS, exponential(field(2, 0, b"\x01") * 2)),
    "packed varints as fixed64": (METRICS, exponential(field(2, 1, b"\xff" * 8))),
    "a single double as packed": (METRICS, histogram(inside(b"\xff" * 3, 5))),
    "text: nul": (LOGS, log(inside(b"\x00", 3))),
    "text: two bytes each": (LOGS, log(inside("\u0080\u07ff".encode(), 3))),
    "text: three bytes each": (LOGS, log(inside("\u0800\ud7ff\ue000\uffff".encode(), 3))),
    "text: four bytes each": (LOGS, log(inside("\U00010000\U0010ffff".encode(), 3))),
    "text: long": (LOGS, log(inside("é".encode() * 200 + b"a" * 200, 3))),
    "bytes that are no text": (LOGS, attribute(inside(b"\xff\xfe", 7))),
    "messages 99 deep": (LOGS, nested(99)),
    "messages 100 deep": (LOGS, nested(100)),
    "a resource twice": (LOGS, inside(inside(b"", 1) * 2, 1)),
}
BAD = {
    "tag: cut off": (LOGS, b"\x8a"),
    "tag: nothing behind it": (LOGS, b"\x0a"),
    "tag: six bytes": (LOGS, b"\x8a\x80\x80\x80\x80\x00\x00"),
    "tag: above 32 bits": (LOGS, b"\x88\x80\x80\x80\x10\x00"),
    "field 0 as varint": (LOGS, field(0, 0, b"\x00")),
    "field 0 as fixed64": (LOGS, field(0, 1, b"\x00" * 8)),
    "field 0 as bytes": (LOGS, field(0, 2, b"\x00")),
    "field 0 as fixed32": (LOGS, field(0, 5, b"\x00" * 4)),
    "field 0 padded": (LOGS, b"\x80\x00\x00"),
    "field 0 in a record": (LOGS, log(b"\x00\x00")),
    "wire type 6": (LOGS, field(1, 6, b"\x00")),
    "wire type 7": (LOGS, field(1, 7, b"\x00")),
    "wire type 6, unknown field": (LOGS, field(999, 6, b"\x00")),
    "wire type 7 in a record": (LOGS, log(field(1, 7, b"\x00"))),
    "the end of no group": (LOGS, field(1, 4, b"")),
    "a group without an end": (LOGS, field(99, 3, b"\x08\x01")),
    "varint: cut off": (LOGS, log(field(2, 0, b"\x80"))),
    "varint: nothing": (LOGS, log(field(2, 0, b""))),
    "varint: eleven bytes": (LOGS, log(field(2, 0, b"\x80" * 10 + b"\x00"))),
    "varint: eleven bytes, unknown field": (LOGS, log(field(99, 0, b"\x80" * 10 + b"\x00"))),
    "varint: into the next message": (LOGS, log(field(2, 0, b"\x80")) + b"\x0a\x00"),
    "fixed64: seven bytes": (LOGS, log(field(1, 1, b"\x00" * 7))),
    "fixed64: into the next message": (LOGS, log(field(1, 1, b"\x00" * 7)) + b"\x0a\x00"),
    "fixed32: three bytes": (LOGS, log(field(8, 5, b"\x00" * 3))),
    "length: cut off": (LOGS, b"\x0a\x80"),
    "length: six bytes": (LOGS, b"\x0a\x80\x80\x80\x80\x80\x00"),
    "length: above 2^31-1": (LOGS, b"\x0a\x80\x80\x80\x80\x08"),
    "length: above 32 bits": (LOGS, b"\x0a\x80\x80\x80\x80\x10"),
    "length: 2^31-1": (LOGS, b"\x0a\xff\xff\xff\xff\x07"),
    "length: one too far": (LOGS, b"\x0a\x01"),
    "length: a text beyond its message": (LOGS, inside(b"\x1a\x02a", 1) + b"\x0a\x00"),
    "length: a message beyond its message": (LOGS, inside(b"\x12\x01", 1) + b"\x0a\x00"),
    "length: an unknown field beyond its message": (LOGS, inside(b"\x7a\x02a", 1) + b"\x0a\x00"),
    "packed counts: twelve bytes": (METRICS, histogram(inside(b"\x00" * 12, 6))),
    "packed doubles: nine bytes": (METRICS, histogram(inside(b"\x00" * 9, 7))),
    "packed varints: cut off": (METRICS, exponential(inside(b"\x01\x80", 2) + b"\x08\x01")),
    "packed varints: eleven bytes": (METRICS, exponential(inside(b"\x80" * 10 + b"\x00", 2))),
    "text: a byte alone": (LOGS, log(inside(b"\x80", 3))),
    "text: two bytes, cut off": (LOGS, log(inside(b"\xc3", 3))),
    "text: three bytes, cut off": (LOGS, log(inside(b"\xe2\x82", 3))),
    "text: four bytes, cut off": (LOGS, log(inside(b"\xf0\x9f\x98", 3))),
    "text: completed by the next field": (LOGS, log(inside(b"\xc3", 3) + b"\x80\x01\x01")),
    "text: overlong in two": (LOGS, log(inside(b"\xc1\xbf", 3))),
    "text: overlong in three": (LOGS, log(inside(b"\xe0\x9f\xbf", 3))),
    "text: overlong in four": (LOGS, log(inside(b"\xf0\x8f\xbf\xbf", 3))),
    "text: a surrogate": (LOGS, log(inside(b"\xed\xa0\x80", 3))),
    "text: above U+10FFFF": (LOGS, log(inside(b"\xf4\x90\x80\x80", 3))),
    "text: five bytes": (LOGS, log(inside(b"\xf8\x88\x80\x80\x80", 3))),
    "text: a wrong third byte": (LOGS, log(inside(b"\xe2\x82a", 3))),
    "text: in the second block": (LOGS, log(inside(b"a" * 100 + b"\xff", 3) + b"\x38\x01" * 60)),
    "text: in an attribute's key": (LOGS, log(inside(b"\xff", 6, 1))),
    "messages 101 deep": (LOGS, nested(101)),
    "messages 102 deep": (LOGS, nested(102)),
}


@pytest.mark.parametrize(("signal", "body"), GOOD.values(), ids=GOOD)
def test_a_body_that_protobuf_parses_is_accepted(signal: Signal, body: bytes) -> None:
    assert is_parsed(signal, body)
    assert is_accepted(signal, body)


@pytest.mark.parametrize(("signal", "body"), BAD.values(), ids=BAD)
def test_a_body_that_protobuf_refuses_is_malformed(signal: Signal, body: bytes) -> None:
    """For `prune` as well."""
    assert not is_parsed(signal, body)
    with pytest.raises(Malformed):
        scan(signal, body)
    with pytest.raises(Malformed):
        prune(signal, body)


@pytest.mark.parametrize(
    "body",
    [
        field(99, 3, field(99, 4, b"")),
        log(field(1, 3, field(1, 4, b""))),
        field(99, 3, field(1, 0, b"\x01") + field(99, 4, b"")),
    ],
)
def test_groups_are_refused(body: bytes) -> None:
    """The one documented difference: protobuf skips groups."""
    assert is_parsed(LOGS, body)
    with pytest.raises(Malformed, match="groups"):
        scan(LOGS, body)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (log(inside(b"\xff", 3)), "a string is not UTF-8, at byte 6 in LogRecord.severity_text"),
        (
            log(b"\x10\x80"),
            "the message ends inside a field, at byte 6 in LogRecord.severity_number",
        ),
        (
            b"\x0a\x05",
            "a length reaches beyond the end of the message, at byte 0 in"
            " ExportLogsServiceRequest.resource_logs",
        ),
        (inside(b"\x00\x00", 1), "a field has the number 0, at byte 2 in ResourceLogs"),
        (inside(field(2**20, 7, b""), 1), "a wire type is unknown, at byte 2 in ResourceLogs"),
        (nested(101), "nested more than 100 deep"),
    ],
)
def test_a_malformed_request_names_fault_byte_and_field(body: bytes, wanted: str) -> None:
    with pytest.raises(Malformed) as caught:
        scan(LOGS, body)
    assert wanted in str(caught.value)


def some_request(signal: Signal) -> Any:
    """Return a small request with a resource, a scope, and two records of the signal."""
    request: Any = fuzz.CLASSES[signal]()
    if signal is LOGS:
        records = request.resource_logs.add().scope_logs.add().log_records
        records.add(trace_id=b"t" * 16, span_id=b"s" * 8, time_unix_nano=1, severity_text="é")
        records.add(observed_time_unix_nano=2).body.array_value.values.add(bool_value=True)
    elif signal is TRACES:
        spans = request.resource_spans.add().scope_spans.add().spans
        spans.add(trace_id=b"t" * 16, start_time_unix_nano=1, flags=3).events.add(time_unix_nano=3)
        spans.add(parent_span_id=b"p" * 8).links.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    else:
        metrics = request.resource_metrics.add().scope_metrics.add().metrics
        point = metrics.add(name="n").histogram.data_points.add(count=1, bucket_counts=[1, 2])
        point.explicit_bounds.append(0.5)
        point = metrics.add().exponential_histogram.data_points.add(zero_count=1)
        point.positive.bucket_counts.extend([1, 300])
    return request


@pytest.mark.parametrize("signal", Signal)
def test_every_truncation_agrees_with_protobuf(signal: Signal) -> None:
    body = some_request(signal).SerializeToString()
    for end in range(len(body) + 1):
        assert fuzz.judge(signal, body[:end]) in fuzz.OUTCOMES


@pytest.mark.parametrize("signal", Signal)
def test_every_change_of_one_byte_agrees_with_protobuf(signal: Signal) -> None:
    body = some_request(signal).SerializeToString()
    outcomes = set()
    for at in range(len(body)):
        for byte in range(256):
            outcomes.add(fuzz.judge(signal, body[:at] + bytes((byte,)) + body[at + 1 :]))
    assert {"accepted", "pruned", "refused"} <= outcomes <= set(fuzz.OUTCOMES)


@pytest.mark.parametrize("length", [*range(70), 127, 128, 129, 200])
def test_text_is_checked_to_its_last_byte(length: int) -> None:
    """Of any length, also at the very end of the body, and no further."""
    for behind in (b"", inside(b"\xff" * 70, 99)):
        text = b"a" * length
        assert is_accepted(LOGS, inside(inside(text, 3) + behind, 1))
        for at in {0, length // 2, length - 1} & set(range(length)):
            broken = text[:at] + b"\x80" + text[at + 1 :]
            assert not is_accepted(LOGS, inside(inside(broken, 3) + behind, 1))


def log_record(**fields: object) -> tuple[Signal, Message]:
    request: Any = fuzz.CLASSES[LOGS]()
    records = request.resource_logs.add().scope_logs.add().log_records
    records.add(severity_text="before")
    records.add(**fields)
    records.add(severity_text="behind")
    return LOGS, request


def span(**fields: object) -> tuple[Signal, Message]:
    request: Any = fuzz.CLASSES[TRACES]()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(name="before")
    spans.add(**fields)
    spans.add(name="behind")
    return TRACES, request


def point(kind: str, **fields: object) -> tuple[Signal, Message]:
    request: Any = fuzz.CLASSES[METRICS]()
    points = getattr(request.resource_metrics.add().scope_metrics.add().metrics.add(), kind)
    points.data_points.add(flags=1)
    points.data_points.add(**fields)
    points.data_points.add(flags=2)
    return METRICS, request


BAD_EXEMPLARS: dict[str, dict[str, object]] = {
    "time_unix_nano": {"time_unix_nano": HUGE},
    "trace_id": {"trace_id": b"t"},
    "span_id": {"span_id": b"s" * 16},
}
REJECTED = {
    "LogRecord.trace_id": [log_record(trace_id=b"t" * n) for n in (1, 8, 15, 17, 32)],
    "LogRecord.span_id": [log_record(span_id=b"s" * n) for n in (1, 7, 9, 16)],
    "LogRecord.time_unix_nano": [log_record(time_unix_nano=n) for n in (HUGE, 2**64 - 1)],
    "LogRecord.observed_time_unix_nano": [log_record(observed_time_unix_nano=HUGE)],
    "Span.trace_id": [span(trace_id=b"t" * 8)],
    "Span.span_id": [span(span_id=b"s" * 16)],
    "Span.parent_span_id": [span(parent_span_id=b"p" * 16)],
    "Span.start_time_unix_nano": [span(start_time_unix_nano=HUGE)],
    "Span.end_time_unix_nano": [span(end_time_unix_nano=HUGE)],
    "Event.time_unix_nano": [span(events=[{}, {"time_unix_nano": HUGE}])],
    "Link.trace_id": [span(links=[{}, {"trace_id": b"t" * 8}])],
    "Link.span_id": [span(links=[{"span_id": b"s" * 16}, {}])],
    "NumberDataPoint.start_time_unix_nano": [
        point(kind, start_time_unix_nano=HUGE) for kind in ("gauge", "sum")
    ],
    "NumberDataPoint.time_unix_nano": [
        point(kind, time_unix_nano=HUGE) for kind in ("gauge", "sum")
    ],
    "HistogramDataPoint.start_time_unix_nano": [point("histogram", start_time_unix_nano=HUGE)],
    "HistogramDataPoint.time_unix_nano": [point("histogram", time_unix_nano=HUGE)],
    "HistogramDataPoint.count": [point("histogram", count=HUGE)],
    "HistogramDataPoint.bucket_counts": [
        point("histogram", bucket_counts=counts) for counts in ([HUGE], [1, HUGE], [HUGE, 1])
    ],
    "ExponentialHistogramDataPoint.start_time_unix_nano": [
        point("exponential_histogram", start_time_unix_nano=HUGE)
    ],
    "ExponentialHistogramDataPoint.time_unix_nano": [
        point("exponential_histogram", time_unix_nano=HUGE)
    ],
    "ExponentialHistogramDataPoint.count": [point("exponential_histogram", count=HUGE)],
    "ExponentialHistogramDataPoint.zero_count": [point("exponential_histogram", zero_count=HUGE)],
    "Buckets.bucket_counts": [
        point("exponential_histogram", **{side: {"bucket_counts": counts}})
        for side in ("positive", "negative")
        for counts in ([HUGE], [1, 2**64 - 1], [HUGE, 1])
    ],
    "SummaryDataPoint.start_time_unix_nano": [point("summary", start_time_unix_nano=HUGE)],
    "SummaryDataPoint.time_unix_nano": [point("summary", time_unix_nano=HUGE)],
    "SummaryDataPoint.count": [point("summary", count=HUGE)],
    **{
        f"Exemplar.{name}": [
            point(kind, exemplars=[{}, exemplar])
            for kind in ("gauge", "sum", "histogram", "exponential_histogram")
        ]
        for name, exemplar in BAD_EXEMPLARS.items()
    },
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_record_that_cannot_be_stored_is_rejected_alone(name: str) -> None:
    """The reason names the field."""
    for signal, request in REJECTED[name]:
        body = request.SerializeToString()
        scanned = scan(signal, body)
        assert (scanned.record_count, scanned.rejected_count) == (2, 1)
        assert scanned.reason.startswith(f"{name} must ")
        fuzz.filter_objects(signal, request)
        pruned = prune(signal, body)
        assert fuzz.CLASSES[signal].FromString(pruned) == request
        assert scan(signal, pruned) == ScanResult(2, 0, "")


def test_every_rule_has_a_case() -> None:
    """Every id, time and count of a record in the descriptors has one."""
    ruled = set()
    for signal in Signal:
        only_in_records = (
            messages_in(REQUESTS[signal]).keys() - messages_in(REQUESTS[signal], RECORDS).keys()
        )
        for name in only_in_records | RECORDS & messages_in(REQUESTS[signal]).keys():
            message = messages_in(REQUESTS[signal])[name]
            ruled |= {f"{message.name}.{each.name}" for each in message.fields if has_rule(each)}
    assert ruled == set(REJECTED)


def has_rule(each: FieldDescriptor) -> bool:
    is_count = each.type in (FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_UINT64)
    return is_count or each.name in ID_BYTES


def test_merged_messages_have_no_single_fields_with_rules() -> None:
    """The last occurrence of a field wins within one message. That is enough as long as messages
    that protobuf merges have no such fields."""
    for signal in Signal:
        for message in messages_in(REQUESTS[signal]).values():
            for each in message.fields:
                if each.message_type is not None and not each.is_repeated:
                    assert not any(
                        has_rule(inner) and not inner.is_repeated
                        for inner in each.message_type.fields
                    ), each.full_name
                assert each.containing_oneof is None or not has_rule(each), each.full_name


@pytest.mark.parametrize(
    ("signal", "request_of"),
    [
        (LOGS, log_record(trace_id=b"t" * 16, span_id=b"s" * 8, time_unix_nano=HUGE - 1)),
        (LOGS, log_record(trace_id=b"", span_id=b"", observed_time_unix_nano=HUGE - 1)),
        (LOGS, log_record(attributes=[{"key": "a", "value": {"int_value": -1}}])),
        (LOGS, log_record(body={"bytes_value": b"123"})),
        (TRACES, span(links=[{"trace_id": b"t" * 16, "span_id": b"s" * 8}], end_time_unix_nano=0)),
        (METRICS, point("gauge", as_int=-1)),
        (METRICS, point("exponential_histogram", scale=-1, zero_threshold=-0.5)),
        (METRICS, point("histogram", sum=-1.0, explicit_bounds=[-1.0], bucket_counts=[HUGE - 1])),
    ],
)
def test_extreme_values_that_can_be_stored_are_accepted(
    signal: Signal, request_of: tuple[Signal, Message]
) -> None:
    """The largest time, absent ids, and negative numbers where they belong."""
    assert scan(signal, request_of[1].SerializeToString()) == ScanResult(3, 0, "")


TIME_HUGE, TIME_FEW = field(1, 1, HUGE_BYTES), field(1, 1, FEW_BYTES)


@pytest.mark.parametrize(
    ("signal", "body", "is_stored"),
    [
        (LOGS, log(TIME_HUGE + TIME_FEW), True),
        (LOGS, log(TIME_FEW + TIME_HUGE), False),
        (LOGS, log(TIME_HUGE + inside(b"x", 3) + b"\x89\x00" + FEW_BYTES), True),
        (LOGS, log(TIME_HUGE + field(1, 0, b"\x01") + inside(b"", 1)), False),
        (LOGS, log(inside(b"t", 9) + inside(b"t" * 16, 9)), True),
        (LOGS, log(inside(b"t", 9) + inside(b"s" * 8, 10) + inside(b"", 9)), True),
        (LOGS, log(inside(b"t", 9) + inside(b"t" * 16, 9) + inside(b"t", 9)), False),
        (LOGS, log(TIME_HUGE + inside(b"t", 9) + TIME_FEW), False),
        (METRICS, histogram(field(6, 1, HUGE_BYTES) + field(6, 1, FEW_BYTES)), False),
        (METRICS, histogram(inside(HUGE_BYTES, 6) + inside(FEW_BYTES, 6)), False),
        (METRICS, exponential(field(2, 0, VARINT_HUGE) + field(2, 0, b"\x01")), False),
        (METRICS, exponential(field(2, 0, b"\x80" * 9 + b"\x02")), True),
        (
            METRICS,
            metric(inside(inside(field(2, 0, VARINT_HUGE), 8) + inside(b"", 8), 10, 1)),
            False,
        ),
    ],
)
def test_the_last_occurrence_of_a_field_wins(signal: Signal, body: bytes, is_stored: bool) -> None:
    """A record is judged as protobuf presents it: every element of a repeated field counts."""
    assert fuzz.judge(signal, body) == ("accepted" if is_stored else "pruned")
    assert scan(signal, body)[:2] == ((1, 0) if is_stored else (0, 1))


GAUGE, SUM = 5, 7
FINE = inside(b"", 1)
POOR = inside(field(3, 1, HUGE_BYTES), 1)


@pytest.mark.parametrize(
    ("content", "stored", "rejected"),
    [
        (inside(FINE * 2, GAUGE), 2, 0),
        (inside(FINE * 2, GAUGE) + inside(FINE, SUM), 1, 0),
        (inside(FINE * 2, GAUGE) + inside(FINE, GAUGE), 3, 0),
        (inside(FINE, GAUGE) + inside(FINE, SUM) + inside(FINE, GAUGE), 1, 0),
        (inside(FINE, GAUGE) + inside(b"", SUM), 0, 0),
        (inside(FINE, GAUGE) + field(SUM, 0, b"\x01"), 1, 0),
        (inside(FINE + POOR, GAUGE) + inside(FINE, SUM), 1, 0),
        (inside(FINE + POOR, GAUGE) + inside(FINE + POOR * 2, SUM), 1, 2),
        (inside(POOR, SUM) + inside(b"name", 1) + inside(FINE, SUM), 1, 1),
        (inside(POOR * 2, GAUGE) + inside(POOR, SUM) + inside(FINE, GAUGE), 1, 0),
    ],
)
def test_a_later_oneof_member_replaces_an_earlier_one(
    content: bytes, stored: int, rejected: int
) -> None:
    """Points that protobuf hides are neither counted nor rejected."""
    for body in (metric(content), metric(inside(FINE, GAUGE)) + metric(content)):
        more = body != metric(content)
        assert fuzz.judge(METRICS, body) == ("pruned" if rejected else "accepted")
        assert scan(METRICS, body)[:2] == (stored + more, rejected)


def test_the_reason_is_not_that_of_a_replaced_point() -> None:
    hidden = inside(field(2, 1, HUGE_BYTES), 1)
    scanned = scan(METRICS, metric(inside(hidden, GAUGE) + inside(FINE + POOR, SUM)))
    assert scanned.rejected_count == 1
    assert scanned.reason == (
        "NumberDataPoint.time_unix_nano must not be above 2^63-1; it is at byte 25 of the request"
    )


def test_pruning_removes_only_rejected_records() -> None:
    """Unknown fields and padded lengths around them stay."""
    poor, fine = inside(TIME_HUGE, 2), inside(TIME_FEW, 2)
    around = inside(b"kept", 99) + field(2**20, 0, b"\x07")
    scope = around + poor + fine + poor + around
    body = b"\x0a" + varint(len(scope) + 4) + b"\x12" + varint(len(scope), 3) + scope
    assert fuzz.judge(LOGS, body) == "pruned"
    left = around + fine + around
    assert (
        prune(LOGS, body) == b"\x0a" + varint(len(left) + 4) + b"\x12" + varint(len(left), 3) + left
    )


def test_pruning_without_rejected_records_changes_nothing() -> None:
    for signal in Signal:
        body = some_request(signal).SerializeToString()
        assert prune(signal, body) == body


def test_pruning_shrinks_lengths_of_several_bytes_in_place() -> None:
    request: Any = fuzz.CLASSES[LOGS]()
    records = request.resource_logs.add().scope_logs.add().log_records
    for number in range(2000):
        records.add(severity_text="x" * (number % 300), trace_id=b"t" * (16 if number % 7 else 3))
    body = request.SerializeToString()
    assert scan(LOGS, body)[:2] == (1714, 286)
    fuzz.filter_objects(LOGS, request)
    assert fuzz.CLASSES[LOGS].FromString(prune(LOGS, body)) == request


def test_threads_can_scan_concurrently() -> None:
    """The scanner has no state and releases the GIL."""
    bodies = [log(b"") * count for count in range(1, 200)]
    with ThreadPoolExecutor(4) as pool:
        counts = [scanned.record_count for scanned in pool.map(lambda b: scan(LOGS, b), bodies)]
    assert counts == list(range(1, 200))


def test_the_scanner_runs_without_a_writable_cache() -> None:
    """Each process then compiles it."""
    importing = "from frazil.ingest.otlp.scan_walk import walk; print(walk.stats.cache_path)"
    nowhere = os.environ | {"NUMBA_CACHE_LOCATOR_CLASSES": "IPythonCacheLocator"}
    done = subprocess.run(
        [sys.executable, "-c", importing], env=nowhere, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


@st.composite
def messages(draw: st.DrawFn, descriptor: Descriptor, depth: int = 0) -> Any:
    """Return a strategy for messages of this kind, as dicts."""
    made = {}
    for each in descriptor.fields:
        is_wanted = draw(st.integers(0, 3 if depth < 8 else 12)) == 0
        if not (is_wanted or leads_to_records(each)):
            continue
        value = (
            messages(each.message_type, depth + 1)
            if each.message_type is not None
            else scalars(each)
        )
        made[each.name] = draw(st.lists(value, max_size=2) if each.is_repeated else value)
        if each.containing_oneof is not None:
            for other in each.containing_oneof.fields:
                if other.name != each.name:
                    made.pop(other.name, None)
    return made


def leads_to_records(each: FieldDescriptor) -> bool:
    inner = each.message_type
    return inner is not None and bool(RECORDS & messages_in(inner).keys())


def scalars(each: FieldDescriptor) -> st.SearchStrategy[object]:
    if each.type == FieldDescriptor.TYPE_BYTES:
        return st.sampled_from([b"", b"i" * 8, b"i" * 16]) | st.binary(max_size=20)
    if each.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return st.text(max_size=80)
    if each.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return st.floats()
    if each.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return st.booleans()
    if each.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return st.integers(0, HUGE - 1) | st.integers(0, 2**64 - 1)
    if each.cpp_type == FieldDescriptor.CPPTYPE_INT64:
        return st.integers(-(2**63), 2**63 - 1)
    if each.cpp_type == FieldDescriptor.CPPTYPE_UINT32:
        return st.integers(0, 2**32 - 1)
    return st.integers(0, 2**31 - 1)


unknown_fields = st.sampled_from(
    [b"", field(99, 0, b"\x01"), field(2**28, 1, b"\xff" * 8), inside(b"\xff", 77)]
)
bodies = st.sampled_from(Signal).flatmap(
    lambda signal: st.tuples(st.just(signal), messages(REQUESTS[signal]), unknown_fields)
)


@settings(max_examples=150)
@given(bodies)
def test_any_valid_request_is_accepted_counted_and_pruned(made: tuple[Signal, Any, bytes]) -> None:
    signal, content, unknown = made
    body = fuzz.CLASSES[signal](**content).SerializeToString() + unknown
    assert fuzz.judge(signal, body) in ("accepted", "pruned")


@settings(max_examples=150)
@given(
    bodies,
    st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 4), st.binary(max_size=4))
    ),
)
def test_any_mutated_request_agrees_with_protobuf(
    made: tuple[Signal, Any, bytes], bends: list[tuple[float, int, bytes]]
) -> None:
    signal, content, unknown = made
    body = fuzz.CLASSES[signal](**content).SerializeToString() + unknown
    for where, count, piece in bends:
        at = int(where * len(body))
        body = body[:at] + piece + body[at + count :]
    assert fuzz.judge(signal, body) in fuzz.OUTCOMES


@settings(max_examples=300)
@given(st.sampled_from(Signal), st.binary(max_size=40))
def test_any_bytes_agree_with_protobuf(signal: Signal, body: bytes) -> None:
    assert fuzz.judge(signal, body) in fuzz.OUTCOMES


def test_the_fuzzer_finds_no_difference() -> None:
    """A short run of `python -m tests.fuzz --kind wire`. Enough mutated bodies are still accepted
    to be meaningful."""
    result: dict[str, Any] = fuzz.run(4000, seed=4)
    assert result["disagreements"] == []
    assert result["accepted"] + result["pruned"] > 2000
    assert min(result[outcome] for outcome in fuzz.OUTCOMES) > 20
