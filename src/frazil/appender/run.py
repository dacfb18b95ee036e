"""Opens the lake over a Kafka, and fills its tables until a signal.

lock folder ─> take over tables ─> rounds ... stop signal ─> finish current round ─> stop Spark

Any number of machines may run one for different tables. If two fill the same tables, the one that
started later continues and the other ends with `Fenced`.
"""

from __future__ import annotations

import importlib.util
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.config import Config
from frazil.disk import Disk, RealDisk
from frazil.errors import Fenced, Malformed, OutOfRange, Unavailable
from frazil.lake import Appended, KafkaChanges, KafkaSource, Lake
from frazil.log import LOCK_NAME
from frazil.model import Clock, Rand
from frazil.settings import KafkaConfig, retention_rules

if TYPE_CHECKING:
    from frazil.appender.kafka_tables import KafkaTables

logger = logging.getLogger(__name__)

CHECK_S = 0.2
"""How often to check for a stop signal."""
FATAL_ERRORS = (Fenced, Malformed, OutOfRange)
"""Errors that need a decision of an operator. All others are retried."""


def run(
    config: Config,
    *,
    is_once: bool,
    on_commit: Callable[[Appended], None],
    clock: Clock,
    rand: Rand,
) -> None:
    """Fill the tables until SIGTERM or SIGINT; with `is_once`, only with what is durable now.

    Raises an error of `FATAL_ERRORS`, and with `is_once` any error.
    """
    kafka = config.lake.kafka
    if kafka is None:
        raise Malformed("no Kafka is configured; set --kafka or lake.kafka")
    if importlib.util.find_spec("confluent_kafka") is None:
        raise Unavailable(
            "reading from Kafka needs confluent-kafka; install it with "
            "`pip install 'frazil[lake,kafka]'`"
        )
    if kafka.tables is not None and (Path(config.data) / "log").is_dir():
        raise Malformed(
            f"{config.data} is the data folder of a node, which has keyed tables of its own; name "
            "another one with --data"
        )
    stop = _stop_event()
    disk = RealDisk(config.data)
    with ExitStack() as stack:
        stack.enter_context(closing(disk.lock(LOCK_NAME, "frazil appender")))
        lake = Lake(
            KafkaSource(kafka),
            Path(config.data),
            config.lake,
            clock=clock,
            rand=rand,
            auto_flush=not is_once,
            rules=retention_rules(config.retention),
            promotions=config.promotions,
            on_commit=on_commit,
            fatal_errors=FATAL_ERRORS,
            flush_at_close=False,  # Kafka keeps what is not committed yet
            has_queries=False,
        )
        if kafka.tables is not None:
            stack.enter_context(closing(_keyed_tables(lake, disk, config, kafka, clock, rand)))
        stack.enter_context(lake.start())
        if is_once:
            flush = lake.submit_flush()
            while not stop.is_set() and not wait([flush], CHECK_S).done:
                continue
            if not flush.done():
                raise Unavailable("stopped before all records were committed to the tables")
            flush.result()
            return
        logger.info("appender started", extra={"kafka": kafka.brokers})
        while not stop.wait(CHECK_S):
            if lake.given_up is not None:
                raise lake.given_up
        logger.info("stopping")


def _keyed_tables(
    lake: Lake, disk: Disk, config: Config, kafka: KafkaConfig, clock: Clock, rand: Rand
) -> KafkaTables:
    """Have the lake freeze the keyed tables of `lake.kafka.tables`, too."""
    # SQL and file formats take a second to load, and only these tables need them.
    from frazil.appender.definitions import read_tables
    from frazil.appender.kafka_tables import KafkaTables

    statements = read_tables(kafka)
    names = {statement.topic: statement.name for statement in statements}
    source = KafkaChanges(kafka, names)
    tables = KafkaTables(statements, source, lake, disk, config.tables, clock=clock, rand=rand)
    lake.freeze_from(tables, is_fatal=True)
    return tables


def _stop_event() -> threading.Event:
    """Return an event set by the first SIGTERM or SIGINT. A second signal kills the process."""
    stop = threading.Event()

    def handle(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stop
