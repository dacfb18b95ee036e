"""TableReader: the rows of a table in log order, from any offset up to the last committed one.

The position of a reader is one offset per partition and nothing else. Snapshots come and go:
compaction rewrites rows into other files, and expiry removes history. Offsets are in the rows and
in every commit, so neither loses or repeats a row. Snapshots are only a shortcut: after reading all
of snapshot A, the new rows of B are in the manifests added since. If those snapshots have expired,
all files of B are considered and pruned by their bounds of `_offset`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Conflict, Corrupt, OutOfRange, Unavailable
from frazil.lake.append.commit import next_offsets
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.read.offset_files import added_files, arrival_of, arrived_ms_max, files_now
from frazil.lake.read.offset_windows import Window, windows_of
from frazil.lake.read.prefetch import ReadLimits, prefetch
from frazil.lake.read.window_reader import (
    POSITION_COLUMNS,
    SizedWindow,
    WindowRows,
    measure,
    read,
    split,
)
from frazil.lake.scan.data_file import TableFile
from frazil.lake.tables.record_rows import columns_of
from frazil.model import NO_PROMOTIONS, Promotions
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

logger = logging.getLogger(__name__)

GROWTH = 4.0
"""Initial estimate of the size in memory relative to uncompressed Parquet, which stores repeated
strings once."""
ROW_BYTES_MIN = 16


class TableReader:
    """Reads committed rows; needs neither the log nor Spark. Owned by one thread."""

    def __init__(
        self,
        catalog: Catalog,
        config: LakeConfig,
        name: str,
        limits: ReadLimits,
        promotions: Promotions = NO_PROMOTIONS,
    ) -> None:
        self.name = name
        self.schema = columns_of(name, promotions)
        self._catalog = catalog
        self._config = config
        self._limits = limits
        self._growth = GROWTH
        self._table: Table | None = None
        self._done: tuple[int, Mapping[int, int]] | None = None

    @classmethod
    def open(
        cls,
        catalog: Catalog,
        config: LakeConfig,
        name: str,
        *,
        limits: ReadLimits | None = None,
        promotions: Promotions = NO_PROMOTIONS,
    ) -> TableReader:
        """Open a reader. The table need not exist yet. The reader owns and closes the catalog."""
        reader = cls(catalog, config, name, limits or ReadLimits(), promotions)
        reader.refresh()
        return reader

    def refresh(self) -> None:
        """Load the current table. Raise `Unavailable` if the catalog does not answer."""
        from pyiceberg.exceptions import NoSuchTableError

        with catalog_calls(self._config):
            try:
                self._table = self._catalog.load_table((self._config.namespace, self.name))
            except NoSuchTableError:
                self._table = None

    def close(self) -> None:
        self._catalog.close()

    @property
    def snapshot_id(self) -> int | None:
        """The current snapshot at the last refresh."""
        snapshot = None if self._table is None else self._table.current_snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    def ends(self) -> dict[int, int]:
        """Return the first offset of each partition that the table does not hold."""
        offsets = {} if self._table is None else next_offsets(self._table)
        if len({topic for topic, _ in offsets}) > 1:
            raise Conflict(
                f"{self.name} holds several topics ({', '.join(sorted({t for t, _ in offsets}))}), "
                "so an offset does not identify a row"
            )
        return {partition: offset for (_, partition), offset in offsets.items()}

    def read(self, begins: Mapping[int, int]) -> Generator[WindowRows]:
        """Yield all rows from these offsets up to `ends`, in order within each partition.

        The ranges yielded are contiguous, even where there are no rows. Raise `Conflict` if files
        were replaced meanwhile (refresh, then continue after the last range), and `Unavailable`
        if a file cannot be read.
        """
        if self._table is None:
            return
        table, ends = self._table, self.ends()
        is_all = begins.keys() >= ends.keys()
        begins = {p: begin for p, begin in begins.items() if begin < ends.get(p, 0)}
        snapshot_id = self.snapshot_id
        with self._file_errors():
            windows = windows_of(self._files(table, begins), begins, ends)
            with closing(prefetch(self._sized(windows), self._read, self._limits)) as prefetched:
                yield from prefetched
        if snapshot_id is not None and is_all:
            self._done = snapshot_id, ends

    def offset_at_time(self, partition: int, timestamp_ms: int) -> int | None:
        """Return the first offset whose record arrived at this time or later, or None."""
        if self._table is None:
            return None
        best: int | None = None
        end = self.ends().get(partition, 0)
        with self._file_errors():
            for file in sorted(files_now(self._table), key=lambda file: file.offset_min):
                if best is not None and file.offset_min >= best:
                    break
                if (
                    file.may_hold(partition, 0, end)
                    and arrived_ms_max(file, self.name) >= timestamp_ms
                ):
                    first = self._first_at(file, partition, end, timestamp_ms)
                    best = min((o for o in (best, first) if o is not None), default=None)
        return best

    def _first_at(self, file: TableFile, partition: int, end: int, timestamp_ms: int) -> int | None:
        column, units_per_ms = arrival_of(self.name)
        window = Window(partition=partition, begin=0, end=end, files=(file,))
        fields = pa.schema([self.schema.field(name) for name in (*POSITION_COLUMNS[:2], column)])
        rows = read(measure(window, self._fetch), self._fetch, fields).batch
        times = rows.column(column).cast(pa.int64())
        is_late = pc.greater_equal(times, timestamp_ms * units_per_ms)
        least = pc.min(rows.column("_offset").filter(is_late)).as_py()
        return None if least is None else int(least)

    def _files(self, table: Table, begins: Mapping[int, int]) -> list[TableFile]:
        """Return the files that may hold these offsets: only new ones if history permits."""
        if self._done is not None and self.snapshot_id is not None:
            done_id, done = self._done
            if all(begin >= done.get(partition, 0) for partition, begin in begins.items()):
                try:
                    return added_files(table, done_id, self.snapshot_id)
                except (OutOfRange, FileNotFoundError) as error:
                    logger.info("reading all files", extra={"reason": str(error)})
        return files_now(table)

    def _sized(self, windows: list[Window]) -> Iterator[tuple[SizedWindow, int]]:
        """Yield windows, merged or split to about `window_bytes`, with their estimated bytes."""
        pending: dict[int, SizedWindow] = {}
        for window in windows:
            sized = measure(window, self._fetch)
            before = pending.pop(window.partition, None)
            if before is not None:
                merged = _merged(before, sized)
                if self._bytes(merged) <= self._limits.window_bytes:
                    sized = merged
                else:
                    yield from self._fitting(before)
            pending[window.partition] = sized
        for sized in pending.values():
            yield from self._fitting(sized)

    def _fitting(self, sized: SizedWindow) -> Iterator[tuple[SizedWindow, int]]:
        size_bytes = self._bytes(sized)
        if size_bytes > self._limits.window_bytes:
            row_bytes = max(ROW_BYTES_MIN, size_bytes // sized.row_count)
            rows_max = max(1, self._limits.window_bytes // row_bytes)
            for part in split(sized, self._fetch, rows_max):
                yield part, min(size_bytes, self._limits.window_bytes)
        else:
            yield sized, size_bytes

    def _bytes(self, sized: SizedWindow) -> int:
        return int(sized.size_bytes * self._growth)

    def _read(self, sized: SizedWindow) -> WindowRows:
        """Read a window, in any thread, and update the estimated growth."""
        rows = read(sized, self._fetch, self.schema)
        if rows.batch.num_rows and sized.size_bytes:
            parquet_bytes = sized.size_bytes * rows.batch.num_rows / sized.row_count
            self._growth = max(1.0, rows.batch.nbytes / max(1.0, parquet_bytes))
        return rows

    def _fetch(self, path: str) -> Any:
        assert self._table is not None
        try:
            return self._table.io.new_input(path).open(seekable=True)
        except FileNotFoundError as error:
            raise FileNotFoundError(path) from error

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        """Translate errors of data files."""
        try:
            yield
        except FileNotFoundError as error:
            raise self._missing_file(error) from error
        except (OSError, pa.ArrowException) as error:
            raise Unavailable(
                f"files of {self.name} cannot be read: {error}. Try again; if one is damaged, "
                "restore it from a copy"
            ) from error

    def _missing_file(self, error: FileNotFoundError) -> Conflict | Corrupt:
        """Return the error for a missing file: maintenance never deletes those in use."""
        self.refresh()
        self._done = None
        path = str(error)
        if self._table is None or path not in {file.location for file in files_now(self._table)}:
            return Conflict(
                f"files of {self.name} were replaced during the read; refresh and continue"
            )
        return Corrupt(
            path=path,
            position=0,
            expected=f"a file of the current snapshot of {self.name}",
            found="no file",
            hint="Restore the file from a copy, or roll the table back to an undamaged snapshot",
        )


def _merged(first: SizedWindow, second: SizedWindow) -> SizedWindow:
    """Merge two adjacent windows of a partition."""
    window = replace(
        first.window, end=second.window.end, files=first.window.files + second.window.files
    )
    return SizedWindow(
        window=window,
        groups=first.groups + second.groups,
        size_bytes=first.size_bytes + second.size_bytes,
    )
