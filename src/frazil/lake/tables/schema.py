"""Iceberg schema, partition spec and sort order of our tables."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.properties import PARTITION_COLUMN, PARTITION_FIELD, SORT_COLUMNS, kind_of
from frazil.lake.tables.record_rows import columns_of

PRIMITIVES: dict[pa.DataType, IcebergType] = {
    pa.string(): StringType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.binary(): BinaryType(),
    pa.timestamp("us", tz="UTC"): TimestamptzType(),
}


def schema_of(name: str) -> Schema:
    """Return a table's schema, with column comments and the ids of field_ids.py."""
    ids = FIELD_IDS[kind_of(name)]
    return Schema(*(_field(field, field.name, ids) for field in columns_of(name)))


def spec_of(name: str) -> PartitionSpec:
    """Return a partition spec by the day of `time`."""
    return PartitionSpec(
        PartitionField(
            source_id=FIELD_IDS[kind_of(name)][PARTITION_COLUMN],
            field_id=PARTITION_FIELD_ID_START,
            transform=DayTransform(),
            name=PARTITION_FIELD,
        )
    )


def sort_order_of(name: str) -> SortOrder:
    """Return the sort order of a table's files."""
    kind = kind_of(name)
    ids = FIELD_IDS[kind]
    fields = [
        SortField(ids[column], transform=IdentityTransform()) for column in SORT_COLUMNS[kind]
    ]
    return SortOrder(*fields)


def _field(field: pa.Field, path: str, ids: dict[str, int]) -> NestedField:
    return NestedField(
        ids[path],
        field.name,
        _type(field.type, path, ids),
        required=not field.nullable,
        doc=(field.metadata or {}).get(b"comment", b"").decode() or None,
    )


def _type(kind: pa.DataType, path: str, ids: dict[str, int]) -> IcebergType:
    if pa.types.is_struct(kind):
        return StructType(*(_field(field, f"{path}.{field.name}", ids) for field in kind))
    if pa.types.is_list(kind):
        element = f"{path}.element"
        return ListType(
            ids[element],
            _type(kind.value_type, element, ids),
            element_required=not kind.value_field.nullable,
        )
    if pa.types.is_map(kind):
        key, value = f"{path}.key", f"{path}.value"
        return MapType(
            ids[key],
            _type(kind.key_type, key, ids),
            ids[value],
            _type(kind.item_type, value, ids),
            value_required=not kind.item_field.nullable,
        )
    return PRIMITIVES[kind]
