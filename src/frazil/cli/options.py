"""Flags that several verbs have."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.config import Config
    from frazil.sender import Target

ENDPOINT = "http://127.0.0.1:4318"
ENDPOINT_VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""What applications learn their endpoint from."""


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="settings in TOML; flags are stronger (frazil.toml)"
    )
    add_set(parser)


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any setting, as in log.disk_bytes_max=50000000000; repeatable",
    )


def add_data(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--data", metavar="DIR", help=f"{what} (data)")


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=what)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Where telemetry is sent."""
    add = parser.add_argument
    where = f"of OTLP/HTTP (${ENDPOINT_VARIABLE}, else {ENDPOINT})"
    add("--endpoint", metavar="URL", help=where)
    add("--token", help="what the node lets us in with; --token-file keeps it out of `ps`")
    add("--token-file", metavar="FILE", help="the first line is the token")
    add("--ca-file", metavar="FILE", help="PEM; whom to trust, for https")


def target_of(options: argparse.Namespace) -> Target:
    """Where telemetry is sent, by a verb that has the flags above."""
    from frazil.sender import Target

    url = options.endpoint or os.environ.get(ENDPOINT_VARIABLE) or ENDPOINT
    token = options.token
    if token is None and options.token_file is not None:
        try:
            lines = Path(options.token_file).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise Malformed(f"cannot read --token-file {options.token_file}: {error}") from None
        if not lines:
            raise Malformed(f"--token-file {options.token_file} has no token in it")
        token = lines[0]
    return Target(url=url, token=token, ca_file=options.ca_file)


def folder_config(options: argparse.Namespace) -> Config:
    """The settings of a verb that has `--config` and `--data`."""
    from frazil.config import load

    return load(options.config, folder_overrides(options), assignments=options.assignments)


def folder_overrides(options: argparse.Namespace) -> dict[str, Any]:
    """What the flag `--data` sets."""
    return {} if options.data is None else {"data": options.data}
