"""Session: the only place that creates a SparkSession.

Spark is started on first use, and again after it died. A node does not wait for it to start.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from frazil.errors import Unavailable
from frazil.lake.spark.jars import default_folder, paths
from frazil.lake.spark.process import SparkProcess
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, MiB, SystemClock
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

ICEBERG_SQL = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
"""Procedures, branches and tags in SQL."""

JAVA_OPTIONS = " ".join(
    [
        "-XX:+UseSerialGC",  # no GC threads: the machine is small, and rows stay in Python
        "-Xss4m",  # plans are traversed by recursion
        # Memory besides the heap: 1 GiB at most, including threads.
        "-XX:MaxMetaspaceSize=384m",
        "-XX:ReservedCodeCacheSize=128m",
        "-XX:MaxDirectMemorySize=256m",
        "-XX:+ExitOnOutOfMemoryError",  # so that it is replaced
    ]
)

SparkState = Literal["not_started", "starting", "running", "failed"]
OnSpark = Callable[[int, float], None]
"""Called after a start of Spark with its process id and the seconds it took."""

STARTED = Counter("frazil.lake.spark.started", "Starts of the Spark process, by reason.")


class Session:
    """Spark, started on first use. Owned by one thread; any may use the SparkSession."""

    def __init__(
        self,
        config: LakeConfig,
        catalog: Mapping[str, str],
        scratch: Path | None = None,
        clock: Clock | None = None,
        on_start: OnSpark = lambda _, __: None,
    ) -> None:
        """`catalog` has the Spark settings of the catalog. `scratch` is a folder for temporary
        files, used by this session alone; it is emptied before each start, because a Spark that
        died leaves files behind. Without it the system's temporary folder is used."""
        self._config = config
        self._catalog = dict(catalog)
        self._scratch = None if scratch is None else scratch.absolute()
        self._process: SparkProcess | None = None
        self._clock = clock or SystemClock()
        self._on_start = on_start
        self.trouble: str | None = None
        """Why the last start failed, or None."""
        self._is_starting = False
        self._is_ended = False
        self._starting = threading.Lock()

    @property
    def state(self) -> SparkState:
        """State of Spark as far as this process knows. Does not block; for any thread."""
        if self._is_starting:
            return "starting"
        process = self._process
        if process is not None:
            return "failed" if process.has_ended else "running"
        return "not_started" if self.trouble is None else "failed"

    @property
    def pid(self) -> int | None:
        """Process id of Spark, or None."""
        return None if self._process is None else self._process.pid

    def spark(self) -> SparkSession:
        """Return a live session, and start Spark if needed, which takes seconds."""
        with self._starting:
            return self._live()

    def _live(self) -> SparkSession:
        self._check_open()
        reason = "first"
        if self._process is not None:
            if self._process.is_alive():
                return self._process.session
            logger.warning("spark ended, restarting it", extra={"pid": self._process.pid})
            reason = "death"
            self.close()
        begin_ns = self._clock.monotonic_ns()
        self._is_starting = True
        try:
            self._process = self._started()
        except Unavailable as error:
            self.trouble = str(error)
            raise
        finally:
            self._is_starting = False
        self._check_open()
        self.trouble = None
        STARTED.add(reason=reason)
        took_s = (self._clock.monotonic_ns() - begin_ns) / (1000 * NS_PER_MS)
        self._on_start(self._process.pid, took_s)
        return self._process.session

    def _check_open(self) -> None:
        """Raise `Unavailable` after `end`."""
        if self._is_ended:
            self.close()
            raise Unavailable("Spark is being stopped")

    def _started(self) -> SparkProcess:
        settings = settings_of(self._config, self._catalog, self._scratch)
        if self._scratch is not None:
            _empty(self._scratch)
        return SparkProcess.open(settings)

    @contextmanager
    def use(self) -> Iterator[SparkSession]:
        """Yield a live session. Raises `Unavailable` if Spark dies while it is used."""
        spark = self.spark()
        process = self._process
        assert process is not None
        from py4j.protocol import Py4JError

        try:
            yield spark
        except (Py4JError, OSError, EOFError) as error:
            if process.is_alive():
                raise
            raise Unavailable(
                f"the Spark process {process.pid} ended during a job; the next attempt starts "
                f"another. Its last output:\n{process.last_lines()}"
            ) from error

    def close(self) -> None:
        """End the Spark process and wait for it. The next use starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def end(self, *, is_hurried: bool) -> None:
        """Like `close`, for good. With `is_hurried` the process is killed."""
        self._is_ended = True
        process = self._process
        if is_hurried and process is not None:
            process.kill()
        self.close()


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Reverse order of names: files before their folder.
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def settings_of(
    config: LakeConfig, catalog: Mapping[str, str], scratch: Path | None
) -> dict[str, str]:
    """Return all settings of Spark. None of them makes it download anything."""
    jars = [str(path) for path in paths(Path(config.jars) if config.jars else default_folder())]
    settings = {
        "spark.app.name": "frazil",
        "spark.driver.memory": f"{config.driver_memory_bytes // MiB}m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.pyspark.memory": f"{config.worker_memory_bytes // MiB}m",
        "spark.python.daemon.module": "frazil.lake.spark.fork_server",
        "spark.eventLog.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ui.retainedExecutions": "10",
        # Jobs in a pool of their own do not wait for earlier jobs.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.extensions": ICEBERG_SQL,
        "spark.sql.session.timeZone": "UTC",
        # Rows sent to Python are outside the heap, in buffers that double.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * MiB),
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
    }
    if config.is_local:
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Tasks need the packages of this Python, whatever `python3` is.
            "spark.pyspark.python": sys.executable,
            "spark.sql.shuffle.partitions": "2",
        }
    if scratch is not None:
        settings["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={scratch}"'
        if config.is_local:
            settings["spark.local.dir"] = str(scratch)
    settings |= {**catalog, **config.spark, "spark.master": config.master}
    # Local: on the class path, not copied. On a cluster they are sent to the executors.
    name, separator = (
        ("spark.driver.extraClassPath", ":") if config.is_local else ("spark.jars", ",")
    )
    others = [config.spark[name]] if name in config.spark else []
    settings[name] = separator.join([*jars, *others])
    return settings
