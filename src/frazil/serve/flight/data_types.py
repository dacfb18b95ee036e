"""The types of SQL columns, as ODBC and JDBC number them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from frazil.serve.proto_messages import Message

NULLABLE, SEARCHABLE = 1, 3
RADIX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """One type. `number` is that of XDBC."""

    name: str
    number: int
    size: int | None = None
    quote: str | None = None
    is_unsigned: bool | None = None
    scale_max: int | None = None
    datetime_part: int | None = None

    def row(self) -> dict[str, object]:
        is_number = self.is_unsigned is not None
        return {
            "type_name": self.name,
            "data_type": self.number,
            "column_size": self.size,
            "literal_prefix": self.quote,
            "literal_suffix": None if self.quote is None else "'",
            "create_params": None,
            "nullable": NULLABLE,
            "case_sensitive": self.name == "VARCHAR",
            "searchable": SEARCHABLE,
            "unsigned_attribute": self.is_unsigned,
            "fixed_prec_scale": False,
            "auto_increment": False if is_number else None,
            "local_type_name": self.name,
            "minimum_scale": None if self.scale_max is None else 0,
            "maximum_scale": self.scale_max,
            "sql_data_type": self.number if self.datetime_part is None else 9,
            "datetime_subcode": self.datetime_part,
            "num_prec_radix": RADIX if is_number else None,
            "interval_precision": None,
        }


DATA_TYPES = (
    DataType(name="BOOLEAN", number=-7, size=1),
    DataType(name="TINYINT", number=-6, size=3, is_unsigned=False),
    DataType(name="BIGINT", number=-5, size=19, is_unsigned=False),
    DataType(name="BYTEA", number=-3, quote="X'"),
    DataType(name="DECIMAL", number=3, size=38, is_unsigned=False, scale_max=38),
    DataType(name="INTEGER", number=4, size=10, is_unsigned=False),
    DataType(name="SMALLINT", number=5, size=5, is_unsigned=False),
    DataType(name="REAL", number=7, size=7, is_unsigned=False),
    DataType(name="DOUBLE", number=8, size=15, is_unsigned=False),
    DataType(name="VARCHAR", number=12, quote="'"),
    DataType(name="DATE", number=91, size=10, quote="DATE '", datetime_part=1),
    DataType(name="TIMESTAMP", number=93, size=32, quote="'", scale_max=9, datetime_part=3),
)
"""By number, as clients expect them."""

_TEXT, _INT, _FLAG = pa.string(), pa.int32(), pa.bool_()
TYPE_INFO = pa.schema(
    [
        pa.field("type_name", _TEXT, nullable=False),
        pa.field("data_type", _INT, nullable=False),
        ("column_size", _INT),
        ("literal_prefix", _TEXT),
        ("literal_suffix", _TEXT),
        ("create_params", pa.list_(pa.field("item", _TEXT, nullable=False))),
        pa.field("nullable", _INT, nullable=False),
        pa.field("case_sensitive", _FLAG, nullable=False),
        pa.field("searchable", _INT, nullable=False),
        ("unsigned_attribute", _FLAG),
        pa.field("fixed_prec_scale", _FLAG, nullable=False),
        ("auto_increment", _FLAG),
        ("local_type_name", _TEXT),
        ("minimum_scale", _INT),
        ("maximum_scale", _INT),
        pa.field("sql_data_type", _INT, nullable=False),
        ("datetime_subcode", _INT),
        ("num_prec_radix", _INT),
        ("interval_precision", _INT),
    ]
)


def type_info(command: Message) -> pa.Table:
    """Return all types, or the one with a number."""
    rows = [
        each.row()
        for each in DATA_TYPES
        if not command.HasField("data_type") or each.number == command.data_type
    ]
    return pa.Table.from_pylist(rows, TYPE_INFO)
