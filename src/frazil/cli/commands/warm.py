"""Compile and download ahead of time, so that no start waits for it. The only verb that needs the
network."""

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

HELP = "Compile and download ahead of time"
NS_PER_S = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_json(parser, "print one JSON object per step")


def run(options: argparse.Namespace) -> int:
    from frazil.config import load
    from frazil.model import SystemClock

    clock = SystemClock()
    config = load(options.config, {}, assignments=options.assignments)
    for step, work in _steps(config):
        if not options.json:
            print(f"{step} ...", end=" ", file=sys.stderr, flush=True)
        start_ns = clock.monotonic_ns()
        work()
        seconds = (clock.monotonic_ns() - start_ns) / NS_PER_S
        if options.json:
            print(json.dumps({"step": step, "seconds": round(seconds, 3)}), flush=True)
        else:
            print(f"{seconds:.1f} s", file=sys.stderr, flush=True)
    return 0


def _steps(config: Config) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield each step and its function. Each room is imported when its step begins."""
    from frazil import hot, ingest, lake, languages, query
    from frazil.log import produce
    from frazil.model import arrow

    yield "compiling the request scanner", ingest.warm_all
    yield "compiling the check of Kafka batches", produce.warm
    yield "compiling the telemetry decoder", arrow.warm
    yield "compiling the filters of the hot tier", hot.warm
    yield "compiling the SQL functions", query.warm
    yield "compiling PromQL", languages.warm
    folder = lake.jars_folder() if config.lake.jars is None else Path(config.lake.jars)
    step = f"downloading Spark jars to {folder}"
    yield (
        (step if lake.is_installed() else "skipping the lake: Spark is not installed"),
        (lambda: lake.warm(folder)),
    )
