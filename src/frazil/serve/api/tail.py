"""Endpoint of the live tail: new rows as server-sent events.

data            one row as JSON; the id of the last one resumes the tail
event: skipped  number of rows that exceeded the rate
comment         keep-alive for proxies
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
from msgspec import Meta

from frazil.errors import Malformed, Unavailable
from frazil.hot import HotTier
from frazil.model import Signal, doc
from frazil.model.arrow import METRICS, SPANS
from frazil.query import (
    Ask,
    Tail,
    TailRows,
    log_conditions,
    log_rows,
    query_conditions,
    row_conditions,
)
from frazil.results import CancelToken, json_of
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

EVENTS = b"text/event-stream"
POLL_INTERVAL_S = 0.1
"""Interval between polls."""
KEEP_ALIVE_S = 15.0
"""Send a comment after this time without rows."""
RETRY_MS = 2000
"""Reconnect delay for browsers."""
ROWS_MAX = 500
"""Rows per poll; above it the newest are sent and the others counted as skipped."""
SCHEMAS = {"spans": SPANS, "metrics": METRICS}
TOPICS = {signal.table: signal.topic for signal in Signal}

_EVENT_ID = re.compile(r"(\d{1,9}:\d{1,18})(,\d{1,9}:\d{1,18}){0,999}", re.ASCII)


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
    start = _watermarks(tier, params.table) if event_id is None else _parse_event_id(event_id)
    following = Tail(params.table, _conditions(params), start=start, limit=params.rate)
    token = CancelToken()
    ask = ask_with(handler.sql, token, handler.config.answer_bytes_max)
    slot = handler.take_tail()
    slot.callback(disconnect, token)
    return LiveStream(
        content_type=EVENTS,
        pieces=_events(handler, tier, params.table, following, ask),
        close=slot.close,
    )


async def _events(
    handler: Handler, tier: HotTier, table: str, following: Tail, ask: Ask
) -> AsyncIterator[bytes]:
    # The first id lets a client that loses the connection before the first row resume here.
    yield b"retry: %d\nid: %s\n\n" % (RETRY_MS, _event_id(following.watermarks))
    idle_s = 0.0
    while True:
        watermarks = _watermarks(tier, table)
        polled = None
        if following.next_sql(watermarks) is not None:
            polled = await handler.run(partial(following.poll, ask, watermarks))
        if polled is not None and (polled.rows.num_rows or polled.skipped_count):
            idle_s = 0.0
            yield await handler.run(partial(_encode, polled, table, following.watermarks))
        elif idle_s >= KEEP_ALIVE_S:
            idle_s = 0.0
            yield b": keep-alive\n\n"
        idle_s += POLL_INTERVAL_S
        await asyncio.sleep(POLL_INTERVAL_S)


def _encode(polled: TailRows, table: str, watermarks: dict[int, int]) -> bytes:
    """Encode rows as events. Only the last has an id, so that resuming repeats nothing."""
    parts = []
    if polled.skipped_count:
        parts.append(b'event: skipped\ndata: {"count":%d}\n\n' % polled.skipped_count)
    rows = [b"data: %s\n\n" % json_of(row) for row in _rows(polled.rows, table)]
    if rows:
        rows[-1] = b"id: %s\n%s" % (_event_id(watermarks), rows[-1])
    return b"".join([*parts, *rows])


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


def _event_id(watermarks: dict[int, int]) -> bytes:
    """Watermarks as an event id. Without any, the first row: an empty id would be ignored."""
    ends = sorted((watermarks or {0: 0}).items())
    return ",".join(f"{partition}:{end}" for partition, end in ends).encode()


def _parse_event_id(text: str) -> dict[int, int]:
    if not _EVENT_ID.fullmatch(text):
        raise Malformed(f"Last-Event-ID is {text[:100]!r}; send an id of this stream, or none")
    pairs = (pair.split(":") for pair in text.split(","))
    return {int(partition): int(end) for partition, end in pairs}
