"""Frazil: telemetry and event streams, durable at once, frozen into open tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frazil.embedded import Embedded

__version__ = "0.1.0"


def open(path: str | os.PathLike[str], *, config: str | os.PathLike[str] | None = None) -> Embedded:
    """Open a data folder in this process, to ask it: `frazil.open("data").sql("SELECT …")`.

    Returns when everything in it is visible. One process at a time may have a folder: `Held` names
    the one that has it. `config` is the TOML file of the node that filled it, if it has one.
    """
    from frazil.embedded import open_folder

    return open_folder(path, config)
