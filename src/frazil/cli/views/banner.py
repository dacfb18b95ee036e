"""Banner: what `frazil up` tells a human: a line per thing that is ready, and what to do now."""

from __future__ import annotations

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
LOOK_S = 0.5
AFTER = {"log": "lake", "lake": "hot tier", "hot": "OTLP", "ingest": "API"}
"""Room to the one that is opened next."""
NAME_WIDTH = 6
OTLP_PORT, API_PORT = 4318, 4320
"""Where commands look when nobody says otherwise."""
LINE_WIDTH = 92


class Banner:
    """Owned by the command. `room` may be called from any thread; a line is written at once. While
    a room takes long to open, as a log does that has much to recover, a terminal shows that."""

    def __init__(self, config: Config, out: TextIO, clock: Clock) -> None:
        self._config = config
        self._out = out
        self._paint = Colors.of(out)
        self._clock = clock
        self._lock = threading.Lock()
        self._opening = "log"
        self._since_ns = clock.monotonic_ns()
        self._is_up = threading.Event()
        self._waiting = ProgressLine("  …", clock=clock, is_quiet=not out.isatty(), stream=out)
        threading.Thread(target=self._wait, name="frazil-greeting", daemon=True).start()
        tls = config.ingest.tls_certificate_file is not None
        self._scheme = "https" if tls else "http"
        self._say(f"{self._paint('Frazil', BOLD)} {__version__}\n")

    def room(self, name: str, facts: Mapping[str, Any]) -> None:
        """One thing is ready."""
        says: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "log": self._log,
            "lake": self._lake,
            "hot": self._hot,
            "ingest": self._ingest,
            "serve": self._serve,
            "spark": _spark,
        }
        shown = {"ingest": "OTLP", "serve": "API", "spark": "Spark"}.get(name, name)
        text = says[name](facts)
        is_off = name == "lake" and facts.get("is_there") is False
        mark = self._paint("-", YELLOW) if is_off else self._paint("✓", GREEN)
        took_ms = int(facts["took_ms"])
        self._opening, self._since_ns = AFTER.get(name, ""), self._clock.monotonic_ns()
        took = self._paint(f"{took_ms / 1000:.1f} s" if took_ms >= 1000 else f"{took_ms} ms", DIM)
        self._say(f"  {mark} {shown:<{NAME_WIDTH}} {text:<{LINE_WIDTH}} {took}")

    def ready(self, ready: NodeAddresses) -> None:
        """It accepts requests: where, and what can be done with it now."""
        self._is_up.set()
        config = self._config
        sizes = f"log up to {_size(config.log.disk_bytes_max)}"
        if config.hot.enabled:
            sizes += f", hot tier up to {_size(config.hot.disk_bytes_max)}"
        token = "" if config.ingest.token_file is None else self._token()
        page = ""
        if ready.api_port is not None:
            address = self._paint(self._url(ready.api_port), BOLD)
            page = f"Open {address} in a browser.\n\n"
        self._say(
            f"\nReady. Data is kept in {Path(config.data).absolute()} ({sizes}).\n\n{page}"
            "Point an application here:\n"
            f"  export OTEL_EXPORTER_OTLP_ENDPOINT={self._url(ready.http_port)}\n"
            f"  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n{token}"
            "Or try, in another terminal:\n"
            f"{self._tries(ready)}\n"
            "Ctrl-C stops it."
        )

    def _wait(self) -> None:
        while not self._is_up.wait(LOOK_S):
            seconds = (self._clock.monotonic_ns() - self._since_ns) / NS_PER_S
            with self._lock:
                if not self._is_up.is_set() and seconds >= LOOK_S:
                    self._waiting.update(0, f"{self._opening} is being opened, {seconds:.0f} s")

    def _log(self, facts: Mapping[str, Any]) -> str:
        if not facts["offsets"]:
            return "nothing in it yet"
        return f"{facts['offsets']:,} requests, {_size(facts['bytes'])}"

    def _lake(self, facts: Mapping[str, Any]) -> str:
        config = self._config.lake
        if not config.enabled:
            return "off (lake.enabled = false)"
        if not facts["is_there"]:
            return "not installed: no Iceberg tables (pip install 'frazil[lake]')"
        own = Path(self._config.data).absolute() / "lake"
        where = f"catalog {config.catalog_name}" if config.catalog else own
        return f"Iceberg tables in {where}, filled every {config.flush_age_ms / 1000:g} s by Spark"

    def _hot(self, facts: Mapping[str, Any]) -> str:
        behind = facts["lag_offsets"]
        more = f", {behind:,} requests of the log to come" if behind else ""
        return f"{facts['rows']:,} rows to ask{more}"

    def _ingest(self, facts: Mapping[str, Any]) -> str:
        return f"gRPC {self._url(facts['grpc_port'])}   HTTP {self._url(facts['http_port'])}"

    def _serve(self, facts: Mapping[str, Any]) -> str:
        return f"{self._url(facts['http_port'])}   SQL, traces, logs, metrics; /openapi.json"

    def _url(self, port: int) -> str:
        host = self._config.ingest.host
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def _tries(self, ready: NodeAddresses) -> str:
        """Commands to begin with, as they have to be for these ports."""
        sends = "" if ready.http_port == OTLP_PORT else f" --endpoint {self._url(ready.http_port)}"
        asks = ""
        if ready.api_port is not None and ready.api_port != API_PORT:
            asks = f" --url {self._url(ready.api_port)}"
        tries = {
            f"frazil demo{sends}": "telemetry of a small shop",
            f"frazil sql{asks}": "ask in SQL",
            f"frazil tail{asks}": "records as they come",
            f"frazil status{asks}": "how the node does",
        }
        width = max(map(len, tries))
        return "".join(f"  {command:<{width}}   {what}\n" for command, what in tries.items())

    def _token(self) -> str:
        return "  export OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20<token>'\n"

    def _say(self, text: str) -> None:
        with self._lock:
            self._waiting.wipe()
            print(text, file=self._out, flush=True)


def _spark(facts: Mapping[str, Any]) -> str:
    return f"is up, process {facts['pid']}: tables are filled"


def _size(count: int) -> str:
    if count >= GiB:
        return f"{count / GiB:.3g} GiB"
    return f"{count / MiB:.3g} MiB"
