"""The tables of the lake: made as the model has them, and brought up to date when they are older.

1. load     the table, if it is there
2. create   if not: one commit, with our field ids; of several who try, one wins
3. refuse   what somebody has changed so that our rows no longer fit, naming it
4. evolve   add what is missing, in one commit; when somebody was quicker, from 1

PyIceberg and the servers of REST catalogs give the fields of a new table ids of their own. They
leave those alone that come in a commit, so a table is staged first, and then made by one.
"""

from __future__ import annotations

import logging
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
from frazil.lake.tables.evolution import MergedSchema, merge
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.properties import (
    PARTITION_COLUMN,
    REQUIRED_PROPERTIES,
    kind_of,
    properties_of,
)
from frazil.lake.tables.schema import schema_of, sort_order_of, spec_of

if TYPE_CHECKING:
    from frazil.lake.config import LakeConfig

logger = logging.getLogger(__name__)

FORMAT_VERSION = 2
"""PyIceberg cannot write version 3, and version 1 cannot remove rows."""
ATTEMPTS_MAX = 10
"""Somebody else commits once or twice while we look; not ten times."""


def ensure_table(catalog: Catalog, config: LakeConfig, name: str) -> Table:
    """The table of that name, with every column we write. Made or brought up to date if need be.

    `Unavailable` when it has been changed so that our rows do not fit, or when the catalog cannot
    be reached; `Conflict` when somebody changes it all the time.
    """
    identifier = (config.namespace, name)
    full_name = f"{config.catalog_name}.{config.namespace}.{name}"
    with catalog_calls(config):
        ensure_namespace(catalog, config)
        for _ in range(ATTEMPTS_MAX):
            try:
                table = catalog.load_table(identifier)
            except NoSuchTableError:
                create_table(
                    catalog,
                    identifier,
                    schema=schema_of(name),
                    spec=spec_of(name),
                    order=sort_order_of(name),
                    properties=properties_of(name),
                )
                continue
            updates = _updates(table, name, full_name)
            if not updates:
                return table
            _change(catalog, table, updates)
    raise Conflict(
        f"the table {full_name} was changed by others {ATTEMPTS_MAX} times while it was "
        "looked at, or something that is no table has its name; look who does that"
    )


def create_table(
    catalog: Catalog,
    identifier: tuple[str, str],
    *,
    schema: Schema,
    spec: PartitionSpec,
    order: SortOrder,
    properties: dict[str, str],
) -> None:
    """Make a table with the ids that the schema has. That somebody else made it is as good.

    The updates that set something mean, without a number, what the same commit has added.
    """
    try:
        staged = catalog.create_table_transaction(
            identifier,
            schema,
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
        logger.info("table made by somebody else, perhaps", extra={"table": identifier})
        return
    logger.info("table made", extra={"table": identifier, "location": staged.location})


def _updates(table: Table, name: str, full_name: str) -> tuple[TableUpdate, ...]:
    """What is to be changed so that our rows can be stored; nothing as a rule."""
    merged = merge(full_name, schema_of(name), table.schema())
    complaints = [*merged.complaints, *_layout_complaints(table, full_name, name)]
    if complaints:
        raise Unavailable(
            f"the table {full_name} does not fit our rows: {'; '.join(complaints)}. Undo that, or "
            f"give the table another name (ALTER TABLE {full_name} RENAME TO ...): then a new one "
            "is made, which begins with what the log still holds"
        )
    return (*_schema_updates(table, merged), *_property_updates(table, name))


def _layout_complaints(table: Table, full_name: str, name: str) -> list[str]:
    complaints = []
    if table.format_version != FORMAT_VERSION:
        complaints.append(f"it has format version {table.format_version}, not {FORMAT_VERSION}")
    lies = [(field.source_id, str(field.transform)) for field in table.spec().fields]
    if lies != [(FIELD_IDS[kind_of(name)][PARTITION_COLUMN], "day")]:
        complaints.append(
            f"it is partitioned by {_words(table)}, and not by days({PARTITION_COLUMN}) alone "
            f"(ALTER TABLE {full_name} DROP PARTITION FIELD ..., ADD PARTITION FIELD ...)"
        )
    return complaints


def _words(table: Table) -> str:
    fields = table.spec().fields
    names = [table.schema().find_column_name(field.source_id) for field in fields]
    words = [f"{field.transform}({name})" for field, name in zip(fields, names, strict=True)]
    return ", ".join(words) or "nothing"


def _schema_updates(table: Table, merged: MergedSchema) -> tuple[TableUpdate, ...]:
    if not merged.added:
        return ()
    schema_id = max(table.schemas()) + 1
    logger.info("columns added", extra={"table": table.name(), "columns": merged.added})
    return (
        AddSchemaUpdate(schema=merged.schema.model_copy(update={"schema_id": schema_id})),
        SetCurrentSchemaUpdate(),
    )


def _property_updates(table: Table, name: str) -> tuple[TableUpdate, ...]:
    """What is missing, and what must be so. What somebody has tuned is left alone."""
    wanted = properties_of(name) | table.properties | REQUIRED_PROPERTIES
    changes = {key: value for key, value in wanted.items() if table.properties.get(key) != value}
    return (SetPropertiesUpdate(updates=changes),) if changes else ()


def _change(catalog: Catalog, table: Table, updates: tuple[TableUpdate, ...]) -> None:
    """One commit, for the table as we saw it. When it has changed since, the caller looks again."""
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
        logger.info("table changed by somebody else", extra={"table": table.name()})
