"""Helpers for tests of the log: a small log without a thread, appends, reads, damage."""

from __future__ import annotations

import itertools
from concurrent.futures import Future
from dataclasses import dataclass, field

from frazil.disk import Disk
from frazil.log import (
    Append,
    AppendResult,
    Log,
    Record,
    Start,
    StoredBatch,
    append_of_records,
    encode_batch,
    parse_header,
)
from frazil.log.segment import HEADER_BYTES, decode_segment_header, walk_batches
from frazil.log.topics import Floors
from frazil.model import Clock, KiB, Rand
from frazil.settings import LogConfig, TopicConfig
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk

TOPIC = "t"
FOLDER = f"log/{TOPIC}/0"
FIRST = f"{FOLDER}/00000000000000000000.log"
MARKS = f"{FOLDER}/marks"
STATE = f"{FOLDER}/partition.ckpt"

SMALL = LogConfig(
    segment_bytes_max=1 * KiB,
    batch_bytes_max=16 * KiB,
    group_bytes_max=32 * KiB,
    queue_bytes_max=64 * KiB,
    disk_bytes_max=1024 * KiB,
    index_interval_bytes=256,
)
"""Segments of about six small batches."""
WIDE = LogConfig(
    segment_bytes_max=64 * KiB,
    batch_bytes_max=16 * KiB,
    disk_bytes_max=1024 * KiB,
    index_interval_bytes=256,
)
"""Segments that no small test fills."""

_SEEDS = itertools.count()


@dataclass
class Fatal:
    """Stands for the end of the process: remembers what it was called with, and returns."""

    errors: list[BaseException] = field(default_factory=list)

    def __call__(self, error: BaseException) -> None:
        self.errors.append(error)


def open_log(
    disk: Disk,
    config: LogConfig = WIDE,
    *,
    clock: Clock | None = None,
    floors: Floors | None = None,
    fatal: Fatal | None = None,
    threaded: bool = False,
    topic: TopicConfig | None = None,
    reserve_bytes: int = 0,
    has_files: bool = True,
) -> Log:
    """The log on `disk` with one topic. Every opening draws other salts, as a real one does.

    A new topic has its files at once, so that the first append makes the same storage calls as any
    other; with `has_files=False` the first append creates them.
    """
    log = Log.open(
        disk,
        config,
        clock=clock or SimClock(),
        rand=Rand(next(_SEEDS)),
        holder="a test",
        floors=floors,
        fatal=fatal or Fatal(),
        threaded=threaded,
        reserve_bytes=reserve_bytes,
    )
    if not any(known.name == TOPIC for known in log.topics()):
        for partition in log.create_topic(TOPIC, topic).partitions:
            if has_files:
                partition.create_files()
    return log


def batch(
    *values: bytes, timestamp_ms: int = 1, key: bytes | None = None, digest: bytes | None = None
) -> Append:
    """One batch with a record per value."""
    records = [Record(offset=0, timestamp_ms=timestamp_ms, key=key, value=v) for v in values]
    return append_of_records(records, digest=digest)


def numbered(value: bytes, sequence: int, *, producer: int = 9, epoch: int = 0) -> Append:
    """One batch of a producer that numbers its batches."""
    payload = encode_batch(
        [Record(offset=0, timestamp_ms=1, key=None, value=value)],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return Append(parts=(payload,), header=parse_header(payload))


def submit(log: Log, *appends: Append, partition: int = 0) -> list[Future[AppendResult]]:
    """Queue batches without a step."""
    return [log.append(TOPIC, append, partition=partition) for append in appends]


def add(log: Log, *values: bytes, partition: int = 0) -> list[AppendResult]:
    """Append one batch per value, all in one group, and have them acknowledged."""
    answers = submit(log, *map(batch, values), partition=partition)
    log.writer.step()
    return [answer.result(0) for answer in answers]


def add_each(log: Log, *values: bytes) -> None:
    """Append one batch per value, each in a group of its own."""
    for value in values:
        add(log, value)


def batches(log: Log, start: Start = "earliest", *, partition: int = 0) -> list[StoredBatch]:
    """Everything a reader gets to see from `start` on."""
    reader = log.reader(TOPIC, start, partition=partition)
    try:
        return list(itertools.chain.from_iterable(iter(reader.read, [])))
    finally:
        reader.close()


def values(log: Log, start: Start = "earliest", *, partition: int = 0) -> list[bytes | None]:
    """The values of all records from the batch at `start` on; offsets must be dense."""
    found = [r for stored in batches(log, start, partition=partition) for r in stored.records()]
    if found:
        first = found[0].offset
        assert [r.offset for r in found] == list(range(first, first + len(found)))
    return [record.value for record in found]


def numbers(begin: int, end: int) -> list[bytes]:
    """Distinct values of one length."""
    return [b"value-%06d" % number for number in range(begin, end)]


# Damage. A dead disk may be asked for `process_kill()` again and again: each is a fresh copy.


def frames_of(disk: SimDisk, path: str = FIRST) -> list[StoredBatch]:
    """The good frames of a segment file, found without the log."""
    data = disk.data(path)
    header = decode_segment_header(data, path)
    file = SimDisk().open("copy", "create")
    file.append([data])
    return list(walk_batches(file, header, HEADER_BYTES, len(data), header.base_offset))


def frame_bytes(disk: SimDisk, path: str = FIRST) -> list[bytes]:
    data = disk.data(path)
    return [data[frame.position : frame.end] for frame in frames_of(disk, path)]


def put(disk: SimDisk, path: str, data: bytes) -> None:
    """Make a file hold these bytes, as an operator or a bad disk would."""
    if path not in disk.files():
        disk.open(path, "create").close()
    disk.rot(path, Rand(0), "replace", data=data)


def flipped(data: bytes, bit: int) -> bytes:
    """The same bytes with one bit turned over."""
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def segments(disk: SimDisk, folder: str = FOLDER) -> list[str]:
    """The paths of a partition's segments, oldest first."""
    return paths(disk, ".log", folder)


def paths(disk: SimDisk, suffix: str, folder: str = FOLDER) -> list[str]:
    """The paths of a partition's files that end so."""
    return [p for p in disk.files() if p.startswith(f"{folder}/") and p.endswith(suffix)]
