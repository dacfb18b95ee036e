"""A node that runs: ready or not, reachable or not; and variables that lead elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frazil.doctor.checks.data_folder import check_folder
from frazil.doctor.checks.node import check_exporters, check_node
from frazil.doctor.checks.ports import check_ports
from tests.clients.node import Node
from tests.doctor.patient import Patient, all_ok, problem

HOLD = """
import http.server, pathlib, sys
from frazil.disk import RealDisk
from frazil.log import LOCK_NAME

folder, holder, answer = sys.argv[1:]

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, _, text = pathlib.Path(answer).read_text().partition(" ")
        self.send_response(int(status))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass

lock = RealDisk(folder).lock(LOCK_NAME, holder)
server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""
"""Has the lock, and says of itself what a file says."""
NAME = "OTEL_EXPORTER_OTLP_ENDPOINT"


@contextmanager
def holding(patient: Patient, holder: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that has the folder open, and the file with its response."""
    answer = patient.folder / "answer"
    answer.write_text("200 ok")
    command = [sys.executable, "-c", HOLD, str(patient.data), holder, str(answer)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        patient.set(f"serve.http_port = {int(process.stdout.readline())}")
        try:
            yield process, answer
        finally:
            process.kill()


def test_no_node_is_ok(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    assert all_ok(patient.check(check_node))
    patient.data.mkdir()
    (patient.data / "frazil.lock").write_text('{"pid": 1, "holder": "frazil up"}')
    assert all_ok(patient.check(check_node)), "a lock that nobody holds is only a file"


SAID = (
    "[+]node ok\n[-]log failed: full; and more; free room\n[+]lake degraded: no Java; install it\n"
)


def test_rooms_that_are_not_ready_are_reported(tmp_path: Path) -> None:
    """With the next step; ok once the node is ready."""
    patient = Patient(tmp_path)
    with holding(patient, "frazil up") as (process, answer):
        assert all_ok(patient.check(check_node))
        answer.write_text(f"503 {SAID}readyz check failed\n")
        log, lake = patient.check(check_node)
        assert (log.level, lake.level) == ("failure", "warning")
        assert log.found == f"process {process.pid} (frazil up): log failed: full; and more"
        assert log.fix and log.fix.text == "free room"
        assert lake.fix and lake.fix.text == "install it"
        answer.write_text("200 [+]log ok\nreadyz check passed\n")
        assert all_ok(patient.check(check_node))
        patient.set("serve.enabled = false")
        assert "cannot be queried" in patient.check(check_node)[0].found


def test_a_node_that_does_not_respond_is_stopped_by_the_fix(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    with holding(patient, "frazil up") as (process, _):
        patient.set("serve.http_port = 9")
        found = problem(patient.check(check_node))
        assert found.level == "failure" and "does not respond" in found.found
        patient.mend(found)
        process.wait(30)
        assert all_ok(patient.check(check_node))


def test_another_verb_on_the_folder_is_a_note(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    with holding(patient, "frazil flush") as (process, _):
        found = problem(patient.check(check_node))
        assert found.level == "note" and f"process {process.pid} (frazil flush)" in found.found
        assert f"in use by process {process.pid}" in patient.check(check_folder)[0].found
    assert all_ok(patient.check(check_node))


def test_a_real_node_and_its_ports_are_ok(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    with Node(patient.data) as node:
        patient.set(f"ingest.grpc_port = {node.grpc_port}")
        patient.set(f"ingest.http_port = {node.http_port}")
        patient.set(f"serve.http_port = {node.api_port}")
        patient.set(f"kafka.port = {node.kafka_port}")
        patient.set(f"flight.port = {node.flight_port}")
        found = patient.check(check_ports)
        assert all_ok(found)
        assert all(f"running node (process {node.process.pid})" in each.found for each in found)
        (ready,) = patient.check(check_node)
        assert ready.level == "ok" and "readyz check passed" in ready.found
        patient.set(f"data = '{tmp_path / 'other'}'")
        assert [each.level for each in patient.check(check_ports)] == ["failure"] * 5


@pytest.mark.parametrize(
    ("variables", "level"),
    [
        ({NAME: "http://collector:4318"}, "note"),
        ({NAME: "http://127.0.0.1:9999"}, "note"),
        ({NAME: "collector:4317"}, "note"),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://10.1.2.3:4318/v1/logs"}, "note"),
        ({NAME: "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "warning"),
        ({NAME: "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "warning"),
    ],
)
def test_exporter_variables_for_another_node_are_reported(
    tmp_path: Path, variables: dict[str, str], level: str
) -> None:
    patient = Patient(tmp_path)
    patient.environment |= variables
    found = problem(patient.check(check_exporters))
    assert found.level == level
    patient.mend(found)
    assert all_ok(patient.check(check_exporters))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {NAME: "http://localhost:4318"},
        {NAME: "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        {NAME: "127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_exporter_variables_for_this_node_are_ok(tmp_path: Path, variables: dict[str, str]) -> None:
    patient = Patient(tmp_path)
    patient.environment |= variables
    assert all_ok(patient.check(check_exporters))
