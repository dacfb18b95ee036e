"""FileCache: fetched files, converted to Parquet, below `external/` of the data folder.

A name stands for one content: it is derived from URI, ETag and columns. So a file is written once
and never changes, and a query that has its name reads these bytes or fails. Files that a running
query may read are not evicted.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.disk import Disk, is_full, make_directories
from frazil.errors import Overloaded, TooLarge, Unavailable
from frazil.lake import ArrowSink
from frazil.load.external.statistics import FileStatistics, statistics_of
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock

logger = logging.getLogger(__name__)

FOLDER = "external"
ENDING, UNFINISHED = ".parquet", ".tmp"
FETCHES_MAX = 4
"""Files that are fetched at the same time, by all queries."""
WAIT_S = 0.1
RETRY_AFTER_MS = 1000

FILES = Counter("frazil.external.files", "Files of external tables that queries read, by origin.")
BYTES = Counter("frazil.external.bytes", "Bytes of files fetched for external tables.")

WriteParquet = Callable[[ArrowSink, Callable[[], None]], pq.FileMetaData]
"""Writes one file. Calls its second argument between blocks."""


@dataclass(slots=True, kw_only=True)
class _Entry:
    size_bytes: int
    used_ns: int | None = None
    """None: by no query of this process."""
    statistics: FileStatistics | None = None


class FileCache:
    """Thread-safe."""

    def __init__(self, disk: Disk, bytes_max: int, in_use_ms: int, clock: Clock) -> None:
        """Files used within `in_use_ms` are not evicted."""
        self._disk = disk
        self._bytes_max = bytes_max
        self._in_use_ns = in_use_ms * NS_PER_MS
        self._clock = clock
        self._changed = threading.Condition()
        self._busy: set[str] = set()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """Least recently used first."""
        self._find()

    def _find(self) -> None:
        """Find the files of earlier processes, and remove unfinished ones."""
        for table in self._disk.list(FOLDER):
            for name in self._disk.list(f"{FOLDER}/{table}"):
                path = f"{FOLDER}/{table}/{name}"
                if name.endswith(UNFINISHED):
                    self._disk.unlink(path)
                elif name.endswith(ENDING):
                    file = self._disk.open(path)
                    self._entries[path] = _Entry(size_bytes=file.size())
                    file.close()

    def find(self, path: str) -> FileStatistics | None:
        """Return the statistics of a file, which counts as used from now on; None if it is not
        here."""
        with self._changed:
            entry = self._entries.get(path)
            if entry is None:
                return None
            entry.used_ns = self._clock.monotonic_ns()
            self._entries.move_to_end(path)
            if entry.statistics is None:
                entry.statistics = self._read(path)
            if entry.statistics is None:  # damaged: fetched again
                del self._entries[path]
            return entry.statistics

    def fetch(
        self, path: str, size_bytes: int, write: WriteParquet, check: Callable[[], None]
    ) -> FileStatistics:
        """Return the statistics of a file, which is written if it is not here. `check` raises if
        the query is cancelled."""
        self._begin(path, check)
        try:
            found = self.find(path)
            FILES.add(origin="cache" if found else "fetched")
            if found is None:
                with _disk_errors(path):
                    found = self._write(path, write, check)
                BYTES.add(size_bytes)
            return found
        finally:
            with self._changed:
                self._busy.discard(path)
                self._changed.notify_all()

    def remove_folder(self, table: str) -> None:
        """Delete all files of a table. Queries that read one fail."""
        folder = f"{FOLDER}/{table}"
        with self._changed:
            for name in self._disk.list(folder):
                self._disk.unlink(f"{folder}/{name}")
                self._entries.pop(f"{folder}/{name}", None)
            with suppress(FileNotFoundError):
                self._disk.remove_directory(folder)

    def _begin(self, path: str, check: Callable[[], None]) -> None:
        """Wait until nobody fetches this file, and few are fetched."""
        with self._changed:
            while path in self._busy or len(self._busy) >= FETCHES_MAX:
                self._changed.wait(WAIT_S)
                check()
            self._busy.add(path)

    def _write(self, path: str, write: WriteParquet, check: Callable[[], None]) -> FileStatistics:
        """Write a file, which counts as used at once: others are fetched at the same time."""
        unfinished = f"{path}{UNFINISHED}"
        make_directories(self._disk, path.rpartition("/")[0])
        with suppress(FileNotFoundError):
            self._disk.unlink(unfinished)
        with ExitStack() as undo:
            file = self._disk.open(unfinished, "create")
            undo.callback(self._discard, unfinished)
            with closing(file):
                sink = ArrowSink(file)
                metadata = write(sink, partial(self._check_size, sink, check))
                sink.drain()
                file.sync()
            with self._changed:
                self._make_room(sink.tell())
                self._disk.rename(unfinished, path)
                statistics = statistics_of(metadata)
                self._entries[path] = _Entry(
                    size_bytes=sink.tell(),
                    used_ns=self._clock.monotonic_ns(),
                    statistics=statistics,
                )
            undo.pop_all()
        return statistics

    def _check_size(self, sink: ArrowSink, check: Callable[[], None]) -> None:
        check()
        if sink.tell() > self._bytes_max:
            raise TooLarge(
                "a file of the external table is larger than external.cache_bytes_max "
                f"({self._bytes_max} bytes) as Parquet; raise it, or load the file by COPY INTO"
            )

    def _discard(self, unfinished: str) -> None:
        with suppress(OSError):  # removed at the next start
            self._disk.unlink(unfinished)

    def _make_room(self, size_bytes: int) -> None:
        """Evict files until there is room for one more."""
        total = sum(entry.size_bytes for entry in self._entries.values()) + size_bytes
        limit_ns = self._clock.monotonic_ns() - self._in_use_ns
        for path, entry in list(self._entries.items()):
            if total <= self._bytes_max:
                return
            if entry.used_ns is None or entry.used_ns < limit_ns:
                self._disk.unlink(path)
                del self._entries[path]
                total -= entry.size_bytes
        if total > self._bytes_max:
            raise Overloaded(
                "files of external tables that queries are reading fill "
                f"external.cache_bytes_max ({self._bytes_max} bytes); retry later, read less, or "
                "raise it",
                retry_after_ms=RETRY_AFTER_MS,
            )

    def _read(self, path: str) -> FileStatistics | None:
        """Return the statistics of a file of an earlier process; None if it is damaged."""
        try:
            with closing(self._disk.open(path)) as file:
                return statistics_of(pq.ParquetFile(pa.py_buffer(file.map().view)).metadata)
        except (pa.ArrowException, OSError) as error:
            logger.warning("a fetched file is damaged", extra={"path": path, "reason": str(error)})
            return None


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    """Translate errors of the disk, among them those of a table that is dropped meanwhile."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise Overloaded(
                "the disk is full; free space, or lower external.cache_bytes_max"
            ) from error
        raise Unavailable(f"{path} cannot be written: {error}; retry") from error
