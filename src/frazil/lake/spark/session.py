"""Session: the one place where a SparkSession is made.

Spark is started when it is first needed, and again when it was found dead. No start of a node
waits for it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from frazil.errors import Unavailable
from frazil.lake.config import LakeConfig
from frazil.lake.spark.jars import default_folder, paths
from frazil.lake.spark.process import SparkProcess
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, MiB, SystemClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

ICEBERG_SQL = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
"""Procedures, branches and tags in SQL."""

JAVA_OPTIONS = " ".join(
    [
        "-XX:+UseSerialGC",  # no threads of its own: the machine is small, and rows stay in Python
        "-Xss4m",  # plans are trees that are walked by recursion
        # What Java takes beside the heap: 1 GiB at most, together with threads.
        "-XX:MaxMetaspaceSize=384m",
        "-XX:ReservedCodeCacheSize=128m",
        "-XX:MaxDirectMemorySize=256m",
        "-XX:+ExitOnOutOfMemoryError",  # one that is half dead would not be replaced
    ]
)

SparkState = Literal["not_started", "starting", "running", "failed"]
OnSpark = Callable[[int, float], None]
"""Spark is up: its process, and the seconds that the start took."""

STARTED = Counter("frazil.lake.spark.started", "Starts of Spark's process, by reason.")


class Session:
    """Spark, once it is needed. Belongs to one thread; the SparkSession may be used by any."""

    def __init__(
        self,
        config: LakeConfig,
        catalog: Mapping[str, str],
        scratch: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`catalog` holds the settings by which Spark sees the catalog. `scratch` is a folder for
        its temporary files, of this session alone: it is emptied before each start, as a Spark
        that died leaves them behind. Without, they are with those of the machine."""
        self._config = config
        self._catalog = dict(catalog)
        self._scratch = None if scratch is None else scratch.absolute()
        self._process: SparkProcess | None = None
        self._clock = clock or SystemClock()
        self.on_start: OnSpark = lambda _, __: None
        self.trouble: str | None = None
        """Why the last start failed; None when it did not."""
        self._is_starting = False
        self._is_ended = False

    @property
    def state(self) -> SparkState:
        """How Spark does, as far as this process knows; any thread may look, and none waits."""
        if self._is_starting:
            return "starting"
        process = self._process
        if process is not None:
            return "failed" if process.has_ended else "running"
        return "not_started" if self.trouble is None else "failed"

    @property
    def pid(self) -> int | None:
        """Spark's process, if there is one."""
        return None if self._process is None else self._process.pid

    def spark(self) -> SparkSession:
        """A living session: the one at hand, or a new one. Starting takes seconds."""
        self._check_open()
        reason = "first"
        if self._process is not None:
            if self._process.is_alive():
                return self._process.session
            logger.warning("spark ended and is started again", extra={"pid": self._process.pid})
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
        self.on_start(self._process.pid, took_s)
        return self._process.session

    def _check_open(self) -> None:
        """Nobody shall start another behind the back of whoever has ended it."""
        if self._is_ended:
            self.close()
            raise Unavailable("Spark is being stopped, and is not started again")

    def _started(self) -> SparkProcess:
        settings = settings_of(self._config, self._catalog, self._scratch)
        if self._scratch is not None:
            _empty(self._scratch)
        return SparkProcess.open(settings)

    @contextmanager
    def use(self) -> Iterator[SparkSession]:
        """A living session for some work. Should Spark die meanwhile, that is `Unavailable`."""
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
                f"Spark's process {process.pid} ended while it was working; the next attempt "
                f"starts another. It said last:\n{process.last_lines()}"
            ) from error

    def close(self) -> None:
        """End Spark's process, and wait until it is gone. The next use starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def end(self, *, is_hurried: bool) -> None:
        """As `close`, and for good. In a hurry its process is killed, with what it was doing."""
        self._is_ended = True
        process = self._process
        if is_hurried and process is not None:
            process.kill()
        self.close()


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # What is in a folder comes after it by name.
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def settings_of(
    config: LakeConfig, catalog: Mapping[str, str], scratch: Path | None
) -> dict[str, str]:
    """All settings that Spark is started with. None of them makes it fetch anything."""
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
        # Work in a pool of its own cannot be held up by what was begun before it.
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.extensions": ICEBERG_SQL,
        "spark.sql.session.timeZone": "UTC",
        # Rows on their way to a Python process are outside the heap, in buffers that double.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * MiB),
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
    }
    if config.is_local:
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Tasks need what is installed here, whatever `python3` is.
            "spark.pyspark.python": sys.executable,
            "spark.sql.shuffle.partitions": "2",
        }
    if scratch is not None:
        settings["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={scratch}"'
        if config.is_local:
            settings["spark.local.dir"] = str(scratch)
    settings |= {**catalog, **config.spark, "spark.master": config.master}
    # On the class path they are opened in place. Elsewhere they must be sent to the executors.
    name, separator = (
        ("spark.driver.extraClassPath", ":") if config.is_local else ("spark.jars", ",")
    )
    given = [config.spark[name]] if name in config.spark else []
    settings[name] = separator.join([*jars, *given])
    return settings
