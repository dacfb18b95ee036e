"""A worker without a process of its own: for tests that look into how a query runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from frazil.model import MiB
from frazil.model.arrow import TABLES
from frazil.query.run.executor import Executor
from frazil.query.run.protocol import PlanRequest
from frazil.query.scan.table_rows import PiecePart, ScanParts


class InProcess:
    """Plans and runs queries over all rows, without pruning."""

    def __init__(self, parts: Mapping[str, Sequence[PiecePart]]) -> None:
        self._scans = {table: (ScanParts(pieces=tuple(rows)),) for table, rows in parts.items()}
        self._executor = Executor(TABLES)

    def sql(self, text: str) -> pa.Table:
        request = PlanRequest(text=text, topics=(), now_us=0, memory_bytes_max=64 * MiB)
        planned = self._executor.plan(request)
        scans = {table: self._scans.get(table, (ScanParts(),)) for table in planned.plan.scans}
        run = self._executor.start(request, planned, scans)
        batches = [
            pa.RecordBatch.from_arrays(batch.columns, schema=run.schema)
            for batch in iter(run.next, None)
        ]
        return pa.Table.from_batches(batches, run.schema)
