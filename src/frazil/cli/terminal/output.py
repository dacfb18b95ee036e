"""Write results to standard output, or atomically to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from frazil.disk import RealDisk
from frazil.errors import Malformed, Unavailable


def write_to_stdout(pieces: Iterable[bytes]) -> None:
    """Write pieces as they arrive."""
    out = sys.stdout.buffer
    for piece in pieces:
        out.write(piece)
        out.flush()


def write_to_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Write pieces to a temporary file and rename it when complete."""
    if path.exists() and not path.is_file():
        raise Malformed(f"--output {path} exists and is not a file; name another")
    if not path.parent.is_dir():
        raise Malformed(f"--output {path}: folder {path.parent} does not exist; create it first")
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
