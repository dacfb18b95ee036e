"""Iceberg schema of a keyed table, the types of its data files, and their Parquet layout.

    bool, int32, int64, float32, float64, date, timestamp, timestamptz, string, binary, decimal
                                  the same
    int8, int16, uint8, uint16    int
    uint32                        long
    uint64                        decimal(20, 0)

Iceberg has no unsigned and no small integers. Field ids are the column ids of the definition; the
columns of ours have ids above all that a definition can have.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from frazil.lake.files.parquet_schema import FIELD_ID, ParquetColumn, ParquetLayout
from frazil.lake.keyed.definition import (
    LOG_PARTITION,
    OFFSET,
    ROW,
    SYSTEM_COLUMNS,
    KeyedColumn,
    KeyedDefinition,
)

SYSTEM_IDS = {LOG_PARTITION: 100_001, OFFSET: 100_002, ROW: 100_003}
"""Columns that a user adds get later ids."""
BOUND_COLUMNS_MAX = 100
"""Columns with bounds in manifests, as in Iceberg; those of the key and ours always have them."""
BOUND_LENGTH_MAX = 16
WIDER: dict[pa.DataType, pa.DataType] = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
ICEBERG_TYPES: dict[pa.DataType, IcebergType] = {
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    pa.timestamp("us"): TimestampType(),
    pa.timestamp("us", tz="UTC"): TimestamptzType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
}
ARROW_TYPES = {kind: arrow for arrow, kind in ICEBERG_TYPES.items()}
BLOOM_TYPES = (pa.int32(), pa.int64(), pa.string(), pa.binary())
UNPARTITIONED = PartitionSpec()


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column in data files."""
    return WIDER.get(kind, kind)


def iceberg_type(kind: pa.DataType) -> IcebergType:
    """Return the Iceberg type of a column."""
    stored = stored_type(kind)
    if pa.types.is_decimal(stored):
        return DecimalType(stored.precision, stored.scale)
    return ICEBERG_TYPES[stored]


def arrow_type(kind: IcebergType) -> pa.DataType | None:
    """Return the type in data files, or None if a keyed table has no such columns."""
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    return ARROW_TYPES.get(kind)


def is_promoted(before: IcebergType, after: IcebergType) -> bool:
    """Return whether Iceberg reads files of one type as another, wider one."""
    if isinstance(before, DecimalType) and isinstance(after, DecimalType):
        return before.scale == after.scale and before.precision < after.precision
    return (type(before), type(after)) in ((IntegerType, LongType), (FloatType, DoubleType))


def schema_of(definition: KeyedDefinition) -> Schema:
    """Return the schema of a new table. The key is its identifier."""
    fields = [_field(column) for column in definition.columns]
    docs = {
        LOG_PARTITION: "partition of the log",
        OFFSET: "offset of the change that made the row",
        ROW: "number of the row version in its partition",
    }
    for name in SYSTEM_COLUMNS:
        kind: IcebergType = IntegerType() if name == LOG_PARTITION else LongType()
        fields.append(NestedField(SYSTEM_IDS[name], name, kind, required=True, doc=docs[name]))
    return Schema(*fields, identifier_field_ids=key_ids(definition))


def _field(column: KeyedColumn) -> NestedField:
    kind = iceberg_type(column.type)
    return NestedField(column.id, column.name, kind, required=not column.is_nullable)


def key_ids(definition: KeyedDefinition) -> list[int]:
    ids = {column.name: column.id for column in definition.columns}
    return [ids[name] for name in definition.key]


def sort_order_of(definition: KeyedDefinition) -> SortOrder:
    """Return the order of rows in data files: by key."""
    return SortOrder(
        *(SortField(number, transform=IdentityTransform()) for number in key_ids(definition))
    )


def layout_of(schema: Schema, order: SortOrder) -> ParquetLayout:
    """Return the layout of data files. Columns of types that keyed tables do not have were added by
    a user; they are left out, which is null."""
    sorted_by = [schema.find_column_name(field.source_id) for field in order.fields]
    key = tuple(name for name in sorted_by if name is not None)
    fields = [
        pa.field(
            field.name, kind, nullable=not field.required, metadata={FIELD_ID: str(field.field_id)}
        )
        for field in schema.fields
        if (kind := arrow_type(field.field_type)) is not None
    ]
    arrow_schema = pa.schema(fields)
    has_bounds = {*key, *SYSTEM_COLUMNS, *arrow_schema.names[:BOUND_COLUMNS_MAX]}
    is_bloom = len(key) == 1 and arrow_schema.field(key[0]).type in BLOOM_TYPES
    return ParquetLayout(
        schema=arrow_schema,
        numbered_schema=arrow_schema,
        leaves=tuple(_leaf(field, has_bounds=field.name in has_bounds) for field in fields),
        order=key,
        bloom=key if is_bloom else (),
        with_dictionary=[name for name in arrow_schema.names if name not in (*key, ROW)],
    )


def _leaf(field: pa.Field, *, has_bounds: bool) -> ParquetColumn:
    kind = field.type
    has_length = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return ParquetColumn(
        path=field.name,
        field_id=int(field.metadata[FIELD_ID]),
        kind=kind,
        is_nested=False,
        # Parquet has four ways to write a decimal; none is worth a bound.
        has_bounds=has_bounds and not pa.types.is_decimal(kind),
        length_max=BOUND_LENGTH_MAX if has_length else None,
    )


def stored_rows(batches: Sequence[pa.RecordBatch], layout: ParquetLayout) -> pa.Table:
    """Return rows in the columns and types of data files; missing columns are null."""
    table = pa.Table.from_batches(batches)
    names = set(table.schema.names)
    columns = [
        table[field.name].cast(field.type)
        if field.name in names
        else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for field in layout.schema
    ]
    return pa.Table.from_arrays(columns, schema=layout.schema)
