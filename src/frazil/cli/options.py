"""Flags that several verbs have."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.config import Config


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


def folder_config(options: argparse.Namespace) -> Config:
    """The settings of a verb that has `--config` and `--data`."""
    from frazil.config import load

    return load(options.config, folder_overrides(options), assignments=options.assignments)


def folder_overrides(options: argparse.Namespace) -> dict[str, Any]:
    """What the flag `--data` sets."""
    return {} if options.data is None else {"data": options.data}
