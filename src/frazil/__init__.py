"""Frazil: telemetry and event streams, durable at once, frozen into open tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from frazil.version import __version__

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

__all__ = ["__version__", "open"]


def open(path: str | os.PathLike[str], *, config: str | os.PathLike[str] | None = None) -> Embedded:
    """Open a data folder in this process, to ask it: `frazil.open("data").sql("SELECT …")`.

    Returns when everything in it is visible. One process at a time may have a folder: `Held` names
    the one that has it. `config` is the TOML file of the node that filled it, if it has one.
    """
    from frazil.embedded import open_folder

    return open_folder(path, config)


def connect(
    url: str = "http://127.0.0.1:4320", *, token: str | None = None, ca_file: str | None = None
) -> Client:
    """Ask a running node: `frazil.connect("http://127.0.0.1:4320").sql("SELECT …")`.

    Gives what `open` gives, with the same results. `token` is one of those the node knows, and
    `ca_file` the certificates to trust, where it has TLS with one of its own.
    """
    from frazil.client import Client

    return Client(url, token=token, ca_file=ca_file)
