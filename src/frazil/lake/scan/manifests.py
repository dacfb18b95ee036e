"""Manifests: the data files of a snapshot. Each manifest is read and decoded once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IntegerType, LongType, PrimitiveType, StringType, TimestamptzType

from frazil.lake.catalog.own_files import is_own
from frazil.lake.scan.data_file import Bounds, TableFile, plain_location
from frazil.lake.scan.position_deletes import deleted_path
from frazil.lake.tables.properties import PARTITION_COLUMN

DAY_US = 86_400_000_000
PRUNABLE = (IntegerType, LongType, StringType, TimestamptzType)
"""Column types whose bounds are used for pruning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """A file with all dead positions of one data file."""

    path: str
    """Relative to the root of its table."""
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFiles:
    """The live files of one manifest or snapshot."""

    files: tuple[TableFile, ...]
    deletes: Mapping[str, DeleteFile]
    """Location of a data file -> its delete file."""
    other_deletes: int
    """Number of delete files that are not about one data file."""
    foreign: tuple[str, ...]
    """Files that are not Parquet or not below the table's root."""


class Manifests:
    """Cache of decoded manifests. Guarded by the lock of LakeView."""

    def __init__(self) -> None:
        self._cache: dict[str, ManifestFiles] = {}
        self._joined: dict[tuple[str, str], TableFile] = {}
        """Data file and delete file -> both as one; the same object each time, so that what is kept
        for it stays valid."""

    def of(self, table: Table, snapshot: Snapshot, root: str) -> ManifestFiles:
        """Return the live files of a snapshot."""
        parts = [
            self._of(table, manifest, root)
            for manifest in snapshot.manifests(table.io)
            if manifest.has_added_files() or manifest.has_existing_files()
        ]
        deletes = {path: each for part in parts for path, each in part.deletes.items()}
        doubled = sum(len(part.deletes) for part in parts) - len(deletes)
        return ManifestFiles(
            files=tuple(self._with_deletes(f, deletes) for part in parts for f in part.files),
            deletes=deletes,
            other_deletes=doubled + sum(part.other_deletes for part in parts),
            foreign=tuple(path for part in parts for path in part.foreign),
        )

    def _with_deletes(self, file: TableFile, deletes: Mapping[str, DeleteFile]) -> TableFile:
        found = deletes.get(file.location)
        if found is None:
            return file
        key = (file.location, found.path)
        if key not in self._joined:
            self._joined[key] = replace(file, deletes=found.path, dead_count=found.row_count)
        return self._joined[key]

    def keep_only(self, tables: Collection[tuple[Table, Snapshot]]) -> None:
        """Evict manifests that none of these snapshots uses."""
        paths = {
            manifest.manifest_path
            for table, snapshot in tables
            for manifest in snapshot.manifests(table.io)
        }
        self._cache = {path: files for path, files in self._cache.items() if path in paths}
        used = {each.path for files in self._cache.values() for each in files.deletes.values()}
        self._joined = {key: file for key, file in self._joined.items() if key[1] in used}

    def _of(self, table: Table, manifest: ManifestFile, root: str) -> ManifestFiles:
        path = manifest.manifest_path
        if path not in self._cache:
            self._cache[path] = _read_manifest(table, manifest, root)
        return self._cache[path]


def _read_manifest(table: Table, manifest: ManifestFile, root: str) -> ManifestFiles:
    schema = table.schema()
    spec = table.specs().get(manifest.partition_spec_id)
    has_day = spec is not None and [
        (schema.find_column_name(field.source_id), type(field.transform)) for field in spec.fields
    ] == [(PARTITION_COLUMN, DayTransform)]
    files: list[TableFile] = []
    foreign: list[str] = []
    deletes: dict[str, DeleteFile] = {}
    others = 0
    for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
        file = entry.data_file
        if file.content is not DataFileContent.DATA:
            path = deleted_path(file)
            if path is None or path in deletes or not _is_below(file, root):
                others += 1
            else:
                relative = plain_location(file.file_path).removeprefix(root)
                deletes[path] = DeleteFile(path=relative, row_count=file.record_count)
        elif file.file_format is not FileFormat.PARQUET or not _is_below(file, root):
            foreign.append(file.file_path)
        else:
            partition = "" if spec is None else spec.partition_to_path(file.partition, schema)
            files.append(table_file_of(file, schema, root, has_day=has_day, partition=partition))
    return ManifestFiles(
        files=tuple(files), deletes=deletes, other_deletes=others, foreign=tuple(foreign)
    )


def _is_below(file: DataFile, root: str) -> bool:
    return plain_location(file.file_path).startswith(root)


def table_file_of(
    file: DataFile, schema: Schema, root: str, *, has_day: bool = False, partition: str = ""
) -> TableFile:
    """Convert a manifest entry. `has_day`: its Iceberg partition is a day of `time`."""
    bounds = dict(_bounds(file, schema))
    if has_day and PARTITION_COLUMN not in bounds and file.partition[0] is not None:
        begin_us = int(file.partition[0]) * DAY_US
        bounds[PARTITION_COLUMN] = (begin_us, begin_us + DAY_US - 1)
    low, high = bounds.get(PARTITION_COLUMN, (None, None)) if _has_time(schema) else (None, None)
    return TableFile(
        location=file.file_path,
        path=plain_location(file.file_path).removeprefix(root),
        row_count=file.record_count,
        size_bytes=file.file_size_in_bytes,
        time_min_us=low if isinstance(low, int) else None,
        time_max_us=high if isinstance(high, int) else None,
        bounds=bounds,
        times=frozenset(
            field.name for field in schema.fields if isinstance(field.field_type, TimestamptzType)
        ),
        empty=frozenset(_empty(file, schema)),
        field_ids=_ids_of(file),
        partition=partition,
    )


def _ids_of(file: DataFile) -> frozenset[int]:
    return _shared(frozenset(file.value_counts or {}) if is_own(file.file_path) else frozenset())


@lru_cache
def _shared(ids: frozenset[int]) -> frozenset[int]:
    """Return one object for equal ids: there may be many files."""
    return ids


def _has_time(schema: Schema) -> bool:
    """Return whether every row has a time, as all rows from the log have."""
    return any(
        field.name == PARTITION_COLUMN
        and field.required
        and isinstance(field.field_type, TimestamptzType)
        for field in schema.fields
    )


def _bounds(file: DataFile, schema: Schema) -> Iterator[tuple[str, Bounds]]:
    lower, upper = file.lower_bounds or {}, file.upper_bounds or {}
    for field in schema.fields:
        kind = field.field_type
        if isinstance(kind, PRUNABLE) and field.field_id in lower and field.field_id in upper:
            yield (
                field.name,
                (
                    _value(kind, lower[field.field_id]),
                    _value(kind, upper[field.field_id]),
                ),
            )


def _value(kind: PrimitiveType, data: bytes) -> Any:
    return from_bytes(kind, data)


def _empty(file: DataFile, schema: Schema) -> Iterator[str]:
    """Yield columns that are null in every row."""
    nulls = file.null_value_counts or {}
    for field in schema.fields:
        is_empty = nulls.get(field.field_id) == file.record_count
        if is_empty and isinstance(field.field_type, PRUNABLE):
            yield field.name
