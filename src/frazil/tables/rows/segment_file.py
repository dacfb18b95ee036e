"""A row segment as a file: row versions and deaths of an offset range.

Byte layout: `docs/formats/keyed.md`. Written to a temporary file, synced, read back and renamed;
all checksums are verified when it is opened after a start. Version 2 is for files whose rows and
deaths have gaps: compacted ones, and those of a partition that was seeded.
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
from frazil.tables.keys.kernels import Longs
from frazil.tables.rows.deaths import DeathList

MAGIC = b"FRZROWS\n"
END_MAGIC = b"FRZROWS\0"
WHOLE, GAPPED = 1, 2
"""Versions."""
HEADER = struct.Struct("<8sHHIQQQQIII")
"""magic, version, reserved, identity, begin and end offset, base row, base death, rows, deaths,
version of the definition; then its CRC32C."""
EXTENT = struct.Struct("<QQQ36x")
"""Of version 2: end row, end death, horizon; then the CRC32C of everything before it."""
CHECK = struct.Struct("<I")
HEADER_BYTES = HEADER.size + CHECK.size
EXTENT_BYTES = EXTENT.size + CHECK.size
TRAILER = struct.Struct("<QIII")
"""bytes of the rows, CRC32C of rows, of what follows them, and of the header; then its CRC32C and
magic."""
TRAILER_BYTES = TRAILER.size + CHECK.size + len(END_MAGIC)
ALIGNMENT = 64
DEATH_BYTES = 24
NUMBER_BYTES = 8
READ_BYTES = MiB
"""Checksums read the file in blocks of this size: touched pages of a mapping count as memory."""
HINT = "It is rebuilt from log or lake; check the health of the disk."


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFileHeader:
    """What the file has. Ends are exclusive."""

    identity: int
    begin_offset: int
    end_offset: int
    base_row: int
    end_row: int
    base_death: int
    end_death: int
    row_count: int
    death_count: int
    definition: int
    horizon: int = 0
    """Row versions that died below it may be missing, and their deaths. 0 if nothing is."""

    @property
    def has_gaps(self) -> bool:
        """Whether the rows have explicit numbers."""
        rows, deaths = self.end_row - self.base_row, self.end_death - self.base_death
        return bool(self.horizon) or (rows, deaths) != (self.row_count, self.death_count)

    def encode(self) -> bytes:
        body = HEADER.pack(
            MAGIC,
            GAPPED if self.has_gaps else WHOLE,
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
        head = body + CHECK.pack(crc32c(body))
        if self.has_gaps:
            head += EXTENT.pack(self.end_row, self.end_death, self.horizon)
            head += CHECK.pack(crc32c(head))
        return head


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
    batch: pa.RecordBatch
    numbers: Longs | None
    deaths: DeathList
    mapped: Mapped
    location: RowFileLocation | None
    """None if the disk is a simulated one."""


def segment_path(folder: str, begin_offset: int) -> str:
    return f"{folder}/{begin_offset:020d}.rows"


def write_rows(
    disk: Disk,
    path: str,
    header: RowFileHeader,
    batch: pa.RecordBatch,
    numbers: Longs | None,
    deaths: DeathList,
    buffer: WriteBuffer,
    *,
    is_read_back: bool = False,
) -> RowFile:
    """Write a file, and return it opened once it is durable. It replaces one of this name in the
    same moment. `is_read_back`: verify all checksums, because the log does not have the rows. After
    an error it may be retried, which writes a new file: a failed sync is never repeated."""
    opened = write_scratch(
        disk, path, header, batch, numbers, deaths, buffer, is_read_back=is_read_back
    )
    try:
        disk.rename(scratch_path(path), path)
    except OSError:
        with contextlib.suppress(OSError):  # raise the first error
            disk.unlink(scratch_path(path))
        raise
    disk.sync_directory(path.rpartition("/")[0])
    check = 0 if opened.location is None else opened.location.check
    return replace(opened, path=path, location=_location(disk, path, check))


def scratch_path(path: str) -> str:
    return f"{path}.tmp"


def write_scratch(
    disk: Disk,
    path: str,
    header: RowFileHeader,
    batch: pa.RecordBatch,
    numbers: Longs | None,
    deaths: DeathList,
    buffer: WriteBuffer,
    *,
    is_read_back: bool,
) -> RowFile:
    """Write a file under its temporary name, and return it opened. Its bytes are durable."""
    folder, _, name = scratch_path(path).rpartition("/")
    scratch = scratch_path(path)
    if name in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, "create")
    try:
        # Cached: the next changes compare keys with these, and rows are looked up one by one.
        file.append_synced(_encode(header, batch, numbers, deaths, buffer), is_cached=True)
        return open_rows(disk, scratch, is_verified=not is_read_back)
    except (OSError, Corrupt):
        with contextlib.suppress(OSError):  # raise the first error
            disk.unlink(scratch)
        raise
    finally:
        file.close()


def _encode(
    header: RowFileHeader,
    batch: pa.RecordBatch,
    numbers: Longs | None,
    deaths: DeathList,
    buffer: WriteBuffer,
) -> memoryview:
    assert header.has_gaps == (numbers is not None)
    sizes = pa.MockOutputStream()
    _write_stream(sizes, batch)
    rows_bytes = -(-sizes.size() // ALIGNMENT) * ALIGNMENT
    head = header.encode()
    rows_end = len(head) + rows_bytes
    columns = [*deaths] if numbers is None else [numbers, *deaths]
    rest = b"".join(column.astype("<i8", copy=False).tobytes() for column in columns)
    data = buffer.take(rows_end + len(rest) + TRAILER_BYTES)
    data[: len(head)] = head
    rows = data[len(head) : rows_end]
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(rows))
    _write_stream(sink, batch)
    sink.write(bytes(rows_bytes - sink.tell()))
    data[rows_end : rows_end + len(rest)] = rest
    (head_check,) = CHECK.unpack(head[-CHECK.size :])
    trailer = TRAILER.pack(
        rows_bytes, extend_crc32c(0, pa.py_buffer(rows)), crc32c(rest), head_check
    )
    data[rows_end + len(rest) :] = trailer + CHECK.pack(crc32c(trailer)) + END_MAGIC
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
        rows_bytes, rows_check, rest_check, check = _read_trailer(file, path, header)
        rows_begin = HEADER_BYTES + (EXTENT_BYTES if header.has_gaps else 0)
        numbers_begin = rows_begin + rows_bytes
        deaths_begin = numbers_begin + (NUMBER_BYTES * header.row_count if header.has_gaps else 0)
        deaths_end = size - TRAILER_BYTES
        if deaths_begin + DEATH_BYTES * header.death_count != deaths_end:
            raise _damaged(path, deaths_begin, f"{header.death_count} deaths", "another size")
        if not is_verified:
            _check_section(file, path, rows_begin, numbers_begin, rows_check)
            _check_section(file, path, numbers_begin, deaths_end, rest_check)
        mapped = file.map()
    finally:
        file.close()
    view = mapped.view
    try:
        with pa.ipc.open_stream(pa.py_buffer(view[rows_begin:numbers_begin])) as reader:
            (batch,) = list(reader)
        batch.validate()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, rows_begin, "one record batch", str(error)) from None
    if batch.num_rows != header.row_count:
        raise _damaged(path, rows_begin, f"{header.row_count} rows", f"{batch.num_rows}")
    numbers: Longs | None = None
    if header.has_gaps:
        numbers = np.frombuffer(view[numbers_begin:deaths_begin], "<i8")
    columns = np.frombuffer(view[deaths_begin:deaths_end], "<i8").reshape(3, -1)
    return RowFile(
        path=path,
        header=header,
        size_bytes=size,
        batch=batch,
        numbers=numbers,
        deaths=DeathList(*columns),
        mapped=mapped,
        location=_location(disk, path, check),
    )


def _location(disk: Disk, path: str, check: int) -> RowFileLocation | None:
    if not isinstance(disk, RealDisk):
        return None
    return RowFileLocation(path=disk.real_path(path), check=check)


def _read_header(file: File, path: str) -> RowFileHeader:
    head = file.read(0, HEADER_BYTES)
    if len(head) != HEADER_BYTES or CHECK.pack(crc32c(head[: HEADER.size])) != head[HEADER.size :]:
        raise _damaged(path, 0, f"a header of {HEADER_BYTES} bytes", "other bytes")
    magic, version, _, identity, begin, end, row, death, rows, deaths, definition = HEADER.unpack(
        head[: HEADER.size]
    )
    if magic != MAGIC or version not in (WHOLE, GAPPED):
        raise _damaged(path, 0, f"{MAGIC!r} version 1 or 2", f"{magic!r} version {version}")
    end_row, end_death, horizon = row + rows, death + deaths, 0
    if version == GAPPED:
        more = file.read(HEADER_BYTES, EXTENT_BYTES)
        if CHECK.pack(crc32c(head + more[: EXTENT.size])) != more[EXTENT.size :]:
            raise _damaged(path, HEADER_BYTES, "the rest of the header", "other bytes")
        end_row, end_death, horizon = EXTENT.unpack(more[: EXTENT.size])
    header = RowFileHeader(
        identity=identity,
        begin_offset=begin,
        end_offset=end,
        base_row=row,
        end_row=end_row,
        base_death=death,
        end_death=end_death,
        row_count=rows,
        death_count=deaths,
        definition=definition,
        horizon=horizon,
    )
    if header.has_gaps != (version == GAPPED):
        raise _damaged(path, HEADER_BYTES, "a version that fits the counts", f"version {version}")
    return header


def _read_trailer(file: File, path: str, header: RowFileHeader) -> tuple[int, int, int, int]:
    at = file.size() - TRAILER_BYTES
    data = file.read(max(at, 0), TRAILER_BYTES)
    body = data[: TRAILER.size]
    if data[TRAILER.size :] != CHECK.pack(crc32c(body)) + END_MAGIC:
        raise _damaged(path, max(at, 0), "a trailer", "other bytes")
    rows_bytes, rows_check, rest_check, head_check = TRAILER.unpack(body)
    if CHECK.pack(head_check) != header.encode()[-CHECK.size :]:
        raise _damaged(path, at, "the checksum of this header", "another one")
    (check,) = CHECK.unpack_from(data, TRAILER.size)
    return rows_bytes, rows_check, rest_check, check


def _check_section(file: File, path: str, begin: int, end: int, expected: int) -> None:
    check = 0
    for at in range(begin, end, READ_BYTES):
        check = extend_crc32c(check, file.read(at, min(READ_BYTES, end - at)))
    if check != expected:
        raise _damaged(path, begin, f"CRC32C {expected:08x}", f"{check:08x}")


def _damaged(path: str, position: int, expected: str, found: str) -> Corrupt:
    return Corrupt(path=path, position=position, expected=expected, found=found, hint=HINT)
