"""The process that Spark makes its Python processes from, by forking it.

    python -m frazil.lake.spark.fork_server

Spark starts it, once for each kind of work. Beside Spark's own it does two things that tasks would
wait for otherwise. It imports what they need, and loads what is compiled, for all of them. And it
takes Spark's archives off Python's path: before each task Python lists their many files anew, once
for every package it has found in them, which is a fifth of a second.
"""

from __future__ import annotations

import gc
import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path

TASKS = "frazil.lake.append.task"
"""Imports all that tasks need."""


def main() -> None:
    """Never returns."""
    sys.path[:] = without_archives(sys.path)
    sys.path_importer_cache.clear()
    from pyspark import daemon

    from frazil.model import arrow

    importlib.import_module(TASKS)
    arrow.warm()
    # Spark collects garbage behind each task. What is here now stays, and is not looked at.
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


def without_archives(paths: list[str]) -> list[str]:
    """Where to look for modules. Jars have none; the archives that PySpark brings with it have what
    is beside them. Where there are only archives, they stay."""
    paths = [path for path in paths if not path.endswith(".jar")]
    installed = PathFinder.find_spec("pyspark", [path for path in paths if ".zip" not in path])
    if installed is None or installed.origin is None:
        return paths
    home = Path(installed.origin).parent
    return [
        path for path in paths if not (path.endswith(".zip") and Path(path).is_relative_to(home))
    ]


if __name__ == "__main__":
    main()
