"""A connector under a supervisor, over a log of the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from frazil.connectors import OptionValue
from frazil.connectors.messages import Role
from frazil.connectors.runtime.connector_state import ConnectorStates
from frazil.connectors.runtime.supervisor import (
    ConnectorSpec,
    ConnectorSupervisor,
    ConnectorSurroundings,
)
from frazil.disk import RealDisk
from frazil.log import Log, Record
from frazil.model import MiB, SystemClock, SystemRand
from frazil.settings import ConnectorsConfig

TOPIC = "t"
CONFIG = ConnectorsConfig(backoff_ms=20, backoff_ms_max=50, silence_ms_max=2000)
WAIT_S = 60
"""For a machine that is busy; nothing here takes a tenth of it."""


@contextmanager
def opened_log(folder: Path) -> Iterator[Log]:
    log = Log.open(RealDisk(str(folder)), clock=SystemClock(), rand=SystemRand())
    try:
        yield log
    finally:
        log.close()


@contextmanager
def supervised(
    log: Log,
    folder: Path,
    type_name: str,
    options: Mapping[str, OptionValue],
    *,
    role: Role = "source",
    name: str = "c",
    topic: str = TOPIC,
    config: ConnectorsConfig = CONFIG,
    connection: Mapping[str, str] | None = None,
    roots: tuple[str, ...] = (),
    states: ConnectorStates | None = None,
) -> Iterator[ConnectorSupervisor]:
    disk = RealDisk(str(folder))
    around = ConnectorSurroundings(
        log=log,
        disk=disk,
        clock=SystemClock(),
        config=config,
        states=states or ConnectorStates(disk),
        connection_of=lambda _: connection or {},
        roots=roots,
        batch_bytes_max=16 * MiB,
    )
    spec = ConnectorSpec(
        role=role,
        name=name,
        type=type_name,
        topic=topic,
        connection_name="c" if connection else "",
        options=options,
    )
    supervisor = ConnectorSupervisor(spec, around)
    supervisor.start()
    try:
        yield supervisor
    finally:
        supervisor.close()


def until(condition: Callable[[], bool], what: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen: {what()}"
        time.sleep(0.01)


def records_of(log: Log, topic: str = TOPIC, partition: int = 0) -> list[Record]:
    """Return what a topic has."""
    if not log.has_topic(topic):
        return []
    reader = log.reader(topic, "earliest", partition=partition)
    found: list[Record] = []
    while batches := reader.read():
        for batch in batches:
            found += batch.records()
    reader.close()
    return found
