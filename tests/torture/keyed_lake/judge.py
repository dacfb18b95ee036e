"""Compares every snapshot of a frozen table with the fold of the log below its offsets.

Reads with PyIceberg, and checks row numbers and offsets with the table's own view of the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Any

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from frazil.disk import RealDisk
from frazil.lake.append.commit import OFFSETS, next_offsets, offsets_of_text
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.keyed.table import foreign_reason
from frazil.log import Log
from frazil.model import SystemClock
from frazil.tables import Operation, decode_changes, find_table, table_names
from frazil.tables.definition import TableDefinition
from tests.lake.keyed.engines import rows_by_key
from tests.lake.keyed.world import CONFIG, NAME
from tests.lake.maintain.tables import data_files
from tests.torture.checker import Verdict

Rows = dict[object, dict[str, object]]
Past = list[Rows]
"""The rows of a partition as of each offset."""


def judge(folder: Path, *, is_whole: bool) -> Verdict:
    """Check all snapshots; with `is_whole`, also that the last one has everything."""
    verdict = Verdict()
    with _log(folder) as log:
        if NAME not in table_names(RealDisk(folder)):
            return verdict
        definition = find_table(RealDisk(folder), NAME)
        pasts = [_past(log, definition, number) for number in range(definition.partitions)]
    catalog = open_catalog(CONFIG, folder)
    try:
        table = catalog.load_table((CONFIG.namespace, NAME))
    except NoSuchTableError:
        if is_whole:
            verdict.add("lost", "there is no table")
        return verdict
    finally:
        catalog.close()
    reason = foreign_reason(table)
    if reason is not None:
        verdict.add("foreign", reason)
    for snapshot in table.metadata.snapshots:
        _judge_snapshot(table, snapshot, definition, pasts, verdict)
    if is_whole:
        ends = {key.partition: offset for key, offset in next_offsets(table).items()}
        expected = {number: len(past) - 1 for number, past in enumerate(pasts)}
        if ends != expected:
            verdict.add("hole", f"the table is at {ends}, the log at {expected}")
    return verdict


def _judge_snapshot(
    table: Table,
    snapshot: Snapshot,
    definition: TableDefinition,
    pasts: list[Past],
    verdict: Verdict,
) -> None:
    summary: Any = snapshot.summary
    offsets = {key.partition: offset for key, offset in offsets_of_text(summary[OFFSETS]).items()}
    expected: Rows = {}
    for number, past in enumerate(pasts):
        expected |= past[offsets.get(number, 0)]
    try:
        found = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
    except (OSError, ValueError) as error:
        verdict.add("lost", f"snapshot {snapshot.snapshot_id} cannot be read: {error}")
        return
    try:
        rows = rows_by_key(found)
    except AssertionError:
        verdict.add("duplicate", f"a key is twice in snapshot {snapshot.snapshot_id}")
        return
    if rows != expected:
        wrong = [key for key in {*rows, *expected} if rows.get(key) != expected.get(key)]
        kind = "lost" if any(key not in rows for key in wrong) else "untrue"
        verdict.add(kind, f"snapshot {snapshot.snapshot_id} at {offsets}: keys {wrong[:5]}")
    kinds = [file.content for file in data_files(table, snapshot.snapshot_id)]
    if kinds.count(DataFileContent.POSITION_DELETES) > kinds.count(DataFileContent.DATA):
        verdict.add("untrue", f"snapshot {snapshot.snapshot_id} has more delete files than data")


def _past(log: Log, definition: TableDefinition, partition: int) -> Past:
    """Return the rows as of each offset of a partition."""
    past: Past = [{}]
    reader = log.reader(definition.topic, "earliest", partition=partition)
    while batches := reader.read():
        for batch in batches:
            for record in batch.records():
                past.append(_folded(definition, past[-1], record.value))
    reader.close()
    return past


def _folded(definition: TableDefinition, rows: Rows, value: bytes | None) -> Rows:
    """Return the rows after one record."""
    changes = decode_changes(definition, value)
    after = dict(rows)
    for row in changes.batch.to_pylist():
        key = row["id"]
        if changes.operation is Operation.DELETE:
            after.pop(key, None)
        elif changes.operation is Operation.UPSERT or key in after:
            after[key] = {**after.get(key, {}), **row}
    return after


@contextmanager
def _log(folder: Path) -> Iterator[Log]:
    with Log.open(RealDisk(folder), clock=SystemClock(), rand=SystemRandom()) as log:
        yield log
