"""SharedMemory: batches in a memory file, which other processes can map without a copy."""

from __future__ import annotations

import os
from typing import NamedTuple

import pyarrow as pa

from frazil.disk import descriptor_path, memory_file

PAGE_BYTES = 4096


class Extent(NamedTuple):
    """A batch in a memory file, as an Arrow IPC stream. It begins at a page."""

    position: int
    length: int


class SharedMemory:
    """Only grows, and is freed with the last batch in any process. Owned by one thread; another
    process gets the descriptor."""

    def __init__(self) -> None:
        self.descriptor = memory_file("frazil-hot")

    def add(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Extent]:
        """Copy a batch into the file. Returns the copy, and where it is."""
        with pa.OSFile(descriptor_path(self.descriptor), "ab") as sink:
            begin = sink.tell()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            end = sink.tell()
            sink.write(bytes(-end % PAGE_BYTES))
        extent = Extent(begin, end - begin)
        return read_extent(self.descriptor, extent), extent

    def __del__(self) -> None:
        os.close(self.descriptor)


def read_extent(descriptor: int, extent: Extent) -> pa.RecordBatch:
    """Map a batch of a memory file without copying it."""
    with pa.memory_map(descriptor_path(descriptor)) as source:
        source.seek(extent.position)
        buffer = source.read_buffer(extent.length)
    return pa.ipc.open_stream(buffer).read_next_batch()
