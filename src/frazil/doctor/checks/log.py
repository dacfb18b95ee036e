"""The log: can it be read, and was something set aside?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from frazil.disk import RealDisk
from frazil.doctor.context import CheckContext, holder_of, size_text
from frazil.doctor.finding import Finding, Fix, do, failure, note, run, well
from frazil.errors import Corrupt
from frazil.log import PartitionObserver, partition_count

FOLDER = "log"
NO_TOPICS = frozenset({"subscribers"})
REPAIR = (
    "import random, time; from frazil.disk import RealDisk; "
    "from frazil.log import LogConfig, repair_partition as repair; "
    "print(repair(RealDisk({data!r}), {topic!r}, {partition}, LogConfig(), "
    "rand=random.SystemRandom(), now_ms=time.time_ns() // 10**6))"
)


def check_log(case: CheckContext) -> Iterator[Finding]:
    """Headers, indexes and the open segment's batches, of every partition that nobody writes to.

    A node that runs has read all of it at its start.
    """
    if not case.is_open or not (case.data / FOLDER).is_dir():
        return
    yield from _set_aside(case)
    if (holder := holder_of(case)) is not None:
        yield well("log", f"read by {holder} at its start")
        return
    disk = RealDisk(case.data)
    damages = list(_damages(disk))
    yield from (failure("log", text, fix) for text, fix in damages)
    if not damages:
        topics = [name for name in disk.list(FOLDER) if name not in NO_TOPICS]
        yield well("log", f"{len(topics)} topics can be read")


def _damages(disk: RealDisk) -> Iterator[tuple[str, Fix]]:
    for topic in disk.list(FOLDER):
        if topic in NO_TOPICS:
            continue
        try:
            count = partition_count(disk, topic)
        except Corrupt as damage:
            yield str(damage), do(f"restore {disk.root / damage.path} from a copy")
            continue
        for partition in range(count):
            try:
                PartitionObserver(disk, topic, partition).observe()
            except Corrupt as damage:
                program = REPAIR.format(data=str(disk.root), topic=topic, partition=partition)
                yield str(damage), run(shlex.join([sys.executable, "-c", program]))


def _set_aside(case: CheckContext) -> Iterator[Finding]:
    """Damaged bytes that a repair has kept. Nothing reads them."""
    files: list[Path] = sorted((case.data / FOLDER).rglob("*.damaged"))
    if files:
        size = sum(path.stat().st_size for path in files)
        found = f"a repair has set {size_text(size)} aside, in {len(files)} files"
        yield note("repaired", found, run(shlex.join(["rm", *map(str, files)])))
