"""Buffers of string columns as numpy arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


_NO_OFFSETS = np.zeros(1, np.int32)
_NO_OFFSETS.flags.writeable = False
_NO_BYTES = np.zeros(0, np.uint8)
_NO_BYTES.flags.writeable = (
    False  # like Arrow's: numba compiles another version for writable arrays
)


def buffers_of(column: pa.StringArray) -> tuple[Ints, Bytes]:
    """Return the offsets and bytes of a string array, also of a slice or an empty one."""
    _, positions, letters = column.buffers()
    if positions is None or len(positions) == 0:
        return _NO_OFFSETS, _NO_BYTES
    offsets = np.frombuffer(positions, np.int32, count=len(column) + 1, offset=4 * column.offset)
    if letters is None:
        return offsets, _NO_BYTES
    return offsets, np.frombuffer(letters, dtype=np.uint8)


def nulls_of(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which values are null; None if none is."""
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
