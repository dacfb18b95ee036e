"""The Parquet columns of a table's files: names, field ids, encodings, metrics.

Needs no catalog, so that tasks can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.promoted import BOUNDS as PROMOTED_BOUNDS
from frazil.lake.tables.promoted import PromotedField
from frazil.lake.tables.properties import BLOOM_COLUMNS, BOUNDS, SORT_COLUMNS, kind_of
from frazil.lake.tables.record_rows import columns_of
from frazil.model.arrow import DICTIONARY, dictionary_field, is_shared, promoted_field

LAYOUTS_MAX = 64
"""Cached layouts; there may be many topics."""
FIELD_ID = b"PARQUET:field_id"
"""Arrow metadata key of the id that Parquet writes."""
NO_DICTIONARY = frozenset(
    {
        "trace_id",
        "span_id",
        "parent_span_id",
        "body",
        "payload",
        "value",
        "time",
        "timestamp_ms",
        "time_unix_nano",
        "observed_time_unix_nano",
        "end_time_unix_nano",
        "duration_nano",
    }
)
"""Columns whose values rarely repeat, so a dictionary would not pay off."""
TRUNCATED = re.compile(r"truncate\((\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetColumn:
    """A leaf column in a Parquet file."""

    path: str
    """`events.list.element.attributes.key_value.key`"""
    field_id: int
    kind: pa.DataType
    is_nested: bool
    has_bounds: bool
    """Whether a manifest holds its lower and upper bound."""
    length_max: int | None
    """Limit of a bound in code points or bytes, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetLayout:
    """The layout that all files of one table share."""

    schema: pa.Schema
    """Has a field id on each field at each level."""
    numbered_schema: pa.Schema
    """The schema for sorting and writing, in which repetitive strings are dictionary-encoded.
    Parquet writes the same file for both schemas."""
    leaves: tuple[ParquetColumn, ...]
    order: tuple[str, ...]
    bloom: tuple[str, ...]
    with_dictionary: list[str]
    promoted: tuple[PromotedField, ...] = ()
    """The columns of the schema that are promoted."""


@lru_cache(LAYOUTS_MAX)
def file_layout_of(table: str, promoted: tuple[PromotedField, ...] = ()) -> ParquetLayout:
    """Return the layout of a table's files."""
    kind = kind_of(table)
    added = [promoted_field(each.column, table) for each in promoted]
    ids = {**FIELD_IDS[kind], **{each.column.name: each.field_id for each in promoted}}
    bounds = {
        **BOUNDS[kind],
        **{each.column.name: PROMOTED_BOUNDS.get(each.column.kind, "") for each in promoted},
    }
    fields = [_with_id(field, field.name, ids) for field in (*columns_of(table), *added)]
    leaves = [
        _leaf(path, field, bounds.get(top.name, ""))
        for top in fields
        for path, field in _leaves(top, top.name)
    ]
    shared = {each.column.name for each in promoted if is_shared(each.column)}
    return ParquetLayout(
        schema=pa.schema(fields),
        numbered_schema=pa.schema(
            field.with_type(DICTIONARY) if field.name in shared else dictionary_field(field)
            for field in fields
        ),
        promoted=promoted,
        leaves=tuple(leaves),
        order=SORT_COLUMNS[kind],
        bloom=BLOOM_COLUMNS[kind],
        with_dictionary=[leaf.path for leaf in leaves if leaf.path not in NO_DICTIONARY],
    )


def _with_id(field: pa.Field, path: str, ids: Mapping[str, int]) -> pa.Field:
    """Return a field and its children with Iceberg's names and ids."""
    kind = field.type
    if pa.types.is_map(kind):
        key = _with_id(kind.key_field, f"{path}.key", ids)
        kind = pa.map_(key, _with_id(kind.item_field, f"{path}.value", ids))
    elif pa.types.is_list(kind):
        item = kind.value_field.with_name("element")
        kind = pa.list_(_with_id(item, f"{path}.element", ids))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_with_id(inner, f"{path}.{inner.name}", ids) for inner in kind])
    metadata = {FIELD_ID: str(ids[path])}
    return pa.field(field.name, kind, nullable=field.nullable, metadata=metadata)


def _leaves(field: pa.Field, path: str) -> Iterator[tuple[str, pa.Field]]:
    """Yield the leaves of a field with their Parquet paths."""
    kind = field.type
    if pa.types.is_map(kind):
        yield from _leaves(kind.key_field, f"{path}.key_value.key")
        yield from _leaves(kind.item_field, f"{path}.key_value.value")
    elif pa.types.is_list(kind):
        yield from _leaves(kind.value_field, f"{path}.list.element")
    elif pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaves(inner, f"{path}.{inner.name}")
    else:
        yield path, field


def _leaf(path: str, field: pa.Field, mode: str) -> ParquetColumn:
    """Return a column with Iceberg's metrics mode; an empty mode means counts only."""
    truncated = TRUNCATED.fullmatch(mode)
    assert truncated or mode in ("", "full"), f"{path} has bounds {mode}"
    return ParquetColumn(
        path=path,
        field_id=int(field.metadata[FIELD_ID]),
        kind=field.type,
        is_nested="." in path,
        has_bounds=bool(mode) and "." not in path,
        length_max=int(truncated[1]) if truncated else None,
    )
