"""The log: damage, and bytes that a repair has set aside."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from frazil.disk import RealDisk
from frazil.doctor.context import CheckContext, holder_of, size_text
from frazil.doctor.finding import Finding, Fix, do, failure, note, ok, run
from frazil.errors import Corrupt
from frazil.log import PartitionObserver, partition_count

FOLDER = "log"
SUBSCRIBERS = "subscribers"
HIDDEN = "."
"""Names of deleted topics, and of the file that tells of changes, begin with it."""
REPAIR = (
    "import random, time; from frazil.disk import RealDisk; "
    "from frazil.log import repair_partition as repair; from frazil.settings import LogConfig; "
    "print(repair(RealDisk({data!r}), {topic!r}, {partition}, LogConfig(), "
    "rand=random.SystemRandom(), now_ms=time.time_ns() // 10**6))"
)


def check_log(context: CheckContext) -> Iterator[Finding]:
    """Check headers, indexes and the open segment of every partition.

    Skipped if a node is running, which has done so at its start.
    """
    if not context.is_open or not (context.data / FOLDER).is_dir():
        return
    yield from _set_aside(context)
    if (holder := holder_of(context)) is not None:
        yield ok("log", f"checked by {holder} at its start")
        return
    disk = RealDisk(context.data)
    damages = list(_damages(disk))
    yield from (failure("log", text, fix) for text, fix in damages)
    if not damages:
        yield ok("log", f"{len(_topics(disk))} topics are intact")


def _damages(disk: RealDisk) -> Iterator[tuple[str, Fix]]:
    for topic in _topics(disk):
        try:
            count = partition_count(disk, topic)
        except Corrupt as damage:
            yield str(damage), do(f"restore {disk.root / damage.path} from a backup")
            continue
        for partition in range(count):
            try:
                PartitionObserver(disk, topic, partition).observe()
            except Corrupt as damage:
                program = REPAIR.format(data=str(disk.root), topic=topic, partition=partition)
                yield str(damage), run(shlex.join([sys.executable, "-c", program]))


def _topics(disk: RealDisk) -> list[str]:
    """Return all topics, also those whose settings are damaged."""
    return [n for n in disk.list(FOLDER) if n != SUBSCRIBERS and not n.startswith(HIDDEN)]


def _set_aside(context: CheckContext) -> Iterator[Finding]:
    """Report damaged bytes that a repair has kept. Nothing reads them."""
    files: list[Path] = sorted((context.data / FOLDER).rglob("*.damaged"))
    if files:
        size = sum(path.stat().st_size for path in files)
        text = f"a repair has set aside {size_text(size)} in {len(files)} files"
        yield note("repaired", text, run(shlex.join(["rm", *map(str, files)])))
