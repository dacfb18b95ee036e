"""Pipes without Spark: the tasks of their loads run in the process of the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from frazil.definitions import Audit, Definitions, PipeHistory, StatementExecutor
from frazil.disk import RealDisk
from frazil.lake import JobGroup, Lake, TaskRunner
from frazil.load import KeyedLoads, Loader, open_pipes
from frazil.log import Log
from frazil.model import SystemClock, SystemRand
from frazil.results import CancelToken, Result
from frazil.settings import LakeConfig, LogConfig, StagesConfig
from frazil.tables import KeyedTables
from tests.load.loading import log_loads, run_inline

WAIT_S = 60
POLL_MS = 100


class NoEngine:
    """Every table may be loaded."""

    def sql(self, text: str, *, cancel_token: CancelToken | None = None) -> Result:
        raise AssertionError("pipes run no query of the engine")

    def check_loaded_name(self, name: str) -> None: ...


class Piping:
    """A data folder with a stage `s` at `in`, and a scheduler."""

    def __init__(
        self,
        folder: Path,
        lake: Lake,
        log: Log,
        tables: KeyedTables,
        runner: Callable[[JobGroup], TaskRunner],
        *,
        is_scheduling: bool,
    ) -> None:
        clock, disk = SystemClock(), RealDisk(folder / "data")
        self.files = folder / "in"
        self.files.mkdir(exist_ok=True)
        self.lake = lake
        self.tables = tables
        self.history = PipeHistory(disk)
        self.executor = StatementExecutor(Definitions(disk), Audit(disk, clock), clock)
        loads = KeyedLoads(
            tables, str(folder / "data"), clock=clock, batch_bytes_max=LogConfig().batch_bytes_max
        )
        loader = Loader(
            lake,
            NoEngine(),
            self.executor.definitions,
            StagesConfig(roots=[str(folder)]),
            {},
            clock=clock,
            rand=SystemRand(),
            keyed=loads,
            log_loads=log_loads(folder / "data", log),
            runner=runner,
        )
        loader.register(self.executor)
        self.pipes = open_pipes(
            self.executor,
            loader,
            self.history,
            disk,
            clock,
            poll_interval_ms=POLL_MS,
            is_scheduling=is_scheduling,
        )

    def put(self, name: str, *numbers: int) -> None:
        body = "".join(f'{{"n":{number}}}\n' for number in numbers)
        scratch = self.files.parent / "scratch"
        scratch.write_text(body, encoding="utf-8")
        scratch.rename(self.files / name)

    def execute(self, text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.executor.execute(text, who="test").to_pylist()
        return rows

    def shown(self) -> dict[str, Any]:
        """Return the row of the only pipe."""
        (row,) = self.execute("SHOW PIPES")
        return row

    def numbers(self) -> list[int]:
        """Return the rows of the table `t`."""
        view = self.lake.view.pin(["t"]).tables["t"]
        root = Path(self.lake.data_folder) / "lake" / "warehouse"
        found: list[int] = []
        for file in view.files:
            (path,) = root.rglob(Path(file.path).name)
            found += pq.read_table(path)["n"].to_pylist()
        return sorted(found)

    def outcomes(self) -> list[str]:
        return [run.outcome for run in self.history.runs()]


def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def inline(_: JobGroup) -> TaskRunner:
    return run_inline


@contextmanager
def open_piping(
    folder: Path,
    runner: Callable[[JobGroup], TaskRunner] = inline,
    *,
    is_scheduling: bool = True,
) -> Iterator[Piping]:
    """Open the data folder, again after it was closed."""
    clock, rand = SystemClock(), SystemRand()
    data = folder / "data"
    with (
        Log.open(RealDisk(data), LogConfig(), clock=clock, rand=rand) as log,
        Lake.open(log, data, LakeConfig(), clock=clock, rand=rand, auto_flush=False) as lake,
        closing(KeyedTables(RealDisk(data), log, clock=clock)) as tables,
    ):
        piping = Piping(folder, lake, log, tables, runner, is_scheduling=is_scheduling)
        if not piping.executor.definitions.of_kind("stage"):
            piping.execute(f"CREATE STAGE s URL='file://{piping.files}' FILE_FORMAT=(TYPE=NDJSON)")
        piping.pipes.start()
        try:
            yield piping
        finally:
            piping.pipes.close()
