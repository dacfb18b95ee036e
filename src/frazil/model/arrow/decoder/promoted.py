"""Columns of attributes that the settings promote."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from frazil.model.arrow.decoder.arrays import array_of, text_array
from frazil.model.arrow.decoder.buffers import build_texts
from frazil.model.arrow.decoder.columns import Keys, NodeLevel
from frazil.model.arrow.decoder.dispatch import VALUE
from frazil.model.arrow.decoder.values.value_types import Values
from frazil.model.arrow.promoted import parse_texts
from frazil.model.arrow.schemas import LONG
from frazil.model.promotion import PromotedColumn, PromotedOf
from frazil.model.protobuf.memory import Words

Columns = tuple[PromotedColumn, ...]


def promoted_columns(
    level: NodeLevel, attributes: Values, columns: Columns, of: PromotedOf
) -> dict[str, pa.Array]:
    """Return column -> array for the promoted attributes of one level."""
    chosen = _columns_of(columns, of)
    if not chosen:
        return {}
    found = _keys_of(chosen).find(level.arena.words, attributes)
    return {column.name: _array(level, column, found[column.name]) for column in chosen}


def _array(level: NodeLevel, column: PromotedColumn, attributes: Words) -> pa.Array:
    if column.kind == "VARCHAR":
        return level.promoted(attributes)
    offsets, data = build_texts(level.arena.words, attributes, VALUE + 1)
    values = parse_texts(text_array(offsets, data, attributes != 0), column.kind)
    if level.repeats is None:
        return values
    return values.take(array_of(LONG, level.repeated(np.arange(len(attributes)))))


@lru_cache
def _columns_of(columns: Columns, of: PromotedOf) -> Columns:
    return tuple(column for column in columns if column.of == of)


@lru_cache
def _keys_of(columns: Columns) -> Keys:
    return Keys({column.name: (column.key,) for column in columns})
