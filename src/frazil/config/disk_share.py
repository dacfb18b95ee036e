"""Limits of log and hot tier that fit the disk that is there.

The defaults suit a disk of 25 GB or more. On a smaller one the log and the hot tier could fill it
together, and then nothing could be committed to the lake, which is what makes room in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from frazil.config.config import BATCH_OVERHEAD_BYTES, Config
from frazil.model import MiB

RESERVE = 0.25
"""Share of the disk for the lake: its files, Spark's scratch files, and one flush under way."""
LOG = 0.6
"""Share of the rest for the log; the hot tier has the other part."""
SEGMENTS = 16
"""Segments that the log must be able to hold: it deletes whole ones."""
SEALS = 8
"""Sealed files that the hot tier must be able to hold."""
FLUSHES = 8
"""The lake commits when the log is filled to one part of so many."""
SEGMENT_BYTES_MIN = 1 * MiB
BATCHES = 4
"""Batches of the largest size that the log must be able to hold."""


def disk_use(folder: Path) -> int:
    """Return the bytes that log and hot tier of a data folder take now."""
    return sum(_sizes(folder / "log")) + sum(_sizes(folder / "hot"))


def _sizes(folder: Path) -> Iterable[int]:
    return (path.stat().st_size for path in folder.rglob("*") if path.is_file())


def reserve_bytes(config: Config) -> int:
    """Return the free space to keep, so that flushes free more than they take.

    The log deletes whole segments, and only what the hot tier has let go, which is whole segments
    of its own: flushes must get past the end of both first.
    """
    if not config.lake.enabled:
        return config.log.segment_bytes_max
    seal_bytes = config.hot.seal_bytes if config.hot.enabled else 0
    return config.lake.flush_bytes + seal_bytes + config.log.segment_bytes_max


def fit_to_disk(config: Config, *, free_bytes: int, used_bytes: int) -> Config:
    """Return the settings with lower limits, if the disk is too small for theirs.

    `free_bytes` are free on the disk, and `used_bytes` are used by log and hot tier already.
    """
    total = free_bytes + used_bytes
    room = int(total * (1 - RESERVE))
    hot_bytes = config.hot.disk_bytes_max if config.hot.enabled else 0
    if config.log.disk_bytes_max + hot_bytes <= room:
        return config
    log_max = min(config.log.disk_bytes_max, int(room * LOG) if hot_bytes else room)
    hot_max = min(config.hot.disk_bytes_max, room - log_max)
    segment = max(SEGMENT_BYTES_MIN, min(config.log.segment_bytes_max, log_max // SEGMENTS))
    batch = min(config.log.batch_bytes_max, log_max // BATCHES)
    body = min(config.ingest.body_bytes_max, batch - BATCH_OVERHEAD_BYTES)
    seal = max(SEGMENT_BYTES_MIN, min(config.hot.seal_bytes, hot_max // SEALS))
    return structs.replace(
        config,
        log=structs.replace(
            config.log,
            disk_bytes_max=max(log_max, 3 * segment),
            segment_bytes_max=segment,
            batch_bytes_max=batch,
        ),
        ingest=structs.replace(
            config.ingest,
            body_bytes_max=body,
            json_bytes_max=min(config.ingest.json_bytes_max, body),
        ),
        hot=structs.replace(config.hot, disk_bytes_max=max(hot_max, 2 * seal), seal_bytes=seal),
        lake=structs.replace(
            config.lake,
            flush_bytes=max(SEGMENT_BYTES_MIN, min(config.lake.flush_bytes, log_max // FLUSHES)),
        ),
    )
