"""The appender alone: tables filled from a Kafka, by a process that has no log of its own.

folder taken ─> tables taken over ─> rounds ... stop asked ─> round in hand finished ─> Spark ended

Any number of machines may run one for other tables. Of two on the same tables the later one goes
on, and the earlier one ends.
"""

from __future__ import annotations

import importlib.util
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import closing
from pathlib import Path

from frazil.config import Config
from frazil.disk import RealDisk
from frazil.errors import Fenced, Malformed, OutOfRange, Unavailable
from frazil.lake import Appended, KafkaSource, Lake
from frazil.log import LOCK_NAME
from frazil.model import Clock, Rand

logger = logging.getLogger(__name__)

LOOK_S = 0.2
"""How often to look whether it is time to end."""
HOPELESS = (Fenced, Malformed, OutOfRange)
"""Somebody has to decide something. Everything else is tried again."""


def run(
    config: Config, *, is_once: bool, tell: Callable[[Appended], None], clock: Clock, rand: Rand
) -> None:
    """Fill the tables until SIGTERM or SIGINT; with `is_once` all that is there now.

    Ends with an error when going on needs a decision, and with `is_once` on any error.
    """
    kafka = config.lake.kafka
    if kafka is None:
        raise Malformed("there is no Kafka to read from; name one with --kafka or lake.kafka")
    if importlib.util.find_spec("confluent_kafka") is None:
        raise Unavailable(
            "reading from Kafka needs confluent-kafka; install it with "
            "`pip install 'frazil[lake,kafka]'`"
        )
    stop = _stop_asked()
    disk = RealDisk(config.data)
    with (
        closing(disk.lock(LOCK_NAME, "frazil appender")),
        Lake.over(
            KafkaSource(kafka),
            Path(config.data),
            config.lake,
            clock=clock,
            rand=rand,
            is_steady=not is_once,
            tell=tell,
            hopeless=HOPELESS,
            has_last_round=False,  # what it would bring is safe where it is
            has_queries=False,
        ) as lake,
    ):
        if is_once:
            asked = lake.ask_flush()
            while not stop.is_set() and not wait([asked], LOOK_S).done:
                continue
            if not asked.done():
                raise Unavailable("stopped before everything was known to be in the tables")
            asked.result()
            return
        logger.info("the appender runs", extra={"kafka": kafka.brokers})
        while not stop.wait(LOOK_S):
            if lake.given_up is not None:
                raise lake.given_up
        logger.info("stopping")


def _stop_asked() -> threading.Event:
    """Set by the first SIGTERM or SIGINT. The second one ends the process where it stands."""
    stop = threading.Event()

    def ask(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask)
    return stop
