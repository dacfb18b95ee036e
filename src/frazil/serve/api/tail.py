"""A live tail: rows as they come, as server-sent events.

data: one row in JSON, with the place to go on from as its id
event: skipped, with how many rows came too fast to be shown
a comment now and then, so that nobody in between takes the silence for death
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa

from frazil.errors import Malformed, Unavailable
from frazil.hot import HotTier
from frazil.model import Signal
from frazil.model.arrow import METRICS, SPANS
from frazil.query import Tail, TailRows, box_conditions, log_conditions, log_rows, row_conditions
from frazil.results import json_of
from frazil.serve.http.handler import Asking, Handler
from frazil.serve.http.params import Pairs, Severity, Text
from frazil.serve.http.request import ApiRequest, pairs_of
from frazil.serve.http.row_streams import LiveStream

EVENTS = b"text/event-stream"
LOOK_S = 0.1
"""How often to look for something new."""
SILENCE_S = 15.0
"""After so long without a row a comment is sent."""
RETRY_MS = 2000
"""When a browser shall come back after a connection that ended."""
CATCH_MAX = 500
"""Rows that are sent at once; of more than that, the newest, and how many others there were."""
SCHEMAS = {"spans": SPANS, "metrics": METRICS}
TOPICS = {signal.table: signal.topic for signal in Signal}

_PLACES = re.compile(r"(\d{1,9}:\d{1,18})(,\d{1,9}:\d{1,18}){0,999}", re.ASCII)


class TailRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which rows to show as they come."""

    table: Literal["logs", "spans", "metrics"] = "logs"
    """Of which table."""
    filter: Pairs = ()
    """name=value: a column, an attribute, or `resource.` and an attribute of the resource."""
    exclude: Pairs = ()
    """The same, for what must not be."""
    search: Text | None = None
    """Words of the body; logs only."""
    severity: Severity | None = None
    """That and worse; logs only."""
    query: Text | None = None
    """What somebody types into a search box: words, field:value, field:>5, AND, OR, NOT; logs and
    spans only."""
    rate: Annotated[int, msgspec.Meta(ge=1, le=CATCH_MAX)] = CATCH_MAX
    """Rows that are shown at once, at most."""


async def tail(desk: Handler, asked: TailRequest, request: ApiRequest) -> LiveStream:
    """Rows as they come, as server-sent events; with Last-Event-ID from there on."""
    tier = desk.rooms.tier
    if tier is None:
        raise Unavailable("there is no live tail on this node: hot.enabled is false")
    begin = request.headers.get("last-event-id")
    start = _watermarks(tier, asked.table) if begin is None else _parsed(begin)
    following = Tail(asked.table, _conditions(asked), start=start, limit=asked.rate)
    asking = Asking(desk.sql)
    place = desk.take_tail()
    place.callback(asking.cancel)
    return LiveStream(
        content_type=EVENTS,
        pieces=_events(desk, tier, asked.table, following, asking),
        close=place.close,
    )


async def _events(
    desk: Handler, tier: HotTier, table: str, following: Tail, asking: Asking
) -> AsyncIterator[bytes]:
    # Whoever loses the connection before the first row comes back to where it began, too.
    yield b"retry: %d\nid: %s\n\n" % (RETRY_MS, _place(following.watermarks))
    silent_s = 0.0
    while True:
        watermarks = _watermarks(tier, table)
        caught = None
        if following.next_sql(watermarks) is not None:
            caught = await desk.run(partial(following.poll, asking.ask, watermarks))
        if caught is not None and (caught.rows.num_rows or caught.skipped_count):
            silent_s = 0.0
            yield await desk.run(partial(_written, caught, table, following.watermarks))
        elif silent_s >= SILENCE_S:
            silent_s = 0.0
            yield b": nothing new\n\n"
        silent_s += LOOK_S
        await asyncio.sleep(LOOK_S)


def _written(caught: TailRows, table: str, watermarks: dict[int, int]) -> bytes:
    """Events for all of it. Only the last one has an id: going on from there repeats nothing."""
    parts = []
    if caught.skipped_count:
        parts.append(b'event: skipped\ndata: {"count":%d}\n\n' % caught.skipped_count)
    rows = [b"data: %s\n\n" % json_of(row) for row in _rows(caught.rows, table)]
    if rows:
        rows[-1] = b"id: %s\n%s" % (_place(watermarks), rows[-1])
    return b"".join([*parts, *rows])


def _rows(rows: pa.Table, table: str) -> Iterator[Any]:
    values = rows.to_pylist(maps_as_pydicts="lossy")
    if table == "logs":
        return iter(log_rows(values))
    return ({name: value for name, value in row.items() if value is not None} for row in values)


def _conditions(asked: TailRequest) -> list[str]:
    filters, exclude = pairs_of(asked.filter, "filter"), pairs_of(asked.exclude, "exclude")
    if asked.table == "logs":
        return log_conditions(
            filters=filters,
            exclude=exclude,
            search=asked.search,
            min_severity=asked.severity,
            query=asked.query,
        )
    if asked.search is not None or asked.severity is not None:
        raise Malformed(f"search and severity are for logs, not for {asked.table}; use filter")
    conditions = row_conditions(filters, exclude, SCHEMAS[asked.table])
    if asked.query is None:
        return conditions
    if asked.table == "metrics":
        raise Malformed("query is for logs and spans, not for metrics; use filter")
    return conditions + box_conditions(asked.table, asked.query)


def _watermarks(tier: HotTier, table: str) -> dict[int, int]:
    return tier.watermarks(TOPICS[table])


def _place(watermarks: dict[int, int]) -> bytes:
    """Where to go on, as an id of an event; where nothing has come yet, from the very first row.
    An empty id would be none."""
    places = sorted((watermarks or {0: 0}).items())
    return ",".join(f"{partition}:{end}" for partition, end in places).encode()


def _parsed(written: str) -> dict[int, int]:
    if not _PLACES.fullmatch(written):
        raise Malformed(f"Last-Event-ID is {written[:100]!r}; send one of ours, or none")
    pairs = (place.split(":") for place in written.split(","))
    return {int(partition): int(end) for partition, end in pairs}
