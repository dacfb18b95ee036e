"""Maintenance done with PyIceberg alone: rewrite data files, and expire snapshots with their
files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

from frazil.disk import RealDisk
from frazil.lake.append.commit import data_file_of
from frazil.lake.files.parquet_schema import file_layout_of
from frazil.lake.files.writer import TableWriter
from frazil.lake.tables.record_rows import columns_of


def local(location: str) -> Path:
    return Path(urlsplit(location).path)


def data_files(table: Table, snapshot_id: int | None = None) -> list[DataFile]:
    snapshot = (
        table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    )
    assert snapshot is not None
    return [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


class _Replace(_OverwriteFiles):
    """A `replace` snapshot, as Spark's compaction commits it; PyIceberg has none."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        made = super()._summary(snapshot_properties)
        return Summary(Operation.REPLACE, **made.additional_properties)


def compact(table: Table, name: str) -> None:
    """Rewrite all rows into as few files as possible, with `name` as prefix of their names."""
    old = data_files(table)
    schema = columns_of(table.name()[-1])
    rows = [pq.ParquetFile(local(file.file_path)).read().cast(schema) for file in old]
    disk = RealDisk(local(table.location()))
    files = TableWriter(disk, file_layout_of(table.name()[-1]), name)
    batches = [batch for part in rows for batch in part.to_batches()]
    files.write(batches, sum(batch.nbytes for batch in batches))
    with table.transaction() as transaction:
        replace = _Replace(Operation.OVERWRITE, transaction, table.io)
        for file in old:
            replace.delete_data_file(file)
        for written in files.sync():
            replace.append_data_file(data_file_of(written, table))
        replace.commit()


def expire(table: Table) -> None:
    """Expire all snapshots but the current one, and delete the files that only they reference."""
    current = table.current_snapshot()
    assert current is not None
    old = [s.snapshot_id for s in table.metadata.snapshots if s.snapshot_id != current.snapshot_id]
    if not old:
        return
    before = {file.file_path for each in old for file in data_files(table, each)}
    table.maintenance.expire_snapshots().by_ids(old).commit()
    for path in before - {file.file_path for file in data_files(table)}:
        local(path).unlink()
