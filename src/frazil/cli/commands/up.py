"""Run a node: receive OTLP, store it durably, query it with SQL, keep it in Iceberg tables."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from frazil.cli.options import add_config, add_data, add_json, folder_overrides
from frazil.cli.views.banner import Banner
from frazil.program_log import log_to_stderr

HELP = "Run a node: OTLP and Kafka in, SQL and Iceberg tables out"

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
"""Flag -> setting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_node_flags(parser)
    add_json(parser, "print one JSON object once the node accepts requests")
    parser.add_argument("--verbose", action="store_true", help="log everything on a terminal")


def add_node_flags(parser: argparse.ArgumentParser) -> None:
    """Add the settings of a node that have a flag."""
    add_config(parser)
    add_data(parser, "data folder")
    add = parser.add_argument
    add("--host", help="address to listen on (default: 127.0.0.1)")
    add("--otlp-grpc-port", type=int, metavar="N", help="port of OTLP/gRPC (default: 4317; 0: any)")
    add("--otlp-http-port", type=int, metavar="N", help="port of OTLP/HTTP (default: 4318; 0: any)")
    add(
        "--http-port",
        type=int,
        metavar="N",
        help="port of the API (default: 4320; 0: any)",
    )
    add("--kafka-port", type=int, metavar="N", help="port of Kafka (default: 9092; 0: any)")
    add("--flight-port", type=int, metavar="N", help="port of Flight SQL (default: 8815; 0: any)")
    add(
        "--jaeger-port",
        type=int,
        metavar="N",
        help="open the port on which a Jaeger reads traces (usually 17271; 0: any)",
    )
    add("--tls-certificate", metavar="FILE", help="certificate chain (PEM); needs --tls-key")
    add("--tls-key", metavar="FILE", help="private key (PEM), without a password")
    add("--tls-client-ca", metavar="FILE", help="require client certificates of these CAs")
    add("--token-file", metavar="FILE", help="require one of these tokens, one per line")
    add(
        "--insecure",
        action="store_true",
        default=None,
        help="any address without TLS and token",
    )
    add(
        "--cors-origin",
        action="append",
        metavar="ORIGIN",
        help="origin that may send; repeatable",
    )


def run(options: argparse.Namespace) -> int:
    """Run a node until a signal stops it."""
    # We fork only to exec another program, such as Java. gRPC's fork handlers are not needed then;
    # they print lines of their own, and sometimes the other program did not start.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    import uvloop

    from frazil.config import disk_use, fit_to_disk, load
    from frazil.disk import free_bytes
    from frazil.model import SystemClock, SystemRand
    from frazil.node import NodeAddresses, log_room
    from frazil.node import run as run_node
    from frazil.self_tracing import export_own_traces

    asked = load(options.config, overrides_of(options), assignments=options.assignments)
    folder = Path(asked.data)
    config = fit_to_disk(asked, free_bytes=free_bytes(folder), used_bytes=disk_use(folder))
    log_to_stderr()
    is_watched = sys.stderr.isatty() and not options.json
    if is_watched and not options.verbose:
        # The banner shows what is ready; the log only needs to show problems and the shutdown.
        logging.getLogger().setLevel(logging.WARNING)
        logging.getLogger("frazil.node").setLevel(logging.INFO)
    if config != asked:
        facts = {"log": config.log.disk_bytes_max, "hot": config.hot.disk_bytes_max}
        logging.getLogger("frazil.node").warning(
            "limits of log and hot tier are lowered to fit the disk", extra=facts
        )
    clock, rand = SystemClock(), SystemRand()
    banner = None if options.json else Banner(config, sys.stdout, clock)

    def on_room(name: str, facts: Mapping[str, object]) -> None:
        if banner is not None:
            banner.room(name, facts)
        if not is_watched:
            log_room(name, facts)

    def on_ready(ready: NodeAddresses) -> None:
        if banner is not None:
            banner.ready(ready)
            return
        addresses = {
            "otlp_grpc_port": ready.grpc_port,
            "otlp_http_port": ready.http_port,
            "http_port": ready.api_port,
            "kafka_port": ready.kafka_port,
            "flight_port": ready.flight_port,
            "jaeger_port": ready.jaeger_port,
            "data": str(Path(config.data).absolute()),
        }
        print(json.dumps(addresses), flush=True)

    with export_own_traces(os.environ, is_enabled=config.self_tracing):
        uvloop.run(run_node(config, clock=clock, rand=rand, ready=on_ready, on_room=on_room))
    return 0


def overrides_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the flags as settings."""
    flags = {setting: getattr(options, flag) for flag, setting in INGEST_FLAGS.items()}
    ingest = {setting: value for setting, value in flags.items() if value is not None}
    overrides: dict[str, Any] = {"ingest": ingest} if ingest else {}
    if options.http_port is not None:
        overrides["serve"] = {"http_port": options.http_port}
    if options.kafka_port is not None:
        overrides["kafka"] = {"port": options.kafka_port}
    if options.flight_port is not None:
        overrides["flight"] = {"port": options.flight_port}
    if options.jaeger_port is not None:
        overrides["jaeger"] = {"enabled": True, "port": options.jaeger_port}
    return {**overrides, **folder_overrides(options)}
