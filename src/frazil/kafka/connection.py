"""KafkaConnection: one client's connection.

    bytes ─> FrameReader ─> requests ─> handler ─> replies ─> bytes
                 admits        one after            in the order
                 or waits      the other            of the requests

A handler that returns a pending reply lets the next request begin: batches of a producer are
submitted in the order of their arrival, several share one fdatasync, and their responses wait for
it in order. A task is made only for a handler that has to wait.

Everything is bounded. While too many requests wait, too many bytes are in flight, or the client
does not read its responses, nothing is read from the socket. What cannot be a request ends the
connection, with a counted reason; so does every error of a handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import cast

from frazil.errors import FrazilError, Malformed, TooLarge, Unauthenticated, reason_of
from frazil.kafka.access.principals import certificate_principal
from frazil.kafka.access.quotas import FETCH_RATE, PRODUCE_RATE, ClientQuotas
from frazil.kafka.allowance import ByteAllowance
from frazil.kafka.context import ConnectionState, NetworkAddress, RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.framing import FrameReader, check_size
from frazil.kafka.router import ApiRouter, PendingReply, Reply, RoutedApi
from frazil.kafka.wire.apis import API_VERSIONS
from frazil.kafka.wire.headers import (
    RequestHeader,
    decode_request,
    decode_request_header,
    encode_response,
)
from frazil.kafka.wire.messages.fetch import FetchResponse
from frazil.kafka.wire.messages.produce import ProduceResponse
from frazil.kafka.wire.schema import Bytes, KafkaMessage
from frazil.metrics import Counter, Gauge
from frazil.settings import KafkaPortConfig

logger = logging.getLogger(__name__)

REQUESTS_MAX = 64
"""Requests of one connection that wait for their response. Clients have up to five."""
LOGIN_BYTES_MAX = 512 * 1024
"""Largest request before a client has authenticated."""

QUOTA_NAMES = {0: PRODUCE_RATE, 1: FETCH_RATE}
"""Quotas of Produce and Fetch."""

OPEN = Gauge("frazil.kafka.connections", "Open connections of the Kafka port.")
CLOSED = Counter(
    "frazil.kafka.closed.connections", "Connections that the Kafka port closed, by reason."
)
REQUESTS = Counter("frazil.kafka.requests", "Requests on the Kafka port, by API.")


@dataclass(slots=True, kw_only=True)
class KafkaConnections:
    """What the connections of the port share. Owned by the event loop."""

    router: ApiRouter
    config: KafkaPortConfig
    requests: ByteAllowance
    responses: ByteAllowance
    quotas: ClientQuotas
    needs_login: bool
    active: set[KafkaConnection] = field(default_factory=set)
    is_stopping: bool = False


@dataclass(slots=True)
class _Slot:
    """A request on its way to its response."""

    header: RequestHeader
    size: int
    reply: Reply

    @property
    def is_ready(self) -> bool:
        return not isinstance(self.reply, PendingReply) or self.reply.is_done

    @property
    def response(self) -> KafkaMessage | None:
        return self.reply.response if isinstance(self.reply, PendingReply) else self.reply


@dataclass(frozen=True, slots=True)
class _Request:
    """A request whose handler may have to wait."""

    api: RoutedApi
    header: RequestHeader
    size: int
    message: KafkaMessage
    context: RequestContext


class KafkaConnection(asyncio.BufferedProtocol):
    """Owned by the event loop."""

    state: ConnectionState
    _transport: asyncio.Transport

    def __init__(self, shared: KafkaConnections) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader(self._admit)
        self._requests: deque[Bytes] = deque()
        self._slots: deque[_Slot] = deque()
        self._is_serving = False
        self._serving: asyncio.Task[None] | None = None
        """Set while a handler waits."""
        self._is_reading = True
        self._is_writable = True
        self._unread_bytes = 0
        """Of responses, not taken by the client while it was slow."""
        self._taken_bytes = 0
        """Of requests that are not answered."""
        self._is_waiting = False
        """Whether the next frame waits for the allowance."""
        self._is_muted = False
        """Whether the client has used up its quota."""
        self._muted_until_s = 0.0
        self._is_closed = False
        self._has_ended = False
        """Whether the client sends no more."""
        self._active_s = self._loop.time()
        self._begun_s: float | None = None
        """When the frame that is being received has begun."""
        self._stuck_s: float | None = None
        """Since when the client has not read its responses."""
        self.lost: asyncio.Future[None] = self._loop.create_future()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        shared = self._shared
        self.state = ConnectionState(
            client=_address(transport.get_extra_info("peername")),
            local=_address(transport.get_extra_info("sockname")),
            principal=certificate_principal(transport.get_extra_info("peercert")),
            is_authenticated=not shared.needs_login,
            kept={},
        )
        shared.active.add(self)
        OPEN.set(len(shared.active))
        if len(shared.active) > shared.config.connections_max:
            self.close("connections_max")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._active_s = self._loop.time()
        self._frames.received(nbytes)
        self._read()

    def eof_received(self) -> bool:
        """Answer what has arrived: a client may end its half of the connection first."""
        if not self._requests and not self._slots and not self._is_serving:
            return False
        self._has_ended = True
        return True

    def pause_writing(self) -> None:
        self._is_writable = False
        self._stuck_s = self._loop.time()
        self._balance()

    def resume_writing(self) -> None:
        self._is_writable = True
        self._stuck_s = None
        self._give_unread()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        shared = self._shared
        self._is_closed = True
        shared.active.discard(self)
        OPEN.set(len(shared.active))
        if self._is_waiting:
            shared.requests.forget(self._retry)
        self._give_unread()
        if self._serving is not None:
            self._serving.cancel()
        self._slots.clear()
        self._requests.clear()
        for kept in self.state.kept.values():
            kept.close()
        self.state.kept.clear()
        shared.requests.give(self._taken_bytes)
        self._taken_bytes = 0
        self.lost.set_result(None)

    # From bytes to requests.

    def _admit(self, size: int) -> bool:
        """Admit a frame of this size, or wait until others have been answered."""
        shared = self._shared
        check_size(size, shared.config.request_bytes_max, "kafka.request_bytes_max")
        if not self.state.is_authenticated and size > LOGIN_BYTES_MAX:
            raise TooLarge(f"a request of {size} bytes before authentication")
        if len(self._requests) + len(self._slots) >= REQUESTS_MAX:
            return False
        if not shared.requests.try_take(size):
            if not self._is_waiting:
                self._is_waiting = True
                shared.requests.wait(self._retry)
            return False
        self._taken_bytes += size
        return True

    def _retry(self) -> None:
        """Go on with a frame that had to wait."""
        self._is_waiting = False
        self._read()

    def _read(self) -> None:
        if self._is_closed:
            return
        try:
            self._requests.extend(self._frames.frames())
        except FrazilError as error:
            self.close("request_size", error)
            return
        if not self._frames.is_inside:
            self._begun_s = None
        elif self._begun_s is None:
            self._begun_s = self._loop.time()
        if self._requests and not self._is_serving and not self._is_muted:
            self._serve()
        self._balance()

    def _balance(self) -> None:
        """Read from the socket only while there is room for what comes."""
        is_wanted = (
            self._is_writable
            and not self._has_ended
            and not self._is_waiting
            and not self._is_muted
            and len(self._requests) + len(self._slots) < REQUESTS_MAX
        )
        if self._is_closed or self._transport.is_closing() or is_wanted == self._is_reading:
            return
        self._is_reading = is_wanted
        if is_wanted:
            if self._begun_s is not None:
                self._begun_s = self._loop.time()
            self._transport.resume_reading()
            self._loop.call_soon(self._read)  # what the buffer holds already
        else:
            self._transport.pause_reading()

    # From requests to responses.

    def _serve(self) -> None:
        """Handle the requests that have arrived, one after the other, until one has to wait."""
        self._is_serving = True
        try:
            while self._requests and not self._is_closed and not self._is_muted:
                waiting = self._handle(self._requests.popleft())
                if waiting is not None:
                    self._serving = self._loop.create_task(self._wait(waiting))
                    return
        except Exception as error:  # noqa: BLE001 # top of loop: one request must not harm the writer
            self._fail(error)
        self._is_serving = False
        self._end()

    async def _wait(self, request: _Request) -> None:
        """Wait for a handler, then go on with the requests behind it."""
        try:
            reply = await request.api.handle(request.message, request.context)
            self._answer(request.header, request.size, reply)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 # top of loop: as in `_serve`
            self._fail(error)
        finally:
            self._serving = None
            self._is_serving = False
            if not self._is_closed:
                self._read()
                self._end()

    def _fail(self, error: Exception) -> None:
        """Close the connection because of a request, or of its response."""
        if isinstance(error, FrazilError):
            self.close(reason_of(error), error)
            return
        extra = {"client": str(self.state.client)}
        logger.error("a Kafka request failed", exc_info=error, extra=extra)
        self.close("internal")

    def _handle(self, frame: Bytes) -> _Request | None:
        """Answer a request, or return it if its handler has to wait."""
        header = decode_request_header(frame)
        api = self._shared.router.find(header.api_key)
        if api is None:
            raise Malformed(f"API {header.api_key} is not supported")
        REQUESTS.add(api=api.name)
        if api.needs_login:
            self._check_login(api.name)
        if header.api_version not in api.versions:
            if header.api_key != API_VERSIONS:
                raise Malformed(f"{api.name} has no version {header.api_version} here")
            refusal = self._shared.router.versions_response(ErrorCode.UNSUPPORTED_VERSION)
            self._answer(header._replace(api_version=0), len(frame), refusal)
            return None
        message = decode_request(header, frame)
        is_only = not self._requests and not self._slots
        context = RequestContext(header.api_version, header.client_id or "", self.state, is_only)
        if api.at_once is not None:
            reply = api.at_once(message, context)
            if reply is not None:
                self._answer(header, len(frame), reply)
                return None
        return _Request(api, header, len(frame), message, context)

    def _check_login(self, api: str) -> None:
        state = self.state
        if not state.is_authenticated:
            raise Unauthenticated(f"{api} before authentication; use SASL")
        if state.expires_s is not None and self._loop.time() >= state.expires_s:
            raise Unauthenticated(f"{api} after the end of the session; authenticate again")

    def _answer(self, header: RequestHeader, size: int, reply: Reply) -> None:
        slot = _Slot(header, size, reply)
        self._slots.append(slot)
        if isinstance(reply, PendingReply) and not reply.is_done:
            reply.then(self._flush)
        else:
            self._flush()

    def _flush(self) -> None:
        """Send the responses that are ready and whose turn it is."""
        while self._slots and self._slots[0].is_ready and self._is_writable:
            if self._is_closed or self._transport.is_closing():
                return
            slot = self._slots.popleft()
            self._give(slot.size)
            try:
                response = slot.response
                if self._shared.quotas.is_on and slot.header.api_key in QUOTA_NAMES:
                    self._throttle(slot, response)
                if response is not None:
                    self._send(response, slot.header)
            except Exception as error:  # noqa: BLE001 # top of loop: as in `_serve`
                self._fail(error)
                return
        self._active_s = self._loop.time()
        if not self._is_reading:
            self._balance()
        elif self._frames.is_inside:
            self._read()
        self._end()

    def _throttle(self, slot: _Slot, response: KafkaMessage | None) -> None:
        """Count the bytes of a request or of its response. Above its quota a client is told, and
        nothing more of it is read for as long (KIP-219)."""
        header, size = slot.header, slot.size
        if isinstance(response, FetchResponse):
            size = sum(len(p.records or b"") for t in response.responses for p in t.partitions)
        wait_ms = self._shared.quotas.throttle_ms(
            QUOTA_NAMES[header.api_key], self.state.principal, header.client_id or "", size
        )
        if isinstance(response, FetchResponse | ProduceResponse):
            response.throttle_time_ms = wait_ms
        if not wait_ms or self._shared.is_stopping:
            return
        self._muted_until_s = max(self._muted_until_s, self._loop.time() + wait_ms / 1000)
        if not self._is_muted:
            self._is_muted = True
            self._loop.call_at(self._muted_until_s, self._unmute)
            self._balance()

    def _unmute(self) -> None:
        if self._loop.time() < self._muted_until_s:  # for the responses that came meanwhile
            self._loop.call_at(self._muted_until_s, self._unmute)
            return
        self._is_muted = False
        self._active_s = self._loop.time()
        if not self._is_closed:
            self._read()

    def _end(self) -> None:
        """Close the connection if nothing more will come, and all is answered."""
        if self._has_ended or self._shared.is_stopping:
            self.shut_down()

    def _send(self, response: KafkaMessage, header: RequestHeader) -> None:
        chunks = encode_response(response, header.api_version, header.correlation_id)
        self._transport.writelines(chunks)
        if not self._is_writable:
            size = sum(map(len, chunks))
            self._unread_bytes += size
            self._shared.responses.take(size)

    def _give(self, size: int) -> None:
        self._taken_bytes -= size
        self._shared.requests.give(size)

    def _give_unread(self) -> None:
        self._shared.responses.give(self._unread_bytes)
        self._unread_bytes = 0

    # Its end.

    def sweep(self, now_s: float) -> None:
        """Close the connection if its client is too slow, or idle."""
        timeout_s = self._shared.config.request_timeout_ms / 1000
        is_receiving = self._begun_s is not None and self._is_reading
        if self._stuck_s is not None and now_s - self._stuck_s > timeout_s:
            self.close("slow_reader")
            self.abort()
        elif is_receiving and self._begun_s is not None and now_s - self._begun_s > timeout_s:
            self.close("slow_sender")
        elif (
            not self._slots
            and not self._requests
            and not self._is_serving
            and now_s - self._active_s > self._shared.config.idle_timeout_ms / 1000
        ):
            self.close("idle")

    def shut_down(self) -> None:
        """Close the connection once its requests are answered."""
        if self._is_muted:
            self._muted_until_s = 0.0
            self._unmute()
        if not self._slots and not self._requests and not self._is_serving:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def close(self, reason: str, error: FrazilError | None = None) -> None:
        """Close the connection. What was answered is still sent."""
        if self._is_closed or self._transport.is_closing():
            return
        CLOSED.add(reason=reason)
        level = logging.DEBUG if reason == "idle" else logging.INFO
        extra = {"client": self.state.client.host, "reason": reason, "error": str(error or "")}
        logger.log(level, "Kafka connection closed", extra=extra)
        self._requests.clear()
        self._transport.close()


def _address(name: object) -> NetworkAddress:
    """Return an address as the socket names it."""
    if isinstance(name, tuple) and len(name) >= 2:
        return NetworkAddress(str(name[0]), int(name[1]))
    return NetworkAddress("", 0)
