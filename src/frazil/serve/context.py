"""Rooms: what a node has, for those who show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from frazil.disk import Disk
from frazil.hot import HotTier
from frazil.ingest import Otlp
from frazil.lake import Lake
from frazil.log import Log
from frazil.model import Clock
from frazil.results import Leash, Limits, Result
from frazil.serve.uptime import Life


class Sql(Protocol):
    """Runs one query over hot tier and lake; any thread may ask."""

    def __call__(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        engine: Literal["spark"] | None = None,
        leash: Leash | None = None,
    ) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """The open rooms of one node. None is one that is switched off, or not installed."""

    data: str
    disk: Disk
    """The data folder."""
    life: Life
    log: Log
    otlp: Otlp
    tier: HotTier | None
    sql: Sql | None
    lake: Lake | None
    clock: Clock
