"""Memory, CPU time and open files of this process."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import msgspec

PROC = Path("/proc")
UTIME, STIME, STARTTIME, VSIZE, RSS = 11, 12, 19, 20, 21
"""Fields of `/proc/self/stat` after the command name, which may contain spaces (proc(5))."""


class ProcessInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Resource use of one process."""

    pid: int
    cpu_s: float
    resident_bytes: int
    virtual_bytes: int
    started_s: float  # Unix epoch
    open_fds: int
    fds_max: int


def process_info(proc: Path = PROC) -> ProcessInfo:
    """Read `/proc`; no disk I/O. Without it, what the system does not show is 0."""
    try:
        fields = (proc / "self/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return _portable_info()
    ticks = os.sysconf("SC_CLK_TCK")
    stat = (proc / "stat").read_text().splitlines()
    booted_s = int(next(line for line in stat if line.startswith("btime")).split()[1])
    return ProcessInfo(
        pid=os.getpid(),
        cpu_s=(int(fields[UTIME]) + int(fields[STIME])) / ticks,
        resident_bytes=int(fields[RSS]) * resource.getpagesize(),
        virtual_bytes=int(fields[VSIZE]),
        started_s=booted_s + int(fields[STARTTIME]) / ticks,
        open_fds=sum(1 for _ in (proc / "self/fd").iterdir()),
        fds_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _portable_info() -> ProcessInfo:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessInfo(
        pid=os.getpid(),
        cpu_s=used.ru_utime + used.ru_stime,
        resident_bytes=used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        virtual_bytes=0,
        started_s=0.0,
        open_fds=sum(1 for _ in Path("/dev/fd").iterdir()),
        fds_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )
