"""Checkpoints: small state that is replaced atomically.

The bytes go to a `.tmp` file, which is synced and renamed over the old one; then the folder is
synced. The byte layout is in `docs/formats/checkpoint.md`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from google_crc32c import value as crc32c

from frazil.disk.files import Buffer, Disk, Mode
from frazil.errors import Corrupt

MAGIC = b"FRZC"
HEADER = struct.Struct("<4s4sHHI")
"""magic, kind, version, reserved, body length; then the body; then CRC32C of all before it."""
TRAILER = struct.Struct("<I")
BODY_BYTES_MAX = 256 * 1024 * 1024
"""A larger length is damage: no state comes near it."""


def write_checkpoint(
    disk: Disk, path: str, kind: bytes, version: int, body: bytes, *, is_private: bool = False
) -> None:
    """Replace the checkpoint at `path`. Returns once it survives a power cut. Only this user can
    read a private one."""
    assert len(kind) == 4 and len(body) <= BODY_BYTES_MAX
    bytes_before_check = HEADER.pack(MAGIC, kind, version, 0, len(body)) + body
    trailer = TRAILER.pack(crc32c(bytes_before_check))
    mode: Mode = "create_private" if is_private else "create"
    write_whole(disk, path, [bytes_before_check, trailer], mode)


def write_whole(disk: Disk, path: str, buffers: Sequence[Buffer], mode: Mode = "create") -> None:
    """Replace the file at `path` with these bytes. Returns once they survive a power cut."""
    folder, _, name = path.rpartition("/")
    scratch = f"{path}.tmp"
    if f"{name}.tmp" in disk.list(folder):
        disk.unlink(scratch)
    file = disk.open(scratch, mode)
    try:
        file.append(buffers)
        file.sync()
        disk.rename(scratch, path)
    except OSError:
        disk.unlink(scratch)  # must not take up space on a full disk
        raise
    finally:
        file.close()
    disk.sync_directory(folder)


def read_checkpoint(
    disk: Disk, path: str, kind: bytes, version: int, hint: str, *, version_min: int | None = None
) -> bytes | None:
    """Return the body stored at `path`, None if there is no file. Raises `Corrupt` if it is
    damaged, or of a version that is not `version`, nor one from `version_min` on."""
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
    if not (version if version_min is None else version_min) <= found_version <= version:
        raise damaged(
            8, f"version {version}", f"version {found_version}, written by another release"
        )
    return data[HEADER.size : -TRAILER.size]
