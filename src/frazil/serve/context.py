"""NodeContext: the open components of a node, as endpoints use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from frazil.connectors.runtime import Connectors
from frazil.definitions import StatementExecutor
from frazil.disk import Disk
from frazil.hot import HotTier
from frazil.lake import Lake
from frazil.load import Loader, PipeScheduler
from frazil.log import ReadableLog
from frazil.model import Clock
from frazil.results import CancelToken, Limits, Result, WriteToken
from frazil.rules import RuleRunner
from frazil.settings import KafkaPortConfig, LogConfig
from frazil.status import ConsumerGroups, GroupsQuery, OtlpAddresses, Rates, WriterStatus
from frazil.tables import KeyedTables


class Sql(Protocol):
    """Runs one query over hot tier and lake. Any thread may call it."""

    def __call__(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        engine: Literal["spark"] | None = None,
        cancel_token: CancelToken | None = None,
        at_least: Sequence[WriteToken] = (),
    ) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """The open components of the reader process. None if switched off or not installed."""

    data: str
    disk: Disk  # the data folder
    log: ReadableLog
    otlp: OtlpAddresses
    writer_status: Callable[[], WriterStatus]
    """Asks the writer process; call it in a thread. `Unavailable` if it does not answer."""
    consumer_groups: Callable[[GroupsQuery], ConsumerGroups]
    """Asks the writer process, as well."""
    kafka: KafkaPortConfig
    log_config: LogConfig
    lake_topics: Sequence[str]
    """Name patterns of the topics that are tables."""
    rates: Rates
    """Rates of this process."""
    tier: HotTier | None
    sql: Sql | None
    statements: StatementExecutor | None
    pipes: PipeScheduler | None
    connectors: Connectors | None
    tables: KeyedTables | None
    lake: Lake | None
    loader: Loader | None
    rules: RuleRunner | None
    """None without rules and receivers, too."""
    clock: Clock
