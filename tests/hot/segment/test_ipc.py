"""Streams are plain Arrow IPC, padded and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from google_crc32c import value as crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.hot.segment.dictionaries import unified
from frazil.hot.segment.ipc import (
    ALIGNMENT,
    EncodedStream,
    decode_stream,
    encode_stream,
    measure_stream,
)
from tests.hot.build import batch_of, lines

MAP = pa.map_(pa.string(), pa.string())
EVENTS = pa.list_(pa.struct([("at", pa.int64()), ("name", pa.string()), ("attributes", MAP)]))
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.text(max_size=70),
        st.none() | st.booleans(),
        st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.text(max_size=5))),
        st.none()
        | st.lists(
            st.fixed_dictionaries(
                {"at": st.none() | st.integers(0, 9), "name": st.text(max_size=3)},
                optional={"attributes": st.lists(st.tuples(st.just("k"), st.text(max_size=3)))},
            ),
            max_size=3,
        ),
        st.none() | st.sampled_from(["GET", "PUT"]),
    ),
    min_size=4,
    max_size=20,
)
SCHEMA = pa.schema(
    [
        ("int", pa.int64()),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("map", MAP),
        ("events", EVENTS),
        ("word", pa.dictionary(pa.int8(), pa.string())),
    ]
)


def batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def buffers_of(batches: list[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    for found in batches:
        for column in found.columns:
            arrays = [column, column.dictionary] if hasattr(column, "dictionary") else [column]
            yield from (b for array in arrays for b in array.buffers() if b is not None and b.size)


def encoded_stream(batches: Sequence[pa.RecordBatch]) -> tuple[pa.Buffer, EncodedStream]:
    data = bytearray(b"?" * measure_stream(batches))
    return pa.py_buffer(data), encode_stream(batches, memoryview(data))


@settings(max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=3), st.integers(0, 3))
def test_streams_round_trip(parts: list[list[tuple[object, ...]]], cut: int) -> None:
    """Any rows, nested, null, sliced: the same come back, in place and checked."""
    batches = unified([batch(rows)[cut:] for rows in parts])
    held, encoded = encoded_stream(batches)
    assert held.size % ALIGNMENT == 0
    assert crc32c(held.to_pybytes()) == encoded.check
    found = decode_stream(held, is_verified=False)
    assert found == batches
    for each in found:
        each.validate(full=True)
    for buffer in buffers_of(found):
        assert held.address <= buffer.address < held.address + held.size, "it was copied"


def test_each_batch_can_be_read_by_its_position() -> None:
    """The bytes at the position in the manifest are one Arrow message."""
    batches = [batch_of(*lines(0, 40)), batch_of(*lines(40, 41))]
    data, encoded = encoded_stream(batches)
    for wanted, (begin, length) in zip(batches, encoded.messages, strict=True):
        found = pa.ipc.read_record_batch(data.slice(begin, length), wanted.schema)
        assert found.equals(wanted)


@pytest.mark.parametrize("size", [0, 1, 8, 100])
def test_a_truncated_stream_is_an_error(size: int) -> None:
    data, _ = encoded_stream([batch_of(*lines(0, 4))])
    with pytest.raises((pa.ArrowInvalid, OSError)):
        decode_stream(data.slice(0, size), is_verified=False)


def test_dictionaries_are_unified() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    words = [["GET", "PUT"], ["PUT", "POST", None], ["GET"]]
    batches = [pa.record_batch({"w": pa.array(each).cast(kind)}) for each in words]
    shared = unified(batches)
    assert [each["w"].to_pylist() for each in shared] == words
    assert all(each["w"].dictionary.to_pylist() == ["GET", "PUT", "POST"] for each in shared)
    stream, _ = encoded_stream(shared)
    assert [each["w"].to_pylist() for each in decode_stream(stream, is_verified=False)] == words


@pytest.mark.parametrize("kind", ["plain", "list", "struct", "map"])
def test_an_overflowing_dictionary_index_is_widened(kind: str) -> None:
    narrow = pa.dictionary(pa.int8(), pa.string())
    types = {
        "plain": narrow,
        "list": pa.list_(narrow),
        "struct": pa.struct([("inner", narrow)]),
        "map": pa.map_(pa.string(), narrow),
    }

    def value(text: str) -> object:
        return {
            "plain": text,
            "list": [text],
            "struct": {"inner": text},
            "map": [("key", text)],
        }[kind]

    words = [[value(f"{first}-{n}") for n in range(100)] for first in range(3)]
    batches = [pa.record_batch({"w": pa.array(each, types[kind])}) for each in words]
    shared = unified(batches)
    assert [each["w"].to_pylist() for each in shared] == words
    assert "indices=int32" in str(shared[0].schema)
