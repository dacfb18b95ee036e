"""Creating, changing and dropping keyed tables. One process at a time may do so: the one that owns
the log, or the reader process of a node."""

from __future__ import annotations

import msgspec

from frazil.disk import Disk
from frazil.errors import Conflict, Malformed, Unknown
from frazil.log import ReadableLog, ReadableTopic
from frazil.tables.definition import TableDefinition, TableFeed, check_definition, topic_of
from frazil.tables.definition_file import (
    buried_tables,
    bury_table,
    load_definition,
    remove_buried_table,
    remove_folder,
    save_definition,
    table_folder,
)
from frazil.tables.owner import TableOwner
from frazil.tables.writer import topic_config

INTERNAL = ("__", "otlp_")
"""Topics that begin so have records of their own kinds."""


def create_table(disk: Disk, log: TableOwner, definition: TableDefinition) -> None:
    """Create a table: first its topic, unless one feeds it, then its definition. Durable on return.
    Raises `Conflict` if there is one of this name."""
    check_definition(definition)
    finish_drops(disk, log)
    if load_definition(disk, definition.name) is not None:
        raise Conflict(f"table {definition.name} exists")
    if definition.feed is not None:
        save_definition(disk, _fed(log, definition, definition.feed))
        return
    topic = _find_topic(log, definition.topic)
    if topic is not None:
        # A create that did not finish leaves an empty topic.
        if any(p.current_view().durable_watermark for p in topic.partitions):
            raise Conflict(
                f"topic {definition.topic} has changes, but table {definition.name} has no "
                "definition; restore its table.ckpt, or delete the topic"
            )
        log.delete_topic(definition.topic)
    log.create_topic(definition.topic, topic_config(definition))
    save_definition(disk, definition)


def _fed(log: TableOwner, definition: TableDefinition, feed: TableFeed) -> TableDefinition:
    """Return the definition with what identifies the topic that feeds it, and its partitions."""
    if feed.topic.startswith(INTERNAL):
        raise Malformed(f"topic {feed.topic} cannot feed a table: it is not written by clients")
    topic = log.topic(feed.topic)
    starts = tuple(partition.current_view().start_offset for partition in topic.partitions)
    known = msgspec.structs.replace(feed, topic_id=topic.topic_id, starts=starts)
    fed = msgspec.structs.replace(definition, feed=known, partitions=len(starts))
    check_definition(fed)
    return fed


def feeding_topic(log: ReadableLog, definition: TableDefinition) -> ReadableTopic:
    """Return the topic of a table's changes. Raises `Conflict` if it is not the one that the table
    was created with."""
    topic, feed = log.topic(definition.topic), definition.feed
    if feed is None:
        return topic
    if topic.topic_id != feed.topic_id:
        raise Conflict(
            f"topic {feed.topic} was deleted and created again; drop table {definition.name}, and "
            "create it again"
        )
    if len(topic.partitions) != definition.partitions:
        raise Conflict(
            f"topic {feed.topic} has {len(topic.partitions)} partitions, and had "
            f"{definition.partitions}: keys may have moved; drop table {definition.name}, and "
            "create it again"
        )
    return topic


def find_table(disk: Disk, name: str) -> TableDefinition:
    """Return the definition of a table. Raises `Unknown` if there is none."""
    definition = load_definition(disk, name)
    if definition is None:
        raise Unknown(f"there is no table {name}")
    return definition


def alter_table(disk: Disk, definition: TableDefinition) -> None:
    """Make a later version of a definition durable. Raises `Conflict` if another one came first."""
    before = find_table(disk, definition.name)
    if (before.table_id, before.versions) != (definition.table_id, definition.versions[:-1]):
        raise Conflict(f"table {definition.name} was changed meanwhile; read it again")
    save_definition(disk, definition)


def put_definition(disk: Disk, definition: TableDefinition) -> None:
    """Make the definition of a table durable whose changes are not in our log. Row files of the one
    before are removed: their columns may be others."""
    folder = table_folder(definition.name)
    for name in disk.list(folder):
        if name.isdigit():
            remove_folder(disk, f"{folder}/{name}")
    save_definition(disk, definition)


def drop_table(disk: Disk, log: TableOwner, name: str) -> None:
    """Drop a table with its changes. Durable on return; what a crash leaves is removed by the next
    `finish_drops`."""
    bury_table(disk, find_table(disk, name))
    finish_drops(disk, log)


def finish_drops(disk: Disk, log: TableOwner) -> None:
    """Remove topics and files of dropped tables. Call it at the start, and before a create."""
    for folder, name in buried_tables(disk).items():
        topic = topic_of(name)
        if load_definition(disk, name) is None and _find_topic(log, topic) is not None:
            log.delete_topic(topic)
        remove_buried_table(disk, folder)


def _find_topic(log: TableOwner, name: str) -> ReadableTopic | None:
    try:
        return log.topic(name)
    except Unknown:
        return None
