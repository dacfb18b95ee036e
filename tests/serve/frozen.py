"""A data folder whose log is partly in Iceberg tables: written in this process, without Spark."""

from __future__ import annotations

import random
from pathlib import Path

from pyiceberg.types import StringType

from frazil.disk import RealDisk
from frazil.lake import open_catalog
from frazil.log import Log
from frazil.settings import TopicConfig
from tests.lake.append.test_appender import CLOCK, ROWS, SMALL, World

ROUNDS = (40, 30, 20)
"""Requests of each commit."""
BEHIND = 7
"""Requests that no commit has."""
LOGS = ROWS * sum(ROUNDS)
"""Rows of the table."""
COLUMN = "team"
"""Column added before the last commit."""


def freeze(folder: Path) -> None:
    """Some commits of logs and spans, a column added in between, and requests that are
    in the log only."""
    with Log.open(RealDisk(folder), clock=CLOCK, rand=random.SystemRandom()) as log:
        for topic in ("otlp_logs", "otlp_spans"):
            log.create_topic(topic, TopicConfig(awaits_lake=True))
        catalog = open_catalog(SMALL, folder)
        try:
            world = World(log=log, folder=folder, catalog=catalog)
            appender = world.open()
            for count in ROUNDS[:-1]:
                world.add(count)
                appender.append()
            with catalog.load_table("frazil.logs").update_schema() as update:
                update.add_column(COLUMN, StringType(), doc="whose it is")
            world.add(ROUNDS[-1])
            appender.append()
            world.add(BEHIND)
        finally:
            catalog.close()
