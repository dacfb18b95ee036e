"""SparkProcess: the Spark child process and its session.

PySpark keeps its process in class variables and never checks whether it is alive; here they are set
and cleared. The child ends when this process does, even if this one is killed.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import threading
import warnings
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from frazil.errors import Unavailable

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

SPARK_VERSION = "4.1."
"""The version that the jars are built for. Another one fails at the first statement, or later."""
CLOSE_TIMEOUT_S = 10
"""Spark normally ends within a second; after this it is killed."""
LINES_KEPT = 20
"""Lines of Spark's output that an error shows."""
SECRET_PREFIXES = ("spark.sql.catalog.", "spark.hadoop.")
"""Settings that may contain passwords. Every user of the machine can read a command line, so these
are set after the start."""
FAILURE = re.compile(r"\S+ \S+ (ERROR|FATAL) ")


class SparkProcess:
    """A running Spark."""

    def __init__(self, gateway: Any, output: ProcessOutput) -> None:
        self._gateway = gateway
        self._child: subprocess.Popen[bytes] = gateway.proc
        self._output = output
        self._context: SparkContext | None = None
        self.session: SparkSession

    @classmethod
    def open(cls, settings: Mapping[str, str]) -> SparkProcess:
        """Start Spark. Raises `Unavailable`, with what is missing."""
        try:
            from pyspark import SparkContext
        except ImportError:
            raise Unavailable("the lake needs PySpark: pip install 'frazil[lake]'") from None
        if SparkContext._gateway is not None:  # noqa: SLF001
            raise Unavailable(
                "this process already runs Spark with other settings, and can run only one; use "
                "the lake from another process"
            )
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            raise Unavailable(
                "this program was started by spark-submit, which has other Spark settings; start "
                "it with python, and set lake.master"
            )
        process = _launched(settings)
        with ExitStack() as undo:
            undo.callback(process.close)
            process.begin(settings)
            undo.pop_all()
        return process

    def begin(self, settings: Mapping[str, str]) -> None:
        """Create the session."""
        from py4j.protocol import Py4JError
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        try:
            conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            self._context = context = SparkContext(conf=conf, gateway=self._gateway)
            if not context.version.startswith(SPARK_VERSION):
                raise Unavailable(
                    f"Spark is {context.version}, but the lake needs {SPARK_VERSION}x; unset "
                    "SPARK_HOME, or install that version"
                )
            # PySpark reads this setting only from the environment.
            context.pythonExec = settings.get("spark.pyspark.python", context.pythonExec)
            self.session = SparkSession(context)
        except (Py4JError, OSError) as error:
            raise Unavailable(
                f"Spark did not start: {error}. Its last output:\n{self.last_lines()}"
            ) from error

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone. Does not call Spark."""
        return self._child.poll() is not None

    def last_lines(self) -> str:
        """Return the last lines of its output."""
        return self._output.last_lines()

    def is_alive(self) -> bool:
        """Return whether the process runs and its context is not stopped."""
        from py4j.protocol import Py4JError

        context = None if self._context is None else self._context._jsc  # noqa: SLF001
        if context is None or self._child.poll() is not None:
            return False
        try:
            return not context.sc().isStopped()
        except (Py4JError, OSError):
            return False

    def kill(self) -> None:
        """Kill the process. `close` must still be called."""
        self._child.kill()

    def close(self) -> None:
        """Stop the context, end the process and clear PySpark's class variables."""
        from py4j.protocol import Py4JError
        from pyspark import SparkContext
        from pyspark.sql import SparkSession, SQLContext

        if self._context is not None:
            _stop(self._context)
        with suppress(Py4JError, OSError):
            self._gateway.shutdown()
        _end(self._child)
        self._output.close()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
        SQLContext._instantiatedContext = None  # noqa: SLF001


class ProcessOutput:
    """Output of Spark and its tasks, read by a thread: errors are logged, last lines are kept."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._thread = threading.Thread(target=self._read, name="spark-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._ours.makefile("r", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.strip():
                    self._lines.append(line.rstrip())
                    level = logging.WARNING if FAILURE.match(line) else logging.DEBUG
                    logger.log(level, "spark output", extra={"line": line.rstrip()})

    def last_lines(self) -> str:
        return "\n".join(self._lines.copy())

    def close(self) -> None:
        """Wait for the rest of the output. All processes that write to it must have ended."""
        self.theirs.close()
        self._thread.join(CLOSE_TIMEOUT_S)
        self._ours.close()


def _launched(settings: Mapping[str, str]) -> SparkProcess:
    """Start the process, without a session."""
    from pyspark import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    output = ProcessOutput()
    public = [pair for pair in settings.items() if not pair[0].startswith(SECRET_PREFIXES)]
    conf = SparkConf(loadDefaults=False).setAll(public)
    streams = {"stdout": output.theirs.fileno(), "stderr": output.theirs.fileno()}
    try:
        gateway = launch_gateway(conf, streams)  # type: ignore[no-untyped-call]
    except (PySparkRuntimeError, OSError):
        output.close()
        raise Unavailable(
            "Spark did not start. The lake needs Java 17 or newer, in JAVA_HOME or as `java` in "
            f"PATH; everything else works without it. Spark's output:\n{output.last_lines()}"
        ) from None
    output.theirs.close()
    return SparkProcess(gateway, output)


def _stop(context: SparkContext) -> None:
    """Stop a context, whether its process runs or not."""
    with warnings.catch_warnings():
        # PySpark warns about a dead process, which is expected here.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            context.stop()
        except OSError:
            # The first call only drops the dead process; the second cleans up in this one.
            context.stop()


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    with suppress(OSError):
        child.stdin.close()  # Spark ends when its stdin is closed
    try:
        child.wait(CLOSE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
