"""Compile and fetch what no start should have to wait for. The only verb that needs a network."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.options import add_config, add_json

if TYPE_CHECKING:
    from frazil.config import Config

HELP = "compile and fetch what no start should have to wait for"
NS_PER_S = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_json(parser, "one line of JSON per step")


def run(options: argparse.Namespace) -> int:
    """Compile and fetch ahead of time, and say what takes how long."""
    from frazil.config import load
    from frazil.model import SystemClock

    clock = SystemClock()
    config = load(options.config, {}, assignments=options.assignments)
    for what, work in _steps(config):
        if not options.json:
            print(f"{what} ...", end=" ", file=sys.stderr, flush=True)
        begin_ns = clock.monotonic_ns()
        work()
        seconds = (clock.monotonic_ns() - begin_ns) / NS_PER_S
        if options.json:
            print(json.dumps({"step": what, "seconds": round(seconds, 3)}), flush=True)
        else:
            print(f"{seconds:.1f} s", file=sys.stderr, flush=True)
    return 0


def _steps(config: Config) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is done, and how; each room is imported when its turn has come."""
    from frazil import ingest, lake, query
    from frazil.model import arrow

    yield "compiling the scanner of requests", ingest.warm
    yield "compiling the decoder of telemetry", arrow.warm
    yield "compiling the functions of SQL", query.warm
    folder = lake.jars_folder() if config.lake.jars is None else Path(config.lake.jars)
    what = f"fetching jars for Spark into {folder}"
    yield (
        (what if lake.is_installed() else "no lake: Spark is not installed"),
        (lambda: lake.warm(folder)),
    )
