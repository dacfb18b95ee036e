"""The data folder: may we write there, will it stay, is there room, how fast is a sync?"""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from frazil.disk import RealDisk
from frazil.doctor.checks.mounts import LAYERED, MEMORY, Mount, lasting_folder, mount_of
from frazil.doctor.context import CheckContext, holder_of, size_text
from frazil.doctor.finding import (
    Finding,
    Fix,
    do,
    failure,
    note,
    run_as_root,
    set_to,
    warning,
    well,
)
from frazil.log import LOCK_NAME
from frazil.model import MiB

PROBE = "frazil-doctor.probe"
PROBES = 9
PROBE_BYTES = 4096
SYNC_MS_MAX = 50.0
"""What a disk takes that everybody waits for: a group commit is due every 25 ms."""
SEGMENTS_LEAST = 3
"""The log cannot release one while it fills the next with less."""
FILES_LEAST = 10_000
"""A table has some files per minute until they are joined."""
SPARE = 0.05
"""Of a disk: to be full is trouble before it is full."""


def check_folder(case: CheckContext) -> Iterator[Finding]:
    """Is it there, ours, writable, and on a disk that keeps what it is given?"""
    place, data = case.existing, case.data
    mount = mount_of(place)
    if mount.is_read_only:
        fix = run_as_root(f"mount -o remount,rw {shlex.quote(mount.point)}")
        yield failure("data folder", f"{mount.point} is mounted read-only", fix)
        return
    if not place.is_dir():
        yield failure("data folder", f"{place} is a file, not a folder", _elsewhere(data))
        return
    blocked = next(_not_writable(case), None)
    if blocked is not None:
        owner, folder = os.geteuid(), shlex.quote(str(data))
        command = f"chown -R {owner} {folder}"
        if place != data:
            command = f"install -d -o {owner} {folder}"
        yield failure(
            "data folder", f"{blocked} cannot be written by this user", run_as_root(command)
        )
        return
    holder = holder_of(case)
    state = "" if place == data else ", made at the first start"
    if holder is not None:
        state = f", in use by {holder}"
    yield well("data folder", f"{data}{state}")
    yield _lasting(mount)


def _not_writable(case: CheckContext) -> Iterator[Path]:
    """Folders that a node writes into and cannot."""
    for path in (case.existing, *(case.data / name for name in (LOCK_NAME, "log", "hot", "lake"))):
        if path.exists() and not os.access(path, _wanted(path), effective_ids=True):
            yield path


def _wanted(path: Path) -> int:
    return os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)


def _lasting(mount: Mount) -> Finding:
    check = "file system"
    where = f"{mount.kind} at {mount.point}"
    if mount.is_lasting:
        return well(check, where)
    why = "another machine's: sync and lock are as good as that one"
    if mount.kind in MEMORY:
        why = "in memory: all is gone when the machine stops"
    elif mount.kind in LAYERED:
        why = "a layer of a container: all is gone with it"
    return warning(check, f"{where}, {why}", _elsewhere(None))


def _elsewhere(data: Path | None) -> Fix:
    folder = lasting_folder()
    if folder is None or folder == data:
        return do("mount a disk of this machine, and name a folder on it with --data")
    return set_to("data", str(folder), f"--data {shlex.quote(str(folder))}")


def check_space(case: CheckContext) -> Iterator[Finding]:
    """Room for what the settings allow log and hot tier to take, and for the names of files."""
    disk = RealDisk(case.existing)
    point = mount_of(case.existing).point
    free = disk.space()
    least = SEGMENTS_LEAST * case.config.log.segment_bytes_max
    if free < least:
        found = f"{size_text(free)} are free on {point}"
        yield failure("disk space", found, do(f"free at least {size_text(least)} on {point}"))
    else:
        yield from _caps(case, free)
    files = disk.files_left()
    if files is not None and files < FILES_LEAST:
        fix = do(f"remove files from {point}, until {FILES_LEAST} can be made")
        yield failure("disk files", f"{files} more files can be made on {point}", fix)


def _caps(case: CheckContext, free: int) -> Iterator[Finding]:
    """Each cap beside its share of what there is."""
    caps = {"log": case.config.log.disk_bytes_max, "hot": case.config.hot.disk_bytes_max}
    if not case.config.hot.enabled:
        del caps["hot"]
    least = {
        "log": SEGMENTS_LEAST * case.config.log.segment_bytes_max,
        "hot": 2 * case.config.hot.seal_bytes,
    }
    room = int(free * (1 - SPARE)) + sum(_size_of(case.data / name) for name in caps)
    wanted = sum(caps.values())
    found = f"{size_text(free)} are free; log and hot tier may take {size_text(wanted)} in all"
    if wanted <= room:
        yield well("disk space", found)
        return
    for name, cap in caps.items():
        share = max(least[name], room * cap // wanted // MiB * MiB)
        yield warning("disk space", found, set_to(f"{name}.disk_bytes_max", share))


def _size_of(folder: Path) -> int:
    """Bytes of all files below; those that go meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def check_sync(case: CheckContext) -> Iterator[Finding]:
    """Every acknowledgement waits for a sync: try some."""
    if not case.is_open:
        return
    disk, clock = RealDisk(case.data), case.clock
    times: list[int] = []
    try:
        if PROBE in disk.list(""):
            disk.unlink(PROBE)
        with closing(disk.open(PROBE, "create")) as file:
            for _ in range(PROBES):
                begin_ns = clock.monotonic_ns()
                file.append([bytes(PROBE_BYTES)])
                file.sync()
                times.append(clock.monotonic_ns() - begin_ns)
        disk.unlink(PROBE)
    except OSError as error:
        fix = do(f"look at the disk of {case.data}: kernel log, quota, space")
        yield failure("sync", f"a probe in {case.data} failed: {error.strerror}", fix)
        return
    median_ms = statistics.median(times) / 1e6
    found = f"{median_ms:.2f} ms for 4 KiB, the slowest of {PROBES} {max(times) / 1e6:.2f} ms"
    if median_ms > SYNC_MS_MAX:
        fix = do(f"use a faster disk: each acknowledgement waits for a sync of {case.data}")
        yield warning("sync", found, fix)
    elif not mount_of(case.data).is_lasting:
        fix = _elsewhere(case.data)
        yield note("sync", f"{found}; it promises nothing on this file system", fix)
    else:
        yield well("sync", found)
