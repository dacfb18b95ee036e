"""What the kernel lets a process have: open files, memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

from frazil.doctor.context import CheckContext, size_text
from frazil.doctor.finding import Finding, Fix, note, run, set_to, warning, well
from frazil.model import GiB, MiB

OWN_FILES = 1024
"""Segments, indexes, sealed files and libraries of a node, beside its connections."""
JAVA_BESIDE_BYTES = GiB
"""What Java takes beside its heap; `lake.driver_memory_bytes` says so, too."""
OWN_BYTES = 512 * MiB
"""Libraries, compiled code, and the processes that queries run in."""
DRIVER_LEAST_BYTES = 512 * MiB
UNLIMITED_BYTES = 1 << 60
"""The first version of cgroups says `no limit` with a number above this."""


def check_open_files(case: CheckContext) -> Iterator[Finding]:
    """A connection is an open file."""
    ports = 2 * case.config.ingest.connections_max
    wanted = ports + case.config.serve.connections_max + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        yield well("open files", "unlimited" if soft == resource.RLIM_INFINITY else f"up to {soft}")
        return
    found = f"up to {soft}; all connections that the settings allow need {wanted}"
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        fix = run(f"ulimit -n {wanted}")
    else:
        rest = hard - case.config.serve.connections_max - OWN_FILES
        fix = set_to("ingest.connections_max", max(1, rest // 2))
    tell = note if soft >= OWN_FILES else warning
    yield tell("open files", found, fix)


def check_memory(case: CheckContext) -> Iterator[Finding]:
    """Room for the node's buffers, and for Spark beside it."""
    config = case.config
    memory = memory_bytes()
    own = (
        OWN_BYTES
        + config.hot.memory_bytes_max
        + config.ingest.in_flight_bytes_max
        + config.log.queue_bytes_max
    )
    lake = config.lake.driver_memory_bytes + JAVA_BESIDE_BYTES if config.lake.enabled else 0
    found = f"{size_text(memory)}; a node takes up to {size_text(own)}"
    found += f", Spark {size_text(lake)}" if lake else ""
    if own + lake <= memory:
        yield well("memory", found)
    else:
        yield warning("memory", found, _lower(case, memory - own))


def _lower(case: CheckContext, rest: int) -> Fix:
    """The setting that makes it fit: Spark's heap, or no Spark, or less in memory."""
    is_lake = case.config.lake.enabled
    heap = (rest - JAVA_BESIDE_BYTES) // MiB * MiB
    if is_lake and heap >= DRIVER_LEAST_BYTES:
        return set_to("lake.driver_memory_bytes", heap)
    if is_lake and rest >= 0:
        return set_to("lake.enabled", False)
    return set_to("hot.memory_bytes_max", 2 * case.config.hot.seal_bytes)


def memory_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """What this process may use: the machine's memory, or less where a control group says so."""
    total = 0
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
    return min([total, *_group_limits(proc, groups)])


def _group_limits(proc: Path, groups: Path) -> Iterator[int]:
    """The limits of this process's group, and of all those above it, in both versions."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        place = root / path.lstrip("/")
        for folder in (place, *place.parents):
            if not folder.is_relative_to(root):
                break
            yield from _limit(folder / name)


def _limit(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return  # a group that is not mounted here, as in a container
    if text.isdigit() and int(text) < UNLIMITED_BYTES:
        yield int(text)
