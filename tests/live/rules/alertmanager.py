"""Alerts of a node at a real Alertmanager: `python -m tests.live.rules.alertmanager`.

A rule fires on logs with an error, is shown by the Alertmanager with its labels, annotations and
times, and by the webhook that this Alertmanager calls; it is resolved when the logs are too old.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.live.rules.programs import ALERTMANAGER, built
from tests.rules.receiver import Receiver, receiver
from tests.serve.served import fill, served

WAIT_S = 120
RULES = """
groups:
  - name: g
    interval: 1s
    rules:
      - alert: NewLogs
        sql: >
          SELECT body_type AS kind, count(*) AS value FROM logs
          WHERE ingest_time > $time - INTERVAL '8 seconds' GROUP BY 1
        labels: {severity: page}
        annotations: {summary: "{{ $value }} of {{ $labels.kind }}"}
"""
CONFIG = """
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: URL
        send_resolved: true
"""


def until(what: str, look: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = look()
        if found:
            print(f"ok: {what}")
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {WAIT_S} s: {what}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def alertmanager(folder: Path, hook: Receiver) -> Iterator[str]:
    """A running Alertmanager; yields its address."""
    folder.mkdir()
    config = folder / "alertmanager.yml"
    config.write_text(CONFIG.replace("URL", f"{hook.url}/from-alertmanager"))
    address = f"127.0.0.1:{free_port()}"
    flags = [
        f"--config.file={config}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([built(ALERTMANAGER), *flags], stderr=log, stdout=log)
    try:
        until("the Alertmanager is ready", lambda: is_ready(f"http://{address}"))
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/-/ready") as response:
            return int(response.status) == 200
    except OSError:
        return False


def alerts_at(url: str) -> list[dict[str, Any]]:
    with urlopen(f"{url}/api/v2/alerts") as response:
        found: list[dict[str, Any]] = json.load(response)
    return found


def statuses(hook: Receiver) -> list[str]:
    return [
        each["status"]
        for _, body in hook.taken
        for each in body["alerts"]
        if each["labels"]["alertname"] == "NewLogs"
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary, receiver() as hook:
        folder = Path(temporary)
        (folder / "rules.yml").write_text(RULES)
        with alertmanager(folder / "alertmanager", hook) as url:
            settings = {
                "files": [str(folder / "rules.yml")],
                "alertmanagers": [url],
                "external_labels": {"cluster": "c1"},
                "resend_delay_ms": 1000,
            }
            with served(folder / "data", rules=settings) as node:
                fill(node, 3)
                found = until(
                    "the alert is at the Alertmanager",
                    lambda: [a for a in alerts_at(url) if a["labels"]["alertname"] == "NewLogs"],
                )
                labels = {"alertname": "NewLogs", "cluster": "c1", "kind": "string"}
                assert found[0]["labels"] == {**labels, "severity": "page"}, found
                assert found[0]["annotations"] == {"summary": "3 of string"}, found
                assert found[0]["generatorURL"].endswith("/alerts?rule=NewLogs"), found
                until("its webhook says firing", lambda: "firing" in statuses(hook))
                until("its webhook says resolved", lambda: "resolved" in statuses(hook))
                report = node.ask("GET", "/api/v1/alerts").json["report"]["notifiers"][0]
                assert (report["failed_count"], report["dropped_count"]) == (0, 0), report
    print("the Alertmanager took, showed and resolved the alert")
    return 0


if __name__ == "__main__":
    sys.exit(main())
