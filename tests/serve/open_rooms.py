"""The rooms of a node, opened in this process, without its threads and without Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from frazil.disk import RealDisk
from frazil.hot import HotTier
from frazil.ingest import OtlpPorts
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import SystemClock, arrow
from frazil.node import addresses_of, writer_rates, writer_status
from frazil.serve import NodeContext, reader_rates
from frazil.settings import KafkaPortConfig, LakeConfig, LogConfig
from frazil.status import ConsumerGroups, GroupsQuery, Uptime, WriterStatus
from tests.ingest.serving import serving


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRooms(NodeContext):
    """Both halves of a node in one process."""

    uptime: Uptime
    ports: OtlpPorts
    own_log: Log


def status_in_this_process(
    log: Log, ports: OtlpPorts, uptime: Uptime
) -> Callable[[], WriterStatus]:
    """The writer's status, without the metrics: those of this process are the reader's."""
    return lambda: msgspec.structs.replace(writer_status(log, ports, None, uptime), families=[])


def no_groups(_: GroupsQuery) -> ConsumerGroups:
    """The groups of a node without a Kafka port."""
    return ConsumerGroups(is_enabled=False, group_count=0, groups=[])


@contextmanager
def open_rooms(
    folder: Path, *, log_config: LogConfig | None = None, has_lake: bool = False
) -> Iterator[OpenRooms]:
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
            uptime = Uptime(clock, writer_rates(clock))
            uptime.state = "running"
            yield OpenRooms(
                data=str(folder),
                disk=RealDisk(folder),
                log=served.log,
                otlp=addresses_of(served.otlp),
                writer_status=status_in_this_process(served.log, served.otlp, uptime),
                consumer_groups=no_groups,
                kafka=KafkaPortConfig(),
                log_config=log_config or LogConfig(),
                lake_topics=("*",),
                rates=reader_rates(clock),
                tier=tier,
                sql=None,
                statements=None,
                pipes=None,
                connectors=None,
                loader=None,
                rules=None,
                tables=None,
                lake=lake,
                clock=clock,
                uptime=uptime,
                ports=served.otlp,
                own_log=served.log,
            )
        finally:
            if lake is not None:
                lake.close()
            tier.close()
