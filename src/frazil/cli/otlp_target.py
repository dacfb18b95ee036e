"""The OTLP/HTTP endpoint that telemetry is sent to."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from frazil.cli.connection import token_of
from frazil.cli.options import add_credentials

if TYPE_CHECKING:
    from frazil.otlp_client import OtlpTarget

ENDPOINT = "http://127.0.0.1:4318"
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable OpenTelemetry SDKs read."""


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the endpoint."""
    add = parser.add_argument
    default = f"default: ${ENDPOINT_VARIABLE}, else {ENDPOINT}"
    add("--endpoint", metavar="URL", help=f"OTLP/HTTP endpoint ({default})")
    add("--token", help="access token; --token-file keeps it out of `ps`")
    add_credentials(parser)


def target_of(options: argparse.Namespace) -> OtlpTarget:
    """Return the endpoint that the flags name."""
    from frazil.otlp_client import OtlpTarget

    url = options.endpoint or os.environ.get(ENDPOINT_VARIABLE) or ENDPOINT
    token = options.token or token_of(options)
    return OtlpTarget(url=url, token=token, ca_file=options.ca_file)
