"""Arrow arrays around existing buffers; nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from frazil.model.arrow.schemas import BOOLEAN, DICTIONARY_MAP, INT, STRING
from frazil.model.protobuf.memory import Bools, Bytes, Offsets, Words


def int32_of(words: Words) -> NDArray[np.int32]:
    """Return the lower 32 bits."""
    return words.astype(np.uint32).view(np.int32)


def array_of(kind: pa.DataType, values: NDArray[Any], valid: Bools | None = None) -> pa.Array:
    """Return a column of numbers; doubles may be passed as their bits."""
    bitmap, null_count = _validity(valid)
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(values)], null_count)


def text_array(offsets: Offsets, data: Bytes, valid: Bools | None = None) -> pa.Array:
    bitmap, null_count = _validity(valid)
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data[: int(offsets[-1])])]
    return pa.Array.from_buffers(STRING, len(offsets) - 1, buffers, null_count)


def dictionary_array(
    numbers: NDArray[np.int32], texts: pa.Array, valid: Bools | None = None
) -> pa.Array:
    """Return a dictionary-encoded column. The indices are trusted."""
    return pa.DictionaryArray.from_arrays(array_of(INT, numbers, valid), texts, safe=False)


def list_array(
    kind: pa.DataType, offsets: Offsets, inner: pa.Array, valid: Bools | None = None
) -> pa.Array:
    """Return a column of lists or maps with these items."""
    bitmap, null_count = _validity(valid)
    return pa.Array.from_buffers(
        kind, len(offsets) - 1, [bitmap, pa.py_buffer(offsets)], null_count, children=[inner]
    )


def map_array(kind: pa.DataType, offsets: Offsets, children: list[pa.Array]) -> pa.Array:
    """Return a column of maps."""
    entry = pa.struct([kind.key_field, kind.item_field])
    inner = pa.Array.from_buffers(entry, int(offsets[-1]), [None], 0, children=children)
    return list_array(kind, offsets, inner)


def repeated_map(ends: Offsets, keys: pa.Array, values: pa.Array, repeats: Words) -> pa.Array:
    """Return a column of maps, each repeated. Their texts are dictionary-encoded."""
    lengths = np.repeat(np.diff(ends), repeats)
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    # An entry has the same distance to the first of its row as to the first of its map.
    numbers = np.arange(offsets[-1], dtype=np.int32)
    numbers += np.repeat(np.repeat(ends[:-1], repeats) - offsets[:-1], lengths)
    children = [dictionary_array(numbers, keys), dictionary_array(numbers, values)]
    return map_array(DICTIONARY_MAP, offsets, children)


def bool_array(values: Bools, valid: Bools) -> pa.Array:
    bitmap, null_count = _validity(valid)
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(BOOLEAN, len(values), [bitmap, bits], null_count)


def struct_list(
    kind: pa.DataType,
    offsets: Offsets,
    columns: Mapping[str, pa.Array],
    valid: Bools | None = None,
) -> pa.Array:
    """Return a column of lists of structs; no struct is null."""
    struct = kind.value_type
    children = [columns[struct.field(index).name] for index in range(struct.num_fields)]
    inner = pa.Array.from_buffers(struct, int(offsets[-1]), [None], 0, children=children)
    return list_array(kind, offsets, inner, valid)


def word_array(codes: Words, words: tuple[str, ...], valid: Bools | None = None) -> pa.Array:
    """Return a column of names for numbers; a number without a name is written as digits."""
    numbers = int32_of(codes)
    is_unnamed = (numbers < 0) | (numbers >= len(words))
    if is_unnamed.any():
        unnamed, indices = np.unique(numbers[is_unnamed], return_inverse=True)
        numbers[is_unnamed] = indices + len(words)
        words = (*words, *map(str, unnamed))
    return pa.array(words, STRING).take(array_of(INT, numbers, valid))


def _validity(valid: Bools | None) -> tuple[pa.Buffer | None, int]:
    if valid is None:
        return None, 0
    null_count = len(valid) - int(np.count_nonzero(valid))
    if null_count == 0:
        return None, 0
    return pa.py_buffer(np.packbits(valid, bitorder="little")), null_count
