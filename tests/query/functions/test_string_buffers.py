"""Buffers of string columns for compiled functions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.query.functions.string_buffers import buffers_of

TEXTS = pa.array(["a", None, "é"])


def writable(array: pa.Array) -> pa.Array:
    """Return a copy in buffers that can be written, as rows that were received have."""
    buffers = [
        None if buffer is None else pa.py_buffer(bytearray(buffer)) for buffer in array.buffers()
    ]
    return pa.Array.from_buffers(array.type, len(array), buffers)


@pytest.mark.parametrize("column", [TEXTS, writable(TEXTS), TEXTS.slice(1), TEXTS.slice(3)])
def test_arrays_are_read_only(column: pa.Array) -> None:
    """So that compiled functions have one version only, which is compiled before the first query.
    One compiled during a query takes seconds, and is lost if the query times out."""
    offsets, letters = buffers_of(column)
    assert not offsets.flags.writeable
    assert not letters.flags.writeable
    assert len(offsets) == len(column) + 1
