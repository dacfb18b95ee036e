"""A Python shell and scripts with a SparkSession."""

from __future__ import annotations

import code
import importlib.util
import runpy
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from frazil.errors import Malformed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from frazil.settings import LakeConfig

BANNER = """\
Spark {version} over {folder}. `spark` is the session, `F` is pyspark.sql.functions.

  spark.table("logs")                                    the table in the lake; also spans, metrics
  spark.sql("SELECT service_name, count(*) FROM logs GROUP BY 1").show()
  whole("logs")                                          the table plus newer rows in the log
  spark.readStream.format("frazil").option("table", "logs").load()
                                                         rows as they arrive

Ctrl-C cancels Spark jobs, a second Ctrl-C stops Python code; Ctrl-D exits."""


def open_shell(spark: SparkSession, folder: Path, config: LakeConfig) -> None:
    """Run an interactive shell until the end of input."""
    from pyspark.sql import functions

    from frazil.lake.pyspark.sql import whole

    def whole_now(table: str) -> DataFrame:
        """Return all rows of a table up to now, from lake and log."""
        return whole(spark, table, folder, config)

    names: dict[str, Any] = {"spark": spark, "F": functions, "whole": whole_now}
    if importlib.util.find_spec("readline") is not None:
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    shell = Shell(spark, names)
    before = signal.signal(signal.SIGINT, shell.interrupt)
    try:
        shell.interact(BANNER.format(version=spark.version, folder=folder), exitmsg="")
    finally:
        signal.signal(signal.SIGINT, before)


class Shell(code.InteractiveConsole):
    """Console with safe interrupts. PySpark's own signal handler calls Spark while another call is
    waiting, which breaks that call and leaves the job running."""

    def __init__(self, spark: SparkSession, names: dict[str, Any]) -> None:
        super().__init__(names)
        self._spark = spark
        self._is_busy = False

    def runcode(self, code: CodeType) -> None:
        self._is_busy = True
        try:
            super().runcode(code)
        finally:
            self._is_busy = False

    def interrupt(self, *_: object) -> None:
        """Cancel Spark jobs; if that was done already, or nothing runs, interrupt Python."""
        if not self._is_busy:
            raise KeyboardInterrupt
        self._is_busy = False
        threading.Thread(target=self._spark.sparkContext.cancelAllJobs, daemon=True).start()


def run_script(spark: SparkSession, path: str, arguments: Sequence[str]) -> None:
    """Run a program with `spark` as a global name."""
    if not Path(path).is_file():
        raise Malformed(f"there is no script {path}")
    before = sys.argv
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).parent.absolute()))
    try:
        runpy.run_path(path, {"spark": spark}, "__main__")
    finally:
        sys.argv = before
        sys.path.pop(0)
