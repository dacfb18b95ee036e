"""Tables of topics that are not telemetry: one row per record, unchanged.

A table is named `topic_` plus the name of its topic. Query engines expect lower-case letters,
digits and underscores, so any other byte becomes `__` and two hexadecimal digits. So does an
underscore after another one, which keeps the names of two topics distinct:

    orders           topic_orders
    web_clicks       topic_web_clicks
    Orders.eu-west   topic___4frders__2eeu__2dwest

A name that would be too long ends in `__h` and a hash of the whole topic name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate

import pyarrow as pa

from frazil.lake.tables.properties import TOPIC_PREFIX
from frazil.log import Record
from frazil.model import NO_PROMOTIONS, Promotions
from frazil.model.arrow import HEADER, RECORDS, table_with

NAME_LENGTH_MAX = 200
"""A table's name is also a folder's, which has at most 255 bytes, and some catalogs add to it."""
HASH_BYTES = 16
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
TIME_MS_MAX = (2**63 - 1) // 1000
"""Largest time that fits in microseconds. `time` is clamped to it; `timestamp_ms` is exact."""


def columns_of(table: str, promotions: Promotions = NO_PROMOTIONS) -> pa.Schema:
    """Return the Arrow schema of any table of ours."""
    if table.startswith(TOPIC_PREFIX):
        return RECORDS
    return table_with(table, promotions.get(table, ()))


def table_of(topic: str) -> str:
    """Return the table name of a topic that is not telemetry."""
    name, before = TOPIC_PREFIX, ""
    for character in topic:
        is_kept = character in PLAIN or (character == "_" and before != "_")
        name += character if is_kept else "".join(f"__{byte:02x}" for byte in character.encode())
        before = character
    if len(name) <= NAME_LENGTH_MAX:
        return name
    end = f"__h{hashlib.blake2b(topic.encode(), digest_size=HASH_BYTES).hexdigest()}"
    return name[: NAME_LENGTH_MAX - len(end)] + end


def rows_of(records: Sequence[Record], partition: int) -> pa.RecordBatch:
    """Return records of a partition as rows, in the same order."""
    times_us = [
        max(-TIME_MS_MAX, min(record.timestamp_ms, TIME_MS_MAX)) * 1000 for record in records
    ]
    columns = [
        pa.array([partition] * len(records), pa.int32()),
        pa.array([record.offset for record in records], pa.int64()),
        pa.array(times_us, RECORDS.field("time").type),
        pa.array([record.timestamp_ms for record in records], pa.int64()),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        _headers(records),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def _headers(records: Sequence[Record]) -> pa.ListArray:
    ends = accumulate((len(record.headers) for record in records), initial=0)
    headers = [header for record in records for header in record.headers]
    keys = pa.array([key for key, _ in headers], pa.string())
    values = pa.array([value for _, value in headers], pa.binary())
    return pa.ListArray.from_arrays(
        pa.array(ends, pa.int32()),
        pa.StructArray.from_arrays([keys, values], fields=list(HEADER)),
        type=RECORDS.field("headers").type,
    )
