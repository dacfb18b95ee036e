"""Loads into a log without Spark: tasks run in the process of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from frazil.config import load
from frazil.definitions import CopyIntoTable, CreateStage, parse_statement
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.lake import JobGroup
from frazil.load.copy.copy_into import LoadResult
from frazil.load.copy.progress import LoadProgress
from frazil.load.into_log.log_loads import LogCopyContext, StepLog
from frazil.load.stages.stage import Stage, open_stage
from frazil.log import Log
from frazil.model import Signal, SystemClock, SystemRand
from frazil.settings import IngestConfig, LogConfig, RedactRule, StagesConfig, TopicConfig
from tests.load.loading import log_loads, run_inline


class LogLoading:
    """A stage `s` in a folder, and a log."""

    def __init__(
        self,
        folder: Path,
        log: Log,
        ingest: IngestConfig | None = None,
        *rules: RedactRule,
        through: StepLog | None = None,
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        self.log = log
        self.files = folder / "in"
        self.files.mkdir(exist_ok=True)
        self.data = folder / "data"
        self.stage: Stage = open_stage(
            CreateStage(name="s", url=f"file://{self.files}"),
            StagesConfig(roots=[str(folder)]),
            {},
        )
        self.loads = log_loads(self.data, through or log, ingest, *rules, make_room=make_room)
        self.progress = LoadProgress(group=JobGroup("test"))

    def put(self, name: str, data: bytes) -> None:
        (self.files / name).write_bytes(data)

    def copy(self, text: str) -> LoadResult:
        statement = parse_statement(text).statement
        assert isinstance(statement, CopyIntoTable)
        context = LogCopyContext(
            stage=self.stage, do=run_inline, files_max=1000, progress=self.progress
        )
        return self.loads.copy(statement, context)

    def records(self) -> list[Any]:
        """Return the log records in the log, in order, as protobuf decodes them."""
        reader = self.log.reader(Signal.LOGS.topic, "earliest")
        found = []
        while batches := reader.read():
            for batch in batches:
                for record in batch.records():
                    request = ExportLogsServiceRequest.FromString(record.value or b"")
                    for resource in request.resource_logs:
                        for scope in resource.scope_logs:
                            found += [(resource.resource, each) for each in scope.log_records]
        reader.close()
        return found

    def bodies(self) -> list[str]:
        return [record.body.string_value for _, record in self.records()]

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Run a query on the hot tier over the log."""
        config = load(None, {"data": str(self.data)}, assignments=["lake.enabled=false"])
        disk = RealDisk(self.data)
        with Embedded.over(self.log, disk, config, clock=SystemClock()) as embedded:
            embedded.catch_up()
            rows: list[dict[str, Any]] = embedded.ask(query).to_pylist(maps_as_pydicts="strict")
            return rows


def open_log(folder: Path, config: LogConfig | None = None) -> Log:
    """Open the log of a data folder, with the topics of telemetry."""
    log = Log.open(
        RealDisk(folder / "data"), config or LogConfig(), clock=SystemClock(), rand=SystemRand()
    )
    for signal in Signal:
        log.create_topic(signal.topic, TopicConfig(awaits_lake=True))
    return log


@contextmanager
def opened_loading(
    folder: Path, ingest: IngestConfig | None = None, *rules: RedactRule
) -> Iterator[LogLoading]:
    with open_log(folder) as log:
        yield LogLoading(folder, log, ingest, *rules)
