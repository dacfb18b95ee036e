"""Loads without Spark: tasks run in the process of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog

from frazil.definitions import CopyIntoTable, CreateStage, parse_statement
from frazil.disk import RealDisk
from frazil.lake import JobGroup, LakeView, open_catalog
from frazil.load import FileRules, LogLoads, LogLoadsConfig, StepLog
from frazil.load.copy.copy_into import CopyContext, LoadResult, copy_into
from frazil.load.copy.keyed_target import KeyedCopy
from frazil.load.copy.progress import LoadProgress
from frazil.load.stages.stage import Stage, open_stage
from frazil.model import MiB, SystemClock, SystemRand
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import IngestConfig, LakeConfig, QueryConfig, RedactRule, StagesConfig

CONFIG = LakeConfig()
REQUEST_BYTES_MAX = 8 * MiB


def log_loads(
    data: Path,
    log: StepLog,
    ingest: IngestConfig | None = None,
    *rules: RedactRule,
    make_room: Callable[[], None] = lambda: None,
) -> LogLoads:
    """Return loads into a log, staged in a data folder."""
    allowed = FileRules(
        ingest=ingest or IngestConfig(), redact=rules, request_bytes_max=REQUEST_BYTES_MAX
    )
    config = LogLoadsConfig(rules=allowed, reserve_bytes=0, make_room=make_room)
    return LogLoads(RealDisk(data), log, config, clock=SystemClock(), rand=SystemRand())


def run_inline(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


class Loading:
    """A stage `s` in a folder, and a catalog."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "in"
        self.files.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        self.data.mkdir(exist_ok=True)
        self.catalog: Catalog = open_catalog(CONFIG, self.data)
        self.stage: Stage = open_stage(
            CreateStage(name="s", url=f"file://{self.files}"),
            StagesConfig(roots=[str(folder)]),
            {},
        )

        self.progress = LoadProgress(group=JobGroup("test"))

    def put(self, name: str, data: bytes) -> Path:
        path = self.files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def copy(
        self,
        text: str,
        before_tasks: Callable[[], None] = lambda: None,
        keyed: KeyedCopy | None = None,
    ) -> LoadResult:
        statement = parse_statement(text).statement
        assert isinstance(statement, CopyIntoTable)
        context = CopyContext(
            catalog=self.catalog,
            lake=CONFIG,
            do=run_inline,
            clock=SystemClock(),
            rand=SystemRand(),
            files_max=1000,
            progress=self.progress,
            keyed=keyed,
            before_tasks=before_tasks,
        )
        return copy_into(statement, self.stage, context)

    def table(self, name: str) -> pa.Table:
        return self.catalog.load_table(f"{CONFIG.namespace}.{name}").scan().to_arrow()

    def rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table(table).to_pylist()
        return found


@contextmanager
def sql_over(loading: Loading) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    view = LakeView(CONFIG, loading.data)
    view.other_tables()
    with Engine.open(dict, TABLES, QueryConfig(), SystemClock(), view) as engine:
        yield lambda text: [tuple(row.values()) for row in engine.sql(text).arrow().to_pylist()]
    view.close()
