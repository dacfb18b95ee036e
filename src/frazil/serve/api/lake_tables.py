"""Endpoints of the Iceberg tables: files, partitions, schemas, snapshots.

Snapshot ids are text: they have 64 bits, which JavaScript numbers do not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from frazil.httpd import HttpError, Response
from frazil.lake import (
    TARGET_BYTES,
    CatalogInfo,
    Lake,
    SnapshotSummary,
    TableFile,
    TableInfo,
    TableView,
    bytes_behind,
    catalog_info_of,
    is_small,
    source_of,
)
from frazil.model import TopicPartition, doc
from frazil.serve.api.lake_jobs import lake_of
from frazil.serve.context import NodeContext
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams

FILES = 200
FILES_MAX = 1000
NO_LAKE = (
    "There is no lake on this node: `lake.enabled` is false, or it is not installed "
    "(`pip install 'frazil[lake]'`). The log and the hot tier keep data within their limits."
)


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a table in one partition. Watermarks are the first offsets not covered."""

    topic: str
    partition: int
    lake_watermark: int
    durable_watermark: int
    lag_bytes: int


class LakeTable(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of one table."""

    name: str
    rows: int
    files: int
    small_files: Annotated[int, doc("Files below 8 MiB, which maintenance compacts.")]
    bytes: int
    snapshots: int
    snapshot_id: Annotated[str | None, doc("Null before the first commit.")]
    committed_ms: Annotated[int | None, doc("Commit time of the current snapshot.")]
    reaches: list[Reach]
    lag_offsets: Annotated[int, doc("Acknowledged, but not in the table yet.")]
    lag_bytes: int
    refusal: Annotated[str | None, doc("Why SQL cannot read the files; null if it can.")]


class LakeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The catalog and tables of the lake."""

    why_absent: Annotated[str | None, doc("Why the lake is off; null if it is on.")]
    trouble: Annotated[str | None, doc("Error of the last append, or null.")]
    spark: Annotated[str | None, doc("State of Spark, which starts on demand.")]
    flush_age_ms: Annotated[int | None, doc("Longest wait of rows for a commit.")]
    catalog: CatalogInfo | None
    tables: list[LakeTable]


class LakeTableRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which table, and which of its files."""

    name: Annotated[Name, doc("Table name, such as logs or topic_orders.")]
    partition: Annotated[Name | None, doc("Only files of this partition.")] = None
    order: Annotated[Literal["newest", "largest", "smallest"], doc("Order of the files.")] = (
        "newest"
    )
    limit: Annotated[int, Meta(ge=1, le=FILES_MAX, description="Maximum number of files.")] = FILES


class LakeSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot that the table still has."""

    snapshot_id: str
    parent_id: str | None
    committed_ms: int
    operation: str
    schema_id: int | None
    is_current: bool
    is_current_line: Annotated[bool, doc("The current snapshot or an ancestor.")]
    tags: list[str]
    added_rows: int | None
    total_rows: int | None
    total_files: int | None
    summary: Annotated[dict[str, str], doc("Iceberg's summary of the commit.")]


class LakeColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a schema."""

    id: int
    name: str
    type: str
    required: bool
    doc: str | None


class LakeSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A current or past schema of the table."""

    schema_id: int
    is_current: bool
    first_used_ms: Annotated[int | None, doc("First commit that used it.")]
    columns: list[LakeColumn]
    added: Annotated[list[str], doc("Columns that the previous schema lacks.")]
    dropped: list[str]


class LakePartition(msgspec.Struct, frozen=True, kw_only=True):
    """Data files of one partition value, usually a day."""

    partition: str
    files: int
    small_files: int
    rows: int
    bytes: int


class LakeFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file of the current snapshot."""

    path: Annotated[str, doc("Relative to the table's location.")]
    partition: str
    rows: int
    bytes: int
    time_min_us: int | None
    time_max_us: Annotated[int | None, doc("Upper bound of `time`, Unix epoch.")]


class FileSizes(msgspec.Struct, frozen=True, kw_only=True):
    """Number of files from `bytes_min` up to twice that size."""

    bytes_min: int
    files: int


class LakeTableAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One table. Lists are newest first and bounded; counts are complete."""

    table: LakeTable
    location: str
    metadata_location: str
    uuid: str
    format_version: int
    partitioned_by: list[str]
    sorted_by: list[str]
    properties: dict[str, str]
    snapshots: list[LakeSnapshot]
    schemas: list[LakeSchema]
    partition_count: int
    partitions: list[LakePartition]
    sizes: list[FileSizes]
    file_count: Annotated[int, doc("Files in the requested partition, or in all.")]
    files: list[LakeFile]


async def tables(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List the Iceberg tables with size, last commit and lag, and the catalog."""
    return await handler.respond_without_sql(lambda: _answer(handler.context))


async def one(handler: Handler, params: LakeTableRequest, _: ApiRequest) -> Response:
    """Return snapshots, partitions, files, schemas and properties of one Iceberg table."""
    lake = lake_of(handler)

    def load() -> LakeTableAnswer:
        facts = lake.view.info(params.name)
        if facts is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"the lake has no table {params.name!r}; /api/v1/lake lists the tables, which are "
                "created with their first rows",
            )
        return _table_answer(handler.context, lake, facts, params)

    return await handler.respond_without_sql(load)


def _answer(context: NodeContext) -> LakeAnswer:
    lake = context.lake
    if lake is None:
        return LakeAnswer(
            why_absent=NO_LAKE,
            trouble=None,
            spark=None,
            flush_age_ms=None,
            catalog=None,
            tables=[],
        )
    view = lake.view.pin(lake.view.topic_tables())
    return LakeAnswer(
        why_absent=None,
        trouble=lake.trouble if lake.died is None else f"the thread died: {lake.died!r}",
        spark=lake.session.state,
        flush_age_ms=lake.config.flush_age_ms,
        catalog=catalog_info_of(lake.config, lake.data_folder),
        tables=[_table(context, lake, view.tables[name]) for name in sorted(view.tables)],
    )


def _table(context: NodeContext, lake: Lake, view: TableView) -> LakeTable:
    reaches = _reaches(context, lake, view)
    current = next((s for s in view.snapshots if s.snapshot_id == view.snapshot_id), None)
    return LakeTable(
        name=view.name,
        rows=view.row_count,
        files=len(view.files),
        small_files=sum(is_small(file.size_bytes, TARGET_BYTES) for file in view.files),
        bytes=sum(file.size_bytes for file in view.files),
        snapshots=len(view.snapshots),
        snapshot_id=None if view.snapshot_id is None else str(view.snapshot_id),
        committed_ms=None if current is None else current.committed_ms,
        reaches=reaches,
        lag_offsets=sum(each.durable_watermark - each.lake_watermark for each in reaches),
        lag_bytes=sum(each.lag_bytes for each in reaches),
        refusal=view.refusal,
    )


def _reaches(context: NodeContext, lake: Lake, view: TableView) -> list[Reach]:
    reaches = []
    for topic in context.log.topics():
        for partition in topic.partitions:
            source = source_of(topic.name, partition.index, lake.config.topics)
            if source is None or source.table != view.name:
                continue
            durable = partition.view.durable_watermark
            # A lake filled from elsewhere may be ahead of this log.
            end = min(view.offsets.get(TopicPartition(topic.name, partition.index), 0), durable)
            reaches.append(
                Reach(
                    topic=topic.name,
                    partition=partition.index,
                    lake_watermark=end,
                    durable_watermark=durable,
                    lag_bytes=bytes_behind(partition.view, end),
                )
            )
    return reaches


def _table_answer(
    context: NodeContext, lake: Lake, facts: TableInfo, params: LakeTableRequest
) -> LakeTableAnswer:
    files = [f for f in facts.view.files if params.partition in (None, f.partition)]
    return LakeTableAnswer(
        table=_table(context, lake, facts.view),
        location=facts.location,
        metadata_location=facts.metadata_location,
        uuid=facts.uuid,
        format_version=facts.format_version,
        partitioned_by=list(facts.partitioned_by),
        sorted_by=list(facts.sorted_by),
        properties=dict(facts.properties),
        snapshots=[_snapshot(each, facts.view.snapshot_id) for each in facts.snapshots],
        schemas=msgspec.convert(facts.schemas, list[LakeSchema], from_attributes=True),
        partition_count=facts.partition_count,
        partitions=msgspec.convert(facts.partitions, list[LakePartition], from_attributes=True),
        sizes=sizes_of(files),
        file_count=len(files),
        files=[_file(each) for each in _ordered(files, params.order)[: params.limit]],
    )


def _snapshot(snapshot: SnapshotSummary, current_id: int | None) -> LakeSnapshot:
    facts = snapshot.facts
    return LakeSnapshot(
        snapshot_id=str(facts.snapshot_id),
        parent_id=None if facts.parent_id is None else str(facts.parent_id),
        committed_ms=facts.committed_ms,
        operation=facts.operation,
        schema_id=snapshot.schema_id,
        is_current=facts.snapshot_id == current_id,
        is_current_line=facts.is_current_line,
        tags=list(snapshot.tags),
        added_rows=facts.added_rows,
        total_rows=facts.total_rows,
        total_files=facts.total_files,
        summary=dict(snapshot.summary),
    )


def _file(file: TableFile) -> LakeFile:
    return LakeFile(
        path=file.path,
        partition=file.partition,
        rows=file.row_count,
        bytes=file.size_bytes,
        time_min_us=file.time_min_us,
        time_max_us=file.time_max_us,
    )


def _ordered(files: Sequence[TableFile], order: str) -> list[TableFile]:
    if order == "newest":
        return sorted(files, key=lambda file: (file.time_max_us or 0, file.path), reverse=True)
    return sorted(files, key=lambda f: (f.size_bytes, f.path), reverse=order == "largest")


def sizes_of(files: Sequence[TableFile]) -> list[FileSizes]:
    """Histogram of file sizes in powers of two, including empty buckets."""
    if not files:
        return []
    steps = [file.size_bytes.bit_length() for file in files]
    return [
        FileSizes(bytes_min=1 << (step - 1) if step else 0, files=steps.count(step))
        for step in range(min(steps), max(steps) + 1)
    ]
