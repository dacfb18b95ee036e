"""Promoted columns of rows that were written before the promotion, computed while they are read.

The value is that of the map, as the decoder would have stored it: a row answers alike whether its
file has the column or not. Only files and segments without the column pay for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import pyarrow as pa
from datafusion import DataFrame, Expr, ScalarUDF, col, udf

from frazil.model import PromotedColumn, PromotedType
from frazil.model.arrow import ARROW_TYPES, parse_texts, promotion_of


def filled_frame(
    frame: DataFrame, schema: pa.Schema, names: Sequence[str], unfilled: Collection[str]
) -> DataFrame:
    """Return these columns of rows that lack some promoted columns of the schema."""
    if not unfilled:
        return frame
    return frame.select(
        *(
            _value(promoted).alias(name)
            if name in unfilled and (promoted := promotion_of(schema.field(name))) is not None
            else col(f'"{name}"')
            for name in names
        )
    )


def _value(column: PromotedColumn) -> Expr:
    text = col(f'"{column.map_name}"')[column.key]
    return text if column.kind == "VARCHAR" else _parser(column.kind)(text)


@lru_cache
def _parser(kind: PromotedType) -> ScalarUDF:
    """Return the function that makes a value of this type of a text, null if it is none."""

    def parse(texts: pa.Array) -> pa.Array:
        return parse_texts(texts, kind)

    name = f"_frazil_{kind.lower()}"
    return udf(parse, [pa.string()], ARROW_TYPES[kind], "immutable", name)
