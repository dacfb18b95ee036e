"""What EXPLAIN says beyond the engine's plan: where the query runs, and which pieces it reads."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.query.plan import Plan
from frazil.query.pruning import Kept


def preface_of(
    plan: Plan, kept: Mapping[str, Kept], place: str, schema: pa.Schema
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
