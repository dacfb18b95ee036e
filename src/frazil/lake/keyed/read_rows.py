"""The rows of a keyed table's snapshot, to rebuild local files that were lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

from frazil.errors import Unknown
from frazil.lake.append.commit import OFFSETS, offsets_of_text
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.keyed.definition import LOG_PARTITION, OFFSET, ROW, KeyedDefinition
from frazil.lake.keyed.merge_files import live_batches
from frazil.lake.keyed.schema import layout_of
from frazil.lake.keyed.snapshot_files import KeyedFile, snapshot_files
from frazil.lake.keyed.source import FrozenPosition, FrozenRows
from frazil.lake.keyed.table import check_own, rows_of_text
from frazil.lake.tables.properties import NEXT_ROWS, TABLE_ID
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.settings import LakeConfig


def frozen_rows(
    catalog: Catalog,
    config: LakeConfig,
    definition: KeyedDefinition,
    partition: int,
    snapshot_id: int | None = None,
) -> FrozenRows | None:
    """Load the table, and return what `read_rows` does; None if it does not exist."""
    with catalog_calls(config):
        try:
            table = catalog.load_table((config.namespace, definition.name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
    return read_rows(table, definition, partition, snapshot_id)


def read_rows(
    table: Table, definition: KeyedDefinition, partition: int, snapshot_id: int | None = None
) -> FrozenRows | None:
    """Return the rows of a partition in a snapshot, by default the current one; None if the table
    has no snapshot of this definition.

    Raises `Unknown` if the snapshot has expired, and `Conflict` if another program has changed the
    table.
    """
    if table.properties.get(TABLE_ID) != definition.table_id:
        return None
    snapshot = check_own(table) if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        if snapshot_id is None:
            return None
        raise Unknown(f"{definition.name} has no snapshot {snapshot_id} any more")
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    offsets = offsets_of_text(summary.get(OFFSETS, "{}"))
    rows = rows_of_text(summary.get(NEXT_ROWS, "{}"))
    files = [
        file
        for file in snapshot_files(table, snapshot)
        if file.partition_min <= partition <= file.partition_max and file.live_count
    ]
    key = TopicPartition(definition.topic, partition)
    return FrozenRows(
        position=FrozenPosition(offsets.get(key, 0), rows.get(partition, 0)),
        batches=_batches(table, definition, partition, files),
    )


def _batches(
    table: Table, definition: KeyedDefinition, partition: int, files: Sequence[KeyedFile]
) -> Iterator[pa.RecordBatch]:
    layout = layout_of(table.schema(), table.sort_order())
    schema = pa.schema(
        [
            *(pa.field(each.name, each.type, each.is_nullable) for each in definition.columns),
            pa.field(OFFSET, pa.int64(), nullable=False),
            pa.field(ROW, pa.int64(), nullable=False),
        ]
    )
    for file in files:
        for batch in live_batches(file.path, file.deletes_path, layout, table.io):
            mine = batch
            if file.partition_min != file.partition_max:
                number = pa.scalar(partition, pa.int32())
                mine = batch.filter(pc.equal(batch[LOG_PARTITION], number))
            if mine.num_rows:
                arrays = [mine[column.name].cast(column.type) for column in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
