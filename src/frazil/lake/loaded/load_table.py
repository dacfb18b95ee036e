"""LoadTable: the table that files are loaded into, planned but not changed.

A new table, and new columns of an existing one, have their field ids already; the commit of the
rows creates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.errors import Conflict, Malformed
from frazil.lake.append.commit import APPENDER
from frazil.lake.catalog.catalog import catalog_calls, ensure_namespace
from frazil.lake.loaded.ledger import LEDGER, read_ledger
from frazil.lake.tables.properties import LOADED_PROPERTIES, REQUIRED_PROPERTIES
from frazil.model.arrow import LEDGER_SCHEMA

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import CreateTableTransaction, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.sorting import SortOrder

    from frazil.settings import LakeConfig

FORMAT_VERSION = 2
COMMENT = "comment"
"""Key of a column's comment in the metadata of a field."""


class LoadConflict(Conflict):
    """Another load, or another change to the table, came first: plan again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBy:
    """A field of the partition spec of a new table."""

    column: str
    transform: str
    """As Iceberg writes it: `identity`, `day`, `bucket[16]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    """What a task needs to write data files."""

    location: str
    schema_json: str
    spec_json: str
    order_json: str
    """The sort order."""
    properties: dict[str, str]
    io: FileIO = field(repr=False)
    """May hold passwords."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTable:
    """A planned load. Belongs to one thread."""

    identifier: tuple[str, str]
    metadata: TableMetadata
    """As it will be."""
    io: FileIO
    schema: pa.Schema
    """Columns to write, all of the table, with comments."""
    ledger: pa.Table
    new_columns: pa.Schema
    creation: CreateTableTransaction | None
    """How to create the table, if it does not exist."""

    @property
    def name(self) -> str:
        return ".".join(self.identifier)

    @property
    def is_new(self) -> bool:
        return self.creation is not None

    def target(self) -> LoadTarget:
        return LoadTarget(
            location=self.metadata.location,
            schema_json=self.metadata.schema().model_dump_json(),
            spec_json=self.metadata.spec().model_dump_json(),
            order_json=_order(self.metadata).model_dump_json(),
            properties=dict(self.metadata.properties),
            io=self.io,
        )


def _order(metadata: TableMetadata) -> SortOrder:
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

    found = metadata.sort_order_by_id(metadata.default_sort_order_id)
    return UNSORTED_SORT_ORDER if found is None else found


def find_table(catalog: Catalog, config: LakeConfig, name: str) -> Table | None:
    """Return a table that files may be loaded into, or None if there is none. `Malformed` if its
    rows come from the log."""
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    with catalog_calls(config):
        try:
            table = catalog.load_table((config.namespace, name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        if APPENDER in table.properties:
            raise Malformed(f"{name} is filled from the log; load files into another table")
        if table.format_version != FORMAT_VERSION:
            raise Malformed(
                f"{name} has Iceberg format version {table.format_version}, and only version "
                f"{FORMAT_VERSION} can be loaded"
            )
        changed = {
            key: value
            for key, value in REQUIRED_PROPERTIES.items()
            if table.properties.get(key) != value
        }
        if changed:
            with table.transaction() as transaction:
                transaction.set_properties(changed)
            table = catalog.load_table((config.namespace, name))
        return table


def plan_new_table(
    catalog: Catalog,
    config: LakeConfig,
    name: str,
    columns: pa.Schema,
    partition_by: Sequence[PartitionBy],
) -> LoadTable:
    """Plan a table with these columns. `Malformed` if it cannot have them."""
    from pyiceberg.exceptions import TableAlreadyExistsError
    from pyiceberg.io import load_file_io
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import assign_fresh_schema_ids
    from pyiceberg.transforms import parse_transform

    _check_names(columns.names)
    identifier = (config.namespace, name)
    with catalog_calls(config):
        ensure_namespace(catalog, config)
        try:
            schema = assign_fresh_schema_ids(_iceberg_schema(columns))
            fields = []
            for index, part in enumerate(partition_by):
                if part.column not in columns.names:
                    raise Malformed(f"PARTITION BY names {part.column}, which is not a column")
                transform = parse_transform(part.transform)
                source = schema.find_field(part.column)
                if not transform.can_transform(source.field_type):
                    raise Malformed(
                        f"{part.column} is {source.field_type}, which {part.transform} does not "
                        "take"
                    )
                suffix = "" if part.transform == "identity" else f"_{part.transform.split('[')[0]}"
                fields.append(
                    PartitionField(
                        source_id=source.field_id,
                        field_id=1000 + index,
                        transform=transform,
                        name=f"{part.column}{suffix}",
                    )
                )
            creation = catalog.create_table_transaction(
                identifier,
                schema,
                partition_spec=PartitionSpec(*fields),
                properties={**LOADED_PROPERTIES, "format-version": str(FORMAT_VERSION)},
            )
        except TableAlreadyExistsError:
            raise LoadConflict(f"{name} was created meanwhile; plan again") from None
        except (ValueError, TypeError) as error:
            raise Malformed(f"{name} cannot be created: {error}") from error
    metadata = creation.table_metadata
    return LoadTable(
        identifier=identifier,
        metadata=metadata,
        io=load_file_io(catalog.properties, metadata.location),
        schema=arrow_schema(metadata.schema()),
        ledger=LEDGER_SCHEMA.empty_table(),
        new_columns=columns,
        creation=creation,
    )


def plan_load(table: Table, new_columns: pa.Schema) -> LoadTable:
    """Plan to load into an existing table, with these columns added."""
    metadata = with_columns(table, new_columns)
    return LoadTable(
        identifier=_identifier(table),
        metadata=metadata,
        io=table.io,
        schema=arrow_schema(metadata.schema()),
        ledger=read_ledger(table.properties.get(LEDGER), table.io),
        new_columns=new_columns,
        creation=None,
    )


def with_columns(table: Table, new_columns: pa.Schema) -> TableMetadata:
    """Return the metadata that a table would have with these columns added."""
    if not new_columns.names:
        return table.metadata
    _check_names([*(field.name for field in table.schema().fields), *new_columns.names])
    transaction = table.transaction()
    add_columns(transaction, new_columns)
    return transaction.table_metadata


def add_columns(transaction: Any, new_columns: pa.Schema) -> None:
    """Stage new columns. Their field ids follow from those of the table."""
    if not new_columns.names:
        return
    with transaction.update_schema() as update:
        for added in _iceberg_schema(new_columns).fields:
            update.add_column((added.name,), added.field_type, doc=added.doc)


def _iceberg_schema(columns: pa.Schema) -> Any:
    """Return columns as an Iceberg schema without meaningful ids."""
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
    from pyiceberg.schema import Schema

    schema = _pyarrow_to_schema_without_ids(columns.remove_metadata())
    comments = {field.name: comment_of(field) for field in columns}
    return Schema(
        *(
            each.model_copy(update={"doc": comments[each.name], "required": False})
            for each in schema.fields
        )
    )


def comment_of(field: pa.Field) -> str | None:
    """Return the comment of a column, or None."""
    comment = (field.metadata or {}).get(COMMENT.encode())
    return None if comment is None else comment.decode()


def arrow_schema(schema: Any) -> pa.Schema:
    """Return the columns of an Iceberg schema, with field ids and comments."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    comments = {field.name: field.doc for field in schema.fields}
    fields = []
    for found in schema_to_pyarrow(schema):
        plain = _plain(found)
        comment = comments[found.name]
        if comment is not None:
            plain = plain.with_metadata({**(plain.metadata or {}), COMMENT: comment})
        fields.append(plain)
    return pa.schema(fields)


def _plain(field: pa.Field) -> pa.Field:
    """Return a field without the large variants of types."""
    return field.with_type(_plain_type(field.type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain(inner) for inner in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_field), _plain(kind.item_field))
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    return kind


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise Malformed("there are no columns: the files are empty; name columns in the statement")
    seen: dict[str, str] = {}
    for name in names:
        before = seen.get(name.lower())
        seen[name.lower()] = name
        if not name or before is not None:
            raise Malformed(
                f"the columns {before!r} and {name!r} have the same name for SQL, or none; load "
                "the lines with TYPE=TEXT, or rename the field"
            )


def _identifier(table: Table) -> tuple[str, str]:
    namespace, name = table.name()[-2:]
    return namespace, name
