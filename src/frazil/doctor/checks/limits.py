"""Resource limits: open files, memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from frazil.doctor.context import CheckContext, size_text
from frazil.doctor.finding import Finding, Fix, note, ok, run, set_to, warning
from frazil.model import GiB, MiB

OWN_FILES = 1024
"""Segments, indexes, sealed files and libraries of a node, besides connections."""
JAVA_OVERHEAD_BYTES = GiB
"""Memory of Java besides its heap, as documented for `lake.driver_memory_bytes`."""
OWN_BYTES = 512 * MiB
"""Libraries, compiled code and query worker processes."""
DRIVER_MEMORY_BYTES_MIN = 512 * MiB
UNLIMITED_BYTES = 1 << 60
"""cgroups v1 reports a number above this for no limit."""


def check_open_files(context: CheckContext) -> Iterator[Finding]:
    """Check the limit of open files; each connection is one."""
    ports = 2 * context.config.ingest.connections_max
    needed = ports + context.config.serve.connections_max + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        yield ok("open files", "unlimited" if soft == resource.RLIM_INFINITY else f"up to {soft}")
        return
    text = f"up to {soft}; the connection limits of the settings need {needed}"
    if hard == resource.RLIM_INFINITY or hard >= needed:
        fix = run(f"ulimit -n {needed}")
    else:
        rest = hard - context.config.serve.connections_max - OWN_FILES
        fix = set_to("ingest.connections_max", max(1, rest // 2))
    level = note if soft >= OWN_FILES else warning
    yield level("open files", text, fix)


def check_memory(context: CheckContext) -> Iterator[Finding]:
    """Check memory for the node's buffers and for Spark."""
    config = context.config
    memory = memory_bytes()
    node = (
        OWN_BYTES
        + config.hot.memory_bytes_max
        + config.ingest.in_flight_bytes_max
        + config.log.queue_bytes_max
    )
    lake = config.lake.driver_memory_bytes + JAVA_OVERHEAD_BYTES if config.lake.enabled else 0
    text = f"{size_text(memory)}; a node takes up to {size_text(node)}"
    text += f", Spark {size_text(lake)}" if lake else ""
    if node + lake <= memory:
        yield ok("memory", text)
    else:
        yield warning("memory", text, _lower_limit(context, memory - node))


def _lower_limit(context: CheckContext, rest: int) -> Fix:
    """Return the setting that makes it fit: a smaller Spark heap, no lake, or less hot memory."""
    is_lake = context.config.lake.enabled
    heap = (rest - JAVA_OVERHEAD_BYTES) // MiB * MiB
    if is_lake and heap >= DRIVER_MEMORY_BYTES_MIN:
        return set_to("lake.driver_memory_bytes", heap)
    if is_lake and rest >= 0:
        return set_to("lake.enabled", False)
    return set_to("hot.memory_bytes_max", 2 * context.config.hot.seal_bytes)


def memory_bytes(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory of the machine, or the limit of the control group if lower."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    table = proc / "meminfo"
    for line in table.read_text().splitlines() if table.exists() else ():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
    return min([total, *_group_limits(proc, groups)])


def _group_limits(proc: Path, groups: Path) -> Iterator[int]:
    """Yield the limits of this process's control group and its parents, for cgroups v1 and v2."""
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
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            yield from _limit(folder / name)


def _limit(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return  # not mounted, as in a container
    if text.isdigit() and int(text) < UNLIMITED_BYTES:
        yield int(text)
