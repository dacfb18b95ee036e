"""TableInfo: snapshots, schemas, partitions and properties of a table, for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from frazil.lake.scan.data_file import SnapshotInfo, TableFile, TableView
from frazil.lake.tables.properties import TARGET_BYTES, is_small

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

SNAPSHOTS_MAX = 1000
SCHEMAS_MAX = 100
PARTITIONS_MAX = 1000
"""Limits of what TableInfo lists, newest first. Totals are given separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInfo:
    """A column of a schema."""

    id: int
    name: str
    type: str
    """In Iceberg's notation."""
    required: bool
    doc: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaInfo:
    """A current or former schema of a table."""

    schema_id: int
    is_current: bool
    first_used_ms: int | None
    """Time of the first known commit with it."""
    columns: tuple[ColumnInfo, ...]
    added: tuple[str, ...]
    """Columns that the previous schema did not have."""
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """Totals of the data files of one Iceberg partition."""

    partition: str
    files: int
    small_files: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary:
    """A snapshot with the summary of its commit."""

    facts: SnapshotInfo
    schema_id: int | None
    summary: Mapping[str, str]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """A table. All lists are newest first and limited."""

    view: TableView
    location: str
    metadata_location: str
    uuid: str
    format_version: int
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    properties: Mapping[str, str]
    snapshot_count: int
    snapshots: tuple[SnapshotSummary, ...]
    schemas: tuple[SchemaInfo, ...]
    partition_count: int
    partitions: tuple[PartitionInfo, ...]


def table_info_of(table: Table, view: TableView) -> TableInfo:
    """Collect the metadata of a table and the totals of its current manifests."""
    metadata = table.metadata
    schema = table.schema()
    partitions = partitions_of(view.files)
    return TableInfo(
        view=view,
        location=table.location(),
        metadata_location=table.metadata_location,
        uuid=str(metadata.table_uuid),
        format_version=metadata.format_version,
        partitioned_by=tuple(
            f"{field.transform}({schema.find_column_name(field.source_id)})"
            for field in table.spec().fields
        ),
        sorted_by=tuple(
            f"{schema.find_column_name(field.source_id)} {field.direction.value}"
            for field in table.sort_order().fields
        ),
        properties=dict(sorted(metadata.properties.items())),
        snapshot_count=len(view.snapshots),
        snapshots=tuple(islice(_snapshots(table, view), SNAPSHOTS_MAX)),
        schemas=tuple(_schemas(table))[:SCHEMAS_MAX],
        partition_count=len(partitions),
        partitions=tuple(partitions[:PARTITIONS_MAX]),
    )


def partitions_of(files: Sequence[TableFile]) -> list[PartitionInfo]:
    """Return the totals of each partition, in descending order of names (days, usually)."""
    counts: dict[str, Counter[str]] = {}
    for file in files:
        counts.setdefault(file.partition, Counter()).update(
            files=1,
            small_files=int(is_small(file.size_bytes, TARGET_BYTES)),
            rows=file.row_count - file.dead_count,
            bytes=file.size_bytes,
        )
    return [
        PartitionInfo(
            partition=name,
            files=totals["files"],
            small_files=totals["small_files"],
            rows=totals["rows"],
            bytes=totals["bytes"],
        )
        for name, totals in sorted(counts.items(), reverse=True)
    ]


def _snapshots(table: Table, view: TableView) -> Iterator[SnapshotSummary]:
    for facts in reversed(view.snapshots):
        snapshot = table.metadata.snapshot_by_id(facts.snapshot_id)
        summary = None if snapshot is None else snapshot.summary
        yield SnapshotSummary(
            facts=facts,
            schema_id=None if snapshot is None else snapshot.schema_id,
            summary={} if summary is None else dict(summary.additional_properties),
            tags=tuple(
                sorted(tag for tag, tagged in view.tags.items() if tagged == facts.snapshot_id)
            ),
        )


def _schemas(table: Table) -> Iterator[SchemaInfo]:
    """Yield all schemas, newest first, with added and dropped columns."""
    used: dict[int, int] = {}
    for snapshot in table.metadata.snapshots:
        if snapshot.schema_id is not None:
            first = used.get(snapshot.schema_id, snapshot.timestamp_ms)
            used[snapshot.schema_id] = min(first, snapshot.timestamp_ms)
    ordered = sorted(table.schemas().values(), key=lambda schema: schema.schema_id)
    previous: list[Schema | None] = [None, *ordered[:-1]]
    for before, schema in reversed(list(zip(previous, ordered, strict=True))):
        names = [field.name for field in schema.fields]
        old = names if before is None else [field.name for field in before.fields]
        yield SchemaInfo(
            schema_id=schema.schema_id,
            is_current=schema.schema_id == table.metadata.current_schema_id,
            first_used_ms=used.get(schema.schema_id),
            columns=tuple(
                ColumnInfo(
                    id=field.field_id,
                    name=field.name,
                    type=str(field.field_type),
                    required=field.required,
                    doc=field.doc,
                )
                for field in schema.fields
            ),
            added=tuple(name for name in names if name not in old),
            dropped=tuple(name for name in old if name not in names),
        )
