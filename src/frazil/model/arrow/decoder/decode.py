"""decode: OTLP requests become rows of Arrow, many requests per call.

1. `walk` finds every value in the bytes, once.
2. Requests that are none, and records that can never be rows, are set aside.
3. The columns are laid out, from what is said of each record, of its scope and of its resource.

What is compiled works without the GIL, and is kept on disk for the next process. What comes out
is what protobuf presents: the last number counts, messages merge, of a choice the last one made
counts. The rules for values are on the page docs/schemas.md.

    decode_fields     the fields of OTLP; decode_table: the table that steers the walk
    decode_walk       the walk over the bytes, which decode_read reads, to the decode_heap
    decode_requests   requests walked, and what is wrong with them
    decode_sort, _numbers, _text   attributes in order, and their values as text
    decode_types      what values were before they became text
    decode_lay        the buffers of Arrow
    decode_arrays     arrays around them
    decode_columns    columns of any level; those of the tables: _common, _logs, _spans, _metrics
    decode_memory     raw memory, and the compiler
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.model.arrow.decoder.arena import BAD, METRICS, PARENT, RECORDS, RESOURCES, SCOPES
from frazil.model.arrow.decoder.arrays import array_of
from frazil.model.arrow.decoder.columns import Arena, NodeLevel, types_column
from frazil.model.arrow.decoder.common import resource_columns, scope_columns
from frazil.model.arrow.decoder.dispatch import SLOTS
from frazil.model.arrow.decoder.logs import log_columns
from frazil.model.arrow.decoder.metrics import metric_columns
from frazil.model.arrow.decoder.requests import WalkedRequests, dead_request, walk_requests
from frazil.model.arrow.decoder.spans import span_columns
from frazil.model.arrow.schemas import INT, LONG, NUMBERED_TABLES, TABLES, TIME
from frazil.model.arrow.types import Decoded, ExportRequest
from frazil.model.protobuf.memory import Words
from frazil.model.signal import Signal

"""Signal -> the table its records are rows of."""
TIMES = {
    "logs": ("time_unix_nano", "observed_time_unix_nano"),
    "traces": ("start_time_unix_nano",),
    "metrics": ("time_unix_nano",),
}
"""Event time, and what else is a record's time when that was not sent."""
WARM_RESOURCE = b"\x0a\x06\x0a\x04\x12\x02\x18\x01"
WARM_BODIES = {
    "logs": b"\x0a\x0c" + WARM_RESOURCE + b"\x12\x02\x12\x00",
    "traces": b"\x0a\x0c" + WARM_RESOURCE + b"\x12\x02\x12\x00",
    "metrics": b"\x0a\x10" + WARM_RESOURCE + b"\x12\x06\x12\x04\x2a\x02\x0a\x00",
}
"""An empty record below a resource with a number: everything that is compiled is needed for it."""
RECORD_SLOTS = {
    "logs": SLOTS["log_record"],
    "traces": SLOTS["span"],
    "metrics": SLOTS["number_point"],
}
CELL_BYTES = 8
"""What a row takes in each column, about, besides what is in its texts and lists."""
US_PER_MS = 1000
NS_PER_US = 1000
MS_MAX = (2**63 - 1) // US_PER_MS


def decode(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
    """The rows of requests of one signal: "logs", "traces" or "metrics".

    Whatever is in a request, its neighbours live: one that is none, or whose rows are too large,
    is a dead letter, and so is a record that can never be a row. `TooLarge` when it is not one
    request but several together that are too large: call again with fewer.
    """
    return _decode(signal, requests, TABLES, is_numbered=False)


def decode_numbered(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
    """The same rows and dead letters. Of texts that a request says once for many rows there is one,
    and numbers stand for it, as `NUMBERED_TABLES` have them."""
    return _decode(signal, requests, NUMBERED_TABLES, is_numbered=True)


def warm() -> None:
    """Compile what is compiled, or load it from disk, so that no request waits for that."""
    for signal, body in WARM_BODIES.items():
        requests = [ExportRequest(partition=0, offset=0, ingest_time_ms=0, body=body)]
        decode(signal, requests)
        decode_numbered(signal, requests)


def _decode(
    signal: str,
    requests: Sequence[ExportRequest],
    schemas: Mapping[str, pa.Schema],
    *,
    is_numbered: bool,
) -> Decoded:
    schema = schemas[Signal(signal).table]
    try:
        return _rows_of(signal, requests, schema, is_numbered=is_numbered)
    except TooLarge as error:
        if len(requests) > 1:
            raise
        dead = [dead_request(request, str(error)) for request in requests]
        return Decoded(batch=pa.RecordBatch.from_pylist([], schema), dead=dead)


def _rows_of(
    signal: str, requests: Sequence[ExportRequest], schema: pa.Schema, *, is_numbered: bool
) -> Decoded:
    walked = walk_requests(signal, requests)
    records = walked.level(RECORDS)
    # Of each record: the number of its request, and its place there.
    counts = walked.record_counts()
    numbers = np.repeat(np.arange(len(requests)), counts)
    rows = np.arange(len(records)) - np.repeat(np.cumsum(counts) - counts, counts)
    dead = list(walked.dead_requests())
    is_bad = walked.heap[records + BAD] != 0
    if is_bad.any():
        dead += walked.dead_records(records[is_bad], numbers[is_bad], rows[is_bad])
        dead.sort(key=lambda numbered: numbered[0])
        records, numbers, rows = records[~is_bad], numbers[~is_bad], rows[~is_bad]
    heap = Arena(walked.heap, walked.list_max, walked.text_room, is_numbered=is_numbered)
    heap.spend(len(records) * len(schema) * CELL_BYTES)
    level = NodeLevel(heap, RECORD_SLOTS[signal], records)
    columns = {
        **_place_columns(requests, numbers, rows),
        **_time_columns(level, TIMES[signal], requests, numbers),
        **_telemetry_columns(signal, walked, level),
    }
    batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    letters = [letter for _, letter in dead]
    return Decoded(batch=batch, dead=letters, saved_bytes=heap.saved_bytes)


def _place_columns(
    requests: Sequence[ExportRequest], numbers: Words, rows: Words
) -> dict[str, pa.Array]:
    """Where in the log each row comes from."""
    partitions = np.array([request.partition for request in requests], np.int32)
    offsets = np.array([request.offset for request in requests], np.int64)
    return {
        "_log_partition": array_of(INT, partitions[numbers]),
        "_offset": array_of(LONG, offsets[numbers]),
        "_row": array_of(INT, rows.astype(np.int32)),
    }


def _time_columns(
    records: NodeLevel, places: tuple[str, ...], requests: Sequence[ExportRequest], numbers: Words
) -> dict[str, pa.Array]:
    """When each record happened, as far as is known."""
    ingested_ms = np.array([request.ingest_time_ms for request in requests], np.int64)
    ingested = (np.clip(ingested_ms, -MS_MAX, MS_MAX) * US_PER_MS)[numbers]
    event, *others = (records.words(place) for place in places)
    known = event
    for other in others:
        known = np.where(known != 0, known, other)
    return {
        "time": array_of(TIME, np.where(known != 0, known // NS_PER_US, ingested)),
        "time_unix_nano": array_of(LONG, event),
        "ingest_time": array_of(TIME, ingested),
    }


def _telemetry_columns(
    signal: str, walked: WalkedRequests, records: NodeLevel
) -> dict[str, pa.Array]:
    """What the records say, and what is said once for many of them."""
    if signal == "metrics":
        metrics = _above(walked, METRICS, SLOTS["metric"], records)
        columns = metric_columns(records, metrics)
        scopes = _above(walked, SCOPES, SLOTS["scope_metrics"], metrics)
        levels = [metrics, records]
    else:
        columns = log_columns(records) if signal == "logs" else span_columns(records)
        scopes = _above(walked, SCOPES, SLOTS["scope_logs"], records)
        levels = [records]
    resources = _above(walked, RESOURCES, SLOTS["resource_logs"], scopes)
    columns |= {**scope_columns(scopes), **resource_columns(resources)}
    return {**columns, "_value_types": types_column([resources, scopes, *levels])}


def _above(
    walked: WalkedRequests, level: int, slots: Mapping[str, int], below: NodeLevel
) -> NodeLevel:
    """The level above another one: those of its nodes that have rows, and how many."""
    nodes = walked.level(level)
    parents = walked.heap[below.nodes + PARENT]
    counts = np.bincount(parents, below.repeats, len(nodes)).astype(np.int64)
    has_rows = counts != 0
    return NodeLevel(below.heap, slots, nodes[has_rows], counts[has_rows])
