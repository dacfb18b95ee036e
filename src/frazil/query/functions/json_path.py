"""`get_json_object(text, '$.a.b[0]')`: one value of each JSON text, as text.

A text comes without quotes and escapes, a number, object or array as it is written, and null as
NULL. So does a value that is not there, and text that is no JSON. Of names that are there twice,
the first one counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from frazil.errors import Malformed
from frazil.query.functions.json_scan import KEY, MISSING, copy_all, find_all
from frazil.query.functions.string_buffers import Bytes, Longs, buffers_of, nulls_of

_STEP = re.compile(
    r"\.(?P<name>[^.\[\]'\"*\s]+)|\[(?P<place>\d{1,9})\]|\['(?P<single>[^']*)'\]|\[\"(?P<double>[^\"]*)\"\]"
)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """Where to go, step by step."""

    steps: Longs
    names: Bytes
    places: Longs


@lru_cache(maxsize=256)
def parse_path(text: str) -> Path:
    """`$`, then `.name`, `['name']` and `[0]`. `Malformed` names the place that is none of them."""
    if not text.startswith("$"):
        raise Malformed(f"the JSON path {text!r} does not begin with $")
    steps: list[int] = []
    names: list[bytes] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            raise Malformed(
                f"the JSON path {text!r} at character {at + 1}: expected .name, ['name'] or [0]"
            )
        if found["place"] is not None:
            steps.append(int(found["place"]))
        else:
            steps.append(KEY)
            names.append((found["name"] or found["single"] or found["double"] or "").encode())
        at = found.end()
    return Path(
        np.array(steps, dtype=np.int64),
        np.frombuffer(b"".join(names), dtype=np.uint8),
        np.cumsum([0, *map(len, names)], dtype=np.int64),
    )


def values_at(column: pa.Array, path: Path) -> pa.Array:
    """The value at `path` in each of these texts."""
    if column.type != pa.string():
        column = column.cast(pa.string())
    offsets, letters = buffers_of(column)
    begins = np.empty(len(column), dtype=np.int64)
    ends = np.empty(len(column), dtype=np.int64)
    total = find_all(offsets, letters, path.steps, path.names, path.places, begins, ends)
    nulls = nulls_of(column)
    if nulls is not None:
        begins[nulls] = MISSING
    values = np.empty(total, dtype=np.uint8)
    places = np.empty(len(column) + 1, dtype=np.int32)
    length = copy_all(letters, begins, ends, values, places)
    validity = pa.py_buffer(np.packbits(begins >= 0, bitorder="little"))
    buffers = [validity, pa.py_buffer(places), pa.py_buffer(values[:length])]
    return pa.Array.from_buffers(pa.string(), len(column), buffers)
