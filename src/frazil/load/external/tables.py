"""ExternalTables: files of stages, for queries.

1. list    the files of a table, at most `external.list_age_ms` ago
2. prune   by values in the names of folders, then by Parquet footers
3. fetch   what is left: read the bytes that were listed, cast strictly, write Parquet into the
           cache

Workers read files of the cache only. A file that was overwritten after it was listed is refused,
and the table is listed again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.definitions import CreateExternalTable, CreateStage, Definitions
from frazil.disk import Disk
from frazil.errors import Malformed, TooLarge, Unavailable, Unknown
from frazil.lake import ArrowSink, TableFile, TaskRunner
from frazil.load.copy.copy_into import selected_files
from frazil.load.external.columns import (
    ExternalColumns,
    infer_columns,
    read_kept_columns,
    remove_columns,
    write_columns,
)
from frazil.load.external.file_cache import ENDING, FETCHES_MAX, FOLDER, FileCache
from frazil.load.external.partitions import Value, partition_values
from frazil.load.external.statistics import (
    FileStatistics,
    partition_bounds,
    statistics_of,
    time_columns,
)
from frazil.load.formats.blocks import ADD_HINT, RowError
from frazil.load.formats.reader import read_file
from frazil.load.stages.stage import Stage, open_stage
from frazil.load.stages.staged_file import StagedFile
from frazil.model import NS_PER_MS, Clock, MiB
from frazil.settings import ExternalConfig, StagesConfig

ROW_COUNT_UNKNOWN = -1
GROUP_ROWS_MAX = 128 * 1024
GROUP_BYTES_MAX = 64 * MiB
"""Rows in memory while a file is converted."""
COMPRESSION = "lz4"
SMALL_FILES, SMALL_BYTES = 500, 64 * MiB
FOOTERS_MAX = 100_000
"""Footers of files that are remembered."""
FOOTER_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A file of a table as it was listed."""

    staged: StagedFile
    values: tuple[Value, ...]
    path: str
    """In the cache, relative to the folder of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetch:
    """What is fetched of a file."""

    listed: _Listed
    path: str
    """In the cache, relative to the folder of the table."""
    size_bytes: int
    columns: tuple[str, ...] | None = None
    """None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    definition: str
    time_ns: int
    files: Mapping[str, _Listed]
    """By path in the cache."""


class ExternalTables:
    """Implements `frazil.query.ExternalSource`. Thread-safe."""

    def __init__(
        self,
        definitions: Definitions,
        config: ExternalConfig,
        stages: StagesConfig,
        connections: Mapping[str, str],
        disk: Disk,
        data_folder: Path,
        *,
        in_use_ms: int,
        clock: Clock,
    ) -> None:
        """Files of the cache are not evicted within `in_use_ms` of their last use."""
        self._definitions = definitions
        self._config = config
        self._stages = stages
        self._connections = connections
        self._disk = disk
        self.data_folder = data_folder
        self._clock = clock
        self.bytes_max = config.query_bytes_max
        self.cache = FileCache(disk, config.cache_bytes_max, in_use_ms, clock)
        self._lock = threading.Lock()
        self._columns: dict[str, tuple[str, ExternalColumns]] = {}
        """By table: the text of its definition, and its columns."""
        self._listings: dict[str, _Listing] = {}
        self._footers: OrderedDict[tuple[str, str], FileStatistics] = OrderedDict()
        """By URI and ETag."""

    def names(self) -> Collection[str]:
        return [each.name for each in self._definitions.of_kind("external_table")]

    def schema(self, name: str) -> pa.Schema:
        return self._columns_of(name).shown

    def listing(
        self, name: str, check: Callable[[], None], *, is_fresh: bool = False
    ) -> ExternalListing:
        statement, _ = self._definition(name)
        columns = self._columns_of(name)
        listed = self._listed(name, columns, is_fresh=is_fresh)
        check()
        return ExternalListing(self, statement, columns, listed.files)

    def stage(self, name: str) -> Stage:
        """Return a stage. `Unknown` if it is not defined, or not below a root any more."""
        found = self._definitions.find("stage", name)
        if found is None or not isinstance(found.statement, CreateStage):
            raise Unknown(f"there is no stage {name}; CREATE STAGE {name} URL='…' defines it")
        return open_stage(found.statement, self._stages, self._connections)

    def infer(self, statement: CreateExternalTable, definition: str, do: TaskRunner) -> int:
        """Infer the columns of a table that is to be created, and keep them. Return their
        number."""
        stage = self.stage(statement.location.stage)
        files = self._files(statement, stage)
        columns = infer_columns(statement, stage, files, _run_here if _is_small(files) else do)
        self._keep(statement.name, definition, columns)
        return len(columns.schema)

    def drop(self, name: str) -> None:
        """Forget a table that was dropped."""
        with self._lock:
            self._columns.pop(name, None)
            self._listings.pop(name, None)
        remove_columns(self._disk, name)
        self.cache.remove_folder(name)

    def problem(self, name: str) -> str | None:
        """Return why a table cannot be read now; None if it can, as far as that is known without
        reading its files."""
        try:
            self.listing(name, lambda: None)
        except (Malformed, TooLarge, Unavailable, Unknown) as error:
            return str(error)
        return None

    def _definition(self, name: str) -> tuple[CreateExternalTable, str]:
        statement = self._definitions.get("external_table", name)
        assert isinstance(statement, CreateExternalTable)
        found = self._definitions.find("external_table", name)
        return statement, "" if found is None else found.text

    def _columns_of(self, name: str) -> ExternalColumns:
        statement, text = self._definition(name)
        with self._lock:
            known = self._columns.get(name)
        if known is not None and known[0] == text:
            return known[1]
        columns = read_kept_columns(self._disk, name, text)
        if columns is not None:
            with self._lock:
                self._columns[name] = (text, columns)
            return columns
        # Defined by hand, or restored from a backup.
        stage = self.stage(statement.location.stage)
        columns = infer_columns(statement, stage, self._files(statement, stage), _run_here)
        self._keep(name, text, columns)
        return columns

    def _keep(self, name: str, text: str, columns: ExternalColumns) -> None:
        write_columns(self._disk, name, text, columns)
        with self._lock:
            self._columns[name] = (text, columns)
            self._listings.pop(name, None)

    def _files(self, statement: CreateExternalTable, stage: Stage) -> list[StagedFile]:
        return selected_files(
            stage, statement.location.path, statement.pattern, (), self._config.files_max
        )

    def _listed(self, name: str, columns: ExternalColumns, *, is_fresh: bool) -> _Listing:
        statement, text = self._definition(name)
        now_ns = self._clock.monotonic_ns()
        with self._lock:
            known = self._listings.get(name)
        age_ns_max = self._config.list_age_ms * NS_PER_MS
        if known is not None and known.definition == text and not is_fresh:
            is_young = now_ns - known.time_ns < age_ns_max
            if is_young:
                return known
        files: dict[str, _Listed] = {}
        key = repr(statement.file_format).encode() + columns.schema.serialize().to_pybytes()
        for staged in self._files(statement, self.stage(statement.location.stage)):
            values = partition_values(staged.path, columns.partitions)
            digest = hashlib.sha256(key)
            digest.update(repr((staged.uri, staged.etag, staged.size_bytes, values)).encode())
            path = f"{digest.hexdigest()[:40]}{ENDING}"
            files[path] = _Listed(staged=staged, values=values, path=path)
        listing = _Listing(definition=text, time_ns=now_ns, files=files)
        with self._lock:
            self._listings[name] = listing
        return listing

    def footer(self, staged: StagedFile) -> FileStatistics | None:
        """Return the statistics of a Parquet file whose footer was read."""
        with self._lock:
            return self._footers.get((staged.uri, staged.etag))

    def read_footer(self, stage: Stage, staged: StagedFile) -> None:
        """Read the footer of a Parquet file."""
        store = stage.open()
        try:
            with store.open(staged) as stream:
                statistics = statistics_of(pq.ParquetFile(stream).metadata)
                store.check(staged, stream)
        except pa.ArrowException as error:
            raise Malformed(f"{staged.uri}: it is not a Parquet file: {error}") from error
        with self._lock:
            self._footers[staged.uri, staged.etag] = statistics
            if len(self._footers) > FOOTERS_MAX:
                self._footers.popitem(last=False)


class ExternalListing:
    """Files of a table as they were listed for one query. Implements `frazil.query.ListedTable`."""

    def __init__(
        self,
        tables: ExternalTables,
        statement: CreateExternalTable,
        columns: ExternalColumns,
        listed: Mapping[str, _Listed],
    ) -> None:
        self._tables = tables
        self._statement = statement
        self._columns = columns
        self._listed = listed
        self.schema: pa.Schema = columns.shown
        self.root = f"{tables.data_folder / FOLDER / statement.name}/"
        self.files = tuple(map(self._known, listed.values()))

    def measured(
        self, files: Sequence[TableFile], check: Callable[[], None]
    ) -> tuple[TableFile, ...]:
        if self._statement.file_format.type != "parquet":
            return tuple(files)
        stage = self._stage()

        def measure(file: TableFile) -> None:
            check()
            self._tables.read_footer(stage, self._listed[file.path].staged)

        unknown = [file for file in files if file.row_count == ROW_COUNT_UNKNOWN]
        if unknown:
            with ThreadPoolExecutor(FOOTER_THREADS, "frazil-external") as pool:
                list(pool.map(measure, unknown))
        return tuple(self._known(self._listed[file.path]) for file in files)

    def fetched(
        self,
        files: Sequence[TableFile],
        columns: Sequence[str] | None,
        check: Callable[[], None],
    ) -> tuple[TableFile, ...]:
        stage, cache = self._stage(), self._tables.cache
        work = [self._fetch_of(self._listed[file.path], columns) for file in files]
        self._check_size([each for each in work if cache.find(self._path(each)) is None])

        def fetch(each: _Fetch) -> TableFile:
            check()
            write = partial(_convert, self._statement, stage, self._columns, each)
            statistics = cache.fetch(self._path(each), each.size_bytes, write, check)
            return _with_statistics(replace(self._blank(each.listed), path=each.path), statistics)

        with ThreadPoolExecutor(FETCHES_MAX, "frazil-external") as pool:
            try:
                return tuple(pool.map(fetch, work))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)  # after an error

    def _fetch_of(self, listed: _Listed, columns: Sequence[str] | None) -> _Fetch:
        """Return what has to be fetched of a file so that a query can read these columns."""
        footer = self._tables.footer(listed.staged)
        whole = _Fetch(listed=listed, path=listed.path, size_bytes=listed.staged.size_bytes)
        if columns is None or footer is None or not footer.column_bytes:
            return whole
        read = tuple(name for name in footer.column_bytes if name in columns)
        if not read:  # its rows are counted
            read = (min(footer.column_bytes, key=lambda name: footer.column_bytes[name]),)
        if len(read) == len(footer.column_bytes):
            return whole
        digest = hashlib.sha256(repr((listed.path, read)).encode()).hexdigest()
        return _Fetch(
            listed=listed,
            path=f"{digest[:40]}{ENDING}",
            size_bytes=sum(footer.column_bytes[name] for name in read),
            columns=read,
        )

    def _check_size(self, missing: Sequence[_Fetch]) -> None:
        size, bytes_max = sum(each.size_bytes for each in missing), self._tables.bytes_max
        if size > bytes_max:
            columns = ", ".join(field.name for field in self._columns.partitions) or "columns"
            raise TooLarge(
                f"the query has to fetch {size} bytes of {len(missing)} files of external table "
                f"{self._statement.name}, which is more than external.query_bytes_max "
                f"({bytes_max}); add conditions on {columns}, select fewer columns, raise it, or "
                "load the files by COPY INTO"
            )

    def _stage(self) -> Stage:
        return self._tables.stage(self._statement.location.stage)

    def _path(self, fetch: _Fetch) -> str:
        return f"{FOLDER}/{self._statement.name}/{fetch.path}"

    def _known(self, listed: _Listed) -> TableFile:
        """Return what is known about a file without reading it."""
        footer = self._tables.footer(listed.staged)
        blank = self._blank(listed)
        return blank if footer is None else _with_statistics(blank, footer)

    def _blank(self, listed: _Listed) -> TableFile:
        bounds: dict[str, Any] = {}
        empty = set()
        for field, value in zip(self._columns.partitions, listed.values, strict=True):
            bounds |= partition_bounds(field.name, value)
            if value is None:
                empty.add(field.name)
        return TableFile(
            location=listed.staged.uri,
            path=listed.path,
            row_count=ROW_COUNT_UNKNOWN,
            size_bytes=listed.staged.size_bytes,
            bounds=bounds,
            times=time_columns(self.schema),
            empty=frozenset(empty),
        )


def _is_small(files: Sequence[StagedFile]) -> bool:
    """Return whether columns are inferred faster here than Spark starts."""
    size = sum(file.size_bytes for file in files)
    return len(files) <= SMALL_FILES and size <= SMALL_BYTES


def _run_here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def _with_statistics(file: TableFile, statistics: FileStatistics) -> TableFile:
    """Return a file with its row count and bounds; those of the folders stay."""
    return replace(
        file,
        row_count=statistics.row_count,
        bounds={**statistics.bounds, **file.bounds},
        empty=statistics.empty | file.empty,
    )


def _convert(
    statement: CreateExternalTable,
    stage: Stage,
    columns: ExternalColumns,
    fetch: _Fetch,
    sink: ArrowSink,
    step: Callable[[], None],
) -> pq.FileMetaData:
    """Write a file as Parquet, with columns of its table. `Malformed` if a value does not fit,
    `Conflict` if it is not the file that was listed."""
    file, schema = fetch.listed.staged, columns.shown
    if fetch.columns is not None:
        kept = {*fetch.columns, *(field.name for field in columns.partitions)}
        schema = pa.schema([field for field in schema if field.name in kept])
    writer = pq.ParquetWriter(
        sink, schema, compression=COMPRESSION, write_page_index=True, store_schema=False
    )
    pending: list[pa.Table] = []
    try:
        blocks = read_file(
            stage.open(),
            file,
            statement.file_format,
            columns.in_files,
            columns=fetch.columns,
        )
        for block in blocks:
            step()
            if block.errors:
                raise _misfit(statement.name, file, block.errors[0])
            if block.rows.num_rows:
                pending.append(_with_values(block.rows, schema, fetch.listed.values))
            if (
                sum(rows.num_rows for rows in pending) >= GROUP_ROWS_MAX
                or sum(rows.nbytes for rows in pending) >= GROUP_BYTES_MAX
            ):
                writer.write_table(pa.concat_tables(pending), GROUP_ROWS_MAX)
                pending = []
        if pending:
            writer.write_table(pa.concat_tables(pending), GROUP_ROWS_MAX)
    except Malformed as error:
        if isinstance(error, _Misfit):
            raise Malformed(str(error)) from None
        raise _misfit(statement.name, file, None, str(error)) from error
    finally:
        writer.close()
    return writer.writer.metadata


def _with_values(rows: pa.Table, schema: pa.Schema, values: Sequence[Value]) -> pa.Table:
    """Add the columns of the folders."""
    for field, value in zip(list(schema)[len(rows.schema) :], values, strict=True):
        rows = rows.append_column(field, pa.repeat(pa.scalar(value, field.type), rows.num_rows))
    return rows.cast(schema)


class _Misfit(Malformed):
    """A row that does not fit, named with its line."""


def _misfit(name: str, file: StagedFile, error: RowError | None, reason: str = "") -> Malformed:
    """Return the error of a file that does not fit its table."""
    where, why = "", reason
    if error is not None:
        column = f", column {error.column}" if error.column else ""
        where, why = f", line {error.line}{column}", error.reason
    return (Malformed if error is None else _Misfit)(
        f"{file.uri}{where}: {why.removesuffix(ADD_HINT)}. It does not fit external table {name}: "
        "correct the file, leave it out by PATTERN, or CREATE OR REPLACE EXTERNAL TABLE with other "
        "columns"
    )
