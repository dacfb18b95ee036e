"""Encode attributes and bodies, from text and type words.

Strings, which most values are, and numbers are encoded by column; bytes, arrays and kvlists one by
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model.arrow.encoder.nested_values import DOUBLE as DOUBLE_PATTERN
from frazil.model.arrow.encoder.nested_values import INT as INT_PATTERN
from frazil.model.arrow.encoder.nested_values import bytes_of, double_of, int_of, value_of
from frazil.model.arrow.encoder.protobuf import BYTES as BYTES_TYPE
from frazil.model.arrow.encoder.protobuf import (
    LENGTH,
    Message,
    fixed,
    gathered,
    inside,
    joined,
    of_column,
    texts,
    together,
    varints,
)
from frazil.model.arrow.encoder.rows import Cells, excerpt
from frazil.model.arrow.encoder.value_types import BOOL, BYTES, DOUBLE, EMPTY, INT, NESTED, STRING
from frazil.model.protobuf.memory import Words

DEPTH_MAX = 100
"""Nesting depth below the request: the limit of protobuf's parsers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLocation:
    """Where values are in the request."""

    words: list[str]
    """Type words by number."""
    depth: int
    """Nesting depth, from the request to the AnyValue."""
    is_json: bool = False
    """Whether values other than strings are JSON, as in bodies. In maps doubles and bytes are
    not."""


def key_values(field: int, maps: Cells, words: Words | None, location: ValueLocation) -> Message:
    """Encode maps as a repeated field of KeyValues."""
    offsets, keys, values = maps.pairs()
    held = inside(2, any_values(values, words, location))
    flat = joined(inside(field, together(texts(1, keys.array), held)))
    return of_column(gathered(flat, offsets))


def map_sizes(maps: Cells) -> Words:
    """Return the number of values in each map."""
    offsets: Words = np.asarray(maps.given().array.offsets, np.int64)
    return offsets[1:] - offsets[:-1]


def any_values(values: Cells, words: Words | None, location: ValueLocation) -> Message:
    """Encode the contents of AnyValues, from text and type word."""
    if words is None or not words.any():
        return inside(1, of_column(values.array))
    columns = [values.array.cast(BYTES_TYPE)]
    order = np.arange(len(values))
    count = len(values)
    # Arrays and kvlists are one kind.
    kinds = np.minimum(words, NESTED)
    for kind in np.flatnonzero(np.bincount(kinds)):
        if kind != STRING:
            indices = np.flatnonzero(kinds == kind)
            columns.append(_values_of(int(kind), values.take(indices), words[indices], location))
            order[indices] = np.arange(count, count + len(indices))
            count += len(indices)
    held = of_column(pa.concat_arrays(columns).take(pa.array(order)))
    # Only strings still lack their length.
    is_text = kinds == STRING
    lengths = np.where(is_text, held.lengths, 0)
    return together(varints(1, lengths, is_text, wire_type=LENGTH), held)


def _values_of(kind: int, values: Cells, words: Words, location: ValueLocation) -> pa.Array:
    """Encode values of one kind as a column of bytes."""
    everywhere = np.ones(len(values), np.bool_)
    if kind == NESTED or (location.is_json and kind in (DOUBLE, BYTES)):
        depth_max = DEPTH_MAX - location.depth
        read = cache(lambda text, word: value_of(text, location.words[word], depth_max))
        return pa.array(_each(values, read, words.tolist()), BYTES_TYPE)
    if kind == INT:
        numbers = _numbers(values, pa.int64(), INT_PATTERN.pattern, int_of)
        return joined(varints(3, np.asarray(numbers), everywhere))
    if kind == DOUBLE:
        pattern = rf"{DOUBLE_PATTERN.pattern}|NaN|-?Infinity"
        numbers = _numbers(values, pa.float64(), pattern, double_of)
        return joined(fixed(4, np.asarray(numbers), everywhere))
    if kind == BOOL:
        is_true = np.asarray(pc.equal(values.array, "true"))
        values.check(is_true | np.asarray(pc.equal(values.array, "false")), "is not a bool")
        return joined(varints(2, is_true.astype(np.int64), everywhere))
    if kind == BYTES:
        return joined(inside(7, of_column(pa.array(_each(values, bytes_of), BYTES_TYPE))))
    assert kind == EMPTY
    values.check(np.asarray(pc.equal(values.array, "")), "is text where there was no value")
    return values.array.cast(BYTES_TYPE)


def _numbers(
    values: Cells, kind: pa.DataType, pattern: str, read: Callable[[str], object]
) -> pa.Array:
    """Parse numbers, all at once if they are in canonical form: Arrow accepts more, and turns
    large ones into infinity."""
    with suppress(pa.ArrowInvalid):
        numbers = pc.cast(values.array, kind)
        is_canonical = pc.match_substring_regex(values.array, f"^(?:{pattern})$")
        is_finite = not pa.types.is_floating(kind) or not pc.any(pc.is_inf(numbers)).as_py()
        if is_finite and pc.all(is_canonical, min_count=0).as_py():
            return numbers
    return pa.array(_each(values, read), kind)


def _each(values: Cells, read: Callable[..., object], *more: Sequence[int]) -> list[object]:
    """Parse values one by one. Raises `Malformed` if one is invalid."""
    parsed = []
    for index, (text, *others) in enumerate(zip(values.array.to_pylist(), *more, strict=True)):
        try:
            parsed.append(read(text, *others))
        except ValueError as error:
            raise values.bad(
                index, f"{excerpt(text)} is not what its word says: {error}"
            ) from error
    return parsed
