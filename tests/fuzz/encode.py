"""Round trips: requests are decoded to rows and encoded again. Only what `normal` lists is lost.

1. Decoding the encoded requests gives the same rows.
2. Each encoded record equals the original record after `normal`.

Requests are those of the decoder's fuzzer without damage: a dead letter does not come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pyarrow as pa

from frazil.model import Signal
from frazil.model.arrow.decoder.decode import decode
from frazil.model.arrow.encoder.encode import encode
from frazil.model.arrow.types import ExportRequest
from tests.fuzz.wire import POINTS, is_log_record, is_span
from tests.model.arrow.decoder.reference import INT32_MAX, is_same, parsed
from tests.model.arrow.requests import Writer

CALL_BYTES = 60_000
"""Maximum bytes of the requests of one call."""
EXAMPLES_MAX = 5
EXAMPLE_LENGTH = 5000
WILDNESS = (0.0, 0.1, 0.4)
INGEST_TIME_MS = 1_700_000_000_000
POSITION_COLUMNS = ("_log_partition", "_offset", "_row")
"""The position of a row in the log, which differs after a round trip."""
STORABLE = {"logs": is_log_record, "traces": is_span}


def run(count: int, seed: int) -> dict[str, object]:
    """Round-trip `count` requests of each signal. Same seed, same requests."""
    total: dict[str, Any] = {"disagreements": []}
    for signal in Signal:
        found = fuzz_signal(signal.value, count, Random(seed))
        total["disagreements"] += found.pop("disagreements")
        total[signal.value] = found
    return total


def fuzz_signal(signal: str, count: int, rand: Random) -> dict[str, Any]:
    """Return counts, and the requests that do not survive a round trip."""
    totals = {"requests": 0, "rows": 0, "requests_back": 0}
    disagreements: list[str] = []
    for bodies in calls(signal, count, rand):
        rows, back, wrong = there_and_back(signal, bodies)
        if wrong:
            disagreements += explain(signal, bodies)
        totals["requests"] += len(bodies)
        totals["rows"] += rows
        totals["requests_back"] += back
    return {**totals, "disagreements": disagreements[:EXAMPLES_MAX]}


def calls(signal: str, count: int, rand: Random) -> Iterator[list[bytes]]:
    """Yield the requests of each call."""
    writer = Writer(rand, wildness=rand.choice(WILDNESS))
    written: list[bytes] = []
    size = 0
    for _ in range(count):
        body = writer.request(signal)
        if written and size + len(body) > CALL_BYTES:
            yield written
            written, size = [], 0
            if rand.random() < 0.1:
                writer = Writer(rand, wildness=rand.choice(WILDNESS))
        written.append(body)
        size += len(body)
    yield written


def explain(signal: str, bodies: list[bytes]) -> list[str]:
    """Return the requests that differ after a round trip alone, and how."""
    found = []
    for body in bodies:
        wrong = there_and_back(signal, [body])[2]
        found += [f"{signal} {body.hex()}: {each}"[:EXAMPLE_LENGTH] for each in wrong]
    return found or [f"{signal}: only together: {b''.join(bodies).hex()}"[:EXAMPLE_LENGTH]]


def there_and_back(
    signal: str, bodies: list[bytes], *, has_groups: bool = False
) -> tuple[int, int, list[str]]:
    """Return the number of rows, the number of encoded requests, and the differences.

    Looking for groups takes time; set `has_groups` only if there may be some.
    """
    rows = rows_of(signal, bodies)
    back = list(encode(signal, rows))
    wrong = row_differences(rows, rows_of(signal, back))
    messages = [parsed(signal, body, has_groups) for body in bodies]
    expected = [record for message in messages for record in records_of(signal, message)]
    messages = [parsed(signal, body, has_groups=False) for body in back]
    found = [record for message in messages for record in records_of(signal, message, _bytes)]
    if len(expected) != len(found):
        wrong.append(f"{len(found)} records should be {len(expected)}")
    pairs = zip(found, expected, strict=False)
    wrong += [f"{one} should be {other}" for one, other in pairs if one != other]
    return rows.num_rows, len(back), wrong


def rows_of(signal: str, bodies: Iterable[bytes]) -> pa.RecordBatch:
    """Decode requests with the same ingest time."""
    requests = [
        ExportRequest(partition=0, offset=number, ingest_time_ms=INGEST_TIME_MS, body=body)
        for number, body in enumerate(bodies)
    ]
    return decode(signal, requests).batch


def row_differences(rows: pa.RecordBatch, others: pa.RecordBatch) -> list[str]:
    """Return the columns that differ, apart from positions, bit for bit."""
    if rows.num_rows != others.num_rows:
        return [f"{others.num_rows} rows should be {rows.num_rows}"]
    return [
        f"{name}: {others.column(name).to_pylist()} should be {rows.column(name).to_pylist()}"
        for name in rows.schema.names
        if name not in POSITION_COLUMNS and not is_same(rows.column(name), others.column(name))
    ]


# Records of a request.

Lines = tuple[bytes, ...]
"""A record and its enclosing messages, each without its children."""


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _normal_bytes(message: Any) -> bytes:
    return _bytes(normal(message))


def records_of(
    signal: str, message: Any | None, form: Callable[[Any], bytes] = _normal_bytes
) -> list[Lines]:
    """Return every storable record of a request with its enclosing messages, serialized by `form`.

    Without a message there are none.
    """
    return [] if message is None else list(_records(signal, message, form))


def _records(signal: str, message: Any, form: Callable[[Any], bytes]) -> Iterator[Lines]:
    """Yield resource, scope, metric if any, and record, for each record."""
    kind = {"logs": "logs", "traces": "spans", "metrics": "metrics"}[signal]
    for outer in getattr(message, f"resource_{kind}"):
        resource = bare(outer, f"scope_{kind}")
        resource.resource.SetInParent()
        above = form(resource)
        for inner in getattr(outer, f"scope_{kind}"):
            name = {"logs": "log_records"}.get(signal, kind)
            scope = bare(inner, name)
            scope.scope.SetInParent()
            beside = form(scope)
            for lines in _scope_records(signal, getattr(inner, name), form):
                yield above, beside, *lines


def _scope_records(signal: str, records: Any, form: Callable[[Any], bytes]) -> Iterator[Lines]:
    for record in records:
        if signal != "metrics":
            if STORABLE[signal](record):
                yield (form(record),)
            continue
        kind = record.WhichOneof("data")
        if kind is not None:
            metric = bare(record, kind)
            data = bare(getattr(record, kind), "data_points")
            above = form(metric), kind.encode(), form(data)
            for point in getattr(record, kind).data_points:
                if POINTS[kind](point):
                    yield *above, form(point)


def bare(message: Any, field: str) -> Any:
    """Return a copy without a field."""
    copy = type(message)()
    copy.MergeFrom(message)
    copy.ClearField(field)
    return copy


def normal(message: Any) -> Any:
    """Return a copy in the form that a round trip gives. This is all that is lost:

    attributes        their order, and all but the last of equal keys
    KeyValue          whether its value is missing or empty
    AnyValue          the payload of a NaN; indexes into string tables, which OTLP does not have
    dropped counts    values above 2^31-1
    entity_refs       of a resource
    status            whether an empty one is present
    unknown fields    all of them

    Comparing records one by one also ignores how they were grouped, whether an empty resource or
    scope is present, and groups without records.
    """
    copy = type(message)()
    copy.MergeFrom(message)
    copy.DiscardUnknownFields()
    _normalise(copy)
    return copy


def _normalise(message: Any) -> None:
    for field, value in message.ListFields():
        inner = field.message_type
        if field.name in ("entity_refs", "string_value_strindex", "key_strindex"):
            message.ClearField(field.name)
        elif inner is None:
            if field.name.startswith("dropped_"):
                setattr(message, field.name, min(value, INT32_MAX))
            elif field.name == "double_value" and math.isnan(value):
                message.double_value = math.nan
        elif inner.name == "KeyValue":
            _normalise_attributes(value)
        elif field.is_repeated:
            for each in value:
                _normalise(each)
        else:
            _normalise(value)
    if message.DESCRIPTOR.name == "Span" and not message.status.ByteSize():
        message.ClearField("status")


def _normalise_attributes(attributes: Any) -> None:
    last = {attribute.key: attribute for attribute in attributes}
    kept = [last[key] for key in sorted(last, key=str.encode)]
    for attribute in kept:
        _normalise(attribute)
        attribute.value.SetInParent()
    copies = [attribute.SerializeToString() for attribute in kept]
    del attributes[:]
    for copy in copies:
        attributes.add().MergeFromString(copy)
