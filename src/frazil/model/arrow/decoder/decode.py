"""decode: OTLP requests to Arrow rows, many requests per call.

1. `walk` finds every value in the bytes, once.
2. Invalid requests and records become dead letters.
3. Columns are built from records, scopes and resources.

Compiled code runs without the GIL and is cached on disk. The result follows protobuf's semantics:
the last number wins, messages merge, the last field of a oneof wins. The rules for values are in
docs/schemas.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.metrics import Counter
from frazil.model.arrow.decoder.arena import BAD, METRICS, PARENT, RECORDS, RESOURCES, SCOPES
from frazil.model.arrow.decoder.arrays import array_of
from frazil.model.arrow.decoder.columns import Arena, NodeLevel, types_column
from frazil.model.arrow.decoder.common import resource_columns, scope_columns
from frazil.model.arrow.decoder.dispatch import SLOTS
from frazil.model.arrow.decoder.logs import log_columns
from frazil.model.arrow.decoder.metrics import metric_columns
from frazil.model.arrow.decoder.requests import WalkedRequests, dead_request, walk_requests
from frazil.model.arrow.decoder.spans import span_columns
from frazil.model.arrow.promoted import table_with
from frazil.model.arrow.schemas import INT, LONG, TIME
from frazil.model.arrow.types import Decoded, ExportRequest
from frazil.model.promotion import NO_PROMOTIONS, PromotedColumn, Promotions
from frazil.model.protobuf.memory import Words
from frazil.model.signal import Signal

TIMES = {
    "logs": ("time_unix_nano", "observed_time_unix_nano"),
    "traces": ("start_time_unix_nano",),
    "metrics": ("time_unix_nano",),
}
"""Event time, and the fallback if it was not sent."""
WARM_RESOURCE = b"\x0a\x06\x0a\x04\x12\x02\x18\x01"
WARM_BODIES = {
    "logs": b"\x0a\x0c" + WARM_RESOURCE + b"\x12\x02\x12\x00",
    "traces": b"\x0a\x0c" + WARM_RESOURCE + b"\x12\x02\x12\x00",
    "metrics": b"\x0a\x10" + WARM_RESOURCE + b"\x12\x06\x12\x04\x2a\x02\x0a\x00",
}
"""An empty record below a resource with a number: it uses everything that is compiled."""
RECORD_SLOTS = {
    "logs": SLOTS["log_record"],
    "traces": SLOTS["span"],
    "metrics": SLOTS["number_point"],
}
OVERSIZED = Counter(
    "frazil.model.oversized.requests", "Requests whose rows would be too large: dead letters."
)

CELL_BYTES = 8
"""Approximate bytes of a row per column, without texts and lists."""
US_PER_MS = 1000
NS_PER_US = 1000
MS_MAX = (2**63 - 1) // US_PER_MS


def decode(
    signal: str, requests: Sequence[ExportRequest], promotions: Promotions = NO_PROMOTIONS
) -> Decoded:
    """Decode requests of one signal: "logs", "traces" or "metrics".

    An invalid request or one with too many rows becomes a dead letter, and so does an invalid
    record; others are not affected. Raises `TooLarge` if several requests are too large together:
    call again with fewer.
    """
    return _decode(signal, requests, promotions, use_dictionaries=False)


def decode_dictionary(
    signal: str, requests: Sequence[ExportRequest], promotions: Promotions = NO_PROMOTIONS
) -> Decoded:
    """Decode to the same rows, with texts that many rows share dictionary-encoded as in
    `DICTIONARY_TABLES`."""
    return _decode(signal, requests, promotions, use_dictionaries=True)


def warm() -> None:
    """Compile, or load from the disk cache, so that no request waits for it."""
    for signal, body in WARM_BODIES.items():
        requests = [ExportRequest(partition=0, offset=0, ingest_time_ms=0, body=body)]
        decode(signal, requests)
        decode_dictionary(signal, requests)


def _decode(
    signal: str,
    requests: Sequence[ExportRequest],
    promotions: Promotions,
    *,
    use_dictionaries: bool,
) -> Decoded:
    table = Signal(signal).table
    columns = promotions.get(table, ())
    schema = table_with(table, columns, use_dictionaries=use_dictionaries)
    try:
        return _rows_of(signal, requests, columns, schema, use_dictionaries=use_dictionaries)
    except TooLarge as error:
        if len(requests) > 1:
            raise
        OVERSIZED.add(signal=signal)
        dead = [dead_request(request, str(error)) for request in requests]
        return Decoded(batch=pa.RecordBatch.from_pylist([], schema), dead=dead)


def _rows_of(
    signal: str,
    requests: Sequence[ExportRequest],
    promoted: tuple[PromotedColumn, ...],
    schema: pa.Schema,
    *,
    use_dictionaries: bool,
) -> Decoded:
    walked = walk_requests(signal, requests)
    records = walked.level(RECORDS)
    # Per record: the number of its request, and its index there.
    counts = walked.record_counts()
    numbers = np.repeat(np.arange(len(requests)), counts)
    rows = np.arange(len(records)) - np.repeat(np.cumsum(counts) - counts, counts)
    dead = list(walked.dead_requests())
    is_bad = walked.arena[records + BAD] != 0
    if is_bad.any():
        dead += walked.dead_records(records[is_bad], numbers[is_bad], rows[is_bad])
        dead.sort(key=lambda entry: entry[0])
        records, numbers, rows = records[~is_bad], numbers[~is_bad], rows[~is_bad]
    arena = Arena(
        walked.arena, walked.list_max, walked.text_room, use_dictionaries=use_dictionaries
    )
    arena.spend(len(records) * len(schema) * CELL_BYTES)
    level = NodeLevel(arena, RECORD_SLOTS[signal], records)
    columns = {
        **_log_columns(requests, numbers, rows),
        **_time_columns(level, TIMES[signal], requests, numbers),
        **_telemetry_columns(signal, walked, level, promoted),
    }
    batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    letters = [letter for _, letter in dead]
    return Decoded(batch=batch, dead=letters, saved_bytes=arena.saved_bytes)


def _log_columns(
    requests: Sequence[ExportRequest], numbers: Words, rows: Words
) -> dict[str, pa.Array]:
    """Return partition, offset and row in the request."""
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
    """Return the time of each record, as far as known."""
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
    signal: str,
    walked: WalkedRequests,
    records: NodeLevel,
    promoted: tuple[PromotedColumn, ...],
) -> dict[str, pa.Array]:
    """Return the columns of records and of the levels above."""
    if signal == "metrics":
        metrics = _above(walked, METRICS, SLOTS["metric"], records)
        columns = metric_columns(records, metrics, promoted)
        scopes = _above(walked, SCOPES, SLOTS["scope_metrics"], metrics)
        levels = [metrics, records]
    else:
        of_records = log_columns if signal == "logs" else span_columns
        columns = of_records(records, promoted)
        scopes = _above(walked, SCOPES, SLOTS["scope_logs"], records)
        levels = [records]
    resources = _above(walked, RESOURCES, SLOTS["resource_logs"], scopes)
    columns |= {**scope_columns(scopes, promoted), **resource_columns(resources, promoted)}
    return {**columns, "_value_types": types_column([resources, scopes, *levels])}


def _above(
    walked: WalkedRequests, level: int, slots: Mapping[str, int], below: NodeLevel
) -> NodeLevel:
    """Return the level above: its nodes that have rows, and how many."""
    nodes = walked.level(level)
    parents = walked.arena[below.nodes + PARENT]
    counts = np.bincount(parents, below.repeats, len(nodes)).astype(np.int64)
    has_rows = counts != 0
    return NodeLevel(below.arena, slots, nodes[has_rows], counts[has_rows])
