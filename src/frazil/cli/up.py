"""Run a node: telemetry in, durable at once, SQL a moment later, Iceberg tables after that."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil import __version__
from frazil.cli.logs import log_to_stderr
from frazil.cli.options import add_config, add_data, add_json

if TYPE_CHECKING:
    from frazil.config import Config

HELP = "run a node: OTLP in, the log on disk"
GiB = 1024**3

INGEST_FLAGS = {
    "host": "host",
    "otlp_grpc_port": "grpc_port",
    "otlp_http_port": "http_port",
    "tls_certificate": "tls_certificate_file",
    "tls_key": "tls_key_file",
    "tls_client_ca": "tls_client_ca_file",
    "token_file": "token_file",
    "insecure": "insecure",
    "cors_origin": "cors_origins",
}
"""Flag to setting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_node_flags(parser)
    add_json(parser, "one line of JSON once the node accepts")


def add_node_flags(parser: argparse.ArgumentParser) -> None:
    """The settings of a node that have a flag."""
    add_config(parser)
    add_data(parser, "where everything is kept")
    add = parser.add_argument
    add("--host", help="address to listen on (127.0.0.1)")
    add("--otlp-grpc-port", type=int, metavar="N", help="0 is any free port (4317)")
    add("--otlp-http-port", type=int, metavar="N", help="0 is any free port (4318)")
    add("--http-port", type=int, metavar="N", help="of SQL and the API; 0 is any free port (4320)")
    add("--tls-certificate", metavar="FILE", help="PEM; with --tls-key")
    add("--tls-key", metavar="FILE", help="PEM, without a password")
    add("--tls-client-ca", metavar="FILE", help="clients must show a certificate of these")
    add("--token-file", metavar="FILE", help="clients must send one of these tokens, one a line")
    add("--insecure", action="store_true", default=None, help="any address without TLS or token")
    add("--cors-origin", action="append", metavar="ORIGIN", help="pages that may send; repeatable")


def run(options: argparse.Namespace) -> int:
    """Run a node until it is told to stop."""
    # We fork only to run another program, Java for one. What gRPC does around a fork is not needed
    # then; it prints lines of its own, and now and then the other program did not start.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    import uvloop

    from frazil.config import load
    from frazil.model import SystemClock, SystemRand
    from frazil.node import Ready
    from frazil.node import run as run_node

    config = load(options.config, overrides_of(options), assignments=options.assignments)
    log_to_stderr()

    def say(ready: Ready) -> None:
        where = {
            "otlp_grpc_port": ready.grpc_port,
            "otlp_http_port": ready.http_port,
            "http_port": ready.api_port,
            "data": str(Path(config.data).absolute()),
        }
        if options.json:
            print(json.dumps(where), flush=True)
            return
        scheme = "https" if config.ingest.tls_certificate_file else "http"
        host = config.ingest.host
        print(
            f"Frazil {__version__} is up.\n"
            f"  OTLP/gRPC  {scheme}://{host}:{ready.grpc_port}\n"
            f"  OTLP/HTTP  {scheme}://{host}:{ready.http_port}\n"
            f"  API, SQL   {scheme}://{host}:{ready.api_port}\n"
            f"  data       {where['data']}, at most {config.log.disk_bytes_max / GiB:.1f} GiB\n"
            f"  Iceberg    {_lake_line(config, ready.lake is not None)}\n\n"
            "Point an application here:\n"
            f"  export OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://{host}:{ready.http_port}\n"
            "  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n\n"
            "Ctrl-C stops it.",
            flush=True,
        )

    uvloop.run(run_node(config, clock=SystemClock(), rand=SystemRand(), ready=say))
    return 0


def _lake_line(config: Config, is_there: bool) -> str:
    """Where tables are filled, or why there are none."""
    if not config.lake.enabled:
        return "off (lake.enabled = false)"
    if not is_there:
        return "not installed (pip install 'frazil[lake]')"
    own = Path(config.data).absolute() / "lake"
    where = f"catalog {config.lake.catalog_name}" if config.lake.catalog else own
    return f"{where}, at least every {config.lake.flush_age_ms / 1000:g} s"


def overrides_of(options: argparse.Namespace) -> dict[str, Any]:
    """The flags that were given, as settings."""
    given = {setting: getattr(options, flag) for flag, setting in INGEST_FLAGS.items()}
    ingest = {setting: value for setting, value in given.items() if value is not None}
    overrides: dict[str, Any] = {"ingest": ingest} if ingest else {}
    if options.http_port is not None:
        overrides["serve"] = {"http_port": options.http_port}
    if options.data is not None:
        overrides["data"] = options.data
    return overrides
