"""Run a node: telemetry in, durable at once, SQL a moment later, Iceberg tables after that."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frazil.cli.logging import log_to_stderr
from frazil.cli.options import add_config, add_data, add_json
from frazil.cli.views.banner import Banner

HELP = "run a node: telemetry in, SQL and Iceberg tables out"

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
    parser.add_argument("--verbose", action="store_true", help="on a terminal, say everything")


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
    from frazil.node import NodeAddresses, log_room
    from frazil.node import run as run_node
    from frazil.self_tracing import own_traces

    config = load(options.config, overrides_of(options), assignments=options.assignments)
    log_to_stderr()
    is_watched = sys.stderr.isatty() and not options.json
    if is_watched and not options.verbose:
        # What is ready is told in another way; a human wants to see trouble, and the end.
        logging.getLogger().setLevel(logging.WARNING)
        logging.getLogger("frazil.node").setLevel(logging.INFO)
    clock, rand = SystemClock(), SystemRand()
    greeting = None if options.json else Banner(config, sys.stdout, clock)

    def tell(name: str, facts: Mapping[str, object]) -> None:
        if greeting is not None:
            greeting.room(name, facts)
        if not is_watched:
            log_room(name, facts)

    def say(ready: NodeAddresses) -> None:
        if greeting is not None:
            greeting.ready(ready)
            return
        where = {
            "otlp_grpc_port": ready.grpc_port,
            "otlp_http_port": ready.http_port,
            "http_port": ready.api_port,
            "data": str(Path(config.data).absolute()),
        }
        print(json.dumps(where), flush=True)

    with own_traces(os.environ):
        uvloop.run(run_node(config, clock=clock, rand=rand, ready=say, on_room=tell))
    return 0


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
