"""The memory of columns of texts, as arrays of numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


_NOWHERE = np.zeros(1, np.int32)
_NOWHERE.flags.writeable = False
_NO_BYTES = np.zeros(0, np.uint8)
_NO_BYTES.flags.writeable = False  # as the others: compiled code tells them apart


def buffers_of(column: pa.StringArray) -> tuple[Ints, Bytes]:
    """Offsets and bytes of an array of texts, also of a slice and of an empty one."""
    _, places, letters = column.buffers()
    if places is None or len(places) == 0:
        return _NOWHERE, _NO_BYTES
    offsets = np.frombuffer(places, dtype=np.int32, count=len(column) + 1, offset=4 * column.offset)
    if letters is None:
        return offsets, _NO_BYTES
    return offsets, np.frombuffer(letters, dtype=np.uint8)


def nulls_of(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Where there is no value; None when there is one everywhere."""
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
