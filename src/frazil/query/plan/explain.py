"""What EXPLAIN says beyond the engine's plan: where the query runs, and which pieces it reads."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.query.plan.plan import QueryPlan
from frazil.query.plan.pruning import PrunedScan
from frazil.results import TableScan


def preface_of(
    plan: QueryPlan, kept: Mapping[str, PrunedScan], place: str, schema: pa.Schema
) -> pa.RecordBatch | None:
    """Rows that come before the plan; None when nobody asked for a plan."""
    if not plan.is_explain or schema.names != ["plan_type", "plan"]:
        return None
    rows = [("place", place)]
    if plan.newest is not None:
        end = "newest" if plan.newest.is_descending else "oldest"
        rows.append(
            ("order", f"pieces from the {end} on, until {plan.newest.row_count} rows are found")
        )
    rows += [("pieces", found.describe(table)) for table, found in sorted(kept.items())]
    columns = [
        pa.array([row[side] for row in rows], field.type) for side, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def parts_of(kept: Mapping[str, PrunedScan]) -> list[TableScan]:
    """What is read of each table, in numbers."""
    return [_part(table, found) for table, found in sorted(kept.items())]


def _part(table: str, kept: PrunedScan) -> TableScan:
    snapshots = [
        str(lot.view.snapshot_id)
        for lot in kept.lots
        if lot.view is not None and lot.view.snapshot_id is not None
    ]
    return TableScan(
        table=table,
        hot_rows=sum(piece.row_count for piece in kept.pieces),
        hot_bytes=sum(batch.nbytes for piece in kept.pieces for batch in piece.batches),
        hot_pieces=len(kept.pieces),
        hot_pieces_all=kept.piece_count,
        lake_rows=sum(file.row_count for file in kept.files),
        lake_bytes=sum(file.size_bytes for file in kept.files),
        lake_files=len(kept.files),
        lake_files_all=kept.file_count,
        rows_all=kept.row_count,
        snapshots=list(dict.fromkeys(snapshots)),
        skipped=dict(kept.skipped),
    )
