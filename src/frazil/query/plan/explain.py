"""What EXPLAIN adds to DataFusion's plan: where the query runs and which pieces it reads."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.query.plan.plan import QueryPlan
from frazil.query.plan.pruning import PrunedScan
from frazil.results import TableScan


def preface_of(
    plan: QueryPlan, pruned: Mapping[str, PrunedScan], place: str, schema: pa.Schema
) -> pa.RecordBatch | None:
    """Return the rows that precede the plan; None if the query is no EXPLAIN."""
    if not plan.is_explain or schema.names != ["plan_type", "plan"]:
        return None
    rows = [("place", place)]
    if plan.top_n is not None:
        end = "newest" if plan.top_n.is_descending else "oldest"
        rows.append(
            ("order", f"pieces from the {end} on, until {plan.top_n.row_count} rows are found")
        )
    rows += [("pieces", scan.describe(table)) for table, scan in sorted(pruned.items())]
    columns = [
        pa.array([row[side] for row in rows], field.type) for side, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def table_scans_of(pruned: Mapping[str, PrunedScan]) -> list[TableScan]:
    """Return what is read of each table, in numbers."""
    return [_table_scan(table, scan) for table, scan in sorted(pruned.items())]


def _table_scan(table: str, scan: PrunedScan) -> TableScan:
    snapshots = [
        str(rows.view.snapshot_id)
        for rows in scan.tier_rows
        if rows.view is not None and rows.view.snapshot_id is not None
    ]
    return TableScan(
        table=table,
        hot_rows=sum(piece.row_count for piece in scan.pieces) + _keyed_rows(scan),
        hot_bytes=sum(batch.nbytes for piece in scan.pieces for batch in piece.batches)
        + _keyed_bytes(scan),
        hot_pieces=scan.read_count - len(scan.files),
        hot_pieces_all=scan.piece_count + scan.segment_count,
        lake_rows=sum(file.row_count for file in scan.files),
        lake_bytes=sum(file.size_bytes for file in scan.files),
        lake_files=len(scan.files),
        lake_files_all=scan.file_count,
        rows_all=scan.row_count,
        snapshots=list(dict.fromkeys(snapshots)),
        skipped=dict(scan.skipped),
    )


def _keyed_rows(scan: PrunedScan) -> int:
    return 0 if scan.keyed is None else scan.keyed.row_count


def _keyed_bytes(scan: PrunedScan) -> int:
    if scan.keyed is None:
        return 0
    found: int = sum(batch.nbytes for batch in scan.keyed.found)
    return found + sum(part.segment.size_bytes for part in scan.keyed.parts)
