"""tail: new lines of a selection over a WebSocket, after the last ones before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.errors import Unavailable
from frazil.hot import HotTier
from frazil.httpd import HttpError
from frazil.languages import (
    LineSpan,
    LogLine,
    LogqlTail,
    LogSelection,
    find_lines,
    logql_text,
    parse_selection,
    records_before,
)
from frazil.model import Signal
from frazil.results import CancelToken
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.loki import answers
from frazil.serve.doors.loki.params import NS_PER_MS, NS_PER_S, RANGE_NS, line_limit, time_ns
from frazil.serve.doors.loki.queries import flags_of
from frazil.serve.doors.loki.rows import reader
from frazil.serve.http.handler import Handler, ask_with, disconnect
from frazil.serve.http.row_streams import SocketStream
from frazil.serve.http.shared_tails import KEEP_ALIVE

ROWS_MAX = 5000
"""Rows per poll; of more, the newest are sent."""
AHEAD_NS = 60 * NS_PER_S
"""FoundLines whose clocks are ahead by this much belong to the past, too."""
NOT_A_SOCKET = "/loki/api/v1/tail needs a WebSocket; use query_range for lines that are there"


async def tail(handler: Handler, call: DoorRequest) -> SocketStream:
    """Stream new lines."""
    tier = handler.context.tier
    if tier is None:
        raise Unavailable("this node has no live tail: hot.enabled is false")
    selection = parse_selection(call.required("query"))
    limit = line_limit(call)
    start = call.first("start")
    now_ns = handler.context.clock.wall_ms() * NS_PER_MS
    begin_ns = now_ns - RANGE_NS if start is None else time_ns(start, "start")
    if not call.request.offers_websocket:
        raise HttpError(HTTPStatus.UPGRADE_REQUIRED, NOT_A_SOCKET, (b"upgrade", b"websocket"))
    is_categorized = answers.CATEGORIZE in flags_of(call)
    token = CancelToken()
    slot = handler.take_tail()
    slot.callback(disconnect, token)
    feed = _Feed(handler, tier, selection, token, is_categorized=is_categorized)
    pieces = feed.messages(LineSpan(begin_ns, now_ns + AHEAD_NS), limit)
    return SocketStream(pieces=pieces, close=slot.close)


class _Feed:
    """The messages of one client."""

    def __init__(
        self,
        handler: Handler,
        tier: HotTier,
        selection: LogSelection,
        token: CancelToken,
        *,
        is_categorized: bool,
    ) -> None:
        self._handler = handler
        self._tier = tier
        self._selection = selection
        self._token = token
        self._is_categorized = is_categorized

    async def messages(self, span: LineSpan, limit: int) -> AsyncIterator[bytes]:
        """Yield the last lines of the past, then new ones; nothing while there are none."""
        seen: dict[int, int] = {}

        def hello(watermarks: dict[int, int]) -> bytes:
            seen.update(watermarks)
            return b""

        key = ("loki", logql_text(self._selection), self._is_categorized)
        follow = self._handler.tails.follow(key, self._open, None, hello)
        async with aclosing(follow) as shared:  # type: ignore[type-var]
            await anext(shared)
            past = await self._handler.run(lambda: self._past(span, limit, seen))
            if past:
                yield past
            async for piece in shared:
                yield b"" if piece == KEEP_ALIVE else piece

    def _past(self, span: LineSpan, limit: int, watermarks: Mapping[int, int]) -> bytes:
        found = find_lines(
            reader(self._handler, self._token),
            self._selection,
            span,
            limit=limit,
            is_newest=True,
            extra=[records_before(watermarks)],
        )
        return encode(found.lines[::-1], 0, is_categorized=self._is_categorized)

    def _open(self, start: dict[int, int] | None) -> LogTailPoller:
        return LogTailPoller(
            self._handler, self._tier, self._selection, start, is_categorized=self._is_categorized
        )


class LogTailPoller:
    """Polls the new lines of a selection, for all clients that follow it."""

    def __init__(
        self,
        handler: Handler,
        tier: HotTier,
        selection: LogSelection,
        start: dict[int, int] | None,
        *,
        is_categorized: bool,
    ) -> None:
        self._handler = handler
        self._tier = tier
        self._is_categorized = is_categorized
        self._tail = LogqlTail(selection, start=start or self._visible(), limit=ROWS_MAX)
        self._ask = ask_with(handler.sql, CancelToken(), handler.config.answer_bytes_max)

    @property
    def watermarks(self) -> dict[int, int]:
        return self._tail.watermarks

    async def poll(self, until: dict[int, int] | None) -> bytes | None:
        watermarks = self._visible() if until is None else until
        if not self._tail.has_news(watermarks):
            return None
        return await self._handler.run(lambda: self._read(watermarks))

    def close(self) -> None:
        """Nothing is open between two polls."""

    def _visible(self) -> dict[int, int]:
        return self._tier.watermarks(Signal.LOGS.topic)

    def _read(self, watermarks: dict[int, int]) -> bytes | None:
        polled = self._tail.poll(self._ask, watermarks)
        if not (polled.lines or polled.skipped_count):
            return None
        return encode(polled.lines, polled.skipped_count, is_categorized=self._is_categorized)


def encode(lines: Sequence[LogLine], skipped_count: int, *, is_categorized: bool) -> bytes:
    """One message; nothing if there is nothing to say."""
    if not lines and not skipped_count:
        return b""
    message: dict[str, Any] = {"streams": answers.streams_of(lines, is_categorized=is_categorized)}
    if is_categorized:
        message["encodingFlags"] = [answers.CATEGORIZE]
    if skipped_count:
        moment = str(lines[0].time_ns) if lines else "0"
        message["dropped_entries"] = [{"timestamp": moment, "labels": {}}]
    return msgspec.json.encode(message)
