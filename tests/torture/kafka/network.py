"""Wire: the client's side of a connection, through a network that loses, delays and repeats.

A lost request, a lost response and a request that arrives long after its client has given up all
look the same to a client: the connection is gone.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextvars import Context
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from frazil.kafka.connection import KafkaConnection
from frazil.kafka.wire.headers import decode_response, encode_request
from frazil.kafka.wire.schema import KafkaMessage
from frazil.model import Rand

R = TypeVar("R", bound=KafkaMessage)

LATE_S = (0.001, 0.05, 1.0, 20.0)
"""How much later than its client expects a request may arrive."""
TICK_S = 1e-6
"""Between two frames of one connection: they never overtake each other."""


class Lost(Exception):
    """The connection is gone. Whether the request was done is not known."""


@dataclass(slots=True, kw_only=True)
class Weather:
    """How likely each fault of the network is, per request."""

    rand: Rand
    fired: Counter[str]
    lost_request: float = 0.0
    lost_response: float = 0.0
    late_request: float = 0.0

    def draw(self, *, may_be_late: bool) -> str:
        at = self.rand.random()
        for name in ("lost_request", "lost_response", "late_request"):
            at -= getattr(self, name)
            if at < 0 and (may_be_late or name != "late_request"):
                self.fired[name] += 1
                return name
        return ""


class _Transport:
    """The server's side of a connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.is_paused = False
        self._is_closing = False

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 9092) if name in ("peername", "sockname") else None

    def writelines(self, chunks: list[bytes]) -> None:
        self._wire.respond(b"".join(chunks))

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False
        self._wire.feed()

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._wire.closed_by_server()

    abort = close


class Wire:
    """One connection. Owned by the loop; the server's side runs in the context of its life."""

    def __init__(
        self, protocol: KafkaConnection, life: Context, weather: Weather, outside: Context
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._life = life
        self._outside = outside
        self._weather = weather
        self._number = 0
        self._arrival_s = self._answer_s = 0.0
        self._unread = bytearray()
        self._responses = bytearray()
        self._waiting: deque[tuple[int, asyncio.Future[bytes]]] = deque()
        self._lost_numbers: set[int] = set()
        self.is_lost = False
        self._is_broken = False
        """Nothing that is sent from now on arrives."""
        self._is_server_gone = False
        self._transport = _Transport(self)
        self._on_server(protocol.connection_made, cast(Any, self._transport))

    def _on_server(self, work: Any, *args: Any) -> None:
        self._life.copy().run(work, *args)

    async def ask(
        self, kind: type[R], request: KafkaMessage, version: int, *, may_be_late: bool = True
    ) -> R:
        """Return the response. Raises `Lost`."""
        _, response = decode_response(
            kind, version, await self.send(request, version, may_be_late=may_be_late)
        )
        return response

    def send(
        self, request: KafkaMessage, version: int, *, may_be_late: bool = True
    ) -> asyncio.Future[bytes]:
        """Send a request at once; the future has its response, or `Lost`."""
        future: asyncio.Future[bytes] = self._loop.create_future()
        if self.is_lost:
            future.set_exception(Lost())
            return future
        rand = self._weather.rand
        self._number += 1
        frame = b"".join(encode_request(request, version, self._number, "torture"))
        self._waiting.append((self._number, future))
        fate = self._weather.draw(may_be_late=may_be_late)
        delay_s = rand.choice((0.0, 0.0001, 0.002))
        self._arrival_s = max(self._arrival_s + TICK_S, self._loop.time() + delay_s)
        if fate == "late_request":
            self._arrival_s += rand.choice(LATE_S) * rand.random()
        if fate == "lost_response":
            self._lost_numbers.add(self._number)
        self._is_broken |= fate == "lost_request"
        if not self._is_broken:
            self._loop.call_at(self._arrival_s, self._arrive, frame, context=self._outside)
        if fate in ("lost_request", "late_request"):
            self._loop.call_later(delay_s, self.cut, context=self._outside)
        return future

    def _arrive(self, frame: bytes) -> None:
        self._unread += frame
        self.feed()

    def feed(self) -> None:
        """Give the server what has arrived, as far as it reads."""
        while self._unread and not self._transport.is_paused and not self._is_server_gone:
            self._on_server(self._feed_once)

    def _feed_once(self) -> None:
        space = self._protocol.get_buffer(-1)
        count = min(len(space), len(self._unread))
        space[:count] = self._unread[:count]
        del self._unread[:count]
        self._protocol.buffer_updated(count)

    def respond(self, data: bytes) -> None:
        """Take bytes from the server."""
        self._responses += data
        while len(self._responses) >= 4:
            end = 4 + int.from_bytes(self._responses[:4], "big")
            if len(self._responses) < end:
                return
            frame = bytes(self._responses[4:end])
            del self._responses[:end]
            delay_s = self._weather.rand.choice((0.0, 0.0, 0.001))
            self._answer_s = max(self._answer_s + TICK_S, self._loop.time() + delay_s)
            self._loop.call_at(self._answer_s, self._take, frame, context=self._outside)

    def _take(self, frame: bytes) -> None:
        if self.is_lost or not self._waiting:
            return
        number = int.from_bytes(frame[:4], "big")
        if number in self._lost_numbers:
            self.cut()
            return
        expected, future = self._waiting.popleft()
        assert number == expected, "a response out of order"
        if not future.done():
            future.set_result(frame)

    def cut(self) -> None:
        """The client sees the end of the connection. The server may see requests after it."""
        if self.is_lost:
            return
        self.is_lost = True
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(Lost())
        self._waiting.clear()
        wait_s = max(0.0, self._arrival_s - self._loop.time()) + 0.001
        self._loop.call_later(wait_s, self._lose_server, context=self._outside)

    def closed_by_server(self) -> None:
        self._loop.call_soon(self._lose_server, context=self._outside)
        self._loop.call_soon(self.cut, context=self._outside)

    def _lose_server(self) -> None:
        if not self._is_server_gone:
            self._is_server_gone = True
            self._on_server(self._protocol.connection_lost, None)

    def end_life(self) -> None:
        """The server has died."""
        self._is_server_gone = True
        self._protocol._is_closed = True  # its coroutines end when they are collected
        self.cut()
