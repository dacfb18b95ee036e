"""The jobs of `examples/` in one process, so that a test can kill them together and often.

    python -m tests.live.spark_jobs FOLDER [--drain]

With `--drain` it ends when all that was there at its start has been read; without, never.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import frazil.lake
from examples import join, sessions, windows

OFFSETS = 40
"""Requests of a batch: few, so that there are many batches."""
JOBS = {"windows": windows.start, "sessions": sessions.start, "join": join.start}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--drain", action="store_true")
    parser.add_argument("--jobs", default="windows,join")
    given = parser.parse_args()
    spark = frazil.lake.session(given.folder / "data")
    queries = [
        JOBS[name](
            spark,
            argparse.Namespace(
                checkpoint=str(given.folder / f"{name}.ckpt"),
                output=str(given.folder / name),
                offsets_per_trigger=OFFSETS,
                drain=given.drain,
            ),
        )
        for name in given.jobs.split(",")
    ]
    for query in queries:
        if given.drain:
            query.processAllAvailable()
        else:
            query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
