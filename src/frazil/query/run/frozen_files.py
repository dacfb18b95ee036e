"""Data files of keyed tables in the lake, read in a worker process: without their dead rows, in the
types of the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import Unavailable
from frazil.query.run.copied_rows import with_all_columns
from frazil.query.run.references import FrozenRef
from frazil.query.scan.table_rows import PiecePart
from frazil.tables import upgraded

POSITION = "pos"
"""Column of Iceberg's position delete files."""


def frozen_part(root: str, ref: FrozenRef, columns: Sequence[str], schema: pa.Schema) -> PiecePart:
    """Return these columns of the rows of a data file. `Unavailable` if it cannot be read."""
    wanted = pa.schema([schema.field(name) for name in columns])
    try:
        with pq.ParquetFile(Path(root) / ref.path) as file:
            present = [name for name in columns if name in file.schema_arrow.names]
            # A file without these columns has rows all the same.
            read = file.read(present or file.schema_arrow.names[:1])
        dead = None
        if ref.deletes is not None:
            dead = pq.read_table(Path(root) / ref.deletes, columns=[POSITION])[POSITION].to_numpy()
    except (OSError, pa.ArrowException) as error:
        raise Unavailable(f"a data file of the lake cannot be read: {error}; retry") from None
    if dead is not None:
        is_live = np.ones(read.num_rows, np.bool_)
        is_live[dead] = False
        read = read.filter(pa.array(is_live))
    batches = [
        with_all_columns(upgraded(batch.select(present), wanted), schema)
        if present
        else with_all_columns(_nulls(batch.num_rows, wanted), schema)
        for batch in read.to_batches()
        if batch.num_rows
    ]
    return PiecePart(
        batches=tuple(batches), row_count=read.num_rows, time_min_us=None, time_max_us=None
    )


def _nulls(count: int, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count, f.type) for f in schema], schema=schema)
