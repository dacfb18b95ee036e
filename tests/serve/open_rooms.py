"""The rooms of a node, opened in this process, without its threads and without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frazil.disk import RealDisk
from frazil.hot import HotTier
from frazil.lake import Lake, LakeConfig
from frazil.log import LogConfig
from frazil.model import SystemClock, arrow
from frazil.serve import NodeContext, Uptime
from tests.ingest.serving import serving


@contextmanager
def open_rooms(
    folder: Path, *, log_config: LogConfig | None = None, has_lake: bool = False
) -> Iterator[NodeContext]:
    """A log, both OTLP ports, a hot tier whose steps are the test's; a lake that starts nothing
    by itself."""
    clock = SystemClock()
    with serving(folder, log_config=log_config) as served:
        tier = HotTier(
            RealDisk(folder),
            served.log,
            decode=arrow.decode,
            schemas=arrow.TABLES,
            clock=clock,
        )
        lake = None
        try:
            if has_lake:
                lake = Lake.open(
                    served.log,
                    folder,
                    LakeConfig(),
                    clock=clock,
                    rand=random.SystemRandom(),
                    auto_flush=False,
                )
            uptime = Uptime(clock)
            uptime.state = "running"
            yield NodeContext(
                data=str(folder),
                disk=RealDisk(folder),
                uptime=uptime,
                log=served.log,
                otlp=served.otlp,
                tier=tier,
                sql=None,
                lake=lake,
                clock=clock,
            )
        finally:
            if lake is not None:
                lake.close()
            tier.close()
