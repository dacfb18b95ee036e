"""NodeContext: the open components of a node, as endpoints use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from frazil.disk import Disk
from frazil.hot import HotTier
from frazil.ingest import OtlpPorts
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import Clock
from frazil.results import CancelToken, Limits, Result
from frazil.serve.uptime import Uptime


class Sql(Protocol):
    """Runs one query over hot tier and lake. Any thread may call it."""

    def __call__(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        engine: Literal["spark"] | None = None,
        cancel_token: CancelToken | None = None,
    ) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The open components of one node. None if switched off or not installed."""

    data: str
    disk: Disk  # the data folder
    uptime: Uptime
    log: Log
    otlp: OtlpPorts
    tier: HotTier | None
    sql: Sql | None
    lake: Lake | None
    clock: Clock
