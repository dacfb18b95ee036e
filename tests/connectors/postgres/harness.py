"""Runs a source over a real log, as the runtime of connectors does: every batch is a step."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frazil.connectors import ConnectorContext, KnownPosition, SourceBatch
from frazil.connectors.postgres.connector_type import open_source
from frazil.connectors.postgres.options import PostgresOptions
from frazil.disk import RealDisk
from frazil.errors import Unavailable
from frazil.log import (
    AppendResult,
    Log,
    Record,
    SourceStep,
    append_of_records,
)
from frazil.model import SystemClock, SystemRand

NAME = "pg"
IN_FLIGHT_MAX = 64
SETTLE_S_MAX = 60
LAST = 20


def open_log(folder: Path) -> Log:
    return Log.open(RealDisk(folder), clock=SystemClock(), rand=SystemRand())


class SourceRun:
    """A source that is open, and what it has in flight."""

    def __init__(
        self,
        log: Log,
        connection: Mapping[str, str],
        options: PostgresOptions,
        *,
        epoch: int = 1,
        topic: str = "{schema}.{table}",
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._known: dict[tuple[str, str], bytes] = {}
        known = []
        prefix = f"connect/{NAME}/"
        for found in log.topics():
            for source, at in list(found.partitions[0].sources.positions.items()):
                if source.startswith(prefix) and at.position is not None:
                    stream = source.removeprefix(prefix)
                    known.append(
                        KnownPosition(
                            topic=found.name, partition=0, stream=stream, position=at.position
                        )
                    )
                    self._known[found.name, stream] = at.position
        context = ConnectorContext(
            name=NAME, topic=topic, connection=connection, clock=SystemClock()
        )
        self.source = open_source(options, context)
        self._flying: deque[tuple[SourceBatch, Future[AppendResult]]] = deque()
        self.records = 0
        try:
            self.source.open(known)
        except BaseException:
            self.source.close()
            raise

    def step(self, timeout_s: float = 0.05) -> int:
        """Poll once, append, commit what is durable. Returns the number of records."""
        count = 0
        for batch in self.source.poll(timeout_s):
            self._append(batch)
            count += len(batch.records)
        while self._flying and (self._flying[0][1].done() or len(self._flying) > IN_FLIGHT_MAX):
            self._settle()
        self.records += count
        return count

    def _append(self, batch: SourceBatch) -> None:
        if not self._log.has_topic(batch.topic):
            self._log.create_topic(batch.topic)
        place = (batch.topic, batch.stream)
        step = SourceStep(
            f"connect/{NAME}/{batch.stream}", self._epoch, self._known.get(place), batch.position
        )
        append = append_of_records(batch.records, step=step)
        self._flying.append((batch, self._log.append(batch.topic, append)))
        self._known[place] = batch.position

    def _settle(self) -> None:
        batch, future = self._flying.popleft()
        assert not future.result().is_duplicate
        self.source.commit(batch.stream, batch.position)

    def run_until(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SETTLE_S_MAX
        while not is_done():
            self.step()
            assert time.monotonic() < deadline, "the source does not come to an end"

    def close(self) -> None:
        self.source.close()
        while self._flying:
            self._flying.popleft()[1].result()


@contextmanager
def running(
    log: Log,
    connection: Mapping[str, str],
    *,
    epoch: int = 1,
    topic: str = "{schema}.{table}",
    **options: Any,
) -> Iterator[SourceRun]:
    run = SourceRun(log, connection, PostgresOptions(**options), epoch=epoch, topic=topic)
    try:
        yield run
    finally:
        run.close()


def opened_again(
    log: Log, connection: Mapping[str, str], options: PostgresOptions, epoch: int
) -> SourceRun:
    """Open a source as the runtime does: again, while the server is not there yet."""
    deadline = time.monotonic() + SETTLE_S_MAX
    while True:
        try:
            return SourceRun(log, connection, options, epoch=epoch)
        except Unavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def count_of(log: Log, topic: str) -> int:
    """Return how many records of a topic are durable."""
    return log.partition(topic, 0).durable_watermark if log.has_topic(topic) else 0


def last_records(log: Log, topic: str) -> list[Record]:
    """Return the last few records of a topic."""
    return records_of(log, topic, max(0, count_of(log, topic) - LAST))


def records_of(log: Log, topic: str, start: int = 0) -> list[Record]:
    """Return the records of a topic, from the batch on that has offset `start`."""
    if not log.has_topic(topic):
        return []
    reader = log.reader(topic, start)
    records: list[Record] = []
    while batches := reader.read():
        records += [record for batch in batches for record in batch.records()]
    return records


def events_of(log: Log, topic: str) -> list[dict[str, Any]]:
    """Return the change events of a topic, with `key` beside; None stands for a tombstone."""
    return [
        {"key": record.key and json.loads(record.key), **json.loads(record.value)}
        for record in records_of(log, topic)
        if record.value is not None
    ]


def fold(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the rows that events lead to, by key. A create of a row that is there, or a change of
    one that is not, is an error of the source."""
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        op, key = event["op"], json.dumps(event["key"])
        if op == "t":
            rows.clear()
        elif op == "d":
            assert rows.pop(key, None) is not None, f"delete of no row: {event}"
        elif op in ("c", "r"):
            assert key not in rows, f"a row twice: {event}"
            rows[key] = event["after"]
        elif op == "u":
            assert key in rows, f"update of no row: {event}"
            unchanged = event.get("unchanged", ())
            kept = {name: rows[key][name] for name in unchanged}
            rows[key] = event["after"] | kept
    return rows
