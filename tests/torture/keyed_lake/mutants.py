"""Bugs put in on purpose, known from real systems. The checks must detect each.

They are applied only in the process of a life whose job names a mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table

from frazil import keyed_lake
from frazil.lake.keyed import commit, delete_task, freezer, merge_files
from frazil.lake.keyed.commit import KeyedChange
from frazil.tables import RowsView


def _rebased() -> None:
    """Commit on whatever snapshot the table has meanwhile."""
    mock.patch.object(commit, "_check", lambda *_: None).start()
    original = commit._RowDelta._manifests

    def manifests(self: Any) -> Any:
        known = {
            entry.data_file.file_path
            for manifest in self._existing_manifests()
            for entry in self.fetch_manifest_entry(manifest)
        }
        gone = [file for file in self._deleted_data_files if file.file_path in known]
        self._deleted_data_files = set(gone)
        return original(self)

    mock.patch.object(commit._RowDelta, "_manifests", manifests).start()


def _blind_retry() -> None:
    """Treat an unknown outcome as a failure, and commit again."""
    mock.patch.object(commit, "find_commit", lambda *_: None).start()
    mock.patch.object(commit, "_check", lambda *_: None).start()


def _offsets_apart() -> None:
    """Commit files first, and their offsets in a second commit."""
    original = commit._swap

    def swap(table: Table, change: KeyedChange) -> int:
        before = {
            "offsets": commit_offsets(table),
            "next_rows": freezer_rows(table),
        }
        snapshot_id = original(table, replace(change, **before))
        original(table.refresh(), replace(change, added=(), removed=()))
        return snapshot_id

    mock.patch.object(commit, "_swap", swap).start()


def commit_offsets(table: Table) -> Any:
    from frazil.lake.append.commit import next_offsets

    return next_offsets(table)


def freezer_rows(table: Table) -> Any:
    from frazil.lake.keyed.table import rows_of_text

    return rows_of_text(table.properties.get("frazil.next-rows", "{}"))


def _old_deletes_forgotten() -> None:
    """Replace a delete file by one with the new positions alone."""
    mock.patch.object(delete_task, "read_positions", lambda *_: np.empty(0, np.int64)).start()


def _deletes_not_applied() -> None:
    """Compact dead rows, too."""
    mock.patch.object(merge_files, "read_positions", lambda *_: np.empty(0, np.int64)).start()
    mock.patch.object(merge_files, "_check_rows", lambda *_: None).start()


def _death_lost() -> None:
    """Miss the last death of a file, and do not check."""
    original = delete_task.find_positions

    def find(*columns: Any) -> Any:
        positions, found = original(*columns)
        return positions[:-1], found[:-1]

    mock.patch.object(delete_task, "find_positions", find).start()
    mock.patch.object(freezer, "_check_found", lambda *_: None).start()


def _rows_doubled() -> None:
    """Write the last row of the round before again."""
    original = RowsView.rows_between

    def rows_between(self: RowsView, begin: int, end: int) -> Any:
        return original(self, max(0, begin - 1), end)

    mock.patch.object(RowsView, "rows_between", rows_between).start()


def _rows_not_counted() -> None:
    """Keep the row number of the round before."""
    original = keyed_lake.partition_changes

    def changes(*args: Any) -> Any:
        done = original(*args)
        return replace(done, end=replace(done.end, row=done.begin.row))

    mock.patch.object(keyed_lake, "partition_changes", changes).start()


def _deletes_kept() -> None:
    """Leave the delete file before in the table."""
    original = commit._swap

    def swap(table: Table, change: KeyedChange) -> int:
        kept = [file for file in change.removed if file.content is DataFileContent.DATA]
        return original(table, replace(change, removed=kept))

    mock.patch.object(commit, "_swap", swap).start()


MUTANTS: dict[str, tuple[Callable[[], None], str]] = {
    "rebased": (_rebased, "raced"),
    "blind_retry": (_blind_retry, "answer_lost"),
    "offsets_apart": (_offsets_apart, "swapped"),
    "old_deletes_forgotten": (_old_deletes_forgotten, ""),
    "deletes_not_applied": (_deletes_not_applied, ""),
    "death_lost": (_death_lost, ""),
    "rows_doubled": (_rows_doubled, ""),
    "rows_not_counted": (_rows_not_counted, ""),
    "deletes_kept": (_deletes_kept, ""),
}
"""Name -> (bug, the step that detects it; empty if it needs no fault)."""
