"""The Iceberg table of a keyed table: create it, follow its definition, refuse other writers.

A snapshot is accepted if Frazil wrote it: it has a commit id, and the offsets and row numbers of
the table's properties, which change in the same commit. After a commit of another program, or a
rollback, they do not agree, and the table is neither frozen nor maintained.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyiceberg.schema import Schema
from pyiceberg.table.update import (
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import NestedField

from frazil.errors import Conflict, Unavailable
from frazil.lake.append.commit import COMMIT_ID, NEXT_OFFSETS, OFFSETS, next_offsets
from frazil.lake.keyed.definition import KeyedDefinition
from frazil.lake.keyed.schema import UNPARTITIONED, is_promoted, schema_of, sort_order_of
from frazil.lake.keyed.source import FrozenPosition
from frazil.lake.tables.properties import (
    KEYED_PROPERTIES,
    NEXT_ROWS,
    REQUIRED_PROPERTIES,
    TABLE_ID,
    TOPIC_PREFIX,
)
from frazil.lake.tables.tables import (
    FORMAT_VERSION,
    create_table,
    keep_current,
    kept_name,
    separate_location,
)
from frazil.model import TopicPartition
from frazil.model.arrow import TABLES

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from frazil.settings import LakeConfig

logger = logging.getLogger(__name__)


def ensure_keyed_table(catalog: Catalog, config: LakeConfig, definition: KeyedDefinition) -> Table:
    """Return the table with all columns of the definition, after creating or updating it if needed.
    The table of a dropped one of the same name is renamed.

    Raises `Unavailable` if its name is taken or it was altered so that rows do not fit, and
    `Conflict` if others keep changing it.
    """
    name = definition.name
    full_name = f"{config.catalog_name}.{config.namespace}.{name}"
    if name in TABLES or name.startswith(TOPIC_PREFIX):
        raise Unavailable(f"{full_name} is a table of the log; give the keyed table another name")

    def create() -> None:
        create_table(
            catalog,
            (config.namespace, name),
            schema=schema_of(definition),
            spec=UNPARTITIONED,
            order=sort_order_of(definition),
            properties={**KEYED_PROPERTIES, TABLE_ID: definition.table_id},
            location=separate_location(catalog, config, name),
        )

    def updates_for(table: Table) -> tuple[TableUpdate, ...] | None:
        known = table.properties.get(TABLE_ID)
        if known is None:
            raise Unavailable(
                f"{full_name} exists and is not a keyed table; rename or drop one of the two"
            )
        if known != definition.table_id:
            _rename(catalog, config, name, known)
            return None
        return _updates(table, definition, full_name)

    return keep_current(catalog, config, name, create, updates_for)


def _rename(catalog: Catalog, config: LakeConfig, name: str, table_id: str) -> None:
    kept = kept_name(name, table_id)
    catalog.rename_table((config.namespace, name), (config.namespace, kept))
    logger.warning(
        "a keyed table was dropped and created again: the old one was renamed in the lake",
        extra={"table": name, "renamed_to": kept},
    )


def _updates(table: Table, definition: KeyedDefinition, full_name: str) -> tuple[TableUpdate, ...]:
    problems: list[str] = []
    if table.format_version != FORMAT_VERSION:
        problems.append(f"it has format version {table.format_version}, expected {FORMAT_VERSION}")
    if not table.spec().is_unpartitioned():
        problems.append("it is partitioned")
    schema = _merged(table.schema(), schema_of(definition), problems)
    if problems:
        raise Unavailable(
            f"the table {full_name} does not fit the rows of its keyed table: "
            f"{'; '.join(problems)}. Undo that, or drop it: then it is written again as a whole"
        )
    updates: list[TableUpdate] = []
    if schema is not None:
        numbered = schema.model_copy(update={"schema_id": max(table.schemas()) + 1})
        updates += [AddSchemaUpdate(schema=numbered), SetCurrentSchemaUpdate()]
        logger.info("columns of a keyed table changed", extra={"table": full_name})
    expected = KEYED_PROPERTIES | table.properties | REQUIRED_PROPERTIES
    changed = {key: text for key, text in expected.items() if table.properties.get(key) != text}
    if changed:
        updates.append(SetPropertiesUpdate(updates=changed))
    return tuple(updates)


def _merged(actual: Schema, expected: Schema, problems: list[str]) -> Schema | None:
    """Return the schema with missing columns and wider types, or None if it has all of them.
    Optional columns that a user has added stay."""
    by_id = {field.field_id: field for field in expected.fields}
    fields: list[NestedField] = []
    is_changed = False
    for field in actual.fields:
        ours = by_id.pop(field.field_id, None)
        if ours is None:
            if field.required:
                problems.append(f"column {field.name} is required, but rows have no value for it")
            fields.append(field)
            continue
        if ours.name != field.name:
            problems.append(f"column {ours.name} was renamed to {field.name}")
        if field.required and not ours.required:
            problems.append(f"column {field.name} is required, expected optional")
        kind = field.field_type
        if is_promoted(kind, ours.field_type):
            kind, is_changed = ours.field_type, True
        elif kind != ours.field_type and not is_promoted(ours.field_type, kind):
            problems.append(f"column {field.name} is {kind}, expected {ours.field_type}")
        fields.append(NestedField(field.field_id, field.name, kind, field.required, field.doc))
    for ours in by_id.values():
        # Iceberg adds no required column: older files have no value for it.
        fields.append(NestedField(ours.field_id, ours.name, ours.field_type, False, ours.doc))
        is_changed = True
    if not is_changed:
        return None
    return Schema(*fields, identifier_field_ids=actual.identifier_field_ids)


def positions_of(table: Table, definition: KeyedDefinition) -> dict[int, FrozenPosition]:
    """Return up to where the table holds each partition."""
    offsets = next_offsets(table)
    rows = rows_of_text(table.properties.get(NEXT_ROWS, "{}"))
    return {
        number: FrozenPosition(
            offsets.get(TopicPartition(definition.topic, number), 0), rows.get(number, 0)
        )
        for number in range(definition.partitions)
    }


def rows_of_text(text: str) -> dict[int, int]:
    """Parse row numbers from a table property."""
    return {int(number): row for number, row in json.loads(text).items()}


def text_of_rows(rows: Mapping[int, int]) -> str:
    """Format row numbers for a table property."""
    return json.dumps({str(number): row for number, row in sorted(rows.items())})


def check_own(table: Table) -> Snapshot | None:
    """Return the current snapshot. Raises `Conflict` if another program has changed the table."""
    snapshot = table.current_snapshot()
    reason = foreign_reason(table)
    if reason is not None:
        raise Conflict(reason)
    return snapshot


def foreign_reason(table: Table) -> str | None:
    """Return why the rows of the current snapshot are not those that Frazil froze, or None."""
    snapshot = table.current_snapshot()
    name = ".".join(table.name())
    known = {key: table.properties.get(key) for key in (NEXT_OFFSETS, NEXT_ROWS)}
    if snapshot is None:
        if known[NEXT_OFFSETS] is None:
            return None
        return f"{name} has lost its snapshots; drop the table: it is written again as a whole"
    summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
    if COMMIT_ID not in summary:
        return (
            f"snapshot {snapshot.snapshot_id} of {name} was not written by Frazil, and a keyed "
            f"table has one writer; roll back to snapshot {_last_own(table)} with Spark's "
            "procedure rollback_to_snapshot, or drop the table: it is written again as a whole"
        )
    if (summary.get(OFFSETS), summary.get(NEXT_ROWS)) != (known[NEXT_OFFSETS], known[NEXT_ROWS]):
        return (
            f"snapshot {snapshot.snapshot_id} of {name} is not the last that Frazil wrote, which "
            f"is {_last_own(table)}: the table was rolled back, or its properties were changed; "
            "set the snapshot again, or drop the table: it is written again as a whole"
        )
    return None


def _last_own(table: Table) -> str:
    """Return the id of the last snapshot that Frazil wrote."""
    for snapshot in reversed(table.metadata.snapshots):
        if snapshot.summary is not None and snapshot.summary.get(COMMIT_ID) is not None:
            return str(snapshot.snapshot_id)
    return "(expired)"
