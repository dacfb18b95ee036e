"""The fork server of Spark's Python workers.

    python -m frazil.lake.spark.fork_server

Spark starts it, once for each kind of work, instead of its own daemon. It does two more things, to
save time in every task: it imports the modules and compiled code that tasks need, and it removes
Spark's archives from `sys.path`, which Python would list again before each task, once for every
package found in them (0.2 s).
"""

from __future__ import annotations

import gc
import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path

TASKS = ("frazil.lake.append.task", "frazil.lake.catalog.file_io", "frazil.lake.keyed.tasks")
"""Import all modules that tasks need."""


def main() -> None:
    """Run the server. Never returns."""
    sys.path[:] = without_archives(sys.path)
    sys.path_importer_cache.clear()
    from pyspark import daemon

    from frazil.model import arrow

    for module in TASKS:
        importlib.import_module(module)
    arrow.warm()
    # Spark collects garbage after each task; exempt everything loaded so far.
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


def without_archives(paths: list[str]) -> list[str]:
    """Return the module paths without jars, which have no modules, and without PySpark's archives
    if PySpark is also installed as files."""
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
