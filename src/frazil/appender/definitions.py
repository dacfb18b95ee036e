"""Definitions of keyed tables that topics of a foreign Kafka feed.

The statement says what a table is. Its identity is in the lake: the id of the table, the ids of its
columns, and the offsets; a copy is in the local folder. Where neither has the table, it is new.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

import msgspec

from frazil.definitions import CreateTable, definition_files, wanted_definitions
from frazil.disk import Disk
from frazil.errors import Corrupt, Malformed, OutOfRange, Unknown
from frazil.lake import TOPIC_PREFIX, FrozenTable
from frazil.model import Rand, Signal
from frazil.model.arrow import TABLES
from frazil.query import definition_of
from frazil.settings import KafkaConfig
from frazil.tables import (
    TableColumn,
    TableDefinition,
    alter_table,
    check_definition,
    find_table,
    put_definition,
)

logger = logging.getLogger(__name__)


def read_tables(config: KafkaConfig) -> tuple[CreateTable, ...]:
    """Read the statements of the folder of tables. Raises `Malformed` if one is something else than
    a table that a topic feeds, or cannot be in the lake."""
    if config.tables is None:
        return ()
    wanted = wanted_definitions(definition_files(Path(config.tables)))
    owners = {config.topic_of(signal.table): signal.table for signal in Signal}
    tables = []
    for _, parsed in sorted(wanted.items()):
        table = parsed.statement
        if not isinstance(table, CreateTable) or table.topic_format is None:
            raise Malformed(
                f"{config.tables}: {parsed.text[:60]}: the appender has keyed tables that topics "
                "feed: CREATE TABLE … FROM TOPIC '…' FORMAT …; keep other definitions elsewhere"
            )
        if table.name in TABLES or table.name.startswith(TOPIC_PREFIX):
            raise Malformed(
                f"{table.name} is a table of the lake; give the keyed table another name"
            )
        if table.topic in owners:
            raise Malformed(
                f"topic {table.topic} feeds tables {owners[table.topic]} and {table.name}; a topic "
                "feeds one table"
            )
        owners[table.topic] = table.name
        tables.append(table)
    return tuple(tables)


def resolve(
    statement: CreateTable,
    topic_id: UUID | None,
    starts: Sequence[int],
    disk: Disk,
    frozen: FrozenTable | None,
    rand: Rand,
) -> TableDefinition:
    """Return the definition of a table, durable in the local folder. `starts` has the first offset
    of each partition; `frozen` is what the lake has.

    Raises `OutOfRange` if the topic has another number of partitions now, and `Malformed` if the
    statement is another table than the one that exists.
    """
    new = _new(statement, topic_id, starts, rand)
    local = _local(disk, statement.name)
    if frozen is None:
        if local is None or _place(local) != _place(new):
            put_definition(disk, new)
            return new
        return _evolved(local, new, disk)
    if frozen.offsets and len(frozen.offsets) != new.partitions:
        raise OutOfRange(
            f"topic {new.topic} has {new.partitions} partitions, and had {len(frozen.offsets)}: "
            f"keys may have moved. To fill table {new.name} again from what the topic has, drop it "
            "in the catalog, then start the appender"
        )
    is_same = local is not None and str(local.table_id) == frozen.table_id
    if local is not None and is_same and _place(local) == _place(new):
        return _evolved(local, new, disk)
    # The lake has nothing of another topic: it would have been refused.
    known = _known(new, frozen)
    put_definition(disk, known)
    return _evolved(known, new, disk)


def _new(
    statement: CreateTable, topic_id: UUID | None, starts: Sequence[int], rand: Rand
) -> TableDefinition:
    definition = definition_of(statement, rand)
    assert definition.feed is not None
    feed = msgspec.structs.replace(definition.feed, topic_id=topic_id, starts=tuple(starts))
    fed = msgspec.structs.replace(definition, feed=feed, partitions=len(starts))
    check_definition(fed)
    return fed


def _place(table: TableDefinition) -> tuple[str, UUID | None, int]:
    """Return what a table is fed by; another topic, or other partitions, make it another table."""
    return table.topic, None if table.feed is None else table.feed.topic_id, table.partitions


def _local(disk: Disk, name: str) -> TableDefinition | None:
    try:
        return find_table(disk, name)
    except Unknown:
        return None
    except Corrupt as error:
        logger.warning("definition made again", extra={"table": name, "reason": str(error)})
        return None


def _known(new: TableDefinition, frozen: FrozenTable) -> TableDefinition:
    """Return the definition of a table in the lake, as far as the statement has its columns."""
    by_name = {column.name: column for column in new.columns}
    _check_same(new, frozenset(frozen.key), frozen.column_ids.keys())
    columns = [
        msgspec.structs.replace(by_name[name], id=number)
        for name, number in sorted(frozen.column_ids.items(), key=lambda item: item[1])
    ]
    assert new.feed is not None
    starts = [frozen.offsets.get(number, start) for number, start in enumerate(new.feed.starts)]
    return msgspec.structs.replace(
        new,
        table_id=UUID(frozen.table_id),
        versions=(tuple(columns),),
        feed=msgspec.structs.replace(new.feed, starts=tuple(starts)),
    )


def _evolved(known: TableDefinition, new: TableDefinition, disk: Disk) -> TableDefinition:
    """Return the definition of a table with the columns and types that the statement has besides,
    durable. Raises `Malformed` if it cannot become that."""
    _check_same(new, frozenset(known.key), [column.name for column in known.columns])
    if known.topic != new.topic or known.feed is None or new.feed is None:
        raise _other(new, f"it is fed by topic {known.topic}")
    if known.feed.format != new.feed.format:
        raise _other(new, f"the format of its topic is {known.feed.format}")
    before = {column.name: column for column in known.columns}
    changed = known
    for column in new.columns:
        changed = _with_column(changed, before.get(column.name), column)
        if changed.version > known.version:
            alter_table(disk, changed)
            known = changed
    return changed


def _with_column(
    table: TableDefinition, before: TableColumn | None, column: TableColumn
) -> TableDefinition:
    if before is None:
        if not column.is_nullable:
            raise _other(table, f"rows that exist have no {column.name}, which is NOT NULL")
        return table.add_column(column.name, column.type)
    if before.is_nullable != column.is_nullable:
        word = "nullable" if before.is_nullable else "NOT NULL"
        raise _other(table, f"its column {column.name} is {word}")
    if before.type == column.type:
        return table
    return table.widen_column(column.name, column.type)


def _check_same(new: TableDefinition, key: frozenset[str], columns: Iterable[str]) -> None:
    if frozenset(new.key) != key:
        raise _other(new, f"its key is {', '.join(sorted(key))}")
    missing = sorted(set(columns) - {column.name for column in new.columns})
    if missing:
        raise _other(new, f"it has a column {missing[0]}")


def _other(table: TableDefinition, reason: str) -> Malformed:
    return Malformed(
        f"table {table.name} exists, and is another one: {reason}. Columns can be added and "
        "widened; for anything else give the table another name, or drop it in the catalog and "
        f"remove tables/{table.name} in the data folder"
    )
