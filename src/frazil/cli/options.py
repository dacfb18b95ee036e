"""Flags that several verbs share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frazil.config import Config


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="settings file (default: frazil.toml)")
    add_set(parser)


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set any setting, as in log.disk_bytes_max=50000000000; repeatable",
    )


def add_data(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--data", metavar="DIR", help=f"{what} (default: data)")


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=what)


def add_credentials(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--token-file", metavar="FILE", help="file with the token (default: $FRAZIL_TOKEN)")
    add("--ca-file", metavar="FILE", help="trust certificates of these authorities (PEM)")


def positive(text: str) -> int:
    """Parse a count for argparse."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text} must be a number from 1 on")
    return int(text)


def inherit_flags(
    parent: argparse.ArgumentParser, verbs: argparse._SubParsersAction[argparse.ArgumentParser]
) -> None:
    """Let flags that a verb and the verbs below it share stand before or behind the second one."""
    shared = {action.dest for action in parent._actions}  # noqa: SLF001 no public list of them
    for verb in set(verbs.choices.values()):
        for action in verb._actions:  # noqa: SLF001
            if action.dest in shared:
                action.default = argparse.SUPPRESS  # the value of the parent stays


def folder_config(options: argparse.Namespace) -> Config:
    """Return the settings of a verb that has `--config` and `--data`."""
    from frazil.config import load

    return load(options.config, folder_overrides(options), assignments=options.assignments)


def folder_overrides(options: argparse.Namespace) -> dict[str, Any]:
    """Return the setting of the flag `--data`."""
    return {} if options.data is None else {"data": options.data}
