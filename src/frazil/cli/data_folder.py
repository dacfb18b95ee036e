"""The log of a data folder, for verbs that work without a node."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.options import folder_config
from frazil.errors import Malformed, Unknown

if TYPE_CHECKING:
    from frazil.config import Config
    from frazil.log import Log

YES = ("y", "yes")


@contextmanager
def opened_log(options: argparse.Namespace, holder: str) -> Iterator[Log]:
    """Open the log of the folder that `--data` names. Raises Held while a node has it open."""
    from frazil.disk import RealDisk
    from frazil.log import Log
    from frazil.model import SystemClock, SystemRand

    config = checked_folder(options)
    disk = RealDisk(config.data)
    with Log.open(disk, config.log, clock=SystemClock(), rand=SystemRand(), holder=holder) as log:
        yield log


def checked_folder(options: argparse.Namespace) -> Config:
    """Return the settings of an existing data folder. Never creates one."""
    config = folder_config(options)
    if not (Path(config.data) / "log").is_dir():
        raise Unknown(f"{config.data} is not a data folder of Frazil: it contains no log")
    return config


def confirm(question: str, *, is_sure: bool) -> bool:
    """Ask the user on the terminal. Without a terminal, `is_sure` must be set."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise Malformed("cannot ask for confirmation without a terminal; add --yes to proceed")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in YES
