"""Demo: everything sent to a real node is acknowledged and stored exactly once."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import frazil
from frazil import cli
from frazil.demo import Demo, DemoPlan, DemoSummary
from frazil.embedded import Embedded
from frazil.errors import Unauthenticated, Unavailable
from frazil.otlp_client import OtlpClient, OtlpTarget
from tests.clients.flaky import Fault, Flaky
from tests.clients.node import Node
from tests.sim.clock import SimClock

TABLES = {"traces": "spans", "logs": "logs", "metrics": "metrics"}
NO_LAKE = "[lake]\nenabled = false\n"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "frazil.toml"
    path.write_text(NO_LAKE)
    return path


def run(url: str, plan: DemoPlan, **more: str) -> DemoSummary:
    """Run a demo on a simulated clock."""
    clock = SimClock()
    client = OtlpClient(OtlpTarget(url=url, **more), clock=clock)
    demo = Demo(plan, client, clock=clock, rand=random.Random(1))
    try:
        demo.run(lambda _: None)
    finally:
        client.close()
    return demo.summary


def counts(opened: Embedded) -> dict[str, int]:
    assert opened.sql("SELECT count(*) FROM dead_letters").fetchall() == [(0,)]
    return {
        signal: opened.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        for signal, table in TABLES.items()
    }


def test_every_record_is_stored_exactly_once(tmp_path: Path, config: Path) -> None:
    """Of backfill and live traffic, also if requests or responses are lost."""
    faults = [Fault.FORWARD, Fault.REFUSE, Fault.LOSE, Fault.FORWARD, Fault.LOSE]
    plan = DemoPlan(rate=20, seconds=12, backfill_minutes=1)
    with Node(tmp_path / "data", "--config", str(config)) as node:
        with Flaky(node.http_port, "http", faults) as flaky:
            summary = run(f"http://127.0.0.1:{flaky.port}", plan)
        assert node.stop() == 0
    assert summary.retries == 3
    assert summary.visits > 12 * 20 / 2 + 60 * 20 / 2
    assert all(total.sent == total.acknowledged > 0 for total in summary.totals.values())
    with frazil.open(tmp_path / "data", config=config) as opened:
        assert counts(opened) == {
            signal: total.acknowledged for signal, total in summary.totals.items()
        }
        sql = """
            SELECT count(*) FROM spans child LEFT JOIN spans parent
            ON child.trace_id = parent.trace_id AND child.parent_span_id = parent.span_id
            WHERE child.parent_span_id IS NOT NULL AND parent.span_id IS NULL
        """
        assert opened.sql(sql).fetchall() == [(0,)]
        sql = """
            SELECT count(*) FROM logs LEFT JOIN spans
            ON logs.trace_id = spans.trace_id AND logs.span_id = spans.span_id
            WHERE logs.trace_id IS NOT NULL AND spans.span_id IS NULL
        """
        assert opened.sql(sql).fetchall() == [(0,)]


class Choosy(BaseHTTPRequestHandler):
    """A server that is busy first, then rejects some spans and all logs."""

    protocol_version = "HTTP/1.1"
    busy_count = 2

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") not in (None, "Bearer right"):
            self._respond(401, b"")
        elif Choosy.busy_count:
            Choosy.busy_count -= 1
            self._respond(503, b"", ("Retry-After", "7"))
        elif self.path == "/v1/logs":
            self._respond(400, b"\x08\x03\x12\x07no logs")
        elif self.path == "/v1/traces":
            self._respond(200, b"\x0a\x02\x08\x03")
        else:
            self._respond(200, b"")

    def _respond(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def choosy() -> Iterator[str]:
    Choosy.busy_count = 2
    with HTTPServer(("127.0.0.1", 0), Choosy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_rejections_and_retries_are_counted(choosy: str) -> None:
    """Of whole requests and of single records."""
    summary = run(choosy, DemoPlan(rate=20, count=5))
    assert summary.retries == 2
    logs, spans, points = (summary.totals[name] for name in ("logs", "traces", "metrics"))
    assert logs.acknowledged == 0 < logs.refused == logs.sent
    assert spans.refused % 3 == 0 < spans.refused
    assert spans.acknowledged == spans.sent - spans.refused
    assert points.refused == 0 < points.acknowledged == points.sent
    assert summary.refusal == "HTTP 400: no logs"


def test_retry_after_is_respected(choosy: str) -> None:
    clock = SimClock()
    client = OtlpClient(OtlpTarget(url=choosy), clock=clock)
    assert client.send("metrics", b"").refused is None
    client.close()
    assert clock.monotonic_ns() == 2 * 7 * 1_000_000_000


def test_a_node_that_stays_busy_is_unavailable(choosy: str) -> None:
    """The error has the duration and the last response."""
    Choosy.busy_count = 1000
    with pytest.raises(Unavailable, match=r"for 56 s \(HTTP 503"):
        run(choosy, DemoPlan(rate=20, count=5))


def test_stop_sends_finished_requests_only(choosy: str) -> None:
    clock = SimClock()
    client = OtlpClient(OtlpTarget(url=choosy), clock=clock)
    demo = Demo(DemoPlan(rate=50), client, clock=clock, rand=random.Random(1))

    def report(summary: DemoSummary) -> None:
        if summary.visits > 100:
            demo.stop()

    demo.run(report)
    client.close()
    assert 100 < demo.summary.visits < 200
    points = demo.summary.totals["metrics"]
    assert points.acknowledged == points.sent > 0


def test_a_wrong_token_ends_the_demo(choosy: str) -> None:
    assert run(choosy, DemoPlan(rate=20, count=1), token="right").visits == 1
    with pytest.raises(Unauthenticated, match="--token"):
        run(choosy, DemoPlan(rate=20, count=1), token="wrong")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_an_unreachable_node_is_one_line_with_the_fix(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert cli.main(["demo", "--count", "1", "--json", "--endpoint", url]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "frazil up" in output.err
    assert url in output.err


def test_json_has_the_totals(choosy: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1 because records were rejected."""
    Choosy.busy_count = 0
    arguments = ["--count", "3", "--seed", "1", "--rate", "100", "--json", "--endpoint", choosy]
    assert cli.main(["demo", *arguments]) == 1
    output = capsys.readouterr()
    totals = json.loads(output.out)
    assert output.err == ""
    assert totals["requests"] == 3
    assert totals["logs"]["refused"] == totals["logs"]["sent"] > 0
    assert totals["points"]["acknowledged"] == totals["points"]["sent"] > 0


def test_the_endpoint_defaults_to_the_otel_variable(
    choosy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Choosy.busy_count = 0
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", choosy + "/")
    assert cli.main(["demo", "--count", "2", "--rate", "100"]) == 1
    output = capsys.readouterr()
    assert f"Sending a sample shop to {choosy}" in output.err
    assert "Sent 2 requests" in output.out


@pytest.mark.parametrize("wrong", [["--rate", "0"], ["--backfill", "-1"], ["--seconds", "x"]])
def test_invalid_numbers_are_rejected(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["demo", *wrong])
    assert wrong[0] in capsys.readouterr().err
