"""Endpoint of the live tail: new rows as server-sent events.

data            one row as JSON; the id of the last one resumes the tail
event: skipped  number of rows that exceeded the rate
comment         keep-alive for proxies
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
from msgspec import Meta

from frazil.errors import Malformed, Unavailable
from frazil.hot import HotTier
from frazil.model import Signal, doc
from frazil.model.arrow import METRICS, SPANS
from frazil.query import (
    Tail,
    TailRows,
    log_conditions,
    log_rows,
    query_conditions,
    row_conditions,
)
from frazil.results import CancelToken, json_of
from frazil.serve.http.events import EVENTS, events_of, hello, parse_event_id
from frazil.serve.http.handler import Handler, ask_with, disconnect
from frazil.serve.http.params import (
    Excludes,
    Filters,
    LogSearch,
    MinSeverity,
    Text,
)
from frazil.serve.http.request import ApiRequest, pairs_of
from frazil.serve.http.row_streams import LiveStream

ROWS_MAX = 500
"""Rows per poll; above it the newest are sent and the others counted as skipped."""
SCHEMAS = {"spans": SPANS, "metrics": METRICS}
TOPICS = {signal.table: signal.topic for signal in Signal}


class TailRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which new rows to send."""

    table: Annotated[Literal["logs", "spans", "metrics"], doc("Table.")] = "logs"
    filter: Filters = ()
    exclude: Excludes = ()
    search: LogSearch = None
    severity: MinSeverity = None
    query: Annotated[Text | None, doc("Search query; logs and spans only.")] = None
    rate: Annotated[int, Meta(ge=1, le=ROWS_MAX, description="Maximum rows per poll.")] = ROWS_MAX


async def tail(handler: Handler, params: TailRequest, request: ApiRequest) -> LiveStream:
    """Stream new rows as server-sent events. Last-Event-ID resumes."""
    tier = handler.context.tier
    if tier is None:
        raise Unavailable("this node has no live tail: hot.enabled is false")
    event_id = request.headers.get("last-event-id")
    start = None if event_id is None else parse_event_id(event_id)
    conditions = _conditions(params)
    token = CancelToken()
    key = (params.table, tuple(conditions), params.rate)

    def open_poller(start: dict[int, int] | None) -> TailPoller:
        # Rows that several clients share are not cancelled when one of them leaves.
        own_token = CancelToken() if start is None else token
        return TailPoller(handler, tier, params, conditions, start, own_token)

    slot = handler.take_tail()
    slot.callback(disconnect, token)
    return LiveStream(
        content_type=EVENTS,
        pieces=handler.tails.follow(key, open_poller, start, hello),
        close=slot.close,
    )


class TailPoller:
    """Polls the new rows of one table."""

    def __init__(
        self,
        handler: Handler,
        tier: HotTier,
        params: TailRequest,
        conditions: list[str],
        start: dict[int, int] | None,
        token: CancelToken,
    ) -> None:
        self._handler = handler
        self._tier = tier
        self._table = params.table
        begin = _watermarks(tier, params.table) if start is None else start
        self._tail = Tail(params.table, conditions, start=begin, limit=params.rate)
        self._ask = ask_with(handler.sql, token, handler.config.answer_bytes_max)

    @property
    def watermarks(self) -> dict[int, int]:
        return self._tail.watermarks

    async def poll(self, until: dict[int, int] | None) -> bytes | None:
        """Return new rows as events; None if there are none."""
        watermarks = _watermarks(self._tier, self._table) if until is None else until
        if self._tail.next_sql(watermarks) is None:
            return None
        return await self._handler.run(lambda: self._read(watermarks))

    def close(self) -> None:
        """Nothing is open between two polls."""

    def _read(self, watermarks: dict[int, int]) -> bytes | None:
        polled = self._tail.poll(self._ask, watermarks)
        if polled is None or not (polled.rows.num_rows or polled.skipped_count):
            return None
        return _encode(polled, self._table, self._tail.watermarks)


def _encode(polled: TailRows, table: str, watermarks: dict[int, int]) -> bytes:
    rows = [json_of(row) for row in _rows(polled.rows, table)]
    return events_of(rows, polled.skipped_count, watermarks)


def _rows(rows: pa.Table, table: str) -> Iterator[Any]:
    values = rows.to_pylist(maps_as_pydicts="lossy")
    if table == "logs":
        return iter(log_rows(values))
    return ({name: value for name, value in row.items() if value is not None} for row in values)


def _conditions(params: TailRequest) -> list[str]:
    filters, exclude = pairs_of(params.filter, "filter"), pairs_of(params.exclude, "exclude")
    if params.table == "logs":
        return log_conditions(
            filters=filters,
            exclude=exclude,
            search=params.search,
            min_severity=params.severity,
            query=params.query,
        )
    if params.search is not None or params.severity is not None:
        raise Malformed(f"search and severity apply to logs, not to {params.table}; use filter")
    conditions = row_conditions(filters, exclude, SCHEMAS[params.table])
    if params.query is None:
        return conditions
    if params.table == "metrics":
        raise Malformed("query applies to logs and spans, not to metrics; use filter")
    return conditions + query_conditions(params.table, params.query)


def _watermarks(tier: HotTier, table: str) -> dict[int, int]:
    return tier.watermarks(TOPICS[table])
