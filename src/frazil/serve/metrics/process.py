"""What the system says of this process: memory, time on processors, open files."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
UTIME, STIME, STARTTIME, VSIZE, RSS = 11, 12, 19, 20, 21
"""Fields of `/proc/self/stat` behind the name, which may have spaces in it (proc(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """This process at one moment."""

    cpu_s: float
    resident_bytes: int
    virtual_bytes: int
    started_s: float
    """Since 1970."""
    open_fds: int
    fds_max: int


def process_facts(proc: Path = PROC) -> ProcessInfo:
    """Read from `/proc`, which is memory."""
    fields = (proc / "self/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    stat = (proc / "stat").read_text().splitlines()
    booted_s = int(next(line for line in stat if line.startswith("btime")).split()[1])
    return ProcessInfo(
        cpu_s=(int(fields[UTIME]) + int(fields[STIME])) / ticks,
        resident_bytes=int(fields[RSS]) * resource.getpagesize(),
        virtual_bytes=int(fields[VSIZE]),
        started_s=booted_s + int(fields[STARTTIME]) / ticks,
        open_fds=sum(1 for _ in (proc / "self/fd").iterdir()),
        fds_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )
