"""Jaeger itself, from its Go module, with a node as its storage."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.live.server_process import free_port, server_process

MODULE = "github.com/jaegertracing/jaeger@v1.76.0"
CACHE = Path(__file__).parents[3] / ".cache" / "jaeger"
TIMEOUT_S = 60
CONFIG = """\
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry:
    metrics: {{level: none}}
    logs: {{level: error}}
extensions:
  jaeger_query:
    storage: {{traces: frazil}}
    http: {{endpoint: "127.0.0.1:{http}"}}
    grpc: {{endpoint: "127.0.0.1:{grpc}"}}
  jaeger_storage:
    backends:
      frazil:
        grpc:
          endpoint: "127.0.0.1:{storage}"
          tls: {{insecure: true}}
          headers: {{authorization: "Bearer {token}"}}
          writer:
            endpoint: "127.0.0.1:{writer}"
            tls: {{insecure: true}}
            headers: {{authorization: "Bearer {token}"}}
receivers:
  otlp:
    protocols:
      http: {{endpoint: "127.0.0.1:{otlp}"}}
exporters:
  jaeger_storage_exporter: {{trace_storage: frazil}}
"""


def program() -> Path:
    """Return the program. Builds it if it is not there: this takes minutes."""
    if not (CACHE / "jaeger").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOWORK": "off", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
        downloaded = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            cwd=CACHE,
            env=environment,
            capture_output=True,
            check=True,
        )
        subprocess.run(
            ["go", "build", "-p", "1", "-buildvcs=false", "-o", f"{CACHE}/", "./cmd/jaeger"],
            cwd=json.loads(downloaded.stdout)["Dir"],
            env=environment,
            check=True,
        )
    return CACHE / "jaeger"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealJaeger:
    """A running Jaeger."""

    url: str
    otlp_url: str

    def ask(self, path: str, **fields: Any) -> tuple[int, Any]:
        """Return status and answer of a request of its API."""
        query = f"?{urlencode(fields, doseq=True)}" if fields else ""
        try:
            with urlopen(f"{self.url}/api/{path}{query}", timeout=TIMEOUT_S) as said:
                return said.status, json.load(said)
        except HTTPError as error:
            return error.code, json.load(error)

    def send(self, body: bytes) -> None:
        """Let it store an OTLP request with spans."""
        headers = {"Content-Type": "application/x-protobuf"}
        with urlopen(Request(f"{self.otlp_url}/v1/traces", body, headers), timeout=TIMEOUT_S) as to:
            assert to.status == HTTPStatus.OK


@contextmanager
def real_jaeger(folder: Path, *, storage: int, writer: int, token: str) -> Iterator[RealJaeger]:
    """Run Jaeger over a node's port for it, and the node's port of OTLP/gRPC."""
    ports = {name: free_port() for name in ("http", "grpc", "otlp")}
    config = folder / "jaeger.yaml"
    text = CONFIG.format(storage=storage, writer=writer, token=token, **ports)
    config.write_text(text, encoding="utf-8")
    command: list[str | Path] = [program(), "--config", config]
    with server_process(command, ports["http"], folder / "jaeger.log"):
        yield RealJaeger(
            url=f"http://127.0.0.1:{ports['http']}", otlp_url=f"http://127.0.0.1:{ports['otlp']}"
        )
