"""Followers: the named readers of one data folder. Each may be open once at a time."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

from frazil.disk import Disk
from frazil.errors import Conflict, Unavailable
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.read import reader_progress
from frazil.lake.read.follower import Follower
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.prefetch import ReadLimits
from frazil.lake.read.table_reader import TableReader
from frazil.log import ReadableLog, Start
from frazil.model import NO_PROMOTIONS, Promotions

if TYPE_CHECKING:
    from frazil.lake.lake import Lake


class Followers:
    """Thread-safe. `close` closes all readers."""

    def __init__(
        self,
        log: ReadableLog,
        disk: Disk,
        lake: Lake | None,
        promotions: Promotions = NO_PROMOTIONS,
    ) -> None:
        """Without a lake, readers get only the rows in the log."""
        self._log = log
        self._promotions = promotions
        self._disk = disk
        self._lake = lake
        self._lock = threading.Lock()
        self._open: dict[str, Follower] = {}
        self._is_closed = False

    def follow(
        self, table: str, name: str, start: Start, limits: ReadLimits | None = None
    ) -> Follower:
        """Open the reader of that name where it was, or create it at `start`.

        `table` is the name of a table or a topic. Raise `Conflict` if the reader is open already
        or reads another table.
        """
        with self._lock:
            if self._is_closed:
                raise Unavailable("the data folder is closed")
            self._check_free(name)
            tail = LogTail.open(self._log, table, self._promotions)
            with ExitStack() as undo:
                history = None
                if self._lake is not None:
                    config = self._lake.config
                    catalog = open_catalog(config, self._lake.data_folder)
                    undo.callback(catalog.close)
                    history = TableReader.open(
                        catalog, config, tail.table, limits=limits, promotions=self._promotions
                    )
                follower = Follower.open(name, start, disk=self._disk, tail=tail, history=history)
                undo.pop_all()
            self._open[name] = follower
            return follower

    def forget(self, name: str) -> None:
        """Delete the progress of a reader. Raise `Unknown` if it does not exist."""
        with self._lock:
            self._check_free(name)
            reader_progress.forget(self._disk, name)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for follower in self._open.values():
                follower.close()

    def _check_free(self, name: str) -> None:
        if name in self._open and not self._open[name].is_closed:
            raise Conflict(f"reader {name} is open already; close it first, or use another name")
