"""Cost of idle partitions: `python -m bench.idle_partitions [--partitions N] [--folder DIR]`.

Creates topics of 100 partitions, opens the log again, and runs maintenance; then once more after
one record in every partition. Prints milliseconds, memory and open files.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frazil.disk import RealDisk
from frazil.log import Log, Record, append_of_records
from frazil.model import GiB, SystemClock, SystemRand
from frazil.settings import LogConfig, TopicConfig

TOPIC_PARTITIONS = 100
CONFIG = LogConfig(disk_bytes_max=100 * GiB)
"""Enough for releases that reserved a segment for every partition."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    print(f"{what:40} {(time.perf_counter() - begin) * 1000:9.1f} ms")


def open_log(folder: Path) -> Log:
    return Log.open(RealDisk(folder), CONFIG, clock=SystemClock(), rand=SystemRand())


def rss_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(folder: Path, partitions: int) -> None:
    log = open_log(folder)
    before = rss_bytes()
    names = [f"topic-{number}" for number in range(partitions // TOPIC_PARTITIONS)]
    with timed(f"create {partitions} partitions"):
        for name in names:
            log.create_topic(name, TopicConfig(partitions=TOPIC_PARTITIONS))
    log = reopened(log, folder, before)
    with timed("append to every partition"):
        record = Record(offset=0, timestamp_ms=1, key=b"k", value=b"v" * 100)
        futures = [
            log.append(name, append_of_records([record]), partition=partition)
            for name in names
            for partition in range(TOPIC_PARTITIONS)
        ]
        for future in futures:
            future.result()
    reopened(log, folder, before).close()


def reopened(log: Log, folder: Path, before: int) -> Log:
    """Print the cost of the partitions as they are now, and over a restart."""
    for _ in range(2):
        with timed("  maintain"):
            log.maintain()
    print(f"{'  memory':40} {(rss_bytes() - before) / 1e6:9.1f} MB")
    print(f"{'  open files':40} {len(list(Path('/proc/self/fd').iterdir())):9}")
    with timed("  close"):
        log.close()
    with timed("  open"):
        log = open_log(folder)
    with timed("  close, nothing changed"):
        log.close()
    return open_log(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.partitions)


if __name__ == "__main__":
    main()
