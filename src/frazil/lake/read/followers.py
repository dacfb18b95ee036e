"""Followers: the named readers of one data folder, each name once at a time."""

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
from frazil.log import Log, Start

if TYPE_CHECKING:
    from frazil.lake.lake import Lake


class Followers:
    """Any thread may open one. All of them are closed together."""

    def __init__(self, log: Log, disk: Disk, lake: Lake | None) -> None:
        """Without a lake there is only what the log has."""
        self._log = log
        self._disk = disk
        self._lake = lake
        self._turn = threading.Lock()
        self._open: dict[str, Follower] = {}
        self._is_closed = False

    def follow(
        self, table: str, name: str, start: Start, limits: ReadLimits | None = None
    ) -> Follower:
        """The reader of that name, which goes on where it was; a new one begins at `start`.

        `table` is a table or a topic. `Conflict` while somebody else has the reader open, or when
        it is one of another table.
        """
        with self._turn:
            if self._is_closed:
                raise Unavailable("the data folder is closed")
            self._check_free(name)
            tail = LogTail.open(self._log, table)
            with ExitStack() as undo:
                history = None
                if self._lake is not None:
                    config = self._lake.config
                    catalog = open_catalog(config, self._lake.data_folder)
                    undo.callback(catalog.close)
                    history = TableReader.open(catalog, config, tail.table, limits=limits)
                follower = Follower.open(name, start, disk=self._disk, tail=tail, history=history)
                undo.pop_all()
            self._open[name] = follower
            return follower

    def forget(self, name: str) -> None:
        """Forget how far a reader has come. `Unknown` when there is none of that name."""
        with self._turn:
            self._check_free(name)
            reader_progress.forget(self._disk, name)

    def close(self) -> None:
        with self._turn:
            self._is_closed = True
            for follower in self._open.values():
                follower.close()

    def _check_free(self, name: str) -> None:
        if name in self._open and not self._open[name].is_closed:
            raise Conflict(f"reader {name} is open already; close it first, or use another name")
