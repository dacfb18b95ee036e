"""What the server can do, as clients ask for it: numbers of Flight SQL, and a value for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from frazil.errors import Unknown
from frazil.serve.proto_messages import Message
from frazil.version import __version__

NO_LIMIT = 0
LOWER_CASE, CASE_SENSITIVE = 3, 1
NULLS_HIGH = 0
NO_TRANSACTIONS = 0
STATEMENT_TIMEOUT = 100
STATEMENT_LENGTH = 557

Value: TypeAlias = str | bool | int | list[str] | dict[int, list[int]]


class Bits(int):
    """A number of 32 bits."""


NUMERIC_FUNCTIONS = "abs ceil exp floor ln log log10 log2 pi power random round sign sqrt trunc"
TEXT_FUNCTIONS = (
    "ascii char_length concat left length lower lpad ltrim md5 regexp_like regexp_replace repeat "
    "replace reverse right rpad rtrim split_part starts_with strpos substr trim upper"
)
TIME_FUNCTIONS = "date_part date_trunc now time_bucket to_timestamp"

INFO: dict[int, Value] = {
    0: "Frazil",
    1: __version__,
    2: pa.__version__,
    3: False,  # not only for reading
    4: True,  # SQL
    5: False,  # Substrait
    8: Bits(NO_TRANSACTIONS),
    9: True,  # cancellation
    10: False,  # bulk ingestion
    11: False,
    101: Bits(NO_LIMIT),
    500: False,  # CREATE of catalogs
    501: False,  # CREATE of schemas
    502: True,  # CREATE of tables
    503: Bits(LOWER_CASE),
    504: '"',
    505: Bits(CASE_SENSITIVE),
    506: True,
    507: Bits(NULLS_HIGH),
    508: [],
    509: NUMERIC_FUNCTIONS.split(),
    510: TEXT_FUNCTIONS.split(),
    511: ["coalesce", "nullif"],
    512: TIME_FUNCTIONS.split(),
    513: "\\",
    514: "",
    515: True,  # column aliases
    516: True,
    517: {},
    518: True,  # table aliases
    519: False,
    520: True,  # expressions in ORDER BY
    521: True,
    522: Bits(0b11),  # GROUP BY
    523: True,
    524: True,
    525: Bits(0b11),  # minimum and core grammar
    526: Bits(0b1),  # ANSI 92 entry level
    527: False,
    528: Bits(0b111),  # outer joins
    529: "schema",
    530: "procedure",
    531: "catalog",
    532: True,  # the catalog comes first
    533: Bits(0b0),
    534: Bits(0b0),
    535: Bits(0b0),
    536: False,
    537: False,
    538: Bits(0b1111),  # subqueries
    539: True,
    540: Bits(0b11),  # UNION, UNION ALL
    **dict.fromkeys(range(541, 556), NO_LIMIT),
    556: True,
    558: NO_LIMIT,
    559: NO_LIMIT,
    560: NO_LIMIT,
    561: NO_LIMIT,
    562: NO_TRANSACTIONS,
    563: False,
    564: Bits(0b1),
    565: False,
    566: False,
    567: Bits(0b10),  # forward only
    **dict.fromkeys(range(568, 572), Bits(0b10)),  # read only
    572: False,
    573: False,
    574: True,  # named parameters
    575: False,
    576: False,
}

VALUE = pa.dense_union(
    [
        pa.field("string_value", pa.string(), nullable=False),
        pa.field("bool_value", pa.bool_(), nullable=False),
        pa.field("bigint_value", pa.int64(), nullable=False),
        pa.field("int32_bitmask", pa.int32(), nullable=False),
        pa.field("string_list", pa.list_(pa.string()), nullable=False),
        pa.field(
            "int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32())), nullable=False
        ),
    ]
)
SERVER_INFO = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", VALUE, nullable=False),
    ]
)


def server_info(command: Message, *, timeout_ms: int, text_bytes_max: int) -> pa.Table:
    """Return what the server can do, or the numbers that are asked for."""
    known = {**INFO, STATEMENT_TIMEOUT: Bits(timeout_ms // 1000), STATEMENT_LENGTH: text_bytes_max}
    numbers = list(command.info) or sorted(known)
    missing = next((number for number in numbers if number not in known), None)
    if missing is not None:
        raise Unknown(f"there is no information {missing} of a server of Flight SQL")
    return pa.table(
        [pa.array(numbers, pa.uint32()), _union([known[number] for number in numbers])],
        schema=SERVER_INFO,
    )


def _union(values: Sequence[Value]) -> pa.Array:
    children: list[list[Any]] = [[] for _ in range(VALUE.num_fields)]
    kinds, offsets = [], []
    for value in values:
        kind = _kind(value)
        kinds.append(kind)
        offsets.append(len(children[kind]))
        children[kind].append(list(value.items()) if isinstance(value, dict) else value)
    return pa.Array.from_buffers(
        VALUE,
        len(values),
        [None, pa.py_buffer(bytes(kinds)), pa.array(offsets, pa.int32()).buffers()[1]],
        children=[
            pa.array(child, VALUE.field(number).type) for number, child in enumerate(children)
        ],
    )


def _kind(value: Value) -> int:
    if isinstance(value, str):
        return 0
    if isinstance(value, bool):
        return 1
    if isinstance(value, Bits):
        return 3
    if isinstance(value, int):
        return 2
    return 4 if isinstance(value, list) else 5
