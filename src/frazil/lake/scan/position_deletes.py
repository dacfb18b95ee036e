"""Position delete files: which data file one is about, and which rows of it are dead.

Ours have all dead rows of one data file, whose path is both bounds of the column `file_path`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.lake.files.parquet_damage import parquet_damage

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]

PATH_ID, POSITION_ID = 2147483546, 2147483545
"""Field ids that Iceberg reserves."""
PATH, POSITION = "file_path", "pos"


def deleted_path(file: DataFile) -> str | None:
    """Return the data file that a delete file is about, or None if it is not of this kind."""
    from pyiceberg.manifest import DataFileContent, FileFormat

    if file.content is not DataFileContent.POSITION_DELETES:
        return None
    lower, upper = (file.lower_bounds or {}).get(PATH_ID), (file.upper_bounds or {}).get(PATH_ID)
    if file.file_format is not FileFormat.PARQUET or lower is None or lower != upper:
        return None
    return lower.decode()


def read_positions(location: str | None, io: FileIO) -> Positions:
    """Return the dead positions of a data file, ascending; none without a delete file. Raises
    `Corrupt` if that is damaged."""
    if location is None:
        return np.empty(0, np.int64)
    with parquet_damage(location), io.new_input(location).open() as file:
        column = pq.ParquetFile(file, page_checksum_verification=True).read([POSITION])[POSITION]
    positions: Positions = column.to_numpy()
    return positions


def live_mask(count: int, first: int, dead: Positions) -> pa.BooleanArray:
    """Return which of `count` rows from position `first` on are not dead."""
    mask = np.ones(count, np.bool_)
    begin, end = np.searchsorted(dead, (first, first + count))
    mask[dead[begin:end] - first] = False
    return pa.array(mask)
