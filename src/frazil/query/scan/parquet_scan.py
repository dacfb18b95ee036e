"""Scans a list of data files with DataFusion's Parquet reader.

DataFusion's Python interface makes a table from one path or one folder; a snapshot is a list of
files. DataFusion's plans can hold such a list and can be serialised. So we serialise the plan of a
table with one path, and use it as a template into which we write the paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.object_store import LocalFileSystem
from datafusion.plan import LogicalPlan

from frazil.errors import Unavailable
from frazil.query.scan.table_rows import ParquetScan

SCHEME = "lake"
"""URL scheme of data files. No query can name such a URL: DataFusion opens none from a text."""
TABLE = "lake"
"""Name of the scan in EXPLAIN."""
_LISTING, _PATHS = 1, 2
"""Field numbers in DataFusion's protobuf: ListingTableScan in a plan, and its paths."""
_BYTES = 2
"""Wire type of bytes."""


def parquet_frame(
    session: SessionContext, schema: pa.Schema, scan: ParquetScan, name: str
) -> DataFrame:
    """Return the rows of these files. `name` must be unique among the scans of a session."""
    session.register_object_store(f"{SCHEME}://", LocalFileSystem(prefix=scan.root), name)
    paths = [f"{SCHEME}://{name}/{quote(path)}".encode() for path in scan.paths]
    listing = _template(schema) + b"".join(_field(_PATHS, path) for path in paths)
    plan = LogicalPlan.from_bytes(session, _field(_LISTING, listing))
    frame = session.create_dataframe_from_logical_plan(plan)
    return frame if scan.where is None else frame.filter(scan.where)


def check_files_exist(scans: Iterable[ParquetScan]) -> None:
    """Raise `Unavailable` if a file of a query that has been planned is missing.

    DataFusion lists files when it plans, and reads a missing file as one without rows. A deleted
    file never comes back, so files that exist now existed then; DataFusion raises for later ones.
    """
    for scan in scans:
        folder = Path(scan.root)
        for path in scan.paths:
            if not (folder / path).is_file():
                raise Unavailable(
                    f"data file {folder / path} is missing: its snapshot has expired or the file "
                    "was deleted; run the query again in a few seconds"
                )


@lru_cache(maxsize=16)
def _template(schema: pa.Schema) -> bytes:
    """Return a serialised ListingTableScan with this schema and no paths."""
    session = SessionContext()
    session.register_object_store(f"{SCHEME}://", LocalFileSystem(), TABLE)
    # With an extension, DataFusion would silently skip files with another one.
    path = f"{SCHEME}://{TABLE}/{TABLE}"
    session.register_listing_table(TABLE, path, schema=schema, file_extension="")
    plan = session.table(TABLE).logical_plan().to_bytes()
    ((number, listing),) = _fields(plan)
    assert number == _LISTING and isinstance(listing, bytes), (
        f"DataFusion writes ListingTableScan as field {number}"
    )
    kept = [(number, body) for number, body in _fields(listing) if number != _PATHS]
    return b"".join(_field(number, body) for number, body in kept)


def _field(number: int, body: bytes | int) -> bytes:
    """Encode a protobuf field."""
    if isinstance(body, int):
        return _varint(number << 3) + _varint(body)
    return _varint(number << 3 | _BYTES) + _varint(len(body)) + body


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message. A scan has only bytes and varints."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        value, at = _read_varint(message, at)
        if tag & 7 == _BYTES:
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            assert tag & 7 == 0, f"DataFusion writes field {tag >> 3} with wire type {tag & 7}"
            yield tag >> 3, value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] > 127:
        value |= (message[at] & 127) << shift
        shift += 7
        at += 1
    return value | message[at] << shift, at + 1


def union(frames: Sequence[DataFrame], names: Sequence[str]) -> DataFrame:
    """Return these columns of all frames."""
    combined = frames[0].select(*names)
    for frame in frames[1:]:
        combined = combined.union(frame.select(*names))
    return combined
