"""The first minute: time until a node accepts requests, and until `frazil sql` sees a record.

A node on an empty folder, with compiled code on disk, is started and stopped; then the
OpenTelemetry SDK sends records one by one, and after each acknowledgement SQL over HTTP is polled
until the record is visible, and once by the command. Spark is not started. The peers are a bare
interpreter, and one that imports the libraries of a node: lower bounds of any start. Prints one
JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import frazil
from bench.log import scratch_folder
from tests.clients.node import FREE_PORTS

ROUNDS = 5
RECORDS = 30
START_S_MAX = 2.0
VISIBLE_S_MAX = 1.0
HELP_S_MAX = 0.3
LIBRARIES = "import datafusion, grpc, httptools, msgspec, numba, pyarrow, uvloop"
COMMAND = [sys.executable, "-m", "frazil"]

Case = dict[str, object]


class Running:
    """A node process. `took` is the time until it accepted requests."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [*COMMAND, "up", "--data", str(folder), *FREE_PORTS, "--json", *options]
        begin = time.perf_counter()
        with (folder.with_suffix(".err")).open("ab") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())
        self.took = time.perf_counter() - begin

    def stop(self) -> float:
        begin = time.perf_counter()
        self.process.terminate()
        self.process.wait(60)
        return time.perf_counter() - begin


def took(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def runs(*arguments: str) -> float:
    """Seconds a program takes; median."""
    return statistics.median(
        took(lambda: subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL))
        for _ in range(ROUNDS)
    )


def case_of(
    name: str, ours: float, peer: float | None, bar: float, unit: str = "s", **more: object
) -> Case:
    """One case of the result; `ours` is ok if at most `bar`."""
    case: Case = {
        "case": name,
        "ours": round(ours, 3),
        "peer": None if peer is None else round(peer, 3),
        "unit": unit,
        "ratio": round(ours / (peer or bar), 3),
        "bar": bar,
        "ok": ours <= bar,
        **more,
    }
    print(json.dumps(case), flush=True)
    return case


def start(scratch: Path) -> Case:
    Running(scratch / "first").stop()  # compiles on the very first start
    starts, stops = [], []
    for number in range(ROUNDS):
        node = Running(scratch / f"data{number}")
        starts.append(node.took)
        stops.append(node.stop())
    peer = runs(sys.executable, "-c", LIBRARIES)
    stopped = round(statistics.median(stops), 3)
    return case_of(
        "warm start to accepting", statistics.median(starts), peer, START_S_MAX, stop_s=stopped
    )


def visible(scratch: Path) -> list[Case]:
    node = Running(scratch / "data")
    url = f"http://127.0.0.1:{node.ready['http_port']}"
    endpoint = f"http://127.0.0.1:{node.ready['otlp_http_port']}/v1/traces"
    provider = TracerProvider(resource=Resource.create({"service.name": "bench"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    tracer, remote = provider.get_tracer("bench"), frazil.connect(url)
    waits = []
    for number in range(RECORDS):
        tracer.start_span(f"record {number}").end()  # returns once acknowledged
        begin = time.perf_counter()
        question = f"SELECT count(*) FROM spans WHERE name = 'record {number}'"
        while remote.sql(question).fetchall() != [(1,)]:
            time.sleep(0.005)
        waits.append(time.perf_counter() - begin)
    tracer.start_span("for the command").end()
    asked = [*COMMAND, "sql", "--url", url, "--format", "json", "SELECT name FROM spans"]
    begin = time.perf_counter()
    said = json.loads(subprocess.run(asked, check=True, stdout=subprocess.PIPE).stdout)
    command_s = time.perf_counter() - begin
    is_there = ["for the command"] in said["rows"] and len(said["rows"]) == RECORDS + 1
    spark = remote.get("/api/v1/status")["lake"]["spark"]["state"]
    node.stop()
    provider.shutdown()
    worst = case_of(
        "SDK's acknowledgement to visible by SQL", max(waits), None, VISIBLE_S_MAX, spark=spark
    )
    command = case_of("the same by the command", command_s, None, VISIBLE_S_MAX)
    return [worst, {**command, "ok": bool(command["ok"]) and is_there}]


def main() -> int:
    with scratch_folder() as scratch:
        cases = [start(scratch), *visible(scratch)]
    peer = runs(sys.executable, "-c", "pass")
    cases.append(case_of("frazil --help", runs(*COMMAND, "--help"), peer, HELP_S_MAX))
    print(json.dumps({"bench": "start", "cases": cases}))
    return 0 if all(case["ok"] for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
