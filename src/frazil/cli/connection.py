"""The node or data folder a verb works on."""

from __future__ import annotations

import argparse
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.options import add_config, add_credentials
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

URL = "http://127.0.0.1:4320"
"""Where `frazil up` listens by default."""


def add_where(parser: argparse.ArgumentParser, *, has_data: bool = True) -> None:
    """Add the flags that name a node or a data folder."""
    parser.add_argument("--url", help=f"URL of the node (default: $FRAZIL_URL, else {URL})")
    if has_data:
        parser.add_argument(
            "--data", metavar="DIR", help="use this data folder instead; no node may be running"
        )
        add_config(parser)
    add_credentials(parser)


def is_folder(options: argparse.Namespace) -> bool:
    """Return whether the flags name a data folder, not a node."""
    if options.data is not None and options.url is not None:
        raise Malformed("--url names a node and --data a folder; use only one of them")
    if options.data is None and (options.config is not None or options.assignments):
        raise Malformed("--config and --set apply to a data folder; name it with --data")
    return options.data is not None


def connected(options: argparse.Namespace) -> Client:
    """Return a client of the node that the flags name."""
    import frazil

    url = options.url or os.environ.get("FRAZIL_URL") or URL
    return frazil.connect(url, token=token_of(options), ca_file=options.ca_file)


def opened(options: argparse.Namespace) -> AbstractContextManager[Embedded | Client]:
    """Open the node or the folder that the flags name. Both have the same interface."""
    if is_folder(options):
        from frazil.folders import open_folder

        return open_folder(options.data, options.config, options.assignments)
    return connected(options)


def token_of(options: argparse.Namespace) -> str | None:
    """Return the token from `--token-file` or the environment, if any."""
    if options.token_file is None:
        return os.environ.get("FRAZIL_TOKEN") or None
    try:
        lines = Path(options.token_file).read_text().split()
    except OSError as error:
        raise Malformed(f"--token-file {options.token_file}: {error.strerror}") from None
    if not lines:
        raise Malformed(f"--token-file {options.token_file} is empty; write a token into it")
    return lines[0]
