"""disk: bytes that survive a crash.

    files.py        Disk, File (protocols), RealDisk: open, append, sync, rename, lock
    write_buffer.py WriteBuffer: memory in which a file is put together
    frames.py       32-byte checked header in front of every payload
    checkpoint.py   small state replaced whole: tmp, sync, rename, sync directory
    copies.py       copies of files, with their checksums
    budget.py       Budget: bytes used, soft cap, hard cap
    line_log.py     LineLog: lines that are appended and synced one by one
    reserve.py      DiskReserve: free space that is kept for one flush of the lake
    ids.py          DurableCounter, TimeIds: numbers that never repeat, even after a crash

`Disk` is the only access to storage. It is passed in, so that tests can pass a simulated one. A
failed `sync` is never retried.
"""

from frazil.disk.budget import Budget
from frazil.disk.checkpoint import read_checkpoint, write_checkpoint, write_whole
from frazil.disk.copies import CopiedFile, FileCopier, Hasher, copy_bytes, sha256_of
from frazil.disk.files import (
    Buffer,
    Disk,
    File,
    Lock,
    Mapped,
    Mode,
    RealDisk,
    descriptor_path,
    free_bytes,
    is_full,
    make_directories,
    memory_file,
)
from frazil.disk.frames import (
    FRAME_HEADER,
    FRAME_HEADER_BYTES,
    FRAME_MAGIC,
    HEAD_BYTES,
    PAYLOAD_BYTES_MAX,
    SALT_BYTES,
    Frame,
    find_frames,
    frame_header,
    walk_frames,
)
from frazil.disk.ids import DurableCounter, TimeIds, split_id
from frazil.disk.line_log import LineLog
from frazil.disk.reserve import DiskReserve
from frazil.disk.write_buffer import WriteBuffer

__all__ = [
    "FRAME_HEADER",
    "FRAME_HEADER_BYTES",
    "FRAME_MAGIC",
    "HEAD_BYTES",
    "PAYLOAD_BYTES_MAX",
    "SALT_BYTES",
    "Budget",
    "Buffer",
    "CopiedFile",
    "Disk",
    "DiskReserve",
    "DurableCounter",
    "File",
    "FileCopier",
    "Frame",
    "Hasher",
    "LineLog",
    "Lock",
    "Mapped",
    "Mode",
    "RealDisk",
    "TimeIds",
    "WriteBuffer",
    "copy_bytes",
    "descriptor_path",
    "find_frames",
    "frame_header",
    "free_bytes",
    "is_full",
    "make_directories",
    "memory_file",
    "read_checkpoint",
    "sha256_of",
    "split_id",
    "walk_frames",
    "write_checkpoint",
    "write_whole",
]
