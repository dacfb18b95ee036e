"""Where to ask: a node by its URL, or a folder that no node uses."""

from __future__ import annotations

import argparse
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.options import add_config
from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

URL = "http://127.0.0.1:4320"
"""Where `frazil up` listens when nobody says otherwise."""


def add_where(parser: argparse.ArgumentParser, *, has_data: bool = True) -> None:
    """The flags that say which node, or which folder."""
    add = parser.add_argument
    add("--url", help=f"the node to ask, also by FRAZIL_URL ({URL})")
    if has_data:
        add("--data", metavar="DIR", help="ask this folder instead, which no node may use now")
        add_config(parser)
    add("--token-file", metavar="FILE", help="its first line is the token; also by FRAZIL_TOKEN")
    add("--ca-file", metavar="FILE", help="trust the certificates of these authorities (PEM)")


def is_folder(options: argparse.Namespace) -> bool:
    """Is a folder asked, and no node?"""
    if options.data is not None and options.url is not None:
        raise Malformed("--url asks a node and --data a folder; give one of them")
    if options.data is None and (options.config is not None or options.assignments):
        raise Malformed("--config and --set are settings of a folder; name it with --data")
    return options.data is not None


def connected(options: argparse.Namespace) -> Client:
    """The node that the flags name."""
    import frazil

    url = options.url or os.environ.get("FRAZIL_URL") or URL
    return frazil.connect(url, token=token_of(options), ca_file=options.ca_file)


def opened(options: argparse.Namespace) -> AbstractContextManager[Embedded | Client]:
    """The node or the folder that the flags name; both are asked in the same way."""
    if is_folder(options):
        from frazil.embedded import open_folder

        return open_folder(options.data, options.config, options.assignments)
    return connected(options)


def token_of(options: argparse.Namespace) -> str | None:
    """What the node lets us in with, if it wants to know."""
    if options.token_file is None:
        return os.environ.get("FRAZIL_TOKEN") or None
    try:
        lines = Path(options.token_file).read_text().split()
    except OSError as error:
        raise Malformed(f"--token-file {options.token_file}: {error.strerror}") from None
    if not lines:
        raise Malformed(f"--token-file {options.token_file} is empty; write a token into it")
    return lines[0]
