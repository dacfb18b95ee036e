"""Spark streams on live telemetry, killed and restarted, produce what a query over the table gives.

    python -m tests.live.spark.test_streams KILLS

kills the jobs that many times at random moments. The test kills them once.
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
from collections.abc import Iterator
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
"""How long a job may take to make progress, on a busy machine."""
COUNT = 100
"""Requests of each signal: half an hour of telemetry."""
SETTINGS = "[log]\nsegment_bytes_max = 65536\n[hot]\nenabled = false\n[lake]\nenabled = false\n"
WATERMARK = "(SELECT max(time) FROM logs) - INTERVAL '10 minutes'"
WINDOWS = f"""
    SELECT * FROM (
        SELECT date_trunc('minute', time) AS minute, service_name, severity_number, count(*)
        FROM logs GROUP BY 1, 2, 3
    ) WHERE minute + INTERVAL '1 minute' <= {WATERMARK}
"""
JOINED = """
    SELECT s.time, s.trace_id, s.span_id, s.name, l.time, l.service_name, l.severity_number, l.body,
        l._log_partition, l._offset, l._row
    FROM spans s JOIN logs l ON s.trace_id = l.trace_id
    WHERE l.time BETWEEN s.time - INTERVAL '1 minute' AND s.time + INTERVAL '5 minutes'
"""


def logs_request(number: int) -> bytes:
    """Return three log records of one service, 20 seconds after those of the previous request."""
    request = ExportLogsServiceRequest()
    part = request.resource_logs.add()
    part.resource.attributes.add(key="service.name").value.string_value = f"shop-{number % 2}"
    records = part.scope_logs.add().log_records
    for row in range(3):
        record = log(number, severity_number=9 + 8 * (row % 2), trace_id=trace_id(number + row))
        record.time_unix_nano = NOW_NS + number * MINUTE_NS // 3 - row * 10**9
        records.append(record)
    return request.SerializeToString()


def spans_request(number: int) -> bytes:
    """Return a span that joins with log records, and one of a much older trace."""
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for trace in (number, number - 45):
        added = span(number, trace_id=trace_id(trace), span_id=(number + 1).to_bytes(8, "big"))
        added.start_time_unix_nano = NOW_NS + number * MINUTE_NS // 3
        spans.append(added)
    return request.SerializeToString()


def trace_id(number: int) -> bytes:
    return (10**6 + number).to_bytes(16, "big")


class Feeder:
    """Sends requests of logs and spans to a node in a thread, up to `count_max` of each."""

    def __init__(self, node: Node, count_max: int) -> None:
        self._node = node
        self._count_max = count_max
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def send(self, count: int) -> None:
        for number in range(self.count, self.count + count):
            for path, body in (
                ("/v1/logs", logs_request(number)),
                ("/v1/traces", spans_request(number)),
            ):
                response = send_http(self._node.http_port, path, body, {"Content-Type": PROTOBUF})
                assert response.status == 200
        self.count += count

    def _run(self) -> None:
        while self.count < self._count_max and not self._stop.wait(0.1):
            self.send(1)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the jobs as a process group, which is killed at the end."""
    with (folder / "jobs.stderr").open("ab") as errors:
        jobs = subprocess.Popen(
            [sys.executable, "-m", "tests.live.spark.jobs", str(folder), *options],
            stdin=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield jobs
    finally:
        os.killpg(jobs.pid, signal.SIGKILL)
        jobs.wait()


def wait_for_batches(jobs: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until one job is inside a batch that needs state, and the other has committed one."""
    deadline = time.monotonic() + WAIT_S
    while not any(
        max(batches(folder, one, "offsets") - batches(folder, one, "commits"), default=0) > 0
        and batches(folder, other, "commits")
        for one, other in (("windows", "join"), ("join", "windows"))
    ):
        assert jobs.poll() is None, f"the jobs ended: {errors_of(folder)}"
        assert time.monotonic() < deadline, f"the jobs made no progress: {errors_of(folder)}"
        time.sleep(0.01)


def batches(folder: Path, job: str, state: str) -> set[int]:
    """Return the numbers of the batches that a job has begun (`offsets`) or ended (`commits`)."""
    names = [path.name for path in (folder / f"{job}.ckpt" / state).glob("[0-9]*")]
    return {int(name) for name in names if name.isdecimal()}


def errors_of(folder: Path) -> str:
    return (folder / "jobs.stderr").read_text(errors="replace")[-4000:]


def written(folder: Path, job: str) -> Counter[tuple[object, ...]]:
    """Return the rows that a job has written."""
    rows: Counter[tuple[object, ...]] = Counter()
    for path in sorted((folder / job).glob("batch=*/*.parquet")):
        rows += plain(pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read())
    return rows


def plain(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Return the rows with all times in microseconds."""
    columns = [
        column.cast(pa.timestamp("us")).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def check(folder: Path) -> None:
    """Compare the output of the jobs with queries over the tables."""
    with frazil.open(folder / "data") as opened:
        windows = plain(opened.sql(WINDOWS).arrow())
        joined = plain(opened.sql(JOINED).arrow())
    assert len(windows) > 20
    assert len(joined) > 20
    assert written(folder, "windows") == windows
    assert written(folder, "join") == joined


def drain(folder: Path) -> None:
    with running(folder, "--drain") as jobs:
        assert jobs.wait(WAIT_S) == 0, errors_of(folder)


def open_node(folder: Path) -> Node:
    settings = folder / "frazil.toml"
    settings.write_text(SETTINGS)
    return Node(folder / "data", "--config", str(settings))


def test_killed_jobs_produce_each_row_once(tmp_path: Path) -> None:
    """One job is killed inside a batch; then both are restarted and drained."""
    with open_node(tmp_path) as node:
        feeder = Feeder(node, COUNT)
        feeder.send(40)
        with feeder, running(tmp_path) as jobs:
            wait_for_batches(jobs, tmp_path)
        feeder.send(COUNT - feeder.count)
        drain(tmp_path)
        assert node.stop() == 0
    check(tmp_path)


def torture(kills: int) -> None:
    """Kill the jobs many times at random moments, then drain and compare."""
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
        sys.stdout.write(f"{kills} kills, {feeder.count} requests of each signal: equal\n")


if __name__ == "__main__":
    torture(int(sys.argv[1]))
