"""Shared by tests of the hot tier: small tables, a decoder of lines, a log with a tier.

A request is a text of lines `service trace body`. A line that begins with `bad` becomes a dead
letter; a request that is `crash` makes the decoder fail.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.disk import Mode
from frazil.hot.sealer import LakeWatermark
from frazil.hot.segment.piece import Piece
from frazil.hot.tier import SOURCES, HotTier
from frazil.log import Log, Record, append_of_records
from frazil.model import KiB, Rand
from frazil.model.arrow import Decode
from frazil.model.arrow.schemas import DEAD_LETTERS
from frazil.model.arrow.types import DeadLetter, Decoded, ExportRequest
from frazil.settings import HotConfig, LogConfig, TopicConfig
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk, SimFile, failure

TIME = pa.timestamp("us", tz="UTC")
ATTRIBUTES = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
LINES = pa.schema(
    [
        pa.field("_log_partition", pa.int32(), nullable=False),
        pa.field("_offset", pa.int64(), nullable=False),
        pa.field("_row", pa.int32(), nullable=False),
        pa.field("time", TIME, nullable=False, metadata={"comment": "when"}),
        pa.field("service_name", pa.string(), nullable=False),
        pa.field("trace_id", pa.string()),
        pa.field("body", pa.string()),
        pa.field("attributes", ATTRIBUTES, nullable=False),
    ]
)
SCHEMAS = {"logs": LINES, "spans": LINES, "metrics": LINES, "dead_letters": DEAD_LETTERS}
SOURCE = SOURCES[0]
TOPIC = SOURCE.topic
FOLDER = "hot/logs/0"
FIRST = f"{FOLDER}/00000000000000000000.arrow"

LOG = LogConfig(
    segment_bytes_max=4 * KiB,
    batch_bytes_max=64 * KiB,
    queue_bytes_max=256 * KiB,
    disk_bytes_max=4096 * KiB,
)
SMALL = HotConfig(
    seal_bytes=64 * KiB,
    seal_age_ms=60_000,
    memory_bytes_max=256 * KiB,
    disk_bytes_max=4096 * KiB,
    read_bytes=16 * KiB,
)
_SEEDS = itertools.count()


def decode(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
    """Implements the decoder's contract for lines."""
    rows: dict[str, list[object]] = {name: [] for name in LINES.names}
    dead = []
    for request in requests:
        if request.body == b"crash":
            raise RuntimeError("the decoder has a fault")
        for row, line in enumerate(request.body.decode().splitlines()):
            if line.startswith("bad"):
                dead.append(
                    DeadLetter(
                        partition=request.partition,
                        offset=request.offset,
                        row=row,
                        reason="bad line",
                        payload=line.encode(),
                    )
                )
                continue
            service, trace, body = line.split(" ", 2)
            values = (
                request.partition,
                request.offset,
                row,
                request.ingest_time_ms * 1000,
                service,
                trace,
                body,
                [("signal", signal)],
            )
            for name, value in zip(LINES.names, values, strict=True):
                rows[name].append(value)
    arrays = [pa.array(rows[field.name], field.type) for field in LINES]
    return Decoded(batch=pa.RecordBatch.from_arrays(arrays, schema=LINES), dead=dead)


def lines(begin: int, end: int) -> list[bytes]:
    """Requests of two rows each, all different."""
    return [
        f"service-{n % 3} {n:032x} first of {n}\nservice-{n % 3} {n:032x} second of {n}".encode()
        for n in range(begin, end)
    ]


def batch_of(*bodies: bytes, offset: int = 0) -> pa.RecordBatch:
    """Decoded rows of requests, the first of them at `offset`."""
    requests = [
        ExportRequest(partition=0, offset=offset + n, ingest_time_ms=1000 + offset + n, body=body)
        for n, body in enumerate(bodies)
    ]
    return decode("logs", requests).batch


class PickyDisk(SimDisk):
    """Fails to create, or to read, files with a path prefix; all others work."""

    refused = ""
    unreadable = ""
    code = errno.ENOSPC

    def open(self, path: str, mode: Mode = "read") -> SimFile:
        if mode == "create" and self.refused and path.startswith(self.refused):
            raise failure(self.code, path)
        if mode == "read" and self.unreadable and path.startswith(self.unreadable):
            raise failure(self.code, path)
        return super().open(path, mode)

    def make_directory(self, path: str) -> None:
        if self.refused and path.startswith(self.refused):
            raise failure(self.code, path)
        super().make_directory(path)


@dataclass
class Machine:
    """A log and a hot tier on one disk, without threads."""

    disk: SimDisk
    clock: SimClock
    log: Log
    tier: HotTier

    def add(self, *bodies: bytes, topic: str = TOPIC, partition: int = 0) -> None:
        """Append one request per body, and make them durable."""
        now_ms = self.clock.wall_ms()
        records = [Record(offset=0, timestamp_ms=now_ms, key=None, value=body) for body in bodies]
        answers = [
            self.log.append(topic, append_of_records([record]), partition=partition)
            for record in records
        ]
        self.log.writer.step()
        for answer in answers:
            answer.result(0)

    def catch_up(self) -> None:
        """Step and seal until all records of the log are visible."""
        for _ in range(10_000):
            if not self.tier.step() and not self.tier.is_behind and not self.tier.lag:
                return
            self.tier.seal()
        raise AssertionError("the hot tier does not catch up")

    def seal(self) -> int:
        """Seal all rows."""
        self.tier.freeze()
        return self.tier.seal()

    def close(self) -> None:
        self.tier.close()
        self.log.close()


def start(
    disk: SimDisk,
    config: HotConfig = SMALL,
    *,
    log_config: LogConfig = LOG,
    topic: TopicConfig | None = None,
    decode: Decode = decode,
    schemas: Mapping[str, pa.Schema] = SCHEMAS,
    lake_watermark: LakeWatermark | None = None,
    reserve_bytes: int = 0,
) -> Machine:
    """Open the log and the tier, as a node does."""
    clock = SimClock()
    log = Log.open(
        disk,
        log_config,
        clock=clock,
        rand=Rand(next(_SEEDS)),
        fatal=lambda _: None,
        threaded=False,
    )
    if not any(known.name == TOPIC for known in log.topics()):
        log.create_topic(TOPIC, topic)
    tier = HotTier(
        disk,
        log,
        config,
        decode=decode,
        schemas=schemas,
        clock=clock,
        lake_watermark=lake_watermark,
        reserve_bytes=reserve_bytes,
    )
    return Machine(disk, clock, log, tier)


def places(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """Return (offset, row) of every row."""
    return [
        place
        for piece in pieces
        for batch in piece.batches
        for place in zip(batch["_offset"].to_pylist(), batch["_row"].to_pylist(), strict=True)
    ]


def bodies(pieces: Sequence[Piece]) -> list[str]:
    return [text for piece in pieces for b in piece.batches for text in b["body"].to_pylist()]


def expected_places(count: int) -> list[tuple[int, int]]:
    """The (offset, row) of all rows of `lines(0, count)`."""
    return [(offset, row) for offset in range(count) for row in range(2)]


def check_pieces(tier: HotTier) -> None:
    """Check the statistics of pieces against their rows."""
    for table, pieces in tier.visible_pieces().items():
        for piece in pieces:
            assert all(b.schema.equals(SCHEMAS[table], check_metadata=True) for b in piece.batches)
            assert piece.row_count == sum(batch.num_rows for batch in piece.batches)
            offsets = [offset for offset, _ in places([piece])]
            assert offsets == sorted(offsets)
            assert all(piece.offset_begin <= offset < piece.offset_end for offset in offsets)
            if table == "dead_letters":
                continue
            rows = pa.Table.from_batches(piece.batches)
            times = rows["time"].cast(pa.int64()).to_pylist()
            assert (piece.time_min_us, piece.time_max_us) == (min(times), max(times))
            assert piece.services == frozenset(rows["service_name"].to_pylist())
            for column, found in piece.filters.items():
                assert all(map(found.may_hold, rows[column].to_pylist()))
