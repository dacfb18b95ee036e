"""The Iceberg tables, for those who look at them: what there is, how it lies, how it came.

Ids of snapshots are text: they have 64 bits, and not all readers of JSON keep so many.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec

from frazil.httpd import HttpError, Response
from frazil.lake import (
    TARGET_BYTES,
    CatalogInfo,
    ColumnInfo,
    Lake,
    PartitionInfo,
    SchemaInfo,
    SnapshotSummary,
    TableFile,
    TableInfo,
    TableView,
    bytes_behind,
    catalog_shown,
    is_small,
    source_of,
)
from frazil.results import json_of
from frazil.serve.api.lake_jobs import lake_of
from frazil.serve.context import NodeContext
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of_body
from frazil.serve.http.router import NoParams

FILES = 200
FILES_MAX = 1000
NO_LAKE = (
    "There is no lake on this node: `lake.enabled` is false, or it is not installed "
    "(`pip install 'frazil[lake]'`). The log and the hot tier keep what they can hold."
)


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """How far a table is with one partition of a topic. Watermarks are the first offsets that are
    not there yet."""

    topic: str
    partition: int
    lake_watermark: int
    durable_watermark: int
    lag_bytes: int


class LakeTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table at a glance."""

    name: str
    rows: int
    files: int
    small_files: int
    """Below 8 MiB. Maintenance joins those of one day."""
    bytes: int
    snapshots: int
    snapshot_id: str | None
    """Null while nothing was ever committed."""
    committed_ms: int | None
    """When the current snapshot came."""
    reaches: list[Reach]
    lag_offsets: int
    """Requests, or records, that are acknowledged and not in the table yet."""
    lag_bytes: int
    refusal: str | None
    """Why SQL here cannot read its files as they are; null when it can."""


class LakeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The lake: its catalog and its tables."""

    why_absent: str | None
    """Why there is no lake; null when there is one."""
    trouble: str | None
    """Why the last round, that should have brought rows in, failed."""
    spark: str | None
    """What Spark does: it is started when there is something to commit."""
    flush_age_ms: int | None
    """Rows wait so long for a commit, at most, unless there are many."""
    catalog: CatalogInfo | None
    tables: list[LakeTable]


class LakeTableRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which table, and which of its files."""

    name: Name
    """As logs, or topic_orders."""
    partition: Name | None = None
    """Only files of this one, as `partitions` names it."""
    order: Literal["newest", "largest", "smallest"] = "newest"
    """Which files come first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=FILES_MAX)] = FILES
    """Files that are told of."""


class LakeSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot that the table still has."""

    snapshot_id: str
    parent_id: str | None
    committed_ms: int
    operation: str
    schema_id: int | None
    is_current: bool
    is_current_line: bool
    """Is it the current snapshot, or one of those that it came from?"""
    tags: list[str]
    added_rows: int | None
    total_rows: int | None
    total_files: int | None
    summary: dict[str, str]
    """What the commit says of itself, as Iceberg names it."""


class LakeColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a schema."""

    id: int
    name: str
    type: str
    required: bool
    doc: str | None


class LakeSchema(msgspec.Struct, frozen=True, kw_only=True):
    """One schema that the table has, or had."""

    schema_id: int
    is_current: bool
    first_used_ms: int | None
    """When the first commit with it came, of the snapshots that are still there."""
    columns: list[LakeColumn]
    added: list[str]
    """Columns that the schema before it had not."""
    dropped: list[str]


class LakePartition(msgspec.Struct, frozen=True, kw_only=True):
    """Files whose rows are of the same day, mostly."""

    partition: str
    files: int
    small_files: int
    rows: int
    bytes: int


class LakeFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file of the current snapshot."""

    path: str
    """Below the table's location."""
    partition: str
    rows: int
    bytes: int
    time_min_us: int | None
    time_max_us: int | None
    """Bounds of the column `time`, in microseconds since 1970."""


class FileSizes(msgspec.Struct, frozen=True, kw_only=True):
    """How many files have at least so many bytes, and less than twice as many."""

    bytes_min: int
    files: int


class LakeTableAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One table. Lists have their newest first, and an end; counts are of all."""

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
    file_count: int
    """Of the partition that was asked for, or of all."""
    files: list[LakeFile]


async def tables(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """The Iceberg tables: rows, files, bytes, the last commit, how far behind; the catalog."""
    body = await desk.run(lambda: json_of(_answer(desk.rooms)))
    return answer_of_body(body, JSON)


async def one(desk: Handler, asked: LakeTableRequest, _: ApiRequest) -> Response:
    """One Iceberg table: its snapshots, partitions, files, schemas and settings."""
    lake = lake_of(desk)

    def look() -> bytes:
        facts = lake.view.facts(asked.name)
        if facts is None:
            raise HttpError(
                HTTPStatus.NOT_FOUND,
                f"the lake has no table {asked.name!r}; /api/v1/lake lists those there are, and "
                "each is made with its first rows",
            )
        return json_of(_table_answer(desk.rooms, lake, facts, asked))

    return answer_of_body(await desk.run(look), JSON)


def _answer(rooms: NodeContext) -> LakeAnswer:
    lake = rooms.lake
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
        trouble=lake.trouble if lake.died is None else f"its thread died: {lake.died!r}",
        spark=lake.session.state,
        flush_age_ms=lake.config.flush_age_ms,
        catalog=catalog_shown(lake.config, lake.data_folder),
        tables=[_table(rooms, lake, view.tables[name]) for name in sorted(view.tables)],
    )


def _table(rooms: NodeContext, lake: Lake, view: TableView) -> LakeTable:
    reaches = _reaches(rooms, lake, view)
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


def _reaches(rooms: NodeContext, lake: Lake, view: TableView) -> list[Reach]:
    found = []
    for topic in rooms.log.topics():
        for partition in topic.partitions:
            source = source_of(topic.name, partition.index, lake.config.topics)
            if source is None or source.table != view.name:
                continue
            now = partition.view
            # A lake that was filled elsewhere may be further than this log.
            held = min(view.offsets.get((topic.name, partition.index), 0), now.durable_watermark)
            found.append(
                Reach(
                    topic=topic.name,
                    partition=partition.index,
                    lake_watermark=held,
                    durable_watermark=now.durable_watermark,
                    lag_bytes=bytes_behind(now, held),
                )
            )
    return found


def _table_answer(
    rooms: NodeContext, lake: Lake, facts: TableInfo, asked: LakeTableRequest
) -> LakeTableAnswer:
    wanted = [f for f in facts.view.files if asked.partition in (None, f.partition)]
    return LakeTableAnswer(
        table=_table(rooms, lake, facts.view),
        location=facts.location,
        metadata_location=facts.metadata_location,
        uuid=facts.uuid,
        format_version=facts.format_version,
        partitioned_by=list(facts.partitioned_by),
        sorted_by=list(facts.sorted_by),
        properties=dict(facts.properties),
        snapshots=[_snapshot(each, facts.view.snapshot_id) for each in facts.snapshots],
        schemas=[_schema(each) for each in facts.schemas],
        partition_count=facts.partition_count,
        partitions=[_partition(each) for each in facts.partitions],
        sizes=sizes_of(wanted),
        file_count=len(wanted),
        files=[_file(each) for each in _ordered(wanted, asked.order)[: asked.limit]],
    )


def _snapshot(told: SnapshotSummary, current_id: int | None) -> LakeSnapshot:
    facts = told.facts
    return LakeSnapshot(
        snapshot_id=str(facts.snapshot_id),
        parent_id=None if facts.parent_id is None else str(facts.parent_id),
        committed_ms=facts.committed_ms,
        operation=facts.operation,
        schema_id=told.schema_id,
        is_current=facts.snapshot_id == current_id,
        is_current_line=facts.is_current_line,
        tags=list(told.tags),
        added_rows=facts.added_rows,
        total_rows=facts.total_rows,
        total_files=facts.total_files,
        summary=dict(told.summary),
    )


def _schema(facts: SchemaInfo) -> LakeSchema:
    return LakeSchema(
        schema_id=facts.schema_id,
        is_current=facts.is_current,
        first_used_ms=facts.first_used_ms,
        columns=[_column(each) for each in facts.columns],
        added=list(facts.added),
        dropped=list(facts.dropped),
    )


def _column(facts: ColumnInfo) -> LakeColumn:
    return LakeColumn(
        id=facts.id, name=facts.name, type=facts.type, required=facts.required, doc=facts.doc
    )


def _partition(facts: PartitionInfo) -> LakePartition:
    return LakePartition(
        partition=facts.partition,
        files=facts.files,
        small_files=facts.small_files,
        rows=facts.rows,
        bytes=facts.bytes,
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
    """Files by size, in steps of twice as much; steps without a file are there, too."""
    if not files:
        return []
    steps = [file.size_bytes.bit_length() for file in files]
    return [
        FileSizes(bytes_min=1 << (step - 1) if step else 0, files=steps.count(step))
        for step in range(min(steps), max(steps) + 1)
    ]
