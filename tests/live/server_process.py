"""A server of a test as a separate process on a free port of loopback."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.programs import built_once

START_SECONDS_MAX = 180
POLL_S = 0.05


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def server_process(command: Sequence[str | Path], port: int, output: Path) -> Iterator[None]:
    """Run a server until the end of the block; it accepts connections in the block."""
    with output.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _accepts(port):
            assert process.poll() is None, output.read_text(errors="replace")
            assert time.monotonic() < deadline, f"{command[0]} does not listen"
            time.sleep(POLL_S)
        yield
    finally:
        process.kill()
        process.wait()


def built_or_skipped(name: str, sources: list[Path], make: Callable[[Path], None]) -> Path:
    """Like `built_once`; skips the test where the program cannot be fetched or built."""
    try:
        return built_once(name, sources, make)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        last = str(error).strip().splitlines()[-1]
        pytest.skip(f"{name} cannot be fetched or built here: {last}")


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True
