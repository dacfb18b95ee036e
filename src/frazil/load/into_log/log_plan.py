"""What a COPY INTO logs, spans or metrics means: its format, its columns, what does not apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.definitions import CopyIntoTable, FileFormat
from frazil.errors import Malformed
from frazil.lake import TaskRunner
from frazil.load.copy.checks import query_of
from frazil.load.copy.columns import with_staged
from frazil.load.copy.transform import Transform, run_plan_task
from frazil.load.formats.reader import LINE, format_of
from frazil.load.into_log.log_columns import log_columns
from frazil.load.into_log.staging_task import RowPlan
from frazil.load.stages.stage import Stage
from frazil.load.stages.staged_file import StagedFile
from frazil.model import Signal

SIGNALS = {signal.table: signal for signal in Signal}
"""Tables that are filled from the log, by name."""
OTLP_JSON = FileFormat(type="otlp_json")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCopyPlan:
    """A statement for a table that is filled from the log, checked."""

    statement: CopyIntoTable
    signal: Signal

    def file_format(self, stage: Stage, files: Sequence[StagedFile]) -> FileFormat:
        """Return the format of the files. Of spans and metrics it is OTLP/JSON."""
        chosen = self.statement.file_format or stage.file_format
        if chosen is None:
            chosen = format_of(files[0].path) if self.signal is Signal.LOGS else OTLP_JSON
        if self.signal is not Signal.LOGS and chosen.type != "otlp_json":
            raise Malformed(
                f"{self.statement.table} is loaded from OTLP/JSON, FILE_FORMAT=(TYPE=OTLP_JSON), "
                f"not from {chosen.type.upper()}"
            )
        if chosen.type == "otlp_json" and (self.statement.query or self.statement.mapping):
            raise Malformed("OTLP/JSON has all fields already; leave SELECT and MAPPING out")
        return chosen

    def rows(
        self,
        file_format: FileFormat,
        infer: Callable[[], pa.Schema],
        do: TaskRunner,
        now_us: int,
    ) -> RowPlan | None:
        """Return how rows become records; None if the files have requests already."""
        if file_format.type == "otlp_json":
            return None
        statement = self.statement
        schema, transform, mapping = infer(), None, statement.mapping
        if statement.query:
            declared = statement.staged_columns
            transform = Transform(
                query=statement.query,
                schema=with_staged(schema, declared),
                is_exact=not declared,
                now_us=now_us,
            )
            if transform.schema.names:
                (schema,) = do(run_plan_task, [transform])
        elif file_format.type == "text" and not mapping:
            mapping = (("body", LINE),)
        return RowPlan(
            schema=schema,
            is_exact=True,
            columns=log_columns(schema, mapping),
            transform=transform,
        )


def checked_copy(statement: CopyIntoTable, *, has_series_limit: bool) -> LogCopyPlan:
    """Return a statement for a table that is filled from the log. `Malformed` if it says what only
    tables of files have."""
    signal = SIGNALS[statement.table]
    if statement.columns or statement.partition_by or statement.add_columns:
        raise Malformed(
            f"{statement.table} has its columns and partitions; leave out columns, PARTITION BY "
            "and ADD_COLUMNS, and name columns by a SELECT or MAPPING"
        )
    if statement.query and statement.mapping:
        raise Malformed("write a SELECT or MAPPING, not both")
    for check in statement.checks:
        if query_of(check):
            raise Malformed(
                f"{check.text}: a load into {statement.table} checks NOT EMPTY and MAX_ERROR_RATE "
                "only; filter by a SELECT, or load into another table"
            )
    if signal is Signal.METRICS and has_series_limit:
        raise Malformed(
            "with ingest.limits.series_per_service_max, only the OTLP ports know which series are "
            "new; send the files with `frazil import`"
        )
    return LogCopyPlan(statement=statement, signal=signal)
