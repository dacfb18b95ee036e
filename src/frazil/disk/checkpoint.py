"""Small state that is replaced whole: old or new, never empty or mixed.

Write goes to a `.tmp` file, which is synced and then renamed over the old one; the folder is
synced last. The byte layout is `docs/formats/checkpoint.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from google_crc32c import value as crc32c

from frazil.disk.files import Buffer, Disk
from frazil.errors import Corrupt

MAGIC = b"FRZC"
HEADER = struct.Struct("<4s4sHHI")
"""magic, kind, version, reserved, body length; then the body; then CRC32C of all before it."""
TRAILER = struct.Struct("<I")
BODY_BYTES_MAX = 256 * 1024 * 1024
"""A length above this is damage, not data: no state of ours comes near it."""


def write_checkpoint(disk: Disk, path: str, kind: bytes, version: int, body: bytes) -> None:
    """Replace the state at `path`. Returns once the new state survives a power cut."""
    assert len(kind) == 4 and len(body) <= BODY_BYTES_MAX
    bytes_before_check = HEADER.pack(MAGIC, kind, version, 0, len(body)) + body
    write_whole(disk, path, [bytes_before_check, TRAILER.pack(crc32c(bytes_before_check))])


def write_whole(disk: Disk, path: str, buffers: Sequence[Buffer]) -> None:
    """Replace the file at `path` by these bytes. Returns once they survive a power cut."""
    folder, _, name = path.rpartition("/")
    scratch = f"{path}.tmp"
    if f"{name}.tmp" in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, "create")
    try:
        file.append(buffers)
        file.sync()
        disk.rename(scratch, path)
    except OSError:
        disk.unlink(scratch)  # on a full disk the scratch file must not keep the room it took
        raise
    finally:
        file.close()
    disk.sync_directory(folder)


def read_checkpoint(disk: Disk, path: str, kind: bytes, version: int, hint: str) -> bytes | None:
    """The body stored at `path`; None when there is none. `Corrupt` when it fails its check."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        size = file.size()
        data = file.read(0, min(size, HEADER.size + BODY_BYTES_MAX + TRAILER.size))
    finally:
        file.close()

    def damaged(position: int, expected: str, found: str) -> Corrupt:
        return Corrupt(path=path, position=position, expected=expected, found=found, hint=hint)

    if len(data) < HEADER.size + TRAILER.size:
        raise damaged(0, f"at least {HEADER.size + TRAILER.size} bytes", f"{len(data)}")
    magic, found_kind, found_version, _, length = HEADER.unpack_from(data)
    if magic != MAGIC or found_kind != kind:
        raise damaged(0, f"{MAGIC + kind!r}", f"{magic + found_kind!r}")
    if size != HEADER.size + length + TRAILER.size:
        raise damaged(
            HEADER.size, f"{length} bytes of state", f"{size - HEADER.size - TRAILER.size}"
        )
    (stored,) = TRAILER.unpack_from(data, len(data) - TRAILER.size)
    computed = crc32c(data[: -TRAILER.size])
    if stored != computed:
        raise damaged(len(data) - TRAILER.size, f"CRC32C {computed:08x}", f"{stored:08x}")
    if found_version != version:
        raise damaged(
            8, f"version {version}", f"version {found_version}, written by another release"
        )
    return data[HEADER.size : -TRAILER.size]
