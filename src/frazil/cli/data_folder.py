"""The log of a data folder, for verbs that need no node."""

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
    """The log of the folder that `--data` names. `Held` while a node has it."""
    from frazil.disk import RealDisk
    from frazil.log import Log
    from frazil.model import SystemClock, SystemRand

    config = checked_folder(options)
    disk = RealDisk(config.data)
    with Log.open(disk, config.log, clock=SystemClock(), rand=SystemRand(), holder=holder) as log:
        yield log


def checked_folder(options: argparse.Namespace) -> Config:
    """Settings of a folder that is one of ours: nothing is made where there is none."""
    config = folder_config(options)
    if not (Path(config.data) / "log").is_dir():
        raise Unknown(f"{config.data} is no data folder of Frazil: it has no log in it")
    return config


def confirm(question: str, *, is_sure: bool) -> bool:
    """Does the user want this? Without a terminal to ask on, only if he said so before."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise Malformed("nobody can be asked here; add --yes if that is what you want")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in YES
