"""Reads data files of a load that were not committed yet, in a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.lake.loaded.load_table import LoadTarget, arrow_schema

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

    from frazil.lake.loaded.load_writer import LoadedFile


def loaded_rows(target: LoadTarget, files: Sequence[LoadedFile]) -> Dataset | pa.Table:
    """Return the rows of these files, which are read when they are needed."""
    import pyarrow.dataset as ds
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.schema import Schema

    schema = arrow_schema(Schema.model_validate_json(target.schema_json)).remove_metadata()
    if not files:
        return schema.empty_table()
    assert isinstance(target.io, PyArrowFileIO), "tables of the lake have this FileIO"
    locations = [
        target.io.parse_location(f"{target.location}/{file.path}", target.io.properties)
        for file in files
    ]
    scheme, netloc, _ = locations[0]
    return ds.dataset(
        [path for _, _, path in locations],
        schema=pa.schema([field.remove_metadata() for field in schema]),
        format="parquet",
        filesystem=target.io.fs_by_scheme(scheme, netloc),
    )
