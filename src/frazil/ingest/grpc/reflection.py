"""Health and reflection: the services that gRPC tools and load balancers call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from frazil.errors import Malformed, Overloaded, TooLarge, Unavailable
from frazil.ingest.grpc.compression import unpack
from frazil.ingest.grpc.deadlines import MessageReader
from frazil.ingest.grpc.errors import Context, refusal_of, refuse
from frazil.ingest.otlp.decompress import decompress
from frazil.model import KiB, Signal

M = TypeVar("M", bound=Message)

OPEN_COUNT_MAX = 256
"""Calls that stay open: health watches and reflection. Each load balancer holds one, and needs no
token for it, so they must be limited."""

MESSAGE_BYTES_MAX = 4 * KiB
"""A request carries one name."""

REFLECTION_METHODS = tuple(
    f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    for version in ("v1", "v1alpha")
)
"""Both versions have the same messages; tools try the newer one first."""

SERVICES = tuple(signal.service for signal in Signal)


class HealthAndReflection:
    """Serves health checks and reflection. Owned by the event loop.

    A node is healthy until it stops. An overloaded node is still healthy: moving its load to other
    nodes would overload them too.
    """

    def __init__(self, messages: MessageReader) -> None:
        self._messages = messages
        self._stopping = asyncio.Event()
        self._names = {"", *SERVICES}
        self._reflection = reflection.aio.ReflectionServicer(
            (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
        )
        self._open_count = 0

    def health(self) -> dict[str, grpc.RpcMethodHandler]:
        """Return the handlers that need no token: load balancers have none."""
        return {
            f"/{health.SERVICE_NAME}/Check": grpc.stream_unary_rpc_method_handler(
                self._refusing_errors(self._check)
            ),
            f"/{health.SERVICE_NAME}/Watch": grpc.stream_stream_rpc_method_handler(
                self._refusing_errors(self._watch)
            ),
        }

    def reflection(self) -> dict[str, grpc.RpcMethodHandler]:
        handler = grpc.stream_stream_rpc_method_handler(self._refusing_errors(self._reflect))
        return dict.fromkeys(REFLECTION_METHODS, handler)

    def stop(self) -> None:
        """Report NOT_SERVING from now on, and end open watches."""
        self._stopping.set()

    def _refusing_errors(
        self, serve: Callable[[Context], Awaitable[bytes | None]]
    ) -> Callable[[object, Context], Awaitable[bytes | None]]:
        async def handle(_: object, context: Context) -> bytes | None:
            try:
                return await serve(context)
            except grpc.aio.BaseError:
                raise  # the call is over
            except Exception as error:  # noqa: BLE001 # top of loop: one call ends
                await refuse(context, refusal_of(error))
            return None

        return handle

    async def _check(self, context: Context) -> bytes:
        request = await _parse(HealthCheckRequest, await self._messages.read_only(context))
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {request.service!r}")
        return self._health_of(request.service)

    async def _watch(self, context: Context) -> None:
        request = await _parse(HealthCheckRequest, await self._messages.read_only(context))
        if not self._stopping.is_set():
            with self._counted():
                await context.write(self._health_of(request.service))
                await self._stopping.wait()
        await context.write(self._health_of(request.service))
        raise Unavailable("this node is stopping; watch another node, or retry later")

    def _health_of(self, name: str) -> bytes:
        if name not in self._names:
            status = HealthCheckResponse.SERVICE_UNKNOWN
        elif self._stopping.is_set():
            status = HealthCheckResponse.NOT_SERVING
        else:
            status = HealthCheckResponse.SERVING
        response: bytes = HealthCheckResponse(status=status).SerializeToString()
        return response

    async def _reflect(self, context: Context) -> None:
        requests = self._requests(context)
        with self._counted():
            async for response in self._reflection.ServerReflectionInfo(requests, context):
                await context.write(response.SerializeToString())

    async def _requests(self, context: Context) -> AsyncIterator[ServerReflectionRequest]:
        while (message := await self._messages.read_next(context)) is not None:
            yield await _parse(ServerReflectionRequest, message)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._open_count >= OPEN_COUNT_MAX:
            raise Overloaded(f"{self._open_count} watch and reflection calls are open; retry later")
        self._open_count += 1
        try:
            yield
        finally:
            self._open_count -= 1


async def _parse(kind: type[M], message: bytes) -> M:
    if len(message) > MESSAGE_BYTES_MAX:
        raise TooLarge(f"the message has {len(message)} bytes; the limit is {MESSAGE_BYTES_MAX}")
    message = await unpack(message, _decompress)
    try:
        return kind.FromString(message)
    except DecodeError:
        raise Malformed(f"the message is not a {kind.DESCRIPTOR.full_name}") from None


async def _decompress(encoding: str, message: bytes) -> bytes:
    return decompress(encoding, message, MESSAGE_BYTES_MAX)
