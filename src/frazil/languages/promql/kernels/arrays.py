"""Arrays as the kernels take them: each kind of array would be compiled again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]
Grid = tuple[Floats, Flags]
"""Values of series x steps, and which of them exist."""


def given(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array contiguous and read-only, whatever it was."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def exist(objects: NDArray[Any]) -> Flags:
    """Which of some objects are not None."""
    return np.asarray(np.not_equal(objects, np.asarray(None, object)), np.bool_)


def any_along(flags: Flags, axis: int) -> Flags:
    """Whether any flag is set along an axis."""
    return np.asarray(flags.any(axis=axis), np.bool_)
