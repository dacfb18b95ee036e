"""Where results are written: standard output, or a file that is there whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from frazil.disk import RealDisk
from frazil.errors import Malformed, Unavailable


def write_to_stdout(pieces: Iterable[bytes]) -> None:
    """Write pieces as they come."""
    out = sys.stdout.buffer
    for piece in pieces:
        out.write(piece)
        out.flush()


def write_to_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write pieces into a file beside the one that is meant; it gets its name when all is there."""
    if path.exists() and not path.is_file():
        raise Malformed(f"--output {path} is there and is no file; name another")
    if not path.parent.is_dir():
        raise Malformed(f"--output {path}: there is no folder {path.parent}; make it first")
    disk = RealDisk(path.parent)
    name = f".{path.name}.{os.getpid()}.tmp"
    try:
        with ExitStack() as undo:
            file = disk.open(name, "create")
            undo.callback(disk.unlink, name)
            with closing(file):
                for piece in pieces:
                    file.append([piece])
                file.sync()
            disk.rename(name, path.name)
            undo.pop_all()
    except OSError as error:
        raise Unavailable(f"--output {path} cannot be written: {error.strerror}") from None
