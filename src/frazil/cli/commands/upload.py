"""Store a file in a stage that is a local folder of the node, for COPY INTO to load. The file is
durable, and appears as a whole, when this returns."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.progress import ProgressLine
from frazil.errors import Malformed

HELP = "Store a file in a stage that is a local folder"
CHUNK_BYTES = 1024 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="the file to send")
    add(
        "target",
        metavar="@STAGE/PATH",
        help="where to store it; a path that ends with / keeps its name",
    )
    add("--overwrite", action="store_true", help="replace the file if it exists")
    add_where(parser)
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    from frazil.model import SystemClock

    source = Path(options.file)
    stage, path = _target(options.target, source.name)
    try:
        stream = source.open("rb")
    except OSError as error:
        raise Malformed(f"{source} cannot be read: {error.strerror}") from None
    with stream, opened(options) as node:
        size = source.stat().st_size
        clock = SystemClock()
        with ProgressLine(
            "upload", total=size, unit="B", clock=clock, is_quiet=options.json
        ) as line:
            node.upload(stage, path, _chunks(stream, line), overwrite=options.overwrite)
    if options.json:
        print(json.dumps({"stage": stage, "path": path, "size_bytes": size}))
    else:
        print(f"stored @{stage}/{path}, {size} bytes")
    return 0


def _target(text: str, name: str) -> tuple[str, str]:
    """Split `@stage/folder/file`. A folder gets the name of the file."""
    stage, slash, path = text.removeprefix("@").partition("/")
    if not text.startswith("@") or not stage:
        raise Malformed(f"{text!r} is not a place in a stage; write @stage/folder/{name}")
    return stage, f"{path}{name}" if not slash or not path or path.endswith("/") else path


def _chunks(stream: IO[bytes], line: ProgressLine) -> Iterator[bytes]:
    done = 0
    while chunk := stream.read(CHUNK_BYTES):
        done += len(chunk)
        line.update(done)
        yield chunk
