"""What the lake knows of a keyed table, where nothing else is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frazil.errors import Malformed
from frazil.lake.append.commit import check_topics, next_offsets
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.keyed.definition import SYSTEM_COLUMNS
from frazil.lake.keyed.source import FrozenTable
from frazil.lake.tables.properties import TABLE_ID

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from frazil.settings import LakeConfig


def frozen_table(
    catalog: Catalog, config: LakeConfig, name: str, topic: str, topic_id: str | None
) -> FrozenTable | None:
    """Load a table that a foreign topic feeds; None if it does not exist. Raises `Malformed` if it
    is not a keyed one, or of another topic, and `OutOfRange` if another topic of this name has fed
    it."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    from frazil.lake.keyed.schema import SYSTEM_IDS

    with catalog_calls(config):
        try:
            table = catalog.load_table((config.namespace, name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
    table_id = table.properties.get(TABLE_ID)
    if table_id is None:
        raise Malformed(
            f"{config.namespace}.{name} exists and is not a keyed table; rename one of the two"
        )
    if topic_id is not None:
        check_topics(table, {topic: topic_id})
    schema = table.schema()
    ours = [
        field
        for field in schema.fields
        if field.name not in SYSTEM_COLUMNS and field.field_id < min(SYSTEM_IDS.values())
    ]
    known = next_offsets(table)
    other = next((place.topic for place in known if place.topic != topic), topic)
    if other != topic:
        raise Malformed(
            f"{config.namespace}.{name} is filled from topic {other}, not from {topic}; give the "
            "table another name"
        )
    return FrozenTable(
        table_id=table_id,
        key=frozenset(
            field.name for field in ours if field.field_id in schema.identifier_field_ids
        ),
        column_ids={field.name: field.field_id for field in ours},
        offsets={place.partition: offset for place, offset in known.items()},
    )
