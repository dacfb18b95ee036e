"""How far named readers have come, on disk. `docs/formats/checkpoint.md` has the bytes.

One file for each: replaced whole, so that it has the old place or the new one.
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
    "Restore the file from a copy, or remove it and follow anew with an explicit start; "
    "nothing is guessed, because a wrong start skips or repeats rows."
)


class ReaderProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The body of the file."""

    table: str
    offsets: dict[int, int]
    """Partition -> the first offset that is not done."""
    dropped_count: int = 0
    """Offsets that were nowhere any more when they were wanted."""


def path_of(name: str) -> str:
    """The file of a reader. `Malformed` when that cannot be its name."""
    check_name(name, "subscriber")
    return f"{FOLDER}/{name}{SUFFIX}"


def load(disk: Disk, name: str, table: str) -> ReaderProgress | None:
    """Where a reader is; None when it is new. `Conflict` when it reads another table."""
    body = read_checkpoint(disk, path_of(name), KIND, VERSION, HINT)
    if body is None:
        return None
    progress = msgspec.msgpack.decode(body, type=ReaderProgress)
    if progress.table != table:
        raise Conflict(f"reader {name} follows {progress.table}, not {table}; choose another name")
    return progress


def save(disk: Disk, name: str, progress: ReaderProgress) -> None:
    """Durable when this returns. `Overloaded` when the disk is full: then the old place stands."""
    make_directories(disk, FOLDER)
    try:
        write_checkpoint(disk, path_of(name), KIND, VERSION, msgspec.msgpack.encode(progress))
    except OSError as error:
        if not is_full(error):
            raise
        raise Overloaded(
            f"the disk is full: where reader {name} is was not saved; free room on it"
        ) from error


def forget(disk: Disk, name: str) -> None:
    """As if it had never been. `Unknown` when it has not."""
    if path_of(name).rpartition("/")[2] not in disk.list(FOLDER):
        raise Unknown(f"there is no reader {name}")
    disk.unlink(path_of(name))
    disk.sync_directory(FOLDER)
