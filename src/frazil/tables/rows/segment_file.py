"""A row segment as a file: row versions and deaths of an offset range.

Byte layout: `docs/formats/keyed.md`. Written to a temporary file, synced, read back and renamed;
all checksums are verified when it is opened after a start.
"""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from google_crc32c import extend as extend_crc32c
from google_crc32c import value as crc32c

from frazil.disk import Disk, File, Mapped, RealDisk, WriteBuffer
from frazil.errors import Corrupt
from frazil.model import MiB
from frazil.tables.rows.deaths import DeathList

MAGIC = b"FRZROWS\n"
END_MAGIC = b"FRZROWS\0"
VERSION = 1
HEADER = struct.Struct("<8sHHIQQQQIII")
"""magic, version, reserved, identity, begin and end offset, base row, base death, rows, deaths,
version of the definition; then its CRC32C."""
CHECK = struct.Struct("<I")
HEADER_BYTES = HEADER.size + CHECK.size
TRAILER = struct.Struct("<QIII")
"""bytes of the rows, CRC32C of rows, of deaths, and of the header; then its CRC32C and magic."""
TRAILER_BYTES = TRAILER.size + CHECK.size + len(END_MAGIC)
ALIGNMENT = 64
DEATH_BYTES = 24
READ_BYTES = MiB
"""Checksums read the file in blocks of this size: touched pages of a mapping count as memory."""
HINT = "It is rebuilt from the log; check the health of the disk."


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFileHeader:
    """What the file has. Ends are exclusive."""

    identity: int
    begin_offset: int
    end_offset: int
    base_row: int
    base_death: int
    row_count: int
    death_count: int
    definition: int

    def encode(self) -> bytes:
        body = HEADER.pack(
            MAGIC,
            VERSION,
            0,
            self.identity,
            self.begin_offset,
            self.end_offset,
            self.base_row,
            self.base_death,
            self.row_count,
            self.death_count,
            self.definition,
        )
        return body + CHECK.pack(crc32c(body))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFileLocation:
    """Where another process finds the rows of a file."""

    path: str
    check: int
    """CRC32C of the trailer: a file that took the name later has another one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowFile:
    """An opened file. Its rows stay readable while they are referenced."""

    path: str
    header: RowFileHeader
    size_bytes: int
    check: int
    """CRC32C of the trailer, which has those of everything else."""
    batch: pa.RecordBatch
    deaths: DeathList
    mapped: Mapped


def location_of(disk: Disk, file: RowFile) -> RowFileLocation | None:
    """Return where another process finds a file; None if the disk is a simulated one."""
    if not isinstance(disk, RealDisk):
        return None
    return RowFileLocation(path=disk.real_path(file.path), check=file.check)


def segment_path(folder: str, begin_offset: int) -> str:
    return f"{folder}/{begin_offset:020d}.rows"


def write_rows(
    disk: Disk,
    path: str,
    header: RowFileHeader,
    batch: pa.RecordBatch,
    deaths: DeathList,
    buffer: WriteBuffer,
) -> RowFile:
    """Write a file, and return it opened once it is durable. After an error it may be retried,
    which writes a new file: a failed sync is never repeated."""
    folder, _, name = path.rpartition("/")
    scratch = f"{path}.tmp"
    if f"{name}.tmp" in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, "create")
    try:
        file.append_uncached(_encode(header, batch, deaths, buffer))
        opened = open_rows(disk, scratch, is_verified=True)
        disk.rename(scratch, path)
    except (OSError, Corrupt):
        with contextlib.suppress(OSError):  # raise the first error
            disk.unlink(scratch)
        raise
    finally:
        file.close()
    disk.sync_directory(folder)
    return replace(opened, path=path)


def _encode(
    header: RowFileHeader, batch: pa.RecordBatch, deaths: DeathList, buffer: WriteBuffer
) -> memoryview:
    sizes = pa.MockOutputStream()
    _write_stream(sizes, batch)
    rows_bytes = -(-sizes.size() // ALIGNMENT) * ALIGNMENT
    deaths_begin = HEADER_BYTES + rows_bytes
    deaths_end = deaths_begin + DEATH_BYTES * len(deaths.rows)
    data = buffer.take(deaths_end + TRAILER_BYTES)
    head = header.encode()
    data[:HEADER_BYTES] = head
    rows = data[HEADER_BYTES:deaths_begin]
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(rows))
    _write_stream(sink, batch)
    sink.write(bytes(rows_bytes - sink.tell()))
    data[deaths_begin:deaths_end] = b"".join(column.tobytes() for column in deaths)
    (head_check,) = CHECK.unpack_from(head, HEADER.size)
    trailer = TRAILER.pack(
        rows_bytes,
        extend_crc32c(0, pa.py_buffer(rows)),
        crc32c(bytes(data[deaths_begin:deaths_end])),
        head_check,
    )
    data[deaths_end:] = trailer + CHECK.pack(crc32c(trailer)) + END_MAGIC
    return data


def _write_stream(sink: object, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)


def open_rows(disk: Disk, path: str, *, is_verified: bool = False) -> RowFile:
    """Check a file and map it: all checksums, or those of header and trailer. Raises `Corrupt`."""
    file = disk.open(path)
    try:
        header = _read_header(file, path)
        size = file.size()
        rows_bytes, rows_check, deaths_check, check = _read_trailer(file, path, header)
        deaths_begin = HEADER_BYTES + rows_bytes
        deaths_end = size - TRAILER_BYTES
        if deaths_begin + DEATH_BYTES * header.death_count != deaths_end:
            raise _damaged(path, deaths_begin, f"{header.death_count} deaths", "another size")
        if not is_verified:
            _check_section(file, path, HEADER_BYTES, deaths_begin, rows_check)
            _check_section(file, path, deaths_begin, deaths_end, deaths_check)
        mapped = file.map()
    finally:
        file.close()
    view = mapped.view
    try:
        with pa.ipc.open_stream(pa.py_buffer(view[HEADER_BYTES:deaths_begin])) as reader:
            (batch,) = list(reader)
        batch.validate()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, HEADER_BYTES, "one record batch", str(error)) from None
    if batch.num_rows != header.row_count:
        raise _damaged(path, HEADER_BYTES, f"{header.row_count} rows", f"{batch.num_rows}")
    columns = np.frombuffer(view[deaths_begin:deaths_end], "<i8").reshape(3, -1)
    return RowFile(
        path=path,
        header=header,
        size_bytes=size,
        check=check,
        batch=batch,
        deaths=DeathList(*columns),
        mapped=mapped,
    )


def _read_header(file: File, path: str) -> RowFileHeader:
    head = file.read(0, HEADER_BYTES)
    if len(head) != HEADER_BYTES or CHECK.pack(crc32c(head[: HEADER.size])) != head[HEADER.size :]:
        raise _damaged(path, 0, f"a header of {HEADER_BYTES} bytes", "other bytes")
    magic, version, _, identity, begin, end, row, death, rows, deaths, definition = HEADER.unpack(
        head[: HEADER.size]
    )
    if magic != MAGIC or version != VERSION:
        raise _damaged(path, 0, f"{MAGIC!r} version {VERSION}", f"{magic!r} version {version}")
    return RowFileHeader(
        identity=identity,
        begin_offset=begin,
        end_offset=end,
        base_row=row,
        base_death=death,
        row_count=rows,
        death_count=deaths,
        definition=definition,
    )


def _read_trailer(file: File, path: str, header: RowFileHeader) -> tuple[int, int, int, int]:
    at = file.size() - TRAILER_BYTES
    data = file.read(max(at, 0), TRAILER_BYTES)
    body = data[: TRAILER.size]
    if data[TRAILER.size :] != CHECK.pack(crc32c(body)) + END_MAGIC:
        raise _damaged(path, max(at, 0), "a trailer", "other bytes")
    rows_bytes, rows_check, deaths_check, head_check = TRAILER.unpack(body)
    if CHECK.pack(head_check) != header.encode()[HEADER.size :]:
        raise _damaged(path, at, "the checksum of this header", "another one")
    (check,) = CHECK.unpack_from(data, TRAILER.size)
    return rows_bytes, rows_check, deaths_check, check


def _check_section(file: File, path: str, begin: int, end: int, expected: int) -> None:
    check = 0
    for at in range(begin, end, READ_BYTES):
        check = extend_crc32c(check, file.read(at, min(READ_BYTES, end - at)))
    if check != expected:
        raise _damaged(path, begin, f"CRC32C {expected:08x}", f"{check:08x}")


def _damaged(path: str, position: int, expected: str, found: str) -> Corrupt:
    return Corrupt(path=path, position=position, expected=expected, found=found, hint=HINT)
