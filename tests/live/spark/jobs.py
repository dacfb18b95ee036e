"""Run the jobs of `examples/` in one process, so that a test can kill them together.

    python -m tests.live.spark.jobs FOLDER [--drain]

With `--drain` it ends after reading the rows that exist at its start; without, it runs forever.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import frazil.lake
from examples import join, sessions, windows

OFFSETS = 40
"""Requests per batch: few, so that there are many batches."""
JOBS = {"windows": windows.start, "sessions": sessions.start, "join": join.start}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--drain", action="store_true")
    parser.add_argument("--jobs", default="windows,join")
    options = parser.parse_args()
    spark = frazil.lake.session(options.folder / "data")
    queries = [
        JOBS[name](
            spark,
            argparse.Namespace(
                checkpoint=str(options.folder / f"{name}.ckpt"),
                output=str(options.folder / name),
                offsets_per_trigger=OFFSETS,
                drain=options.drain,
            ),
        )
        for name in options.jobs.split(",")
    ]
    for query in queries:
        if options.drain:
            query.processAllAvailable()
        else:
            query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
