"""label_value: a value of a map by the name of its label, in which dots are underscores.

    label_value(attributes, 'http_route')    the value of http.route, or http_route

One compiled pass over the keys, without the GIL.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa

from frazil.model.protobuf import compiled, part
from frazil.query.functions.string_buffers import Bytes, Ints, Longs, buffers_of

UNDERSCORE = ord("_")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_]")


@lru_cache(maxsize=4096)
def label_name(key: str) -> str:
    """The label of a key: letters, digits and underscores, no digit first."""
    name = _NOT_IN_NAME.sub("_", key)
    return f"_{name}" if name[:1].isdigit() else name


def values_by_label(maps: pa.MapArray, name: str) -> pa.Array:
    """Return the value of the first key, in the order of the map, that has this label."""
    if len(maps) == 0 or len(maps.keys) == 0:
        return pa.nulls(len(maps), pa.string())
    offsets = maps.offsets.to_numpy()  # into all keys, also of a slice
    offsets.flags.writeable = False
    key_offsets, letters = buffers_of(maps.keys)
    wanted = np.frombuffer(name.encode(), np.uint8)
    found = np.empty(len(maps), np.int64)
    find_labels(offsets, key_offsets, letters, wanted, found)
    return maps.items.take(pa.array(found, mask=found < 0))


@compiled
def find_labels(
    offsets: Ints, key_offsets: Ints, letters: Bytes, wanted: Bytes, found: Longs
) -> None:
    """Fill `found` with the number of the first key of each map that has the label, or -1."""
    for row in range(len(found)):
        found[row] = -1
        for key in range(offsets[row], offsets[row + 1]):
            if _has_label(letters, key_offsets[key], key_offsets[key + 1], wanted):
                found[row] = key
                break


@part
def _has_label(letters: Bytes, begin: int, end: int, wanted: Bytes) -> bool:
    """Whether `label_name` of a key, as UTF-8, is what is wanted."""
    at = 0
    if begin < end and 48 <= letters[begin] <= 57:
        if len(wanted) == 0 or wanted[0] != UNDERSCORE:
            return False
        at = 1
    for index in range(begin, end):
        letter = letters[index]
        if 0x80 <= letter < 0xC0:
            continue  # inside of a character
        is_kept = 48 <= letter <= 57 or 65 <= letter <= 90 or 97 <= letter <= 122
        if at >= len(wanted) or wanted[at] != (letter if is_kept else UNDERSCORE):
            return False
        at += 1
    return at == len(wanted)
