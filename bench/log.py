"""The log's promised numbers: group-committed appends, recovery, ids.

Appends are measured beside a bare loop of `write` + `fdatasync` over the same bytes on the same
disk, in turns. Prints one JSON line last; exits 1 when a bar is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

from google_crc32c import value as crc32c

from frazil.disk import DurableCounter, RealDisk, TimeIds
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from frazil.settings import LogConfig, TopicConfig

TOPIC = "bench"
ROUNDS = 5
SIZES = {300_000: 400, 300: 3_000}
"""Bytes per record -> appends per round."""
WRITERS = (1, 8, 64)
BAR_LARGE = 0.8
"""Relative to the bare loop, for records of 300 KB: the cost of framing, checksums and threads."""
RECOVERY_BYTES = 1 << 30
RECOVERY_S_MAX = 5 + 1
"""Ready again after a crash: 5 s plus 1 s per gigabyte that was never sealed. With default
segments there is at most a sixteenth of that per partition."""
ID_NS_MAX = 1_000
MAINTAIN_S = 0.05
WARM_UP_BYTES = 200_000_000
"""Written before measuring: three segments, so that the log reuses files as after minutes of
running. Its first segments are about a quarter slower."""

Case = dict[str, object]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder on the disk of this repository; /tmp may be another disk."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir="."))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def open_log(folder: Path, config: LogConfig | None = None) -> Log:
    """A log whose data is released as soon as it is sealed."""
    log = Log.open(
        RealDisk(folder), config, clock=SystemClock(), rand=SystemRandom(), holder="the bench"
    )
    log.create_topic(TOPIC, TopicConfig(retention_ms=0))
    return log


@contextmanager
def maintained(log: Log) -> Iterator[None]:
    """Run maintenance in the background, as a node does."""
    stop = threading.Event()

    def maintain() -> None:
        while not stop.wait(MAINTAIN_S):
            log.maintain()

    thread = threading.Thread(target=maintain)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def append_ours(log: Log, value: bytes, count: int, writers: int) -> tuple[float, list[float]]:
    """Appends per second, and the wait of each for its acknowledgement."""
    waits: list[float] = []

    def write() -> None:
        for _ in range(count // writers):
            begin = time.perf_counter()
            record = Record(offset=0, timestamp_ms=1, key=None, value=value)
            log.append_durably(TOPIC, append_of_records([record]))
            waits.append(time.perf_counter() - begin)

    threads = [threading.Thread(target=write) for _ in range(writers)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(waits) / (time.perf_counter() - begin), waits


def append_bare(folder: Path, value: bytes, count: int) -> float:
    """The same bytes: one `write` and one `fdatasync` each."""
    path = folder / "bare"
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
    begin = time.perf_counter()
    for _ in range(count):
        os.write(descriptor, value)
        os.fdatasync(descriptor)
    took = time.perf_counter() - begin
    os.close(descriptor)
    path.unlink()
    return count / took


def bench_appends() -> Iterator[Case]:
    """Each round has its own log in a steady state, and its own bare loop just before."""
    for size, count in SIZES.items():
        value = os.urandom(size)
        for writers in WRITERS:
            ratios, ours, bare, waits = [], [], [], []
            for _ in range(ROUNDS):
                with scratch_folder() as folder:
                    bare.append(append_bare(folder, value, count // 2))
                    with open_log(folder) as log, maintained(log):
                        append_ours(log, bytes(10_000_000), WARM_UP_BYTES // 10_000_000, 1)
                        rate, round_waits = append_ours(log, value, count, writers)
                ours.append(rate)
                waits += round_waits
                ratios.append(rate / bare[-1])
            bar = BAR_LARGE if size == max(SIZES) else None
            waits.sort()
            yield case(
                f"append {size} bytes, {writers} writers",
                ours=statistics.median(ours),
                peer=statistics.median(bare),
                ratio=statistics.median(ratios),
                bar=bar,
                unit="appends/s",
                mb_per_s=round(statistics.median(ours) * size / 1e6, 1),
                ack_p50_ms=round(waits[len(waits) // 2] * 1e3, 3),
                ack_p99_ms=round(waits[len(waits) * 99 // 100] * 1e3, 3),
            )


def bench_recovery() -> Iterator[Case]:
    """Open a gigabyte that was never sealed, beside reading and checksumming the same file."""
    for size in (300_000, 3_000):
        with scratch_folder() as folder:
            config = LogConfig(segment_bytes_max=4 * RECOVERY_BYTES, disk_bytes_max=1 << 40)
            fill(folder, config, size)
            segment = next(folder.glob("log/*/0/*.log"))
            gigabytes = segment.stat().st_size / (1 << 30)
            peer = seconds(lambda: read_through(segment)) / gigabytes  # noqa: B023
            ours = seconds(lambda: open_log(folder, config).close()) / gigabytes  # noqa: B023
            yield case(
                f"recover 1 GB of {size}-byte records",
                ours=ours,
                peer=peer,
                ratio=peer / ours,
                bar=RECOVERY_S_MAX,
                ok=ours <= RECOVERY_S_MAX,
                unit="s/GB",
            )


def fill(folder: Path, config: LogConfig, size: int) -> None:
    """Leave the log as kill -9 would: not closed, everything in the open segment."""
    child = os.fork()
    if child == 0:
        log = open_log(folder, config)
        record = Record(offset=0, timestamp_ms=1, key=None, value=os.urandom(size))
        append = append_of_records([record])
        answers = [log.append(TOPIC, append) for _ in range(64)]
        for _ in range(RECOVERY_BYTES // size):
            answers.pop(0).result()
            answers.append(log.append(TOPIC, append))
        for answer in answers:
            answer.result()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0


def read_through(path: Path) -> None:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            crc32c(chunk)


def bench_ids() -> Iterator[Case]:
    with scratch_folder() as folder:
        disk = RealDisk(folder)
        peer = nanoseconds(uuid.uuid4)
        with (
            DurableCounter.open(disk, "counter") as counter,
            TimeIds.open(disk, "ids", SystemClock(), node=1) as ids,
        ):
            for name, next_id in (
                ("crash-safe counter", counter.next),
                ("time-ordered id", ids.next),
            ):
                ours = nanoseconds(next_id)
                yield case(
                    name,
                    ours=ours,
                    peer=peer,
                    ratio=peer / ours,
                    bar=ID_NS_MAX,
                    ok=ours <= ID_NS_MAX,
                    unit="ns",
                )


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def nanoseconds(work: Callable[[], object], count: int = 200_000) -> float:
    return seconds(lambda: [work() for _ in range(count)]) / count * 1e9


def case(
    name: str,
    *,
    ours: float,
    peer: float,
    ratio: float,
    bar: float | None,
    unit: str,
    ok: bool | None = None,
    **more: float,
) -> Case:
    facts: Case = {
        "case": name,
        "ours": round(ours, 3),
        "peer": round(peer, 3),
        "ratio": round(ratio, 3),
        "bar": bar,
        "ok": ok if ok is not None else bar is None or ratio >= bar,
        "unit": unit,
    }
    facts |= more
    print(json.dumps(facts), file=sys.stderr)
    return facts


def main() -> int:
    cases = [*bench_appends(), *bench_recovery(), *bench_ids()]
    print(json.dumps({"bench": "log", "cases": cases}))
    return 0 if all(c["ok"] for c in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
