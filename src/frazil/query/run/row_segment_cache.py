"""RowSegmentCache: row segments of keyed tables in a worker process. Files stay mapped."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pyarrow as pa

from frazil.disk import RealDisk, descriptor_path
from frazil.errors import Corrupt
from frazil.query.run.references import SegmentRef
from frazil.query.scan.table_rows import LIVE, PiecePart
from frazil.tables import open_rows, upgraded

FILES_MAX = 4096
LIVE_FIELD = pa.field(LIVE, pa.bool_(), nullable=False)


class FileGone(Exception):
    """A file is not there any more."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class RowSegmentCache:
    """Owned by the worker's main thread. A part of an unchanged file is the same object each time,
    so that counts kept for it stay valid."""

    def __init__(self) -> None:
        self._batches: OrderedDict[tuple[str, int], pa.RecordBatch] = OrderedDict()
        self._parts: dict[tuple[str, int], dict[tuple[int, int], PiecePart]] = {}
        """By file; then by length and version of the definition."""

    def part(self, ref: SegmentRef, schema: pa.Schema) -> PiecePart:
        """Return a segment whose row versions are all live, in the columns of `schema`."""
        batch = self._batch(ref)
        parts = self._parts[ref.path, ref.check]
        part = parts.get((ref.length, ref.version))
        if part is None:
            part = parts[ref.length, ref.version] = PiecePart(
                batches=(_rows(batch, ref, schema),),
                row_count=ref.length,
                time_min_us=None,
                time_max_us=None,
            )
        return part

    def versions(self, ref: SegmentRef, memory: int, schema: pa.Schema) -> pa.RecordBatch:
        """Return the row versions of a segment, and in the column `LIVE` which are live. The bits
        are in a memory file."""
        assert ref.live is not None
        position, length, first_bit = ref.live
        with pa.memory_map(descriptor_path(memory)) as source:
            source.seek(position)
            bits = source.read_buffer(length)
        live = pa.BooleanArray.from_buffers(pa.bool_(), ref.length, [None, bits], 0, first_bit)
        rows = _rows(self._batch(ref), ref, schema)
        return pa.RecordBatch.from_arrays(
            [*rows.columns, live], schema=pa.schema([*schema, LIVE_FIELD])
        )

    def _batch(self, ref: SegmentRef) -> pa.RecordBatch:
        key = (ref.path, ref.check)
        if key in self._batches:
            self._batches.move_to_end(key)
            return self._batches[key]
        batch = self._batches[key] = _open(ref)
        self._parts[key] = {}
        if len(self._batches) > FILES_MAX:
            self._drop(next(iter(self._batches)))
        return batch

    def drop_missing(self) -> None:
        """Unmap files that were removed, so that the disk gets their space back."""
        for key in list(self._batches):
            if not Path(key[0]).exists():
                self._drop(key)

    def _drop(self, key: tuple[str, int]) -> None:
        del self._batches[key], self._parts[key]


def _rows(batch: pa.RecordBatch, ref: SegmentRef, schema: pa.Schema) -> pa.RecordBatch:
    """Return the row versions in the columns of a query: later ones are null, types are wider."""
    names = set(batch.schema.names)
    present = batch.slice(0, ref.length).select([n for n in schema.names if n in names])
    return upgraded(present, schema)


def _open(ref: SegmentRef) -> pa.RecordBatch:
    path = Path(ref.path)
    try:
        file = open_rows(RealDisk(path.parent), path.name, is_verified=True)
    except (FileNotFoundError, Corrupt):
        raise FileGone(ref.path) from None
    location = file.location
    if location is None or location.check != ref.check or file.batch.num_rows < ref.length:
        raise FileGone(ref.path)
    return file.batch
