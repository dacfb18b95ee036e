"""Durable progress of named readers. The format is in `docs/formats/checkpoint.md`.

One file per reader, replaced atomically.
"""

from __future__ import annotations

import msgspec

from frazil.disk import Disk, is_full, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Conflict, Overloaded, Unknown
from frazil.log import check_name

FOLDER = "lake/readers"
SUFFIX = ".progress"
KIND = b"READ"
VERSION = 1
HINT = (
    "Restore the file from a copy, or delete it and follow again with an explicit start. "
    "A wrong start would skip or repeat rows."
)


class ReaderProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Body of a progress file."""

    table: str
    offsets: dict[int, int]
    """Partition -> first offset that is not acknowledged."""
    dropped_count: int = 0
    """Offsets that were in neither log nor table when they were due."""


def path_of(name: str) -> str:
    """Return the path of a reader's file. Raise `Malformed` if the name is invalid."""
    check_name(name, "subscriber")
    return f"{FOLDER}/{name}{SUFFIX}"


def load(disk: Disk, name: str, table: str) -> ReaderProgress | None:
    """Return the progress of a reader, or None. Raise `Conflict` if it reads another table."""
    body = read_checkpoint(disk, path_of(name), KIND, VERSION, HINT)
    if body is None:
        return None
    progress = msgspec.msgpack.decode(body, type=ReaderProgress)
    if progress.table != table:
        raise Conflict(f"reader {name} follows {progress.table}, not {table}; choose another name")
    return progress


def save(disk: Disk, name: str, progress: ReaderProgress) -> None:
    """Save progress durably. Raise `Overloaded` if the disk is full; the old progress stays."""
    make_directories(disk, FOLDER)
    try:
        write_checkpoint(disk, path_of(name), KIND, VERSION, msgspec.msgpack.encode(progress))
    except OSError as error:
        if not is_full(error):
            raise
        raise Overloaded(
            f"the disk is full, so the progress of reader {name} was not saved; free some space"
        ) from error


def forget(disk: Disk, name: str) -> None:
    """Delete the progress of a reader. Raise `Unknown` if it does not exist."""
    if path_of(name).rpartition("/")[2] not in disk.list(FOLDER):
        raise Unknown(f"there is no reader {name}")
    disk.unlink(path_of(name))
    disk.sync_directory(FOLDER)
