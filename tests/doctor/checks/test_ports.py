"""Ports: who has them, and which to take instead."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.doctor.checks.ports import check_ports
from tests.doctor.patient import Patient, all_ok, as_nobody, problem, public_folder

LISTEN = """
import socket, sys, time
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
sys.stdin.read()
"""
ANY = (
    *("ingest.grpc_port = 0", "ingest.http_port = 0", "serve.http_port = 0", "kafka.port = 0"),
    *("flight.port = 0", "jaeger.enabled = true", "jaeger.port = 0"),
)
UNPRIVILEGED = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


@pytest.fixture
def stranger() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that listens on a port."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process, int(process.stdout.readline())
        process.stdin.close()


@pytest.mark.parametrize(
    "name",
    [
        *("ingest.grpc_port", "ingest.http_port", "serve.http_port", "kafka.port", "flight.port"),
        "jaeger.port",
    ],
)
def test_a_port_in_use_is_a_failure(
    tmp_path: Path, stranger: tuple[subprocess.Popen[str], int], name: str
) -> None:
    """The process is named, and the suggested port is free."""
    process, port = stranger
    patient = Patient(tmp_path, *ANY, f"{name} = {port}")
    found = problem(patient.check(check_ports))
    assert found.level == "failure" and found.check == f"port {port}"
    assert f"in use by process {process.pid} ({sys.executable} -c" in found.found
    patient.mend(found)
    assert all_ok(patient.check(check_ports))


def test_stopping_the_other_process_frees_the_port(
    tmp_path: Path, stranger: tuple[subprocess.Popen[str], int]
) -> None:
    process, port = stranger
    patient = Patient(tmp_path, *ANY, f"ingest.grpc_port = {port}")
    assert problem(patient.check(check_ports)).level == "failure"
    process.terminate()
    process.wait(30)
    assert all_ok(patient.check(check_ports))


def test_a_port_below_1024_is_a_failure() -> None:
    if UNPRIVILEGED.read_text().strip() == "0":
        pytest.skip("here every user may listen at every port")
    with public_folder() as folder:
        patient = Patient(folder, *ANY, "ingest.http_port = 81")
        with as_nobody():
            found = problem(patient.check(check_ports))
        assert found.level == "failure" and "cannot listen: Permission denied" in found.found
        patient.mend(found)
        with as_nobody():
            assert all_ok(patient.check(check_ports))


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_a_failure(tmp_path: Path, host: str) -> None:
    patient = Patient(tmp_path, *ANY, f"ingest.host = '{host}'", "ingest.insecure = true")
    found = problem(patient.check(check_ports))
    assert found.level == "failure" and f"cannot listen on {host}" in found.found
    patient.mend(found)
    assert all_ok(patient.check(check_ports))


def test_suggested_ports_in_use_are_skipped(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1] % 10_000 + 10_000
        if port == first.getsockname()[1]:
            port += 10_000
        with socket.create_server(("127.0.0.1", port)):
            patient = Patient(tmp_path, *ANY, f"ingest.grpc_port = {first.getsockname()[1]}")
            found = problem(patient.check(check_ports))
            assert found.fix and found.fix.text != f"ingest.grpc_port = {port}"
            patient.mend(found)
            assert all_ok(patient.check(check_ports))
