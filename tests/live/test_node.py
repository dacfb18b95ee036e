"""A real node starts, stops, and explains why it cannot start."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import grpc
import pytest

from frazil.model import Signal
from frazil.node.reader_process import EXITS_MAX
from tests.clients.node import COMMAND, FREE_PORTS, Node, stored
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http
from tests.ingest.certificates import make_certificates

START_S = 120


def _readyz(node: Node) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=START_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().read()
    finally:
        connection.close()


def up(*options: str) -> subprocess.CompletedProcess[str]:
    """Run a node that is expected to fail."""
    return subprocess.run(
        [*COMMAND, "up", *options], capture_output=True, text=True, timeout=START_S, check=False
    )


def test_a_stop_under_load_loses_nothing(tmp_path: Path) -> None:
    """After SIGTERM open requests are answered, new ones are refused, and the exit code is 0.

    Accepted requests are in the log once.
    """
    accepted: Counter[str] = Counter()
    lock, over = threading.Lock(), threading.Event()

    def send(sender: int, node: Node) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        with grpc.insecure_channel(f"127.0.0.1:{node.grpc_port}", options=options) as channel:
            call = channel.unary_unary(Signal.LOGS.method)
            for number in range(100_000):
                name = f"{sender}-{number}"
                try:
                    call(logs(log(number, event_name=name)), timeout=20)
                except grpc.RpcError:
                    over.set()
                    return
                with lock:
                    accepted[name] += 1

    with Node(tmp_path / "data") as node:
        senders = [threading.Thread(target=send, args=(n, node)) for n in range(6)]
        for thread in senders:
            thread.start()
        while sum(accepted.values()) < 200 and not over.is_set():
            threading.Event().wait(0.01)
        assert node.stop() == 0
        for thread in senders:
            thread.join()
        (line,) = (line for line in node.errors().splitlines() if "stopped" in line)
        assert "requests_answered" in line
        assert "hot_rows" in line
    found = Counter(
        record.event_name
        for request in stored(tmp_path / "data")[Signal.LOGS]
        for record in request.resource_logs[0].scope_logs[0].log_records
    )
    assert sum(accepted.values()) >= 200
    assert accepted <= found
    assert max(found.values()) == 1


def test_a_second_signal_ends_the_process(tmp_path: Path) -> None:
    """It does not wait for an incomplete request."""
    with (
        Node(tmp_path / "data") as node,
        socket.create_connection(("127.0.0.1", node.http_port)) as slow,
    ):
        slow.sendall(
            b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 100\r\n\r\nhalf"
        )
        threading.Event().wait(0.3)
        node.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            node.process.wait(1)
        node.process.send_signal(signal.SIGTERM)
        assert node.process.wait(5) == -signal.SIGTERM


def test_a_second_node_names_the_owner_of_the_folder(tmp_path: Path) -> None:
    """The second node exits; the first keeps running."""
    with Node(tmp_path / "data") as node:
        second = up("--data", str(tmp_path / "data"), *FREE_PORTS)
        assert second.returncode == 1
        assert f"in use by process {node.process.pid} (frazil up)" in second.stderr
        assert "Traceback" not in second.stderr
        answer = send_http(node.http_port, "/v1/logs", b"", {"Content-Type": PROTOBUF})
        assert answer.status == 200


@pytest.mark.parametrize("name", ["grpc", "http"])
def test_a_taken_port_is_named(name: str, tmp_path: Path) -> None:
    """The message names the port and its setting, and the process ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = up("--data", str(tmp_path / "data"), *FREE_PORTS, f"--otlp-{name}-port", port)
    assert done.returncode == 1
    assert port in done.stderr
    assert f"ingest.{name}_port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "TLS is off"),
        (("--tls-key", "absent"), "need each other"),
        (("--token-file", "absent"), "cannot be read"),
        (("--config", "absent"), "cannot be read"),
        (("--otlp-grpc-port", "70000"), "a port must be"),
        (("--cors-origin", "shop"), "an origin must be"),
    ],
)
def test_wrong_settings_prevent_the_start(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    """With a message and exit code 2; no data folder is created."""
    done = up("--data", str(tmp_path / "data"), *FREE_PORTS, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_messages_on_a_terminal(tmp_path: Path) -> None:
    """One line per ready component, addresses, the data folder and its limits, commands to copy."""
    command = [*COMMAND, "up", "--data", str(tmp_path / "data"), *FREE_PORTS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(node.stdout.readline())
            assert lines[-1]
        node.terminate()
        assert node.wait(30) == 0
    text = "".join(lines)
    for room in ("log", "lake", "hot", "OTLP", "API"):
        assert f"✓ {room} " in text
    assert "gRPC http://127.0.0.1:" in text
    assert "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:" in text
    assert f"{tmp_path / 'data'} (log up to 10 GiB, hot tier up to 8 GiB)" in text
    assert "frazil sql --url http://127.0.0.1:" in text
    assert "Other machines" not in text


def test_every_printed_address_can_be_opened(tmp_path: Path) -> None:
    """Also of a node that listens on all addresses: 0.0.0.0 is none."""
    options = ("--host", "0.0.0.0", "--insecure", "--set", "lake.enabled=false")
    command = [*COMMAND, "up", "--data", str(tmp_path / "data"), *FREE_PORTS, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(node.stdout.readline())
            assert lines[-1]
        text = "".join(lines)
        addresses = set(re.findall(r"https?://([\d.]+):(\d+)", text))
        assert len(addresses) == 3
        if (
            found := re.search(r"Other machines use ([\d.]+) instead of 127.0.0.1", text)
        ) is not None:
            addresses |= {(found[1], port) for _, port in addresses}
        for host, port in addresses:
            socket.create_connection((host, int(port)), timeout=START_S).close()
        node.terminate()
        assert node.wait(30) == 0
    assert "0.0.0.0" not in text


def test_tls_and_token_by_flags(tmp_path: Path) -> None:
    """As in the README: requests without the token are refused."""
    made = make_certificates(tmp_path)
    tokens = tmp_path / "tokens"
    tokens.write_text("0123456789abcdef\n")
    options = (
        *("--host", "0.0.0.0"),
        *("--tls-certificate", made.server_certificate),
        *("--tls-key", made.server_key),
        *("--token-file", str(tokens)),
    )
    with Node(tmp_path / "data", *options) as node:
        credentials = grpc.ssl_channel_credentials(Path(made.authority).read_bytes())
        with grpc.secure_channel(f"127.0.0.1:{node.grpc_port}", credentials) as channel:
            call = channel.unary_unary(Signal.LOGS.method)
            with pytest.raises(grpc.RpcError) as refused:
                call(logs(log(1)), timeout=20)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
            metadata = (("authorization", "Bearer 0123456789abcdef"),)
            assert call(logs(log(1)), timeout=20, metadata=metadata) == b""
        assert node.stop() == 0


def test_warm_compiles_ahead() -> None:
    """`make setup` runs it, so that no start has to wait for the compiler."""
    done = subprocess.run([*COMMAND, "warm"], timeout=START_S, check=False)
    assert done.returncode == 0


def test_version_and_help_are_fast() -> None:
    """Neither loads anything heavy: no compiler, no gRPC."""
    code = (
        "import sys; from frazil.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as done: assert done.code == 0\n"
        "assert not {'numba', 'grpc', 'httptools'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    version = subprocess.run([*COMMAND, "--version"], capture_output=True, check=False)
    assert version.stdout.startswith(b"frazil ")


def test_ready_prints_one_json_line(tmp_path: Path) -> None:
    """With the actual ports and the data folder."""
    command = [*COMMAND, "up", "--data", str(tmp_path / "data"), *FREE_PORTS, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        ready = json.loads(node.stdout.readline())
        node.terminate()
        rest = node.stdout.read()
        assert node.wait(30) == 0
    assert ready["otlp_grpc_port"] > 0
    assert ready["otlp_http_port"] > 0
    assert ready["http_port"] > 0
    assert ready["data"] == str(tmp_path / "data")
    assert rest == ""


DYING = """
import sys

if "frazil.reader" in sys.orig_argv:
    from frazil.hot import HotTier

    def die(_):
        raise MemoryError("no room for rows")

    HotTier.step = die
"""


def test_ingest_continues_without_the_hot_tier(tmp_path: Path) -> None:
    """The reader is restarted some times, then stays up without rows; clients are not affected,
    and nothing is lost."""
    (tmp_path / "sitecustomize.py").write_text(DYING)
    environment = {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    with Node(tmp_path / "data", environment=environment) as node:
        while node.errors().count("the hot tier has stopped") <= EXITS_MAX:
            assert node.process.poll() is None
            threading.Event().wait(0.01)
        while b"[-]hot failed: new rows are not visible" not in _readyz(node):
            threading.Event().wait(0.01)
        body = logs(log(1, event_name="after"))
        assert send_http(node.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF}).status == 200
        assert node.stop() == 0
    assert len(stored(tmp_path / "data")[Signal.LOGS]) == 1


def test_a_locale_without_a_tick_mark_does_not_matter(tmp_path: Path) -> None:
    """Some init systems start programs with an ASCII locale."""
    command = [*COMMAND, "up", "--data", str(tmp_path / "data"), *FREE_PORTS]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as node:
        assert node.stdout is not None
        lines: list[bytes] = []
        while not lines or not lines[-1].startswith(b"Ready"):
            lines.append(node.stdout.readline())
            assert lines[-1], "it ended"
        node.terminate()
        node.stdout.read()
        assert node.wait(START_S) == 0
    assert any(line.startswith(b"  ? log") for line in lines)
