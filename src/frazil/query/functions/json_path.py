"""`get_json_object(text, '$.a.b[0]')`: one value of each JSON text, as text.

A string is returned without quotes and escapes; a number, object or array as it is written. null, a
missing value and invalid JSON are NULL. Of duplicate names the first counts.
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
    r"\.(?P<name>[^.\[\]'\"*\s]+)|\[(?P<index>\d{1,9})\]|\['(?P<single>[^']*)'\]|\[\"(?P<double>[^\"]*)\"\]"
)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """A parsed path: names and array indexes, in order."""

    steps: Longs
    names: Bytes
    name_offsets: Longs


@lru_cache(maxsize=256)
def parse_path(text: str) -> Path:
    """Parse `$` followed by `.name`, `['name']` or `[0]`. `Malformed` says at which character."""
    if not text.startswith("$"):
        raise Malformed(f"the JSON path {text!r} does not begin with $")
    steps: list[int] = []
    names: list[bytes] = []
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise Malformed(
                f"the JSON path {text!r} at character {at + 1}: expected .name, ['name'] or [0]"
            )
        if step["index"] is not None:
            steps.append(int(step["index"]))
        else:
            steps.append(KEY)
            names.append((step["name"] or step["single"] or step["double"] or "").encode())
        at = step.end()
    return Path(
        np.array(steps, dtype=np.int64),
        np.frombuffer(b"".join(names), dtype=np.uint8),
        np.cumsum([0, *map(len, names)], dtype=np.int64),
    )


def values_at(column: pa.Array, path: Path) -> pa.Array:
    """Return the value at `path` in each of these texts."""
    if column.type != pa.string():
        column = column.cast(pa.string())
    offsets, letters = buffers_of(column)
    begins = np.empty(len(column), dtype=np.int64)
    ends = np.empty(len(column), dtype=np.int64)
    total = find_all(offsets, letters, path.steps, path.names, path.name_offsets, begins, ends)
    nulls = nulls_of(column)
    if nulls is not None:
        begins[nulls] = MISSING
    values = np.empty(total, dtype=np.uint8)
    value_offsets = np.empty(len(column) + 1, dtype=np.int32)
    length = copy_all(letters, begins, ends, values, value_offsets)
    validity = pa.py_buffer(np.packbits(begins >= 0, bitorder="little"))
    buffers = [validity, pa.py_buffer(value_offsets), pa.py_buffer(values[:length])]
    return pa.Array.from_buffers(pa.string(), len(column), buffers)
