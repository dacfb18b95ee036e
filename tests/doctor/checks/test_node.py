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
from tests.doctor.patient import Patient, is_well, trouble

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
    """A process that has the folder, and the file with its answer."""
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


def test_no_node(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    assert is_well(patient.look(check_node))
    patient.data.mkdir()
    (patient.data / "frazil.lock").write_text('{"pid": 1, "holder": "frazil up"}')
    assert is_well(patient.look(check_node)), "a lock that nobody holds is only a file"


SAID = (
    "[+]node ok\n[-]log failed: full; and more; free room\n[+]lake degraded: no Java; install it\n"
)


def test_a_node_that_is_not_ready(tmp_path: Path) -> None:
    """What it says of its rooms is said, with what to do next; once it is ready, that is."""
    patient = Patient(tmp_path)
    with holding(patient, "frazil up") as (process, answer):
        assert is_well(patient.look(check_node))
        answer.write_text(f"503 {SAID}readyz check failed\n")
        log, lake = patient.look(check_node)
        assert (log.level, lake.level) == ("failure", "warning")
        assert (
            log.found == f"process {process.pid} (frazil up) says that log failed: full; and more"
        )
        assert log.fix and log.fix.text == "free room"
        assert lake.fix and lake.fix.text == "install it"
        answer.write_text("200 [+]log ok\nreadyz check passed\n")
        assert is_well(patient.look(check_node))
        patient.set("serve.enabled = false")
        assert "cannot be asked" in patient.look(check_node)[0].found


def test_a_node_that_does_not_answer(tmp_path: Path) -> None:
    """The line stops it."""
    patient = Patient(tmp_path)
    with holding(patient, "frazil up") as (process, _):
        patient.set("serve.http_port = 9")
        found = trouble(patient.look(check_node))
        assert found.level == "failure" and "does not answer" in found.found
        patient.mend(found)
        process.wait(30)
        assert is_well(patient.look(check_node))


def test_somebody_else_has_the_folder(tmp_path: Path) -> None:
    """A flush goes on for a while, and then it is over."""
    patient = Patient(tmp_path)
    with holding(patient, "frazil flush") as (process, _):
        found = trouble(patient.look(check_node))
        assert found.level == "note" and f"process {process.pid} (frazil flush)" in found.found
        assert f"in use by process {process.pid}" in patient.look(check_folder)[0].found
    assert is_well(patient.look(check_node))


def test_a_real_node(tmp_path: Path) -> None:
    """The ports that the node of this folder has are as they should be; and it is ready."""
    patient = Patient(tmp_path)
    with Node(patient.data) as node:
        patient.set(f"ingest.grpc_port = {node.grpc_port}")
        patient.set(f"ingest.http_port = {node.http_port}")
        patient.set(f"serve.http_port = {node.api_port}")
        found = patient.look(check_ports)
        assert is_well(found)
        assert all(f"runs here (process {node.process.pid})" in each.found for each in found)
        (ready,) = patient.look(check_node)
        assert ready.level == "ok" and "readyz check passed" in ready.found
        patient.set(f"data = '{tmp_path / 'other'}'")
        assert [each.level for each in patient.look(check_ports)] == ["failure"] * 3


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
def test_variables_that_lead_elsewhere(
    tmp_path: Path, variables: dict[str, str], level: str
) -> None:
    patient = Patient(tmp_path)
    patient.environment |= variables
    found = trouble(patient.look(check_exporters))
    assert found.level == level
    patient.mend(found)
    assert is_well(patient.look(check_exporters))


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {NAME: "http://localhost:4318"},
        {NAME: "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        {NAME: "127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_variables_that_lead_here(tmp_path: Path, variables: dict[str, str]) -> None:
    patient = Patient(tmp_path)
    patient.environment |= variables
    assert is_well(patient.look(check_exporters))
