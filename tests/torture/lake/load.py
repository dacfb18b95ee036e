"""Requests derived from their number, and a ledger of acknowledged requests.

The ledger is a file outside the data folder. A line is written once the log has acknowledged a
request, so every request in it must reach the tables, even if the process is killed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from frazil.log import Log, Record, append_of_records
from tests.conformance.cases import NOW_NS, log, logs, metric, metrics, span, spans
from tests.model.arrow.requests import POOL_SIZE_SMALL, Writer

DAY_NS = 86_400 * 10**9
NOW_MS = NOW_NS // 10**6
ROWS = 3
"""Rows per valid request."""
SIGNALS = {"otlp_logs": "logs", "otlp_spans": "traces", "otlp_metrics": "metrics"}
PARTITIONS = {"otlp_logs": 2, "otlp_spans": 1, "otlp_metrics": 1}
TOPIC_PARTITIONS = [(topic, index) for topic, count in PARTITIONS.items() for index in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A request that the log has acknowledged."""

    topic: str
    partition: int
    offset: int
    number: int


def partition_of(number: int) -> tuple[str, int]:
    return TOPIC_PARTITIONS[number % len(TOPIC_PARTITIONS)]


def body_of(number: int) -> bytes:
    """Return the body of a request: mostly valid, over two days; some random, some malformed."""
    topic, _ = partition_of(number)
    rand = Random(number)
    chance = rand.random()
    if chance < 0.1:
        return Writer(rand, wildness=0.2, badness=0.1, pool_size=POOL_SIZE_SMALL).request(
            SIGNALS[topic]
        )
    if chance < 0.14:
        return b"\xff no request" + bytes(number % 7)
    time_ns = NOW_NS + (number % 2) * DAY_NS
    names = [f"{number}-{row}" for row in range(ROWS)]
    if topic == "otlp_logs":
        made = [log(number, event_name=name, time_unix_nano=time_ns) for name in names]
        if chance < 0.2:
            made[1].trace_id = b"short"
        return logs(*made)
    if topic == "otlp_spans":
        return spans(*(span(number, name=name, end_time_unix_nano=time_ns) for name in names))
    gauges = [metric(number) for _ in names]
    for gauge, name in zip(gauges, names, strict=True):
        gauge.name = name
        gauge.gauge.data_points.add(as_int=number, time_unix_nano=time_ns)
    return metrics(*gauges)


def append(log: Log, number: int, ledger: int) -> None:
    """Append a request, and add it to the ledger once it is durable."""
    topic, partition = partition_of(number)
    record = Record(
        offset=0, timestamp_ms=NOW_MS + number, key=b"%d" % number, value=body_of(number)
    )
    done = log.append(topic, append_of_records([record]), partition=partition).result()
    line = json.dumps([topic, partition, done.base_offset, number])
    os.write(ledger, line.encode() + b"\n")


def acknowledged(ledger: Path) -> Iterator[Acknowledged]:
    for line in ledger.read_bytes().splitlines():
        topic, partition, offset, number = json.loads(line)
        yield Acknowledged(topic=topic, partition=partition, offset=offset, number=number)
