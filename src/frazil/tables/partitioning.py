"""Rows by the partition of their keys."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.tables.definition import TableDefinition
from frazil.tables.keys.key_block import key_array
from frazil.tables.writer import partitions_of


def rows_by_partition(definition: TableDefinition, rows: pa.Table) -> dict[int, pa.Table]:
    """Return the rows of each partition that has some. Key columns have the types of the table."""
    keys = key_array([rows[name].combine_chunks() for name in definition.key])
    owners = partitions_of(definition, keys)
    return {
        number: rows.take(pa.array(np.flatnonzero(owners == number)))
        for number in np.unique(owners).tolist()
    }
