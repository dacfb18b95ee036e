"""The columns of an external table. They are inferred when it is created, and kept in a file:
a file that comes later does not change what queries see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

import pyarrow as pa

from frazil.definitions import CreateExternalTable
from frazil.disk import Disk, make_directories, write_whole
from frazil.errors import Malformed
from frazil.lake import TaskRunner
from frazil.load.copy.columns import read_columns, table_columns, with_declared
from frazil.load.copy.copy_into import infer_schema
from frazil.load.external.partitions import infer_partitions
from frazil.load.stages.stage import Stage
from frazil.load.stages.staged_file import StagedFile

FOLDER, ENDING = "definitions/columns", ".arrow"
"""Beside the definitions, so that a backup has them."""
DEFINITION, PARTITIONS = b"definition", b"partitions"
"""Keys of the metadata: digest of the definition, and number of partition columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalColumns:
    """The columns of files, then those of folders."""

    schema: pa.Schema
    """All columns, with comments."""
    partition_count: int

    @property
    def partitions(self) -> list[pa.Field]:
        return list(self.schema)[len(self.schema) - self.partition_count :]

    @property
    def in_files(self) -> pa.Schema:
        """The columns of files, as they are read."""
        fields = list(self.schema)[: len(self.schema) - self.partition_count]
        return read_columns(pa.schema(fields))

    @property
    def shown(self) -> pa.Schema:
        """All columns, as queries see them."""
        return pa.schema([field.remove_metadata() for field in self.schema])


def infer_columns(
    statement: CreateExternalTable, stage: Stage, files: Sequence[StagedFile], do: TaskRunner
) -> ExternalColumns:
    """Return the columns of a table. `Malformed` if there are none, or one is there twice."""
    is_declared = bool(statement.columns) and all(column.type for column in statement.columns)
    if not files and not is_declared:
        path = f"@{statement.location.stage}/{statement.location.path}"
        raise Malformed(
            f"there are no files at {path}, so no columns; add a file, or declare the columns: "
            f"CREATE EXTERNAL TABLE {statement.name} (id BIGINT, …) STORED AS …"
        )
    inferred = pa.schema([])
    if not is_declared:
        inferred = infer_schema(stage, files, statement.file_format, do)
    columns = table_columns(with_declared(inferred, statement.columns))
    partitions = infer_partitions(statement.partitioned_by, [file.path for file in files])
    names = [*columns.names, *(field.name for field in partitions)]
    for name in names:
        if names.count(name) > 1:
            raise Malformed(
                f"the column {name} is there twice; a column of PARTITIONED BY must not be in the "
                "files as well"
            )
    return ExternalColumns(
        schema=pa.schema([*columns, *partitions]), partition_count=len(partitions)
    )


def write_columns(disk: Disk, name: str, definition: str, columns: ExternalColumns) -> None:
    """Keep columns, replacing earlier ones."""
    metadata = {DEFINITION: _digest(definition), PARTITIONS: str(columns.partition_count)}
    make_directories(disk, FOLDER)
    schema = columns.schema.with_metadata(metadata)
    write_whole(disk, f"{FOLDER}/{name}{ENDING}", [schema.serialize().to_pybytes()])


def remove_columns(disk: Disk, name: str) -> None:
    """Forget columns, if there are any."""
    with suppress(FileNotFoundError):
        disk.unlink(f"{FOLDER}/{name}{ENDING}")


def read_kept_columns(disk: Disk, name: str, definition: str) -> ExternalColumns | None:
    """Return the columns that were kept for this definition, if any."""
    try:
        with closing(disk.open(f"{FOLDER}/{name}{ENDING}")) as file:
            data = file.read(0, file.size())
    except FileNotFoundError:
        return None
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError):
        return None  # inferred again
    metadata = schema.metadata or {}
    if metadata.get(DEFINITION) != _digest(definition).encode():
        return None
    return ExternalColumns(
        schema=schema.remove_metadata(), partition_count=int(metadata[PARTITIONS])
    )


def _digest(definition: str) -> str:
    return hashlib.sha256(definition.encode()).hexdigest()
