"""The encoder, there and back: requests become rows, rows become requests, and nothing is lost but
what `normal` says.

1. The rows of the requests that come back are the rows of those that went in.
2. Record for record, what comes back is what went in, in the form that `normal` gives it.

Requests are those of the decoder's fuzzer, without the damaged ones: what is no row does not come
back.
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
"""Of the requests of one call."""
EXAMPLES_MAX = 5
EXAMPLE_LENGTH = 5000
WILDNESS = (0.0, 0.1, 0.4)
INGEST_TIME_MS = 1_700_000_000_000
PLACE = ("_log_partition", "_offset", "_row")
"""Columns that say where in the log a row comes from, which is another place by then."""
STORABLE = {"logs": is_log_record, "traces": is_span}


def run(count: int, seed: int) -> dict[str, object]:
    """Send `count` requests of each signal there and back. Same seed, same requests."""
    total: dict[str, Any] = {"disagreements": []}
    for signal in Signal:
        found = fuzz_signal(signal.value, count, Random(seed))
        total["disagreements"] += found.pop("disagreements")
        total[signal.value] = found
    return total


def fuzz_signal(signal: str, count: int, rand: Random) -> dict[str, Any]:
    """What went there and back, and where it is not the same."""
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
    """The requests of each call."""
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
    """Which of the requests is at fault, and what is wrong with it."""
    found = []
    for body in bodies:
        wrong = there_and_back(signal, [body])[2]
        found += [f"{signal} {body.hex()}: {each}"[:EXAMPLE_LENGTH] for each in wrong]
    return found or [f"{signal}: only together {b''.join(bodies).hex()}"[:EXAMPLE_LENGTH]]


def there_and_back(
    signal: str, bodies: list[bytes], *, has_groups: bool = False
) -> tuple[int, int, list[str]]:
    """How many rows there were, how many requests came back, and what is not the same. It takes
    time to look for groups, which most requests have not."""
    rows = rows_of(signal, bodies)
    back = list(encode(signal, rows))
    wrong = row_differences(rows, rows_of(signal, back))
    messages = [parsed(signal, body, has_groups) for body in bodies]
    wanted = [each for message in messages for each in records_of(signal, message)]
    messages = [parsed(signal, body, has_groups=False) for body in back]
    found = [each for message in messages for each in records_of(signal, message, _bytes)]
    if len(wanted) != len(found):
        wrong.append(f"{len(found)} records should be {len(wanted)}")
    pairs = zip(found, wanted, strict=False)
    wrong += [f"{one} should be {other}" for one, other in pairs if one != other]
    return rows.num_rows, len(back), wrong


def rows_of(signal: str, bodies: Iterable[bytes]) -> pa.RecordBatch:
    """Rows of requests that came at the same time."""
    requests = [
        ExportRequest(partition=0, offset=number, ingest_time_ms=INGEST_TIME_MS, body=body)
        for number, body in enumerate(bodies)
    ]
    return decode(signal, requests).batch


def row_differences(rows: pa.RecordBatch, others: pa.RecordBatch) -> list[str]:
    """Where rows differ in more than their place, bit for bit."""
    if rows.num_rows != others.num_rows:
        return [f"{others.num_rows} rows should be {rows.num_rows}"]
    return [
        f"{name}: {others.column(name).to_pylist()} should be {rows.column(name).to_pylist()}"
        for name in rows.schema.names
        if name not in PLACE and not is_same(rows.column(name), others.column(name))
    ]


# What is in a request, record by record.

Lines = tuple[bytes, ...]
"""A record, and the messages above it, without what they are about."""


def _bytes(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _normal_bytes(message: Any) -> bytes:
    return _bytes(normal(message))


def records_of(
    signal: str, message: Any | None, form: Callable[[Any], bytes] = _normal_bytes
) -> list[Lines]:
    """Every record of a request that can be a row, with what is said of it, in the normal form or
    another; none if it is no request."""
    return [] if message is None else list(_records(signal, message, form))


def _records(signal: str, message: Any, form: Callable[[Any], bytes]) -> Iterator[Lines]:
    """Resource, scope, perhaps metric, and record, for each record."""
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
    """A copy without the messages of a field."""
    copy = type(message)()
    copy.MergeFrom(message)
    copy.ClearField(field)
    return copy


def normal(message: Any) -> Any:
    """A copy in the form in which messages come back. This is all that is lost:

    attributes        their order, and of equal keys all but the last
    KeyValue          whether it had no value, or one that is empty
    AnyValue          of NaN, which one; an index into a table of strings, which OTLP has not
    dropped counts    above 2^31-1
    entity_refs       of a resource
    status            whether it was there, if there is nothing in it
    unknown fields    all of them

    and, before this is called, as records are looked at one by one: how they were grouped; whether
    a resource or a scope was there, if there is nothing in it; and what has no records.
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
    found = {each.key: each for each in attributes}
    kept = [found[key] for key in sorted(found, key=str.encode)]
    for each in kept:
        _normalise(each)
        each.value.SetInParent()
    copies = [each.SerializeToString() for each in kept]
    del attributes[:]
    for copy in copies:
        attributes.add().MergeFromString(copy)
