"""TableReader: the rows of a table in the order of the log, from any offset up to what it holds.

Where a reader is, is said in offsets of each partition, and in nothing else. Snapshots come and go:
compaction writes the same rows into other files, and expiry forgets how they came. Offsets are in
the rows themselves and in every commit, so that neither loses or repeats anything. Snapshots are
the short way: one that has read all of snapshot A finds what B has besides in the manifests that
were added since, without looking at the others. Where that way is not there any more, it looks at
all files of B, and leaves out those whose bounds of `_offset` cannot have what is wanted.
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
from frazil.lake.config import LakeConfig
from frazil.lake.read.offset_files import added_files, arrival_of, arrived_ms_max, files_now
from frazil.lake.read.offset_windows import Window, windows_of
from frazil.lake.read.prefetch import ReadLimits, read_ahead
from frazil.lake.read.window_reader import PLACE, SizedWindow, WindowRows, read, split, weigh
from frazil.lake.scan.data_file import TableFile
from frazil.lake.tables.record_rows import columns_of

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

logger = logging.getLogger(__name__)

GROWTH = 4.0
"""Rows in memory against the same in Parquet, not compressed, until it is known: texts that repeat
are there once in a file."""
ROW_BYTES_MIN = 16


class TableReader:
    """Reads what is committed; needs neither the log nor Spark. Belongs to one thread."""

    def __init__(self, catalog: Catalog, config: LakeConfig, name: str, limits: ReadLimits) -> None:
        self.name = name
        self.schema = columns_of(name)
        self._catalog = catalog
        self._config = config
        self._limits = limits
        self._growth = GROWTH
        self._table: Table | None = None
        self._done: tuple[int, Mapping[int, int]] | None = None

    @classmethod
    def open(
        cls, catalog: Catalog, config: LakeConfig, name: str, *, limits: ReadLimits | None = None
    ) -> TableReader:
        """A reader of the table as the catalog has it now, which need not be there yet. The catalog
        is the reader's from now on, and closed with it."""
        reader = cls(catalog, config, name, limits or ReadLimits())
        reader.refresh()
        return reader

    def refresh(self) -> None:
        """See what has been committed since. `Unavailable` when the catalog does not answer."""
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
        """The snapshot that is seen."""
        snapshot = None if self._table is None else self._table.current_snapshot()
        return None if snapshot is None else snapshot.snapshot_id

    def ends(self) -> dict[int, int]:
        """The first offset of each partition that the table does not hold."""
        offsets = {} if self._table is None else next_offsets(self._table)
        if len({topic for topic, _ in offsets}) > 1:
            raise Conflict(
                f"{self.name} holds several topics ({', '.join(sorted({t for t, _ in offsets}))}), "
                "so an offset does not say which row is meant"
            )
        return {partition: offset for (_, partition), offset in offsets.items()}

    def read(self, begins: Mapping[int, int]) -> Generator[WindowRows]:
        """All rows from these offsets up to `ends`, in order in each partition, some at a time.

        Every offset between is in one of the answers, also where there are no rows. `Conflict` when
        files have gone meanwhile: refresh, and go on behind what was given. `Unavailable` when one
        cannot be read.
        """
        if self._table is None:
            return
        table, ends = self._table, self.ends()
        is_all = begins.keys() >= ends.keys()
        begins = {p: begin for p, begin in begins.items() if begin < ends.get(p, 0)}
        snapshot_id = self.snapshot_id
        with self._told():
            windows = windows_of(self._files(table, begins), begins, ends)
            with closing(read_ahead(self._weighed(windows), self._read, self._limits)) as ahead:
                yield from ahead
        if snapshot_id is not None and is_all:
            self._done = snapshot_id, ends

    def offset_at_time(self, partition: int, timestamp_ms: int) -> int | None:
        """The first offset whose record is of this time or later; None when the table has none."""
        if self._table is None:
            return None
        best: int | None = None
        end = self.ends().get(partition, 0)
        with self._told():
            for file in sorted(files_now(self._table), key=lambda file: file.offset_min):
                if best is not None and file.offset_min >= best:
                    break
                if (
                    file.may_hold(partition, 0, end)
                    and arrived_ms_max(file, self.name) >= timestamp_ms
                ):
                    found = self._first_at(file, partition, end, timestamp_ms)
                    best = min((each for each in (best, found) if each is not None), default=None)
        return best

    def _first_at(self, file: TableFile, partition: int, end: int, timestamp_ms: int) -> int | None:
        column, units_per_ms = arrival_of(self.name)
        window = Window(partition=partition, begin=0, end=end, files=(file,))
        fields = pa.schema([self.schema.field(name) for name in (*PLACE[:2], column)])
        rows = read(weigh(window, self._fetch), self._fetch, fields).batch
        times = rows.column(column).cast(pa.int64())
        is_late = pc.greater_equal(times, timestamp_ms * units_per_ms)
        least = pc.min(rows.column("_offset").filter(is_late)).as_py()
        return None if least is None else int(least)

    def _files(self, table: Table, begins: Mapping[int, int]) -> list[TableFile]:
        """The files that can have what is wanted: the short way if it is there."""
        if self._done is not None and self.snapshot_id is not None:
            done_id, done = self._done
            if all(begin >= done.get(partition, 0) for partition, begin in begins.items()):
                try:
                    return added_files(table, done_id, self.snapshot_id)
                except (OutOfRange, FileNotFoundError) as error:
                    logger.info("all files are looked at", extra={"reason": str(error)})
        return files_now(table)

    def _weighed(self, windows: list[Window]) -> Iterator[tuple[SizedWindow, int]]:
        """Windows that are neither too large nor, where that can be helped, too small."""
        pending: dict[int, SizedWindow] = {}
        for window in windows:
            weighed = weigh(window, self._fetch)
            before = pending.pop(window.partition, None)
            if before is not None:
                joined = _joined(before, weighed)
                if self._bytes(joined) <= self._limits.window_bytes:
                    weighed = joined
                else:
                    yield from self._fitting(before)
            pending[window.partition] = weighed
        for weighed in pending.values():
            yield from self._fitting(weighed)

    def _fitting(self, weighed: SizedWindow) -> Iterator[tuple[SizedWindow, int]]:
        size_bytes = self._bytes(weighed)
        if size_bytes > self._limits.window_bytes:
            row_bytes = max(ROW_BYTES_MIN, size_bytes // weighed.row_count)
            rows_max = max(1, self._limits.window_bytes // row_bytes)
            for part in split(weighed, self._fetch, rows_max):
                yield part, min(size_bytes, self._limits.window_bytes)
        else:
            yield weighed, size_bytes

    def _bytes(self, weighed: SizedWindow) -> int:
        return int(weighed.size_bytes * self._growth)

    def _read(self, weighed: SizedWindow) -> WindowRows:
        """In any thread. What rows turn out to take is what later ones are expected to."""
        rows = read(weighed, self._fetch, self.schema)
        if rows.batch.num_rows and weighed.size_bytes:
            parquet_bytes = weighed.size_bytes * rows.batch.num_rows / weighed.row_count
            self._growth = max(1.0, rows.batch.nbytes / max(1.0, parquet_bytes))
        return rows

    def _fetch(self, path: str) -> Any:
        assert self._table is not None
        try:
            return self._table.io.new_input(path).open(seekable=True)
        except FileNotFoundError as error:
            raise FileNotFoundError(path) from error

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong with files, in our words."""
        try:
            yield
        except FileNotFoundError as error:
            raise self._gone(error) from error
        except (OSError, pa.ArrowException) as error:
            raise Unavailable(
                f"files of {self.name} cannot be read: {error}. Try again; if one is damaged, "
                "restore it from a copy"
            ) from error

    def _gone(self, error: FileNotFoundError) -> Conflict | Corrupt:
        """Compaction and expiry take files away, but never those of the current snapshot."""
        self.refresh()
        self._done = None
        path = str(error)
        if self._table is None or path not in {file.location for file in files_now(self._table)}:
            return Conflict(f"files of {self.name} were replaced while it was read; read on")
        return Corrupt(
            path=path,
            position=0,
            expected=f"a file of the current snapshot of {self.name}",
            found="no file",
            hint="Restore the file from a copy, or roll the table back to a snapshot that is whole",
        )


def _joined(first: SizedWindow, second: SizedWindow) -> SizedWindow:
    """Two windows of a partition that lie side by side, as one."""
    window = replace(
        first.window, end=second.window.end, files=first.window.files + second.window.files
    )
    return SizedWindow(
        window=window,
        groups=first.groups + second.groups,
        size_bytes=first.size_bytes + second.size_bytes,
    )
