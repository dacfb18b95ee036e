"""CheckContext: what the checks examine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from frazil.config import Config
from frazil.disk import RealDisk
from frazil.doctor.finding import Finding
from frazil.log import LOCK_NAME
from frazil.model import Clock, GiB, MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The settings of a node and its environment. Checks change nothing, except for a probe file
    that is removed at once."""

    config: Config
    clock: Clock
    environment: Mapping[str, str]
    """Of the shell that would start the node."""

    @property
    def data(self) -> Path:
        return Path(self.config.data).absolute()

    @property
    def existing(self) -> Path:
        """The data folder, or its nearest existing parent."""
        return next(path for path in (self.data, *self.data.parents) if _is_seen(path))

    @property
    def is_open(self) -> bool:
        """Whether the data folder exists and this user can write to it. If not, `check_folder` says
        why, and other checks skip it."""
        return os.access(self.data, os.R_OK | os.W_OK | os.X_OK, effective_ids=True)


def _is_seen(path: Path) -> bool:
    return os.access(path, os.F_OK, effective_ids=True)


Check = Callable[[CheckContext], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderHolder:
    """The process that has the data folder open."""

    pid: int | None
    name: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name})" if self.pid else self.name


def holder_of(context: CheckContext) -> FolderHolder | None:
    """Return the process that has the data folder open, if any."""
    lock = context.data / LOCK_NAME
    if not context.is_open or not os.access(lock, os.R_OK, effective_ids=True):
        return None
    if not RealDisk(context.data).is_locked(LOCK_NAME):
        return None
    try:
        owner = json.loads(lock.read_bytes())
        return FolderHolder(pid=int(owner["pid"]), name=str(owner["holder"]))
    except (ValueError, KeyError, TypeError):
        return FolderHolder(pid=None, name="another process (not named in the lock file yet)")


def size_text(count: float) -> str:
    """Return a size for people."""
    if count >= GiB:
        return f"{count / GiB:.1f} GiB"
    return f"{count / MiB:.1f} MiB"
