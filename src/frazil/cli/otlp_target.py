"""Where telemetry is sent: the port for OTLP/HTTP of a node."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from frazil.cli.connection import token_of

if TYPE_CHECKING:
    from frazil.otlp_client import OtlpTarget

ENDPOINT = "http://127.0.0.1:4318"
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""What applications learn their endpoint from."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """The flags that say where telemetry is sent."""
    add = parser.add_argument
    where = f"of OTLP/HTTP (${ENDPOINT_VARIABLE}, else {ENDPOINT})"
    add("--endpoint", metavar="URL", help=where)
    add("--token", help="what the node lets us in with; --token-file keeps it out of `ps`")
    add("--token-file", metavar="FILE", help="its first line is the token; also by FRAZIL_TOKEN")
    add("--ca-file", metavar="FILE", help="trust the certificates of these authorities (PEM)")


def target_of(options: argparse.Namespace) -> OtlpTarget:
    """Where telemetry is sent, by a verb that has these flags."""
    from frazil.otlp_client import OtlpTarget

    url = options.endpoint or os.environ.get(ENDPOINT_VARIABLE) or ENDPOINT
    token = options.token or token_of(options)
    return OtlpTarget(url=url, token=token, ca_file=options.ca_file)
