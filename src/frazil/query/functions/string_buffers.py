"""Buffers of string columns as numpy arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


_NO_OFFSETS = np.zeros(1, np.int32)
_NO_BYTES = np.zeros(0, np.uint8)


def buffers_of(column: pa.StringArray) -> tuple[Ints, Bytes]:
    """Return the offsets and bytes of a string array, also of a slice or an empty one.

    They are read-only, also if the buffers can be written: numba would compile another version for
    writable arrays, for seconds, in the middle of a query.
    """
    _, positions, letters = column.buffers()
    offsets, data = _NO_OFFSETS, _NO_BYTES
    if positions is not None and len(positions) > 0:
        offsets = np.frombuffer(
            positions, np.int32, count=len(column) + 1, offset=4 * column.offset
        )
        if letters is not None:
            data = np.frombuffer(letters, dtype=np.uint8)
    offsets.flags.writeable = data.flags.writeable = False
    return offsets, data


def nulls_of(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return which values are null; None if none is."""
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
