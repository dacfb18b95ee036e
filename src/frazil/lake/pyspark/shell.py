"""A Python shell with a SparkSession in it, and scripts that find one."""

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

    from frazil.lake.config import LakeConfig

BANNER = """\
Spark {version} over {folder}. `spark` is the session, `F` are its functions.

  spark.table("logs")                                    the table of the lake; also spans, metrics
  spark.sql("SELECT service_name, count(*) FROM logs GROUP BY 1").show()
  whole("logs")                                          the same, with what is in the log only
  spark.readStream.format("frazil").option("table", "logs").load()
                                                         rows as they come

Ctrl-C cancels what Spark does, a second one anything; Ctrl-D leaves."""


def open_shell(spark: SparkSession, folder: Path, config: LakeConfig) -> None:
    """Read and run lines until the end of input."""
    from pyspark.sql import functions

    from frazil.lake.pyspark.sql import whole

    def whole_now(table: str) -> DataFrame:
        """All rows of a table up to now, those of the lake and of the log."""
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
    """Reads lines, and is interrupted without harm: PySpark's own way, to call Spark from within
    the handler of the signal, breaks the call that is waiting, and the job goes on."""

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
        """Cancel what Spark does; when that was done already, or nothing runs, stop Python."""
        if not self._is_busy:
            raise KeyboardInterrupt
        self._is_busy = False
        threading.Thread(target=self._spark.sparkContext.cancelAllJobs, daemon=True).start()


def run_script(spark: SparkSession, path: str, arguments: Sequence[str]) -> None:
    """Run a program, which finds `spark` among its names."""
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
