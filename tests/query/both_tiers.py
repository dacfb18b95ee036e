"""A log, its hot tier, its tables and an engine over both, without Spark and without threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from pyiceberg.catalog import Catalog

from frazil.disk import RealDisk
from frazil.hot import HotTier
from frazil.lake import Appender, LakeView
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog
from frazil.log import Log, Record, append_of_records
from frazil.model import NO_PROMOTIONS, Promotions, SystemClock
from frazil.model.arrow import decode, tables_with
from frazil.query import Engine
from frazil.settings import HotConfig, LakeConfig, QueryConfig, TopicConfig
from tests.conformance.cases import NOW_NS, logs, span, spans
from tests.conformance.cases import log as log_record
from tests.lake.inline_tasks import run_inline

CLOCK = SystemClock()
CONFIG = LakeConfig(slice_bytes=20_000)
ROWS = 3
"""Rows per request."""


@dataclass(slots=True)
class World:
    """Both tiers over one log. The test advances each of them."""

    log: Log
    folder: Path
    tier: HotTier
    catalog: Catalog
    view: LakeView
    engine: Engine
    appender: Appender
    counts: dict[str, int] = field(default_factory=lambda: {"logs": 0, "spans": 0, "bad": 0})

    def add(self, count: int = 1) -> None:
        """Requests of log records, and as many of spans."""
        for _ in range(count):
            number = self.counts["logs"]
            named = [log_record(number, event_name=f"{number}-{row}") for row in range(ROWS)]
            self.put("otlp_logs", logs(*named))
            self.put("otlp_spans", spans(*(span(number) for _ in range(ROWS))))
            self.counts["logs"] += ROWS
            self.counts["spans"] += ROWS

    def add_logs(self, *attributes: dict[str, Any]) -> None:
        """One request of log records with these attributes; those of resource and scope come from
        the first."""
        request = ExportLogsServiceRequest()
        resource_logs = request.resource_logs.add()
        scope_logs = resource_logs.scope_logs.add()
        for number, values in enumerate(attributes):
            record = scope_logs.log_records.add(time_unix_nano=NOW_NS + number)
            for key, value in values.items():
                field = {bool: "bool", int: "int", float: "double", str: "string"}[type(value)]
                of, _, rest = key.partition(":")
                owners: dict[str, Any] = {
                    "resource": resource_logs.resource,
                    "scope": scope_logs.scope,
                }
                entry = owners.get(of, record).attributes.add(key=rest or key)
                setattr(entry.value, f"{field}_value", value)
        self.put("otlp_logs", request.SerializeToString())
        self.counts["logs"] += len(attributes)

    def add_bad(self) -> None:
        """A request in which one record can never be a row."""
        self.put("otlp_logs", logs(log_record(0), log_record(0, trace_id=b"short")))
        self.counts["logs"] += 1
        self.counts["bad"] += 1

    def put(self, topic: str, body: bytes) -> None:
        record = Record(offset=0, timestamp_ms=CLOCK.wall_ms(), key=None, value=body)
        self.log.append(topic, append_of_records([record])).result()

    def show(self) -> None:
        """The hot tier shows all that the log has."""
        while self.tier.step():
            pass

    def seal(self) -> None:
        self.tier.freeze()
        self.tier.seal()

    def flush(self) -> None:
        """The lake holds all that the log has, and queries see that."""
        while self.appender.append():
            pass
        self.view.refresh()

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        return self.engine.sql(text).fetchall()


@contextmanager
def both_tiers(
    folder: Path,
    hot: HotConfig | None = None,
    promotions: Promotions = NO_PROMOTIONS,
    topics: tuple[str, ...] = ("otlp_logs", "otlp_spans"),
) -> Iterator[World]:
    with ExitStack() as stack:
        disk = RealDisk(folder)
        log = stack.enter_context(Log.open(disk, clock=CLOCK, rand=random.SystemRandom()))
        for topic in topics:
            if topic not in {each.name for each in log.topics()}:
                log.create_topic(topic, TopicConfig(awaits_lake=True))
        schemas = tables_with(promotions)
        view = LakeView(CONFIG, folder, promotions)
        stack.callback(view.close)
        tier = HotTier(
            disk,
            log,
            hot or HotConfig(),
            decode=partial(decode, promotions=promotions),
            schemas=schemas,
            clock=CLOCK,
            lake_watermark=view.held,
        )
        stack.callback(tier.close)
        engine = Engine.open(tier.visible_pieces, schemas, QueryConfig(), CLOCK, view)
        stack.enter_context(engine)
        catalog = open_catalog(CONFIG, folder)
        stack.callback(catalog.close)
        appender = Appender.open(
            LogSource(log, folder),
            catalog,
            CONFIG,
            run=run_inline,
            clock=CLOCK,
            rand=random.SystemRandom(),
            promotions=promotions,
        )
        yield World(
            log=log,
            folder=folder,
            tier=tier,
            catalog=catalog,
            view=view,
            engine=engine,
            appender=appender,
        )
