"""Prometheus itself, from its Go module, receiving OTLP on a free port."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.live.server_process import POLL_S, free_port, server_process

MODULE = "github.com/prometheus/prometheus@v0.315.0"
CACHE = Path(__file__).parents[3] / ".cache" / "prometheus"
TIMEOUT_S = 60
BUILD = ("go", "build", "-p", "1", "-tags", "remove_all_sd", "-o")
CONFIG = """\
storage:
  tsdb:
    out_of_order_time_window: 24h
"""


def program(name: Literal["prometheus", "promtool"]) -> Path:
    """Return a program. Builds it if it is not there."""
    if not (CACHE / name).exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod"}
        downloaded = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            cwd=CACHE,
            env=environment,
            capture_output=True,
            check=True,
        )
        subprocess.run(
            [
                "go",
                "build",
                "-p",
                "1",
                "-tags",
                "remove_all_sd",
                "-o",
                f"{CACHE}/",
                f"./cmd/{name}",
            ],
            cwd=json.loads(downloaded.stdout)["Dir"],
            env=environment,
            check=True,
        )
    return CACHE / name


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPrometheus:
    """A running Prometheus."""

    url: str

    def is_ready(self) -> bool:
        """Return whether it has read its data."""
        try:
            with urlopen(f"{self.url}/-/ready", timeout=TIMEOUT_S) as said:
                return bool(said.status == HTTPStatus.OK)
        except HTTPError:
            return False

    def send(self, body: bytes) -> None:
        """Store an OTLP request with metrics."""
        headers = {"Content-Type": "application/x-protobuf"}
        path = f"{self.url}/api/v1/otlp/v1/metrics"
        with urlopen(Request(path, body, headers), timeout=TIMEOUT_S) as said:
            assert said.status == HTTPStatus.OK

    def ask(self, path: str, **fields: Any) -> Any:
        """Return the answer to a request of the API."""
        try:
            with urlopen(
                f"{self.url}/api/v1/{path}", urlencode(fields, doseq=True).encode(), TIMEOUT_S
            ) as said:
                return json.load(said)
        except HTTPError as error:
            return json.load(error)


@contextmanager
def real_prometheus(folder: Path) -> Iterator[RealPrometheus]:
    """Run Prometheus with its data in a folder."""
    folder.mkdir(parents=True)
    config = folder / "prometheus.yml"
    config.write_text(CONFIG, encoding="utf-8")
    port = free_port()
    command: list[str | Path] = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-otlp-receiver",
        "--log.level=error",
    ]
    with server_process(command, port, folder / "prometheus.log"):
        prometheus = RealPrometheus(url=f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + TIMEOUT_S
        while not prometheus.is_ready():
            assert time.monotonic() < deadline, "Prometheus does not become ready"
            time.sleep(POLL_S)
        yield prometheus
