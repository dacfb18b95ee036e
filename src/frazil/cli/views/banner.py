"""Banner: what `frazil up` prints: one line per room that is ready, then what to do next."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from frazil.cli.terminal.colors import BOLD, DIM, GREEN, YELLOW, Colors
from frazil.cli.terminal.progress import ProgressLine
from frazil.model import GiB, MiB
from frazil.version import __version__

if TYPE_CHECKING:
    from frazil.config import Config
    from frazil.model import Clock
    from frazil.node import NodeAddresses

NS_PER_S = 1_000_000_000
INTERVAL_S = 0.5
AFTER = {
    "log": "OTLP",
    "ingest": "Kafka",
    "kafka": "lake",
    "lake": "hot tier",
    "hot": "API",
    "serve": "Flight SQL",
    "flight": "Jaeger's port",
}
"""Room -> the one that is opened next."""
TITLES = {
    "ingest": "OTLP",
    "kafka": "Kafka",
    "serve": "API",
    "flight": "Flight",
    "jaeger": "Jaeger",
    "spark": "Spark",
}
NAME_WIDTH = 6
OTLP_PORT, API_PORT = 4318, 4320
"""Default ports of the commands."""
LINE_WIDTH = 92
LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""All addresses of a machine -> one of them that can be opened."""
OUTSIDE = {"0.0.0.0": (socket.AF_INET, "192.0.2.1"), "::": (socket.AF_INET6, "2001:db8::1")}
"""Addresses of documentation, which nobody has: nothing is sent to them."""


class Banner:
    """Owned by the command. `room` may be called from any thread. On a terminal, a room that takes
    long to open, such as a log in recovery, is shown as opening."""

    def __init__(self, config: Config, out: TextIO, clock: Clock) -> None:
        self._config = config
        self._out = out
        self._paint = Colors.of(out)
        self._clock = clock
        self._lock = threading.Lock()
        self._opening = "log"
        self._since_ns = clock.monotonic_ns()
        self._is_ready = threading.Event()
        self._progress = ProgressLine("  …", clock=clock, is_quiet=not out.isatty(), stream=out)
        threading.Thread(target=self._wait, name="frazil-banner", daemon=True).start()
        tls = config.ingest.tls_certificate_file is not None
        self._scheme = "https" if tls else "http"
        self._print(f"{self._paint('Frazil', BOLD)} {__version__}\n")

    def room(self, name: str, facts: Mapping[str, Any]) -> None:
        """Print that a component is ready."""
        texts: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "log": self._log,
            "lake": self._lake,
            "hot": self._hot,
            "ingest": self._ingest,
            "kafka": self._kafka,
            "serve": self._serve,
            "flight": self._flight,
            "jaeger": self._jaeger,
            "spark": _spark,
        }
        title = TITLES.get(name, name)
        text = texts[name](facts)
        is_off = name == "lake" and facts.get("is_there") is False
        mark = self._paint("-", YELLOW) if is_off else self._paint("✓", GREEN)
        took_ms = int(facts["took_ms"])
        self._opening, self._since_ns = AFTER.get(name, ""), self._clock.monotonic_ns()
        took = self._paint(f"{took_ms / 1000:.1f} s" if took_ms >= 1000 else f"{took_ms} ms", DIM)
        self._print(f"  {mark} {title:<{NAME_WIDTH}} {text:<{LINE_WIDTH}} {took}")

    def ready(self, ready: NodeAddresses) -> None:
        """Print the addresses, and what to do next."""
        self._is_ready.set()
        config = self._config
        sizes = f"log up to {_size(config.log.disk_bytes_max)}"
        if config.hot.enabled:
            sizes += f", hot tier up to {_size(config.hot.disk_bytes_max)}"
        token = "" if config.ingest.token_file is None else self._token()
        page = ""
        if ready.api_port is not None:
            address = self._paint(self._url(ready.api_port), BOLD)
            page = f"Open {address} in a browser.\n{self._elsewhere()}\n"
        self._print(
            f"\nReady. Data is kept in {Path(config.data).absolute()} ({sizes}).\n\n{page}"
            "Send telemetry to it:\n"
            f"  export OTEL_EXPORTER_OTLP_ENDPOINT={self._url(ready.http_port)}\n"
            f"  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n{token}"
            "Or, in another terminal:\n"
            f"{self._first_commands(ready)}\n"
            "Ctrl-C stops the node."
        )

    def _wait(self) -> None:
        while not self._is_ready.wait(INTERVAL_S):
            seconds = (self._clock.monotonic_ns() - self._since_ns) / NS_PER_S
            with self._lock:
                if not self._is_ready.is_set() and seconds >= INTERVAL_S:
                    self._progress.update(0, f"opening {self._opening}, {seconds:.0f} s")

    def _log(self, facts: Mapping[str, Any]) -> str:
        if not facts["offsets"]:
            return "empty"
        return f"{facts['offsets']:,} requests, {_size(facts['bytes'])}"

    def _lake(self, facts: Mapping[str, Any]) -> str:
        config = self._config.lake
        if not config.enabled:
            return "off (lake.enabled = false)"
        if not facts["is_there"]:
            return "not installed: no Iceberg tables (pip install 'frazil[lake]')"
        folder = Path(self._config.data).absolute() / "lake"
        where = f"catalog {config.catalog_name}" if config.catalog else folder
        return f"Iceberg tables in {where}, committed every {config.flush_age_ms / 1000:g} s"

    def _hot(self, facts: Mapping[str, Any]) -> str:
        lag = facts["lag_offsets"]
        more = f", {lag:,} requests still to load" if lag else ""
        return f"{facts['rows']:,} rows{more}"

    def _ingest(self, facts: Mapping[str, Any]) -> str:
        return f"gRPC {self._url(facts['grpc_port'])}   HTTP {self._url(facts['http_port'])}"

    def _kafka(self, facts: Mapping[str, Any]) -> str:
        return f"{_address(self._config.kafka_host, facts['port'])}   any Kafka client"

    def _serve(self, facts: Mapping[str, Any]) -> str:
        return f"{self._url(facts['http_port'])}   SQL, traces, logs, metrics; /openapi.json"

    def _flight(self, facts: Mapping[str, Any]) -> str:
        scheme = "grpc" if self._config.ingest.tls_certificate_file is None else "grpc+tls"
        address = _address(self._config.flight_host, facts["port"])
        return f"{scheme}://{address}   Flight SQL: ADBC, JDBC, BI tools"

    def _jaeger(self, facts: Mapping[str, Any]) -> str:
        return f"{_address(self._config.jaeger_host, facts['port'])}   storage of a Jaeger, to read"

    def _url(self, port: int) -> str:
        return f"{self._scheme}://{_address(self._config.ingest.host, port)}"

    def _elsewhere(self) -> str:
        """Return how other machines reach a node that listens on all addresses."""
        host = self._config.ingest.host
        if host not in OUTSIDE:
            return ""
        address = own_address(*OUTSIDE[host]) or "the address of this machine"
        return f"Other machines use {address} instead of {LOOPBACK[host]}.\n"

    def _first_commands(self, ready: NodeAddresses) -> str:
        """Return first commands, with flags for these ports."""
        endpoint = (
            "" if ready.http_port == OTLP_PORT else f" --endpoint {self._url(ready.http_port)}"
        )
        url = ""
        if ready.api_port is not None and ready.api_port != API_PORT:
            url = f" --url {self._url(ready.api_port)}"
        commands = {
            f"frazil demo{endpoint}": "send sample telemetry",
            f"frazil sql{url}": "query with SQL",
            f"frazil tail{url}": "follow records",
            f"frazil status{url}": "show node status",
        }
        width = max(map(len, commands))
        return "".join(f"  {command:<{width}}   {what}\n" for command, what in commands.items())

    def _token(self) -> str:
        return "  export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20<token>'\n"

    def _print(self, text: str) -> None:
        with self._lock:
            self._progress.wipe()
            print(text, file=self._out, flush=True)


def _address(host: str, port: int) -> str:
    """Return an address that a client on this machine can use."""
    host = LOOPBACK.get(host, host)
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def own_address(family: socket.AddressFamily, destination: str) -> str | None:
    """Return the address of this machine on the route to another one. Sends nothing."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((destination, 9))
        except OSError:
            return None  # no route
        return str(probe.getsockname()[0])


def _spark(facts: Mapping[str, Any]) -> str:
    return f"running, process {facts['pid']}; appending to the tables"


def _size(count: int) -> str:
    if count >= GiB:
        return f"{count / GiB:.3g} GiB"
    return f"{count / MiB:.3g} MiB"
