"""tables: keyed tables: rows with a primary key, changed by records of the log.

    writer ──append──> LOG ──read, decode──> state ──publish──> view
                                             │ index, rows, deaths
                                             └seal, checkpoint──> files, derived from the log

    definition.py       TableDefinition: columns, types, key, partitions; versions
    definition_file.py  definitions as files
    changes.py          Changes: upserts, updates and deletes as log records
    topic_feed.py       records of Kafka clients as changes: rows by key, change events
    writer.py           KeyedWriter: rows of a caller to log records
    written_rows.py     WrittenRows: the outcome of a write
    change_log.py       ChangeLog: what tables are folded from: our log, or another one
    owner.py            TableOwner: the log, as tables use it
    load_files.py       TableLoads: the files a table was loaded from, and a load that has begun
    load_steps.py       the rows of a load, as steps of a copy
    catalog.py          create, change and drop tables
    state.py            PartitionState: the fold of all changes below an offset
    view.py             RowsView: rows of a partition as of an offset
    recovery.py         which files are valid after a start
    compaction.py       which files are rewritten, and what is left of them
    seed.py             files made from rows of the lake
    fold.py             PartitionFold: follows the log, seals and saves
    freeze_plan.py      FreezePlan: row versions to append and to delete between two views
    table.py            KeyedTable, KeyedView: all partitions as one
    times.py            from a time to offsets
    partitioning.py     rows by the partition of their keys
    table_status.py     KeyedTableStatus: how a table does
    served_table.py     ServedTable: a table that is opened again after a failure
    keyed_tables.py     KeyedTables: all tables of a folder, and the thread that steps them
    table_handle.py     TableHandle: one table, for Python programs

    keys/               from a key to the number of its row version
    rows/               row versions and their deaths

On disk, below the data folder:

    tables/<name>/table.ckpt                                 the definition
                 /loads/                                     files it was loaded from, running loads
                 /<partition>/00000000000000000000.rows      row segment, named by its first offset
                 /<partition>/keys.index                     the key index as of an offset
          /.dropped-<id>-<name>/                             dropped, until its files are gone

One thread at a time steps, seals and saves a table. Views are immutable; looking up a key takes a
lock that it holds for short turns.
"""

from frazil.tables.catalog import (
    alter_table,
    create_table,
    drop_table,
    find_table,
    finish_drops,
    put_definition,
)
from frazil.tables.change_log import ChangeLog, ChangePartition, ChangeRecords, LogChanges
from frazil.tables.changes import Changes, Operation, decode_changes, encode_changes
from frazil.tables.definition import (
    TableColumn,
    TableDefinition,
    TableFeed,
    check_definition,
    new_definition,
)
from frazil.tables.definition_file import table_names
from frazil.tables.fold import DeadChange, PartitionFold
from frazil.tables.freeze_plan import FreezePlan, freeze_plan
from frazil.tables.keyed_tables import KeyedTables
from frazil.tables.keys.key_block import KEY_BYTES_MAX, key_array
from frazil.tables.keys.key_index import warm
from frazil.tables.load_files import PendingLoad, TableLoads, staged_batches
from frazil.tables.owner import TableOwner
from frazil.tables.partitioning import rows_by_partition
from frazil.tables.rows.row_segment import RowSegment, upgraded
from frazil.tables.rows.rows_part import RowsPart
from frazil.tables.rows.segment_file import RowFileLocation, open_rows
from frazil.tables.seed import seed_partition
from frazil.tables.served_table import FrozenTables, SeedRows
from frazil.tables.table import KeyedTable, KeyedView, partition_of, partitions_with
from frazil.tables.table_handle import TableHandle, digest_of_key, rows_of_keys
from frazil.tables.table_status import KeyedPartitionStatus, KeyedTableStatus
from frazil.tables.times import offsets_at
from frazil.tables.topic_feed import FeedCodec, unfit_records
from frazil.tables.view import Key, RowsView, key_array_of
from frazil.tables.writer import PORTION_BYTES, KeyedWriter, Token, table_appends
from frazil.tables.written_rows import WrittenRows

__all__ = [
    "KEY_BYTES_MAX",
    "PORTION_BYTES",
    "ChangeLog",
    "ChangePartition",
    "ChangeRecords",
    "Changes",
    "DeadChange",
    "FeedCodec",
    "FreezePlan",
    "FrozenTables",
    "Key",
    "KeyedPartitionStatus",
    "KeyedTable",
    "KeyedTableStatus",
    "KeyedTables",
    "KeyedView",
    "KeyedWriter",
    "LogChanges",
    "Operation",
    "PartitionFold",
    "PendingLoad",
    "RowFileLocation",
    "RowSegment",
    "RowsPart",
    "RowsView",
    "SeedRows",
    "TableColumn",
    "TableDefinition",
    "TableFeed",
    "TableHandle",
    "TableLoads",
    "TableOwner",
    "Token",
    "WrittenRows",
    "alter_table",
    "check_definition",
    "create_table",
    "decode_changes",
    "digest_of_key",
    "drop_table",
    "encode_changes",
    "find_table",
    "finish_drops",
    "freeze_plan",
    "key_array",
    "key_array_of",
    "new_definition",
    "offsets_at",
    "open_rows",
    "partition_of",
    "partitions_with",
    "put_definition",
    "rows_by_partition",
    "rows_of_keys",
    "seed_partition",
    "staged_batches",
    "table_appends",
    "table_names",
    "unfit_records",
    "upgraded",
    "warm",
]
