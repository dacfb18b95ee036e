"""The table of any other topic: one row per record, unchanged."""

from __future__ import annotations

import pyarrow as pa

HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])


def _column(name: str, kind: pa.DataType, comment: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"comment": comment})


RECORDS = pa.schema(
    [
        _column("_log_partition", pa.int32(), "partition of the topic"),
        _column("_offset", pa.int64(), "offset in the partition"),
        _column("time", pa.timestamp("us", tz="UTC"), "timestamp of the record"),
        _column("timestamp_ms", pa.int64(), "timestamp of the record in milliseconds since 1970"),
        _column("key", pa.binary(), "key of the record", nullable=True),
        _column("value", pa.binary(), "value of the record", nullable=True),
        _column(
            "headers",
            pa.list_(pa.field("item", HEADER, nullable=False)),
            "headers of the record, in order; keys may repeat",
        ),
    ]
)
