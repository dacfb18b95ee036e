"""What is cut or rejected by limits is what protobuf's own objects say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.ingest.otlp.limits import RecordLimits
from frazil.ingest.otlp.scan import scan
from frazil.model import Signal
from frazil.settings import LimitsConfig
from tests.fuzz.wire import CLASSES
from tests.ingest.otlp.some_requests import requests

COUNT_MAX, KEY_MAX, VALUE_MAX, BODY_MAX = 2, 64, 70, 100
LIMITS = {
    "attributes_max": COUNT_MAX,
    "key_bytes_max": KEY_MAX,
    "value_bytes_max": VALUE_MAX,
    "log_body_bytes_max": BODY_MAX,
}


def cut(text: str, limit: int) -> str:
    return text.encode()[:limit].decode(errors="ignore")


def trim_value(value: Any, limit: int = VALUE_MAX) -> None:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        value.string_value = cut(value.string_value, limit)
    elif kind == "bytes_value":
        value.bytes_value = value.bytes_value[:limit]
    elif kind == "array_value":
        for item in value.array_value.values:
            trim_value(item)
    elif kind == "kvlist_value":
        trim_pairs(value.kvlist_value.values)


def trim_pairs(pairs: Any) -> None:
    for pair in pairs:
        pair.key = cut(pair.key, KEY_MAX)
        if pair.HasField("value"):
            trim_value(pair.value)


def trim_attributes(message: Any, name: str = "attributes") -> None:
    pairs = getattr(message, name)
    excess = max(0, len(pairs) - COUNT_MAX)
    del pairs[COUNT_MAX:]
    if excess and "dropped_attributes_count" in message.DESCRIPTOR.fields_by_name:
        message.dropped_attributes_count = min(2**32 - 1, message.dropped_attributes_count + excess)
    trim_pairs(pairs)


def trim_body(body: Any) -> None:
    kind = body.WhichOneof("value")
    if kind in ("array_value", "kvlist_value"):
        members = getattr(body, kind).values
        room = BODY_MAX
        for index, member in enumerate(members):
            size = member.ByteSize()
            room -= size + (2 if size < 128 else 3)
            if room < 0:
                del members[index:]
                break
    trim_value(body, BODY_MAX)


def records_of(signal: Signal, scope: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each list of records, and the metric around it if there is one."""
    if signal is Signal.LOGS:
        yield scope.log_records, None
    elif signal is Signal.TRACES:
        yield scope.spans, None
    else:
        for metric in scope.metrics:
            yield getattr(metric, metric.WhichOneof("data")).data_points, metric


def trim_record(record: Any) -> None:
    trim_attributes(record)
    if "body" in record.DESCRIPTOR.fields_by_name and record.HasField("body"):
        trim_body(record.body)
    for name in ("events", "links"):
        for inner in getattr(record, name, ()):
            trim_attributes(inner)
    for exemplar in getattr(record, "exemplars", ()):
        trim_attributes(exemplar, "filtered_attributes")


def is_over(message: Any, trimmed: Any) -> bool:
    copy = type(message).FromString(message.SerializeToString())
    trimmed(copy)
    return bool(copy != message)


def expected(signal: Signal, body: bytes, *, is_strict: bool) -> Any:
    request: Any = CLASSES[signal].FromString(body)
    for resource in getattr(request, request.DESCRIPTOR.fields[0].name):
        is_bad = is_over(resource.resource, trim_attributes)
        for scope in getattr(resource, resource.DESCRIPTOR.fields[1].name):
            is_scope_bad = is_bad or is_over(scope.scope, trim_attributes)
            for records, metric in records_of(signal, scope):
                is_doomed = is_scope_bad
                if metric is not None:
                    is_doomed |= is_over(metric, lambda each: trim_attributes(each, "metadata"))
                if is_strict or metric is not None:
                    good = [
                        record
                        for record in records
                        if not (is_strict and is_doomed) and not is_over(record, trim_record)
                    ]
                    del records[:]
                    records.extend(good)
                if not is_strict:
                    for record in records:
                        trim_record(record)
                    if metric is not None:
                        trim_attributes(metric, "metadata")
            if not is_strict and scope.HasField("scope"):
                trim_attributes(scope.scope)
        if not is_strict and resource.HasField("resource"):
            trim_attributes(resource.resource)
    return request


@pytest.mark.parametrize("when", ["truncate", "reject"])
@pytest.mark.parametrize("signal", list(Signal))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_request_is_limited_as_protobuf_objects_are(
    signal: Signal, when: Any, data: st.DataObject
) -> None:
    body = data.draw(requests(signal)).SerializeToString()
    limits = RecordLimits(LimitsConfig(when_exceeded=when, **LIMITS))
    before = scan(signal, body, limits.large)
    limited = limits.enforce(signal, body, before.record_count)
    wanted = expected(signal, body, is_strict=when == "reject")
    assert CLASSES[signal].FromString(limited.body) == wanted
    assert scan(signal, limited.body).record_count == limited.record_count
    assert limited.rejected_count == before.record_count - limited.record_count
    assert len(limited.body) <= len(body)
    is_changed = wanted != CLASSES[signal].FromString(body)
    assert is_changed == (limited.message != "")
    assert before.has_large or not is_changed, "the scanner must notice"
    if not is_changed:
        assert limited.body == body


def test_a_count_of_dropped_attributes_does_not_overflow() -> None:
    request: Any = CLASSES[Signal.LOGS]()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.dropped_attributes_count = 2**32 - 1
    for _ in range(COUNT_MAX + 300):
        record.attributes.add()
    body = request.SerializeToString()
    limited = RecordLimits(LimitsConfig(**LIMITS)).enforce(Signal.LOGS, body, 1)  # type: ignore[arg-type]
    assert limited.cut == {"attributes_max": 300}
    stored: Any = CLASSES[Signal.LOGS].FromString(limited.body)
    (kept,) = stored.resource_logs[0].scope_logs[0].log_records
    assert (len(kept.attributes), kept.dropped_attributes_count) == (COUNT_MAX, 2**32 - 1)


def test_limits_that_are_off_change_nothing() -> None:
    off = RecordLimits(LimitsConfig(**dict.fromkeys(LIMITS, 0)))  # type: ignore[arg-type]
    request: Any = CLASSES[Signal.LOGS]()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.body.string_value = "x" * 3_000_000
    for _ in range(5000):
        record.attributes.add(key="k" * 100)
    body = request.SerializeToString()
    assert not scan(Signal.LOGS, body, off.large).has_large
    assert off.enforce(Signal.LOGS, body, 1).body == body
