"""Streams on live telemetry, killed and started again, end with what a query over the table gives.

    python -m tests.live.test_spark_streams KILLS

kills the jobs that often, and at moments that nobody chose, instead of twice as the test does.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import frazil
from tests.clients.node import Node
from tests.conformance.cases import NOW_NS, log, span
from tests.conformance.clients import PROTOBUF, send_http

MINUTE_NS = 60 * 10**9
WAIT_S = 600
"""How long a job may take to get anywhere, on a machine that is busy otherwise."""
COUNT = 100
"""Requests of each kind: half an hour of telemetry."""
SETTINGS = "[log]\nsegment_bytes_max = 65536\n[hot]\nenabled = false\n[lake]\nenabled = false\n"
ENDED = "(SELECT max(time) FROM logs) - INTERVAL '10 minutes'"
WINDOWS = f"""
    SELECT * FROM (
        SELECT date_trunc('minute', time) AS minute, service_name, severity_number, count(*)
        FROM logs GROUP BY 1, 2, 3
    ) WHERE minute + INTERVAL '1 minute' <= {ENDED}
"""
JOINED = """
    SELECT s.time, s.trace_id, s.span_id, s.name, l.time, l.service_name, l.severity_number, l.body,
        l._log_partition, l._offset, l._row
    FROM spans s JOIN logs l ON s.trace_id = l.trace_id
    WHERE l.time BETWEEN s.time - INTERVAL '1 minute' AND s.time + INTERVAL '5 minutes'
"""


def request_of_logs(number: int) -> bytes:
    """Three log records of one service, a third of a minute behind those of the last request."""
    request = ExportLogsServiceRequest()
    part = request.resource_logs.add()
    part.resource.attributes.add(key="service.name").value.string_value = f"shop-{number % 2}"
    records = part.scope_logs.add().log_records
    for row in range(3):
        made = log(number, severity_number=9 + 8 * (row % 2), trace_id=trace_id(number + row))
        made.time_unix_nano = NOW_NS + number * MINUTE_NS // 3 - row * 10**9
        records.append(made)
    return request.SerializeToString()


def request_of_spans(number: int) -> bytes:
    """One span that meets log records, and one of a trace that was long ago."""
    request = ExportTraceServiceRequest()
    made = request.resource_spans.add().scope_spans.add().spans
    for of in (number, number - 45):
        each = span(number, trace_id=trace_id(of), span_id=(number + 1).to_bytes(8, "big"))
        each.start_time_unix_nano = NOW_NS + number * MINUTE_NS // 3
        made.append(each)
    return request.SerializeToString()


def trace_id(number: int) -> bytes:
    return (10**6 + number).to_bytes(16, "big")


class Feeder:
    """Sends telemetry to a node, a request of each kind at a time, up to `count_max` of them."""

    def __init__(self, node: Node, count_max: int) -> None:
        self._node = node
        self._count_max = count_max
        self._is_enough = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.count = 0

    def send(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            for path, body in (
                ("/v1/logs", request_of_logs(number)),
                ("/v1/traces", request_of_spans(number)),
            ):
                answer = send_http(self._node.http_port, path, body, {"Content-Type": PROTOBUF})
                assert answer.status == 200
        self.count += count

    def _work(self) -> None:
        while self.count < self._count_max and not self._is_enough.wait(0.1):
            self.send(1)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_enough.set()
        self._thread.join()


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """The jobs, as a group of processes; all of it is killed in the end."""
    with (folder / "jobs.stderr").open("ab") as errors:
        jobs = subprocess.Popen(
            [sys.executable, "-m", "tests.live.spark_jobs", str(folder), *options],
            stdin=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield jobs
    finally:
        os.killpg(jobs.pid, signal.SIGKILL)
        jobs.wait()


def wait_until(is_so: Callable[[], bool], jobs: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        said = (folder / "jobs.stderr").read_text(errors="replace")[-4000:]
        assert jobs.poll() is None, f"the jobs ended: {said}"
        assert time.monotonic() < deadline, f"the jobs got nowhere: {said}"
        time.sleep(0.01)


def batches(folder: Path, job: str, what: str) -> set[int]:
    """The numbers of the batches that a job has begun (`offsets`) or ended (`commits`)."""
    names = [path.name for path in (folder / f"{job}.ckpt" / what).glob("[0-9]*")]
    return {int(name) for name in names if name.isdecimal()}


def written(folder: Path, job: str) -> Counter[tuple[object, ...]]:
    """What a job has written, as any reader of Parquet finds it."""
    rows: Counter[tuple[object, ...]] = Counter()
    for path in sorted((folder / job).glob("batch=*/*.parquet")):
        rows += plain(pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read())
    return rows


def asked(folder: Path, text: str) -> Counter[tuple[object, ...]]:
    with frazil.open(folder / "data") as opened:
        return plain(opened.sql(text).arrow())


def plain(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Rows, whichever type a program gives its times: here they are microseconds."""
    columns = [
        column.cast(pa.timestamp("us")).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def check(folder: Path) -> None:
    """No more, and no less."""
    windows, joined = asked(folder, WINDOWS), asked(folder, JOINED)
    assert len(windows) > 20
    assert len(joined) > 20
    assert written(folder, "windows") == windows
    assert written(folder, "join") == joined


def drain(folder: Path) -> None:
    with running(folder, "--drain") as jobs:
        assert jobs.wait(WAIT_S) == 0, (folder / "jobs.stderr").read_text(errors="replace")[-4000:]


def open_node(folder: Path) -> Node:
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    return Node(folder / "data", "--config", str(settings))


def test_killed_jobs_end_with_what_a_query_gives(tmp_path: Path) -> None:
    """Once in a batch that was begun and not ended, and once behind one that was; then drained."""
    with open_node(tmp_path) as node:
        feeder = Feeder(node, COUNT)
        feeder.send(40)
        with feeder:
            with running(tmp_path) as jobs:
                wait_until(lambda: 1 in batches(tmp_path, "windows", "offsets"), jobs, tmp_path)
            before = batches(tmp_path, "join", "commits")
            with running(tmp_path) as jobs:
                wait_until(
                    lambda: len(batches(tmp_path, "join", "commits") - before) > 1, jobs, tmp_path
                )
        feeder.send(COUNT - feeder.count)
        drain(tmp_path)
        assert node.stop() == 0
    check(tmp_path)


def torture(kills: int) -> None:
    """The same, with as many kills as one likes."""
    rand = random.SystemRandom()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with open_node(folder) as node:
            feeder = Feeder(node, COUNT * (1 + kills // 2))
            feeder.send(40)
            with feeder:
                for _ in range(kills):
                    with running(folder):
                        time.sleep(rand.uniform(5, 25))
            drain(folder)
            assert node.stop() == 0
        check(folder)
        sys.stdout.write(f"{kills} kills, {feeder.count} requests of each kind: equal\n")


if __name__ == "__main__":
    torture(int(sys.argv[1]))
