"""KeyBlock: the canonical keys of a batch, as memory that compiled code reads.

The canonical form of a key is in `docs/formats/keyed.md`. Where a column has it already, its own
buffers are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types

from frazil.errors import Malformed, TooLarge
from frazil.tables.keys import kernels
from frazil.tables.keys.kernels import Longs

KEY_BYTES_MAX = 1024
"""Of the canonical form: larger keys belong into a column of the row."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyBlock:
    """Keys in memory: all of one width, or with offsets. `array` keeps the memory."""

    array: pa.Array
    width: int
    """Bytes of every key; 0 if they vary."""
    data: int
    offsets: int
    """Addresses."""

    def __len__(self) -> int:
        return len(self.array)

    def hashes(self, seed: int) -> Longs:
        hashes: Longs = np.empty(len(self), np.int64)
        kernels.hash_keys(self.width, self.data, self.offsets, len(self), seed, hashes)
        return hashes


def block_of(array: pa.Array) -> KeyBlock:
    """Return the keys of an array in canonical form: 8 bytes, decimals, text or bytes."""
    buffers = array.buffers()
    if types.is_string(array.type) or types.is_binary(array.type):
        if not len(array):
            return KeyBlock(array, 0, 0, 0)
        data = buffers[2].address if buffers[2] is not None else 0
        return KeyBlock(array, 0, data, buffers[1].address + 4 * array.offset)
    width = array.type.bit_width // 8
    data = buffers[1].address + width * array.offset if len(array) else 0
    return KeyBlock(array, width, data, 0)


def is_own_key(columns: Sequence[pa.DataType]) -> bool:
    """Return whether a key of these types is the column itself."""
    if len(columns) != 1:
        return False
    (kind,) = columns
    return _is_text(kind) or types.is_decimal(kind) or kind.bit_width == 64


def key_array(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the canonical keys of some columns. Raises `Malformed` if one is null, `TooLarge` if
    one is too long."""
    for column in columns:
        if column.null_count:
            position = column.is_null().index(pa.scalar(True)).as_py()
            raise Malformed(f"the key of row {position} is null; every row needs a whole key")
    canonical = [_canonical(column) for column in columns]
    if len(canonical) == 1:
        (array,) = canonical
    else:
        array = _joined(canonical)
    _check_lengths(array)
    return array


def _canonical(column: pa.Array) -> pa.Array:
    if is_own_key([column.type]):
        return column
    if types.is_date32(column.type):
        column = column.view(pa.int32())
    return column.cast(pa.int64())


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    count = len(columns[0])
    blocks = [block_of(column) for column in columns]
    table = np.array([(b.width, b.data, b.offsets) for b in blocks], np.int64)
    offsets = np.empty(count + 1, np.int32)
    size = kernels.measure_keys(table, count, offsets)
    if size < 0:
        raise TooLarge(f"the keys of {count} rows take more than 2 GiB; write fewer rows at once")
    data = np.empty(size, np.uint8)
    kernels.join_keys(table, count, data)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _check_lengths(array: pa.Array) -> None:
    block = block_of(array)
    if block.width or not len(block):
        return
    longest = kernels.length_max(block.offsets, len(block))
    if longest > KEY_BYTES_MAX:
        raise TooLarge(f"a key of {longest} bytes; the limit is {KEY_BYTES_MAX}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_binary(kind))
