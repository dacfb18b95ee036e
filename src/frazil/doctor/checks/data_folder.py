"""The data folder: permissions, file system, disk space, sync latency."""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from frazil.disk import RealDisk
from frazil.doctor.checks.mounts import LAYERED, MEMORY, Mount, mount_of, persistent_folder
from frazil.doctor.context import CheckContext, holder_of, size_text
from frazil.doctor.finding import (
    Finding,
    Fix,
    do,
    failure,
    note,
    ok,
    run_as_root,
    set_to,
    warning,
)
from frazil.log import LOCK_NAME
from frazil.model import MiB

PROBE = "frazil-doctor.probe"
PROBES = 9
PROBE_BYTES = 4096
SYNC_MS_MAX = 50.0
"""A slower disk delays every acknowledgement: a group commit is due every 25 ms."""
SEGMENTS_MIN = 3
"""With fewer, the log cannot delete one while it fills the next."""
FILES_MIN = 10_000
"""A table gets a few files per minute until they are compacted."""
RESERVE = 0.05
"""Share of a disk to keep free."""


def check_folder(context: CheckContext) -> Iterator[Finding]:
    """Check that the folder is writable and on a persistent file system."""
    existing, data = context.existing, context.data
    mount = mount_of(existing)
    if mount.is_read_only:
        fix = run_as_root(f"mount -o remount,rw {shlex.quote(mount.point)}")
        yield failure("data folder", f"{mount.point} is mounted read-only", fix)
        return
    if not existing.is_dir():
        yield failure("data folder", f"{existing} is a file, not a folder", _another_folder(data))
        return
    blocked = next(_not_writable(context), None)
    if blocked is not None:
        owner, folder = os.geteuid(), shlex.quote(str(data))
        command = f"chown -R {owner} {folder}"
        if existing != data:
            command = f"install -d -o {owner} {folder}"
        yield failure("data folder", f"this user cannot write {blocked}", run_as_root(command))
        return
    holder = holder_of(context)
    state = "" if existing == data else ", created at the first start"
    if holder is not None:
        state = f", in use by {holder}"
    yield ok("data folder", f"{data}{state}")
    yield _file_system(mount)


def _not_writable(context: CheckContext) -> Iterator[Path]:
    """Yield folders that a node must write to and cannot."""
    for path in (
        context.existing,
        *(context.data / name for name in (LOCK_NAME, "log", "hot", "lake")),
    ):
        if path.exists() and not os.access(path, _access_mode(path), effective_ids=True):
            yield path


def _access_mode(path: Path) -> int:
    return os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)


def _file_system(mount: Mount) -> Finding:
    check = "file system"
    text = f"{mount.kind} at {mount.point}"
    if mount.is_persistent:
        return ok(check, text)
    reason = "a network file system: sync and locks depend on its server"
    if mount.kind in MEMORY:
        reason = "in memory: lost when the machine stops"
    elif mount.kind in LAYERED:
        reason = "a container layer: lost with the container"
    return warning(check, f"{text}, {reason}", _another_folder(None))


def _another_folder(data: Path | None) -> Fix:
    folder = persistent_folder()
    if folder is None or folder == data:
        return do("mount a local disk, and name a folder on it with --data")
    return set_to("data", str(folder), f"--data {shlex.quote(str(folder))}")


def check_space(context: CheckContext) -> Iterator[Finding]:
    """Check disk space for the limits of log and hot tier, and free inodes."""
    disk = RealDisk(context.existing)
    point = mount_of(context.existing).point
    free = disk.space()
    minimum = SEGMENTS_MIN * context.config.log.segment_bytes_max
    if free < minimum:
        text = f"{size_text(free)} free on {point}"
        yield failure("disk space", text, do(f"free at least {size_text(minimum)} on {point}"))
    else:
        yield from _limits(context, free)
    files = disk.files_left()
    if files is not None and files < FILES_MIN:
        fix = do(f"delete files on {point} until {FILES_MIN} inodes are free")
        yield failure("disk files", f"{files} inodes free on {point}", fix)


def _limits(context: CheckContext, free: int) -> Iterator[Finding]:
    """Compare the limits with the free space; suggest a share for each."""
    limits = {"log": context.config.log.disk_bytes_max, "hot": context.config.hot.disk_bytes_max}
    if not context.config.hot.enabled:
        del limits["hot"]
    minimum = {
        "log": SEGMENTS_MIN * context.config.log.segment_bytes_max,
        "hot": 2 * context.config.hot.seal_bytes,
    }
    available = int(free * (1 - RESERVE)) + sum(_size_of(context.data / name) for name in limits)
    total = sum(limits.values())
    text = f"{size_text(free)} free; log and hot tier may take {size_text(total)}"
    if total <= available:
        yield ok("disk space", text)
        return
    for name, limit in limits.items():
        share = max(minimum[name], available * limit // total // MiB * MiB)
        yield warning("disk space", text, set_to(f"{name}.disk_bytes_max", share))


def _size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder. Files deleted meanwhile are skipped."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def check_sync(context: CheckContext) -> Iterator[Finding]:
    """Measure syncs: every acknowledgement waits for one."""
    if not context.is_open:
        return
    disk, clock = RealDisk(context.data), context.clock
    times: list[int] = []
    try:
        if PROBE in disk.list(""):
            disk.unlink(PROBE)
        with closing(disk.open(PROBE, "create")) as file:
            for _ in range(PROBES):
                start_ns = clock.monotonic_ns()
                file.append([bytes(PROBE_BYTES)])
                file.sync()
                times.append(clock.monotonic_ns() - start_ns)
        disk.unlink(PROBE)
    except OSError as error:
        fix = do(f"check the disk of {context.data}: kernel log, quota, space")
        yield failure("sync", f"a probe in {context.data} failed: {error.strerror}", fix)
        return
    median_ms = statistics.median(times) / 1e6
    text = f"{median_ms:.2f} ms for 4 KiB (maximum of {PROBES}: {max(times) / 1e6:.2f} ms)"
    if median_ms > SYNC_MS_MAX:
        fix = do(f"use a faster disk: each acknowledgement waits for a sync of {context.data}")
        yield warning("sync", text, fix)
    elif not mount_of(context.data).is_persistent:
        fix = _another_folder(context.data)
        yield note("sync", f"{text}; not durable on this file system", fix)
    else:
        yield ok("sync", text)
