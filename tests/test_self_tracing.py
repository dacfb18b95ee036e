"""Spans of our own work: for whom they are wanted, and that they never feed themselves."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import frazil
from frazil import tracing
from frazil.program_log import JsonFormatter
from frazil.self_tracing import export_own_traces, why_disabled
from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
SENT = 3
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "100"}
"""Spans are sent every 100 ms instead of every 5 s."""


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, ""),
        (ENDPOINT, None),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a/v1/traces"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, None),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "TRUE"}, ""),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}, ""),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "zipkin"}, "use otlp or none"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "set it to http/protobuf"),
    ],
)
def test_the_environment_decides(environ: dict[str, str], wanted: str | None) -> None:
    """None: exported; empty: not enabled; a sentence: what to change."""
    found = why_disabled(environ)
    if wanted:
        assert wanted in (found or "")
    else:
        assert found == wanted


def test_disabled_tracing_does_nothing() -> None:
    """The same span for everybody, and no ids."""
    with export_own_traces({}, is_enabled=True):
        assert tracing.span("a", x=1) is tracing.OFF
        assert tracing.ids() is None
        with tracing.span("a") as span:
            span.note(y=2)
            span.drop()


def test_log_lines_have_their_span_id() -> None:
    """Logs and traces find each other."""
    record = logging.makeLogRecord({"msg": "hello", "levelname": "INFO"})
    with export_own_traces({**ENDPOINT, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}, is_enabled=True):
        with tracing.span("outer", parent=f"00-{'ab' * 16}-{'cd' * 8}-01") as span:
            span.drop()
            said = json.loads(JsonFormatter().format(record))
            assert said["trace_id"] == "ab" * 16
            assert len(said["span_id"]) == 16
        assert "trace_id" not in json.loads(JsonFormatter().format(record))


def test_a_missing_sdk_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked for, and not installed: a warning with the line that mends it."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with export_own_traces(ENDPOINT, is_enabled=True):
        assert not tracing.is_on()
    assert "pip install 'frazil[otel]'" in str(caplog.records[-1].__dict__["reason"])


def test_a_node_exporting_to_itself_does_not_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rounds of exporting later there are the spans of what we sent, and no others."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}", **QUICK}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    sets = ("--set", "lake.enabled=false", "--set", "self_tracing=true")
    with Node(tmp_path / "data", "--otlp-http-port", str(port), *sets) as node:
        for number in range(SENT):
            body = logs(log(number, event_name=str(number)))
            answer = send_http(port, "/v1/logs", body, {"Content-Type": PROTOBUF})
            assert answer.status == 200
            threading.Event().wait(0.2)  # more than one in 100 ms would not all have a span
        threading.Event().wait(2)
        assert node.stop() == 0
        assert "trace" not in node.errors()
    for name in settings:
        monkeypatch.delenv(name)
    with frazil.open(tmp_path / "data") as opened:
        rows = opened.sql("SELECT service_name, name, count(*) FROM spans GROUP BY 1, 2").fetchall()
    assert rows == [("frazil", "ingest.export", SENT)]


def test_the_sdk_is_loaded_only_if_enabled() -> None:
    """A node that traces nothing pays nothing for it."""
    code = "import sys; import frazil.node; assert 'opentelemetry.sdk' not in sys.modules"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run([sys.executable, "-c", code], env=environ, check=False)
    assert done.returncode == 0
