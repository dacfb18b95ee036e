"""`frazil appender` as a separate process, from topics of a real Kafka into keyed tables.

PyIceberg reads the tables; they are compared with a dictionary. `make torture KIND=kafka_tables` is
the long version, which reads them with Spark, too.
"""

from __future__ import annotations

import random
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from frazil.lake.catalog.catalog import open_catalog
from frazil.settings import LakeConfig
from tests.live.kafka.broker import KafkaBroker
from tests.live.kafka.keyed import PARTITIONS, Changes, check, write_tables
from tests.live.kafka.test_lake import AppenderProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker") as made:
        yield made


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    config = LakeConfig(
        catalog={"uri": f"sqlite:///{tmp_path / 'catalog.db'}"},
        warehouse=str(tmp_path / "warehouse"),
    )
    opened = open_catalog(config, tmp_path)
    yield opened
    opened.close()


@contextmanager
def changing(changes: Changes) -> Iterator[None]:
    """Send changes in a thread during the block."""
    is_done = threading.Event()

    def produce() -> None:
        while not is_done.wait(0.02):
            changes.send()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def test_tables_are_the_fold_of_what_was_committed(
    broker: KafkaBroker, tmp_path: Path, catalog: Catalog
) -> None:
    """After kills under load, with the local files and without them; dead letters once."""
    for topic, partitions in PARTITIONS.items():
        broker.create_topic(topic, partitions)
    changes = Changes(broker, random.Random(4), "keyed")
    tables = ["--tables", str(write_tables(tmp_path / "definitions"))]
    for _ in range(5):
        changes.send()
    with changing(changes):
        for _ in range(2):
            with AppenderProcess(tmp_path / "a", broker, *tables) as appender:
                for _ in range(3):
                    assert appender.line()["table"] in PARTITIONS
                assert appender.signal(signal.SIGKILL) == -signal.SIGKILL
    check(catalog, changes)
    shutil.rmtree(tmp_path / "a" / "tables")
    for topic, partitions in PARTITIONS.items():
        broker.wait_until_decided(topic, partitions)
    with AppenderProcess(tmp_path / "a", broker, *tables, "--once") as appender:
        assert appender.wait() == 0, appender.errors()
    assert "keyed table made from the lake" in appender.errors()
    assert changes.aborted_count
    check(catalog, changes, is_whole=True)
    count = len(catalog.load_table("frazil.orders").metadata.snapshots)
    with AppenderProcess(tmp_path / "a", broker, *tables, "--once") as appender:
        assert appender.wait() == 0, appender.errors()
    assert len(catalog.load_table("frazil.orders").metadata.snapshots) == count
