"""Frazil: telemetry and event streams in a durable log, a hot tier and an Iceberg lake."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from frazil.version import __version__

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

__all__ = ["__version__", "connect", "open"]


def open(path: str | os.PathLike[str], *, config: str | os.PathLike[str] | None = None) -> Embedded:
    """Open a data folder in this process: `frazil.open("data").sql("SELECT …")`.

    Returns when all rows are queryable. Only one process can open a folder: `Held` names the
    owner. `config` is the TOML file of the node that wrote it, if any.
    """
    from frazil.folders import open_folder

    return open_folder(path, config)


def connect(
    url: str = "http://127.0.0.1:4320", *, token: str | None = None, ca_file: str | None = None
) -> Client:
    """Connect to a running node: `frazil.connect("http://127.0.0.1:4320").sql("SELECT …")`.

    Has the same methods and results as `open`. `token` is an API token of the node, `ca_file` the
    certificates to trust if the node uses TLS.
    """
    from frazil.client import Client

    return Client(url, token=token, ca_file=ca_file)
