"""logcli against a node, and with `--loki` a real Loki beside it: python -m tests.live.loki.clients

Builds logcli, and Loki, on first use. Fails if a command fails, finds nothing, or if the two
servers answer differently to the same lines.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from tests.languages.logql.rows import NUMBERS as SEVERITY_NUMBERS
from tests.languages.logql.rows import RECORDS, SECOND_NS, SERVICES
from tests.live.loki.programs import program
from tests.live.loki.queries import LINES, NUMBERS
from tests.live.loki.server import loki
from tests.serve.served import Served, served

RUN_S = 120
VISIBLE_S = 60
POLL_S = 0.5
STEP_S = 10

COMMANDS = (
    ["labels"],
    ["labels", "service_name"],
    ["series", '{service_name=~".+"}'],
    ["stats", '{service_name="cart"}'],
    ["volume", '{service_name=~".+"}'],
    ["volume_range", '{service_name=~".+"}', "--step=10s"],
    ["query", '{service_name="cart"} | json | status="200"', "--limit=5"],
    ["query", '{service_name="web"} | logfmt', "--output=jsonl", "--forward"],
    ["query", 'sum by (service_name) (count_over_time({service_name=~".+"}[10s]))', "--step=10s"],
    ["instant-query", "vector(1)+vector(1)"],
    ["detected-fields", '{service_name="cart"}'],
)


def request_bytes(begin_ns: int) -> bytes:
    """The known records as OTLP, from this time on."""
    request = ExportLogsServiceRequest()
    for service in SERVICES:
        for pod in sorted({k.pod for k in RECORDS if k.service == service}):
            for region in ("eu", "us"):
                chosen = [k for k in RECORDS if k.pod == pod and k.region == region]
                resource_logs = request.resource_logs.add()
                of_resource = {
                    "service.name": service,
                    "k8s.pod.name": pod,
                    "cloud.region": region,
                }
                _add(resource_logs.resource.attributes, of_resource)
                scope_logs = resource_logs.scope_logs.add()
                for known in chosen:
                    record = scope_logs.log_records.add(
                        time_unix_nano=begin_ns + known.n * SECOND_NS,
                        observed_time_unix_nano=begin_ns + known.n * SECOND_NS,
                        severity_number=SEVERITY_NUMBERS[known.n % 6],
                        trace_id=bytes.fromhex(known.trace),
                    )
                    record.body.string_value = known.line
                    _add(
                        record.attributes,
                        {"http.route": known.route, "retry.count": str(known.retries)},
                    )
    return request.SerializeToString()


def _add(attributes: Any, values: Mapping[str, str]) -> None:
    for key, value in values.items():
        attributes.add(key=key).value.string_value = value


def send(url: str, body: bytes) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
        assert response.status in (200, 204)


def ask(url: str, path: str, **fields: str) -> Any:
    with urllib.request.urlopen(f"{url}/loki/api/v1/{path}?{urlencode(fields)}") as response:
        return json.loads(response.read())


def wait_for_lines(url: str, times: Mapping[str, str]) -> None:
    deadline = time.monotonic() + VISIBLE_S
    query = '{service_name=~".+"}'
    while True:
        found = ask(url, "query_range", query=query, limit="1000", **times)["data"]["result"]
        if sum(len(stream["values"]) for stream in found) == len(RECORDS):
            return
        assert time.monotonic() < deadline, f"{url} does not show all lines"
        time.sleep(POLL_S)


def lines_of(answer: Any) -> list[tuple[str, str]]:
    """Times and lines, in the order of the answer's streams by time."""
    streams = answer["data"]["result"]
    return sorted((entry[0], entry[1]) for stream in streams for entry in stream["values"])


def numbers_of(answer: Any) -> dict[tuple[tuple[str, str], ...], list[tuple[float, float]]]:
    return {
        tuple(sorted(series["metric"].items())): [
            (float(at), round(float(value), 9)) for at, value in series["values"]
        ]
        for series in answer["data"]["result"]
    }


def compare(ours: str, theirs: str, times: Mapping[str, str]) -> list[str]:
    """Queries to which the two do not answer alike."""
    found = []
    for query in LINES:
        fields = {"query": query, "limit": "1000", **times}
        got, wanted = (lines_of(ask(url, "query_range", **fields)) for url in (ours, theirs))
        if got != wanted:
            found.append(f"{query}\n  ours:   {got[:3]}\n  theirs: {wanted[:3]}")
    for query in NUMBERS:
        fields = {"query": query, "step": str(STEP_S), **times}
        ours_are, theirs_are = (
            numbers_of(ask(url, "query_range", **fields)) for url in (ours, theirs)
        )
        if ours_are != theirs_are:
            shown = [sorted(one.items())[:2] for one in (ours_are, theirs_are)]
            found.append(f"{query}\n  ours:   {shown[0]}\n  theirs: {shown[1]}")
    return found


def run_logcli(url: str, times: Mapping[str, str]) -> list[str]:
    """Commands that fail or find nothing."""
    found = []
    begin, end = (_rfc3339(int(times[name])) for name in ("start", "end"))
    for command in COMMANDS:
        at = [] if command[0] == "instant-query" else [f"--from={begin}", f"--to={end}"]
        done = subprocess.run(
            [program("logcli"), f"--addr={url}", "--quiet", *command, *at],
            capture_output=True,
            text=True,
            timeout=RUN_S,
            env={**os.environ, "no_proxy": "127.0.0.1"},
            check=False,
        )
        if done.returncode or not done.stdout.strip():
            found.append(f"logcli {' '.join(command)}: {done.returncode} {done.stderr}")
    return found


def _rfc3339(nanoseconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(nanoseconds // SECOND_NS))


def run(node: Served, folder: Path, *, is_compared: bool) -> list[str]:
    # Whole tens of seconds: Loki aligns steps.
    begin_ns = (int(time.time()) - 600) // STEP_S * STEP_S * SECOND_NS
    times = {"start": str(begin_ns), "end": str(begin_ns + 70 * SECOND_NS)}
    body = request_bytes(begin_ns)
    send(f"http://127.0.0.1:{node.rooms.otlp.http_port}/v1/logs", body)
    wait_for_lines(node.url, times)
    found = run_logcli(node.url, times)
    if is_compared:
        with loki(folder) as url:
            send(f"{url}/otlp/v1/logs", body)
            wait_for_lines(url, times)
            found += compare(node.url, url, times)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loki", action="store_true", help="compare with a real Loki")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, served(Path(name) / "data") as node:
        other = Path(name) / "loki"
        other.mkdir()
        found = run(node, other, is_compared=options.loki)
    compared = len(LINES) + len(NUMBERS) if options.loki else 0
    counts = f"{len(COMMANDS)} commands of logcli, {compared} queries compared"
    sys.stdout.write("\n".join([f"{counts}, {len(found)} wrong", *found, ""]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
