"""Rows as Arrow streams: what is small on the wire and large in memory is refused before it is."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.model import KiB, MiB
from frazil.serve.tables.arrow_rows import rows_of_stream
from frazil.serve.tables.ipc_sizes import NOT_COMPRESSED, SIZE

LIMIT = MiB
CODECS = ("lz4", "zstd")


def stream(*batches: pa.RecordBatch, codec: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def zeros(count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.repeat(0, count)})


def texts(count: int, width: int) -> pa.Array:
    """Many different texts that compress well."""
    return pa.array([f"{number}".ljust(width, "x") for number in range(count)])


@pytest.mark.parametrize("codec", [None, *CODECS])
def test_rows_are_read_as_they_were_written(codec: str | None) -> None:
    batch = pa.record_batch(
        {
            "id": pa.array(range(100)),
            "name": texts(100, 30).dictionary_encode(),
            "note": texts(100, 30).cast(pa.string_view()),
            "empty": pa.nulls(100),
            "none": pa.nulls(100, pa.string_view()),
        }
    )
    found = rows_of_stream(stream(batch, batch, codec=codec), LIMIT)
    assert found.equals(pa.Table.from_batches([batch, batch]))
    assert rows_of_stream(stream(batch.slice(0, 0), codec=codec), LIMIT).num_rows == 0


@pytest.mark.parametrize("codec", CODECS)
def test_bombs_are_refused(codec: str) -> None:
    """In one batch, in many, and in a dictionary."""
    rows = LIMIT // 8
    assert rows_of_stream(stream(zeros(rows), codec=codec), LIMIT).num_rows == rows
    some = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int8()), 9), texts(99, 64 * KiB)
    )
    for bomb in (
        stream(zeros(rows + 1), codec=codec),
        stream(*[zeros(rows // 16)] * 17, codec=codec),
        stream(pa.record_batch({"id": some}), codec=codec),
        stream(pa.record_batch({"id": texts(99, 64 * KiB).cast(pa.string_view())}), codec=codec),
    ):
        assert len(bomb) < LIMIT // 8
        before = pa.total_allocated_bytes()
        with pytest.raises(TooLarge, match=r"serve\.rows_bytes_max"):
            rows_of_stream(bomb, LIMIT)
        assert pa.total_allocated_bytes() == before


def test_values_that_many_rows_share_are_counted_for_each() -> None:
    """A megabyte of indices or views of one text would be a gigabyte of rows."""
    wide = pa.array(["x" * KiB])
    shared = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), 2 * KiB), wide)
    _, view, text = wide.cast(pa.string_view()).buffers()
    many = pa.py_buffer(view.to_pybytes() * 2 * KiB)
    views = pa.Array.from_buffers(pa.string_view(), 2 * KiB, [None, many, text])
    for column in (shared, views):
        body = stream(pa.record_batch({"id": column}))
        assert len(body) < 64 * KiB
        with pytest.raises(TooLarge, match="decoded"):
            rows_of_stream(body, LIMIT)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2**30], pa.int32()), pa.array([1]))
    with pytest.raises(Malformed, match="run-end"):
        rows_of_stream(stream(pa.record_batch({"id": runs})), LIMIT)
    with pytest.raises(TooLarge):
        rows_of_stream(stream(pa.record_batch({"id": pa.nulls(2 * LIMIT)})), LIMIT)


@pytest.mark.parametrize("codec", CODECS)
def test_a_size_that_lies_is_refused(codec: str) -> None:
    """Too small, too large, negative; and one that says that nothing is compressed."""
    count = 10_000
    body = stream(zeros(count), codec=codec)
    truth = SIZE.pack(8 * count)
    assert body.count(truth) == 1
    for size in (1, 8 * count - 1, 8 * count + 1, NOT_COMPRESSED, -2, -(2**63)):
        with pytest.raises(Malformed):
            rows_of_stream(body.replace(truth, SIZE.pack(size)), LIMIT)
    for size in (LIMIT + 1, 2**40, 2**63 - 1):
        with pytest.raises(TooLarge):
            rows_of_stream(body.replace(truth, SIZE.pack(size)), LIMIT)


def test_buffers_that_overlap_are_counted_each() -> None:
    """Many columns of the same bytes."""
    size, columns = LIMIT // 2, 20
    body = stream(pa.record_batch({f"c{n}": pa.repeat(-7, size // 8) for n in range(columns)}))
    ending = 8
    begin = len(body) - ending - columns * size
    metadata = body[:begin]
    for number in range(1, columns):
        before, _, after = metadata.rpartition(struct.pack("<qq", number * size, size))
        metadata = before + struct.pack("<qq", 0, size) + after
    whole = struct.pack("<q", columns * size)
    assert metadata.count(whole) == 1
    small = metadata.replace(whole, struct.pack("<q", size)) + body[begin:][:size] + body[-ending:]
    assert pa.ipc.open_stream(small).read_all().nbytes > LIMIT > len(small)
    with pytest.raises(TooLarge):
        rows_of_stream(small, LIMIT)


@given(st.data())
def test_damaged_streams_are_refused_or_within_the_limit(data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from([None, *CODECS]))
    batch = pa.record_batch({"id": range(50), "name": texts(50, 9).dictionary_encode()})
    body = bytearray(stream(batch, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))] if data.draw(st.booleans()) else body
    try:
        found = rows_of_stream(bytes(body), LIMIT)
    except (Malformed, TooLarge):
        return
    assert found.num_rows <= LIMIT
