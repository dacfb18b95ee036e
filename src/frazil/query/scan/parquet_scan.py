"""Rows of the lake for the engine: files that we name, scanned by its own Parquet reader.

The engine's Python interface makes a table of one path, or of all files in a folder. A snapshot is
neither: it is a list of files. The engine's plans have a place for such a list, and can be written
and read as bytes; so the plan of a table with one path is taken as a form, and filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.object_store import LocalFileSystem
from datafusion.plan import LogicalPlan

from frazil.errors import Unavailable

SCHEME = "lake"
"""No text of a query can name an address of this kind: the engine opens none that a text names."""
FORM = "lake"
"""What EXPLAIN calls the scan of files."""
_LISTING, _PATHS = 1, 2
"""Numbers of fields in the engine's messages: the scan of a list of files in a plan, the paths in
that scan."""
_BYTES = 2


class ParquetScan(msgspec.Struct, frozen=True, kw_only=True):
    """Files of one table that are to be read."""

    root: str
    """The folder they are below; nothing else can be read through it."""
    paths: tuple[str, ...]
    where: str | None = None
    """What a row of them must fulfil, in SQL; None when all of them count."""


def cold_frame(
    session: SessionContext, schema: pa.Schema, scan: ParquetScan, name: str
) -> DataFrame:
    """The rows of these files, in a session that can read them and nothing beside them. `name` is
    another one for each scan of a session."""
    session.register_object_store(f"{SCHEME}://", LocalFileSystem(prefix=scan.root), name)
    paths = [f"{SCHEME}://{name}/{quote(path)}".encode() for path in scan.paths]
    listed = _form(schema) + b"".join(_field(_PATHS, path) for path in paths)
    plan = LogicalPlan.from_bytes(session, _field(_LISTING, listed))
    frame = session.create_dataframe_from_logical_plan(plan)
    return frame if scan.where is None else frame.filter(scan.where)


def check_there(scans: Iterable[ParquetScan]) -> None:
    """Are all files there, after a query over them was planned?

    The engine lists files when it plans, and takes one that is gone for one without rows. No file
    comes back, so those that are there now were there then; what goes later is an error to it.
    """
    for scan in scans:
        folder = Path(scan.root)
        for path in scan.paths:
            if not (folder / path).is_file():
                raise Unavailable(
                    f"{folder / path} is a file of the lake, and is gone: its snapshot has expired "
                    "since, or somebody has removed it. Ask again in some seconds"
                )


@lru_cache(maxsize=16)
def _form(schema: pa.Schema) -> bytes:
    """The scan of no files at all, with this schema."""
    session = SessionContext()
    session.register_object_store(f"{SCHEME}://", LocalFileSystem(), FORM)
    # Without a file extension: files that do not end so would be left out, and nobody told.
    path = f"{SCHEME}://{FORM}/{FORM}"
    session.register_listing_table(FORM, path, schema=schema, file_extension="")
    plan = session.table(FORM).logical_plan().to_bytes()
    ((number, listed),) = _fields(plan)
    assert number == _LISTING and isinstance(listed, bytes), (
        f"the engine writes a scan of files as field {number}"
    )
    kept = [(number, body) for number, body in _fields(listed) if number != _PATHS]
    return b"".join(_field(number, body) for number, body in kept)


def _field(number: int, body: bytes | int) -> bytes:
    """A field as protobuf writes it."""
    if isinstance(body, int):
        return _varint(number << 3) + _varint(body)
    return _varint(number << 3 | _BYTES) + _varint(len(body)) + body


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message. A scan has only such as are bytes or whole numbers."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        value, at = _read_varint(message, at)
        if tag & 7 == _BYTES:
            yield tag >> 3, message[at : at + value]
            at += value
        else:
            assert tag & 7 == 0, f"the engine writes field {tag >> 3} as kind {tag & 7}"
            yield tag >> 3, value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while message[at] > 127:
        value |= (message[at] & 127) << shift
        shift += 7
        at += 1
    return value | message[at] << shift, at + 1


def joined(frames: Sequence[DataFrame], names: Sequence[str]) -> DataFrame:
    """The rows of all of them, with these columns."""
    whole = frames[0].select(*names)
    for frame in frames[1:]:
        whole = whole.union(frame.select(*names))
    return whole
