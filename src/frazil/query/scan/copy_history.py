"""The `copy_history` table: which files tables were loaded from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.model.arrow import LEDGER_SCHEMA

if TYPE_CHECKING:
    from frazil.lake import LakeView
    from frazil.query.scan.keyed_tables import KeyedViews

COPY_HISTORY_SCHEMA = pa.schema(
    [pa.field("table_name", pa.string(), nullable=False), *LEDGER_SCHEMA]
)


def copy_history_of(lake: LakeView | None, keyed: KeyedViews) -> pa.RecordBatch:
    """Return one row per loaded or skipped file, in commit order of each table."""
    ledgers = (*(() if lake is None else lake.load_history()), *keyed.load_history())
    parts = [
        ledger.add_column(0, "table_name", pa.array([name] * ledger.num_rows, pa.string()))
        for name, ledger in ledgers
    ]
    if not parts:
        return pa.RecordBatch.from_pylist([], COPY_HISTORY_SCHEMA)
    rows = pa.concat_tables(part.cast(COPY_HISTORY_SCHEMA) for part in parts).combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in rows.columns], schema=COPY_HISTORY_SCHEMA
    )
