"""log_loads_of: loads of files into the log, over a log and its lake."""

from __future__ import annotations

from frazil.config import Config, reserve_bytes
from frazil.disk import RealDisk
from frazil.lake import Lake
from frazil.load import FileRules, LogLoads, LogLoadsConfig, StepLog
from frazil.log import Log
from frazil.model import Clock, MiB, SystemRand

REQUEST_BYTES_MAX = 16 * MiB
"""Of one that a load appends; below what the channel to the log's owner takes."""
BATCH_BYTES = 4096
"""Kept of it for what a batch has besides the request."""


def log_loads_of(log: StepLog, lake: Lake, config: Config, clock: Clock) -> LogLoads:
    """Open loads into the log. In a process that owns the log, they empty it when it is full."""

    def make_room() -> None:
        if isinstance(log, Log):
            lake.flush()
            log.maintain()

    rules = FileRules(
        ingest=config.ingest,
        redact=config.redact,
        request_bytes_max=min(config.log.batch_bytes_max, REQUEST_BYTES_MAX) - BATCH_BYTES,
    )
    loads = LogLoadsConfig(rules=rules, reserve_bytes=reserve_bytes(config), make_room=make_room)
    return LogLoads(RealDisk(config.data), log, loads, clock=clock, rand=SystemRand())
