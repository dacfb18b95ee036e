"""CheckContext: what is looked at."""

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
    """The settings, and where they are applied. Nobody who looks changes anything, but for a probe
    file that is gone again at once."""

    config: Config
    clock: Clock
    environment: Mapping[str, str]
    """Of the shell that a node would be started from."""

    @property
    def data(self) -> Path:
        return Path(self.config.data).absolute()

    @property
    def existing(self) -> Path:
        """The data folder, or what is there of the path to it."""
        return next(path for path in (self.data, *self.data.parents) if _is_seen(path))

    @property
    def is_open(self) -> bool:
        """Is the data folder there, for this user to write into? If not, one check says why, and
        the others have nothing to look at."""
        return os.access(self.data, os.R_OK | os.W_OK | os.X_OK, effective_ids=True)


def _is_seen(path: Path) -> bool:
    return os.access(path, os.F_OK, effective_ids=True)


Check = Callable[[CheckContext], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderHolder:
    """Who has the data folder now."""

    pid: int | None
    name: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name})" if self.pid else self.name


def holder_of(case: CheckContext) -> FolderHolder | None:
    """None when nobody has it."""
    lock = case.data / LOCK_NAME
    if not case.is_open or not os.access(lock, os.R_OK, effective_ids=True):
        return None
    if not RealDisk(case.data).is_locked(LOCK_NAME):
        return None
    try:
        facts = json.loads(lock.read_bytes())
        return FolderHolder(pid=int(facts["pid"]), name=str(facts["holder"]))
    except (ValueError, KeyError, TypeError):
        return FolderHolder(pid=None, name="another process (not named in the lock file yet)")


def size_text(count: float) -> str:
    """Bytes for people."""
    if count >= GiB:
        return f"{count / GiB:.1f} GiB"
    return f"{count / MiB:.1f} MiB"
