"""Appenders with deliberate bugs, known from real systems. The checks must detect each.

They are applied only in the process of a life whose job names a mutant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import pyarrow as pa
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from frazil.disk import Mode, RealDisk
from frazil.disk.files import RealFile
from frazil.lake.append import commit, task
from frazil.lake.append.appender import Appender, Work
from frazil.lake.append.commit import TableChange
from frazil.lake.append.slice import Slice, SourcePartition
from frazil.lake.append.task import WrittenSlice
from frazil.lake.catalog import catalog
from frazil.lake.files import object_store
from frazil.log import Log
from tests.torture.lake import life


def mutate(name: str) -> None:
    """Apply the named bug to this process."""
    MUTANTS[name][0]()


def _offsets_unchecked() -> None:
    """Commit without checking the table's next offsets."""

    def check(table: Table, change: TableChange) -> None:
        assert table.properties.get(commit.APPENDER) == change.appender

    mock.patch.object(commit, "_check", check).start()


def _blind_retry() -> None:
    """Treat an unknown outcome as a failure, and commit again."""
    _offsets_unchecked()
    mock.patch.object(commit, "find_commit", lambda *_: None).start()


def _offsets_apart() -> None:
    """Commit files first, and their end offsets in a second commit."""

    def swap(table: Table, change: TableChange) -> int:
        offsets = commit.next_offsets(table) | dict(change.ends)
        summary = {commit.COMMIT_ID: change.commit_id, commit.OFFSETS: commit.text_of(offsets)}
        with (
            table.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=summary).fast_append() as appended,
        ):
            for file in change.files:
                appended.append_data_file(file)
        with table.transaction() as transaction:
            transaction.set_properties({commit.NEXT_OFFSETS: commit.text_of(offsets)})
        return int(appended.snapshot_id)

    mock.patch.object(commit, "_swap", swap).start()


def _unfenced() -> None:
    """Ignore that another appender has taken over the table."""
    original = commit._check

    def check(table: Table, change: TableChange) -> None:
        owner = table.properties.get(commit.APPENDER, "")
        original(table, replace(change, appender=owner))

    mock.patch.object(commit, "_check", check).start()


def _cleans_up() -> None:
    """Delete the files of a commit whose outcome is unknown."""
    original = commit._swap

    def swap(table: Table, change: TableChange) -> int:
        try:
            return original(table, change)
        except SQLAlchemyError:
            for file in change.files:
                Path(urlsplit(file.file_path).path).unlink()
            raise

    mock.patch.object(commit, "_swap", swap).start()


def _wrong_run(spoil: Callable[[list[WrittenSlice]], list[WrittenSlice]]) -> Callable[[], None]:
    def apply() -> None:
        original = life.run_inline

        def run(log: Log, work: Sequence[Work]) -> list[WrittenSlice]:
            return spoil(original(log, work))

        mock.patch.object(life, "run_inline", run).start()

    return apply


def _dropped(written: list[WrittenSlice]) -> list[WrittenSlice]:
    """Drop the files of one task."""
    return [replace(written[0], files=()), *written[1:]]


def _doubled(written: list[WrittenSlice]) -> list[WrittenSlice]:
    """Commit the files of one task twice, as if both attempts counted."""
    return [replace(written[0], files=written[0].files * 2), *written[1:]]


def _row_lost() -> None:
    """Drop the first row of larger batches."""
    original = task._RowBuffer.add

    def add(self: Any, batch: pa.RecordBatch, saved_bytes: int = 0) -> None:
        original(self, batch.slice(1) if batch.num_rows > 9 else batch, saved_bytes)

    mock.patch.object(task._RowBuffer, "add", add).start()


def _early_publish() -> None:
    """Publish offsets to the log before they are committed."""
    original = Appender._plan

    def plan(self: Appender, source: SourcePartition, table: Table, dead: Table) -> list[Slice]:
        slices = original(self, source, table, dead)
        if slices:
            self._source.publish(source, slices[-1].end)
        return slices

    mock.patch.object(Appender, "_plan", plan).start()


def _dead_forgotten() -> None:
    """Ignore the end of an unfinished append whose dead letters are committed."""

    def plan(self: Appender, source: SourcePartition, table: Table, dead: Table) -> list[Slice]:
        begin = commit.next_offsets(table).get(source.topic_partition, 0)
        return self._source.plan(source, begin, None, self._config.slice_bytes)

    mock.patch.object(Appender, "_plan", plan).start()


def _dead_last() -> None:
    """Commit dead letters after the rows instead of before."""
    original = Appender._commit_dead
    mock.patch.object(Appender, "_commit_dead", lambda *_: 0).start()
    rows = Appender._commit

    def commit_both(
        self: Appender, table: Table, dead: Table, written: Any, identities: Any
    ) -> Any:
        done = rows(self, table, dead, written, identities)
        original(self, dead, written, done.covered)
        return done

    mock.patch.object(Appender, "_commit", commit_both).start()


def _metadata_unsynced() -> None:
    """Write metadata with PyIceberg's own I/O, which does not sync."""
    name = "pyiceberg.io.pyarrow.PyArrowFileIO"
    mock.patch.object(catalog, "LOCAL_IO", name).start()


class _CarelessFile(RealFile):
    def sync(self) -> None: ...


class _CarelessDisk(RealDisk):
    def open(self, path: str, mode: Mode = "read") -> RealFile:
        return _CarelessFile(os.dup(super().open(path, mode)._descriptor))

    def sync_directory(self, path: str) -> None: ...


def _data_unsynced() -> None:
    """Commit data files without syncing them."""
    mock.patch.object(object_store, "RealDisk", _CarelessDisk).start()


MUTANTS: dict[str, tuple[Callable[[], None], str]] = {
    "offsets_unchecked": (_offsets_unchecked, "snapshot_expired"),
    "blind_retry": (_blind_retry, "answer_lost"),
    "offsets_apart": (_offsets_apart, "swapped"),
    "unfenced": (_unfenced, "zombie_before_check"),
    "cleans_up": (_cleans_up, "answer_lost"),
    "dropped": (_wrong_run(_dropped), "planning"),
    "doubled": (_wrong_run(_doubled), "planning"),
    "row_lost": (_row_lost, "planning"),
    "early_publish": (_early_publish, "tasks_done"),
    "dead_forgotten": (_dead_forgotten, "dead_committed"),
    "dead_last": (_dead_last, "committed"),
    "metadata_unsynced": (_metadata_unsynced, "power_cut"),
    "data_unsynced": (_data_unsynced, "power_cut"),
}
"""Name -> (bug, the step that detects it)."""
