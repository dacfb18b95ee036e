"""label_value: a value of a map by the name of its label, in which dots are underscores.

label_value(attributes, 'http_route')    the value of http.route, or http_route
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]")


@lru_cache(maxsize=4096)
def label_name(key: str) -> str:
    """The label of a key: letters, digits and underscores, no digit first."""
    name = _NOT_IN_NAME.sub("_", key)
    return f"_{name}" if name[:1].isdigit() else name


def values_by_label(maps: pa.MapArray, name: str) -> pa.Array:
    """Return the value of the first key, in the order of the map, that has this label."""
    keys = maps.keys
    if len(maps) == 0 or len(keys) == 0:
        return pa.nulls(len(maps), pa.string())
    named = [key for key in pc.unique(keys).to_pylist() if label_name(key) == name]
    if not named:
        return pa.nulls(len(maps), pa.string())
    is_named = pc.is_in(keys, pa.array(named, pa.string())).to_numpy(zero_copy_only=False)
    at = np.flatnonzero(is_named)
    offsets = maps.offsets.to_numpy()  # into all keys, also of a slice
    starts, ends = offsets[:-1], offsets[1:]
    if len(at) == 0:
        return pa.nulls(len(maps), pa.string())
    first = np.searchsorted(at, starts)
    taken = at[np.minimum(first, len(at) - 1)]
    is_found = (first < len(at)) & (taken < ends)
    return maps.items.take(pa.array(taken, mask=~is_found))
