"""`frazil appender` filling keyed tables from a real Kafka, killed with SIGKILL at random moments.

Producers commit and abort changes all the time. Between lives the local tables are sometimes
removed, another folder takes over, or Kafka forgets what the lake has. After each life every table
must be the fold of what was committed below its offsets, as PyIceberg and Spark read it, and each
record that does not fit a dead letter, once.
"""

from __future__ import annotations

import queue
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import TopicPartition
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from frazil.lake.catalog.catalog import open_catalog, spark_settings
from frazil.lake.spark.session import Session
from frazil.model import MiB
from frazil.settings import LakeConfig
from tests.lake.keyed.engines import with_spark
from tests.live.kafka.broker import ASK_SECONDS_MAX, KafkaBroker
from tests.live.kafka.keyed import PARTITIONS, Changes, changing, check, offsets_of, write_tables
from tests.live.kafka.test_lake import AppenderProcess
from tests.torture.report import Report

MUST_FIRE = ("killed_early", "killed_later", "forgot", "removed", "moved", "aborted", "whole")
LIFE_S_MAX = 6.0
LINES_MAX = 12
SMALL = ["--set", "tables.seal_bytes=20000", "--set", "tables.checkpoint_bytes=60000"]


def run(cycles: int, seed: int) -> Report:
    """Run this many lives on one broker and one set of tables."""
    report = Report("kafka_tables", seed, must_fire=MUST_FIRE)
    rand = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="frazil-kafka-tables-") as scratch:
        folder = Path(scratch)
        config = LakeConfig(
            catalog={"uri": f"sqlite:///{folder / 'catalog.db'}"},
            warehouse=str(folder / "warehouse"),
            driver_memory_bytes=512 * MiB,
        )
        with (
            KafkaBroker(folder / "broker") as broker,
            closing(open_catalog(config, folder)) as catalog,
            closing(Session(config, spark_settings(config, folder))) as session,
        ):
            for topic, partitions in PARTITIONS.items():
                broker.create_topic(topic, partitions)
            changes = Changes(broker, random.Random(seed), "torture")
            _run(cycles, rand, report, folder, broker, catalog, session.spark(), changes)
            report.faults["aborted"] += changes.aborted_count
    return report


def _run(
    cycles: int,
    rand: random.Random,
    report: Report,
    folder: Path,
    broker: KafkaBroker,
    catalog: Catalog,
    spark: SparkSession,
    changes: Changes,
) -> None:
    tables = ["--tables", str(write_tables(folder / "definitions")), *SMALL]
    data = folder / "a"
    for number in range(1, cycles + 1):
        begun = time.monotonic()
        is_last = number == cycles
        if not is_last:
            with changing(changes), AppenderProcess(data, broker, *tables) as appender:
                lines = _live(appender, rand)
                code = appender.signal(signal.SIGKILL)
                if code != -signal.SIGKILL:
                    report.verdict.add("untrue", f"life {number} ended: {appender.errors()}")
            report.faults["killed_later" if lines else "killed_early"] += 1
        if is_last or rand.random() < 0.1:
            _fill(broker, data, tables, report, number)
            _judge(catalog, spark, changes, report, number, is_whole=True)
            report.faults["whole"] += 1
        else:
            _judge(catalog, spark, changes, report, number, is_whole=False)
        data = _disturb(rand, report, folder, data, broker, catalog)
        report.cycles += 1
        print(f"life {number}: {time.monotonic() - begun:.1f} s", file=sys.stderr)


def _live(appender: AppenderProcess, rand: random.Random) -> int:
    """Wait for some commits, or for a moment. Returns how many there were."""
    count = 0
    if rand.random() < 0.3:
        time.sleep(rand.uniform(0.5, LIFE_S_MAX))
        return 0
    for _ in range(rand.randint(1, LINES_MAX)):
        appender.line()
        count += 1
    time.sleep(rand.uniform(0, 0.4))
    return count


def _fill(broker: KafkaBroker, data: Path, tables: list[str], report: Report, number: int) -> None:
    for topic, partitions in PARTITIONS.items():
        broker.wait_until_decided(topic, partitions)
    with AppenderProcess(data, broker, *tables, "--once") as appender:
        try:
            code = appender.wait()
        except queue.Empty:
            code = -1
        if code != 0:
            report.verdict.add("untrue", f"life {number} was not whole: {appender.errors()}")


def _judge(
    catalog: Catalog,
    spark: SparkSession,
    changes: Changes,
    report: Report,
    number: int,
    *,
    is_whole: bool,
) -> None:
    try:
        for topic, rows in check(catalog, changes, is_whole=is_whole).items():
            if with_spark(spark, f"frazil.frazil.{topic}") != rows:
                report.verdict.add("untrue", f"life {number}: Spark reads other rows of {topic}")
    except AssertionError as error:
        report.verdict.add("untrue", f"life {number}: {str(error)[:500]}")


def _disturb(
    rand: random.Random,
    report: Report,
    folder: Path,
    data: Path,
    broker: KafkaBroker,
    catalog: Catalog,
) -> Path:
    """Maybe lose something before the next life. Returns its folder."""
    chance = rand.random()
    if chance < 0.2 and (data / "tables").exists():
        shutil.rmtree(data / "tables")
        report.faults["removed"] += 1
    elif chance < 0.35:
        report.faults["moved"] += 1
        return folder / ("b" if data.name == "a" else "a")
    elif chance < 0.55:
        for topic in PARTITIONS:
            if catalog.table_exists(f"frazil.{topic}"):
                offsets = offsets_of(catalog.load_table(f"frazil.{topic}"), topic)
                _forget(broker, topic, offsets)
                report.faults["forgot"] += 1
    return data


def _forget(broker: KafkaBroker, topic: str, offsets: dict[int, int]) -> None:
    """Delete the records that the lake has, as retention does."""
    admin = broker.admin()
    positions = [TopicPartition(topic, number, end) for number, end in offsets.items()]
    for future in admin.delete_records(positions).values():
        future.result(ASK_SECONDS_MAX)
