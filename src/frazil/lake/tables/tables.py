"""Create the tables of the lake, and bring older ones up to date.

1. load     the table, if it exists
2. create   otherwise: one commit, with our field ids; if several processes try, one wins
3. check    raise if the table was altered so that our rows no longer fit
4. evolve   add what is missing in one commit; after a conflict, start again from 1

PyIceberg and REST servers assign their own field ids when they create a table, but keep the ids
that come in a commit. So a table is staged first and then created by a commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertTableUUID,
    AssignUUIDUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

from frazil.errors import Conflict, Unavailable
from frazil.lake.catalog.catalog import catalog_calls, ensure_namespace
from frazil.lake.tables.evolution import merge
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.promoted import promoted_change
from frazil.lake.tables.properties import (
    PARTITION_COLUMN,
    REQUIRED_PROPERTIES,
    kind_of,
    properties_of,
)
from frazil.lake.tables.schema import schema_of, sort_order_of, spec_of
from frazil.model import PromotedColumn

if TYPE_CHECKING:
    from frazil.settings import LakeConfig

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""PyIceberg cannot write version 3, and version 1 has no row deletes."""
DELETED_INFIX = "__deleted_"
"""In the name of a deleted topic's table. The table of a topic never has it in its name."""
ATTEMPTS_MAX = 10
"""Commits of others may interfere once or twice; ten times means something is wrong."""


def ensure_table(
    catalog: Catalog, config: LakeConfig, name: str, promoted: Sequence[PromotedColumn] = ()
) -> Table:
    """Return the table with every column we write, after creating or updating it if needed.

    Raise `Unavailable` if it was altered so that our rows do not fit or if the catalog cannot be
    reached, and `Conflict` if others keep changing it.
    """
    full_name = f"{config.catalog_name}.{config.namespace}.{name}"

    def create() -> None:
        create_table(
            catalog,
            (config.namespace, name),
            schema=schema_of(name),
            spec=spec_of(name),
            order=sort_order_of(name),
            properties=properties_of(name),
            location=separate_location(catalog, config, name),
        )

    return keep_current(
        catalog, config, name, create, lambda table: _updates(table, name, full_name, promoted)
    )


def keep_current(
    catalog: Catalog,
    config: LakeConfig,
    name: str,
    create: Callable[[], None],
    updates_for: Callable[[Table], tuple[TableUpdate, ...] | None],
) -> Table:
    """Return a table once it needs no updates: create it if it is missing, commit the updates it
    needs. `updates_for` returns None if the table is to be looked up again."""
    full_name = f"{config.catalog_name}.{config.namespace}.{name}"
    with catalog_calls(config):
        ensure_namespace(catalog, config)
        for _ in range(ATTEMPTS_MAX):
            try:
                table = catalog.load_table((config.namespace, name))
            except NoSuchTableError:
                create()
                continue
            updates = updates_for(table)
            if updates is None:
                continue
            if not updates:
                return table
            commit_updates(catalog, table, updates)
    raise Conflict(
        f"the table {full_name} was changed by others during each of {ATTEMPTS_MAX} attempts to "
        "update it, or its name is taken by a view; find out who changes it"
    )


def kept_name(name: str, topic_id: str) -> str:
    """Return the new name of the table of a deleted topic."""
    return f"{name}{DELETED_INFIX}{topic_id[:8]}"


def separate_location(catalog: Catalog, config: LakeConfig, name: str) -> str | None:
    """Return another location than those of renamed tables, whose files would be taken for orphans
    of this one; None if there are no such tables."""
    known = [found for *_, found in catalog.list_tables(config.namespace)]
    locations = [
        catalog.load_table((config.namespace, found)).location()
        for found in known
        if found.startswith(f"{name}{DELETED_INFIX}")
    ]
    if not locations:
        return None
    first = min(locations, key=len)
    return next(f"{first}-{n}" for n in count(1) if f"{first}-{n}" not in locations)


def create_table(
    catalog: Catalog,
    identifier: tuple[str, str],
    *,
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    properties: dict[str, str],
    location: str | None = None,
) -> None:
    """Create a table with the field ids of `schema`. Does nothing if another process created it.

    Each `Set...Update` without an id refers to what the same commit adds.
    """
    try:
        staged = catalog.create_table_transaction(
            identifier,
            schema,
            location,
            partition_spec=spec,
            sort_order=order,
            properties={**properties, "format-version": str(FORMAT_VERSION)},
        ).table_metadata
        catalog.commit_table(
            StagedTable(
                identifier,
                staged,
                metadata_location=staged.location,
                io=load_file_io(catalog.properties, staged.location),
                catalog=catalog,
            ),
            (AssertCreate(),),
            (
                AssignUUIDUpdate(uuid=staged.table_uuid),
                UpgradeFormatVersionUpdate.model_validate({"format-version": FORMAT_VERSION}),
                AddSchemaUpdate(schema=schema),
                SetCurrentSchemaUpdate(),
                AddPartitionSpecUpdate(spec=spec),
                SetDefaultSpecUpdate(),
                AddSortOrderUpdate.model_validate({"sort-order": order}),
                SetDefaultSortOrderUpdate(),
                SetLocationUpdate(location=staged.location),
                SetPropertiesUpdate(updates=staged.properties),
            ),
        )
    except (TableAlreadyExistsError, CommitFailedException, CommitStateUnknownException):
        logger.info("table may have been created by another process", extra={"table": identifier})
        return
    logger.info("table created", extra={"table": identifier, "location": staged.location})


def _updates(
    table: Table, name: str, full_name: str, promoted: Sequence[PromotedColumn] = ()
) -> tuple[TableUpdate, ...]:
    """Return the updates that the table needs before our rows fit; usually none."""
    merged = merge(full_name, schema_of(name), table.schema())
    change = promoted_change(full_name, name, table, merged.schema, promoted)
    problems = [*merged.problems, *change.problems, *_layout_problems(table, full_name, name)]
    if problems:
        raise Unavailable(
            f"the table {full_name} does not fit our rows: {'; '.join(problems)}. Undo that, or "
            f"rename the table (ALTER TABLE {full_name} RENAME TO ...): then a new one is created, "
            "which starts with the rows that the log still has"
        )
    schema = merged.schema
    if change.fields:
        schema = Schema(
            *schema.fields, *change.fields, identifier_field_ids=schema.identifier_field_ids
        )
    added = [*merged.added, *(field.name for field in change.fields)]
    return (
        *_schema_updates(table, schema, added),
        *_property_updates(table, name, change.properties),
    )


def _layout_problems(table: Table, full_name: str, name: str) -> list[str]:
    problems = []
    if table.format_version != FORMAT_VERSION:
        problems.append(f"it has format version {table.format_version}, expected {FORMAT_VERSION}")
    layout = [(field.source_id, str(field.transform)) for field in table.spec().fields]
    if layout != [(FIELD_IDS[kind_of(name)][PARTITION_COLUMN], "day")]:
        problems.append(
            f"it is partitioned by {_spec_text(table)}, expected days({PARTITION_COLUMN}) alone "
            f"(ALTER TABLE {full_name} DROP PARTITION FIELD ..., ADD PARTITION FIELD ...)"
        )
    return problems


def _spec_text(table: Table) -> str:
    fields = table.spec().fields
    names = [table.schema().find_column_name(field.source_id) for field in fields]
    terms = [f"{field.transform}({name})" for field, name in zip(fields, names, strict=True)]
    return ", ".join(terms) or "nothing"


def _schema_updates(table: Table, schema: Schema, added: Sequence[str]) -> tuple[TableUpdate, ...]:
    if not added:
        return ()
    schema_id = max(table.schemas()) + 1
    logger.info("columns added", extra={"table": table.name(), "columns": added})
    return (
        AddSchemaUpdate(schema=schema.model_copy(update={"schema_id": schema_id})),
        SetCurrentSchemaUpdate(),
    )


def _property_updates(
    table: Table, name: str, changed: Mapping[str, str]
) -> tuple[TableUpdate, ...]:
    """Return missing, changed and required properties. Others that a user has set stay."""
    expected = properties_of(name) | table.properties | dict(changed) | REQUIRED_PROPERTIES
    changes = {key: value for key, value in expected.items() if table.properties.get(key) != value}
    return (SetPropertiesUpdate(updates=changes),) if changes else ()


def commit_updates(catalog: Catalog, table: Table, updates: tuple[TableUpdate, ...]) -> None:
    """Commit the updates if the table is unchanged. After a conflict, the caller loads it again."""
    requirements = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertCurrentSchemaId.model_validate({"current-schema-id": table.schema().schema_id}),
        AssertLastAssignedFieldId.model_validate(
            {"last-assigned-field-id": table.metadata.last_column_id}
        ),
    )
    try:
        catalog.commit_table(table, requirements, updates)
    except (CommitFailedException, CommitStateUnknownException):
        logger.info("table changed by another process", extra={"table": table.name()})
