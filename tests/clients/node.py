"""A real node as a process, and what its log holds after it has ended."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import message_factory

from frazil.disk import RealDisk
from frazil.ingest.otlp.messages import REQUESTS
from frazil.log import Log
from frazil.model import Signal, SystemClock

COMMAND = [sys.executable, "-m", "frazil"]
START_SECONDS_MAX = 120
"""The first start compiles the scanner, perhaps on a busy machine."""
STOP_SECONDS_MAX = 60
LINE_BYTES_MAX = 64 * 1024
PORTS = ("--otlp-grpc-port", "--otlp-http-port", "--http-port", "--kafka-port", "--flight-port")
FREE_PORTS = tuple(word for option in PORTS for word in (option, "0"))
"""Options of `frazil up` for a node that uses any free ports."""


class Node:
    """One node on one data folder, with the same ports after each start. Owned by the test."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        command: list[str] = COMMAND,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.environment = dict(environment or {})
        """Added to this process's environment. May be changed between two starts."""
        self.grpc_port = 0
        self.http_port = 0
        self.api_port = 0
        self.kafka_port = 0
        self.flight_port = 0
        self.jaeger_port: int | None = None
        """Set if the options open the port."""
        self._command = command
        self._options = options
        self._errors = folder.with_name(f"{folder.name}.stderr")
        self.start()

    def start(self) -> None:
        """Start the process, also again after it has ended. Returns once it accepts requests."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Start the process without waiting."""
        command = [
            *self._command,
            "up",
            *("--data", str(self.folder)),
            *self._ports(),
            "--json",
            *self._options,
        ]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **self.environment},
            )

    def _ports(self) -> Iterator[str]:
        numbers = (
            *(self.grpc_port, self.http_port, self.api_port, self.kafka_port),
            self.flight_port,
        )
        for option, number in zip(PORTS, numbers, strict=True):
            yield from (option, str(number))

    def await_ready(self) -> None:
        """Wait until the process accepts requests; kill it if it never does."""
        try:
            ready = json.loads(self._first_line())
        except BaseException:
            self.kill()
            raise
        self.grpc_port = ready["otlp_grpc_port"]
        self.http_port = ready["otlp_http_port"]
        self.api_port = ready["http_port"]
        self.kafka_port = ready["kafka_port"]
        self.flight_port = ready["flight_port"] or 0
        self.jaeger_port = ready["jaeger_port"]

    @property
    def url(self) -> str:
        """The URL of its API."""
        return f"http://127.0.0.1:{self.api_port}"

    def _first_line(self) -> bytes:
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS_MAX)
        assert readable, f"no output from the node in {START_SECONDS_MAX} s: {self.errors()}"
        line = self.process.stdout.readline(LINE_BYTES_MAX)
        assert line, f"the node ended before it was ready: {self.errors()}"
        return line

    def errors(self) -> str:
        """Return its standard error since the last start."""
        return self._errors.read_text(errors="replace")

    def kill(self) -> None:
        """Send SIGKILL. Harmless when the process has ended."""
        self.process.kill()
        self.wait()

    def stop(self) -> int:
        """Send SIGTERM. Returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end. Returns the exit code."""
        code = self.process.wait(STOP_SECONDS_MAX)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def stored(folder: Path) -> dict[Signal, list[Any]]:
    """Return every request in the log, parsed, in log order. The node must have ended."""
    with Log.open(RealDisk(folder), clock=SystemClock(), rand=random.SystemRandom()) as log:
        return {signal: _requests(log, signal) for signal in Signal}


def _requests(log: Log, signal: Signal) -> list[Any]:
    parse = message_factory.GetMessageClass(REQUESTS[signal]).FromString
    found = []
    for partition in log.topic(signal.topic).partitions:
        reader = log.reader(signal.topic, "earliest", partition=partition.index)
        while batches := reader.read():
            found += [parse(record.value or b"") for b in batches for record in b.records()]
        reader.close()
    return found
