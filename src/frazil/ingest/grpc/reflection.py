"""Health and reflection: what gRPC tools ask a server before they send to it."""

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
"""Calls that stay open: whoever watches health, and tools that ask about methods. Each balancer in
front of a node holds one, and needs no token for it, so they must be bounded."""

MESSAGE_BYTES_MAX = 4 * KiB
"""A question is a name."""

REFLECTION_METHODS = tuple(
    f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    for version in ("v1", "v1alpha")
)
"""Both versions have the same bytes; tools ask for the newer one first."""

SERVICES = tuple(signal.service for signal in Signal)


class HealthAndReflection:
    """Answers health checks and reflection. Belongs to the event loop.

    A node is healthy until it stops. One that refuses because it is full is healthy: sending its
    load to the others would fill them too.
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
        """Methods that need no token: balancers have none."""
        return {
            f"/{health.SERVICE_NAME}/Check": grpc.stream_unary_rpc_method_handler(
                self._answering(self._check)
            ),
            f"/{health.SERVICE_NAME}/Watch": grpc.stream_stream_rpc_method_handler(
                self._answering(self._watch)
            ),
        }

    def reflection(self) -> dict[str, grpc.RpcMethodHandler]:
        handler = grpc.stream_stream_rpc_method_handler(self._answering(self._reflect))
        return dict.fromkeys(REFLECTION_METHODS, handler)

    def stop(self) -> None:
        """From now on this node is not healthy, and whoever watches is told."""
        self._stopping.set()

    def _answering(
        self, serve: Callable[[Context], Awaitable[bytes | None]]
    ) -> Callable[[object, Context], Awaitable[bytes | None]]:
        async def answer(_: object, context: Context) -> bytes | None:
            try:
                return await serve(context)
            except grpc.aio.BaseError:
                raise  # the call is over
            except Exception as error:  # noqa: BLE001 # top of loop: one call ends
                await refuse(context, refusal_of(error))
            return None

        return answer

    async def _check(self, context: Context) -> bytes:
        request = await _parse(HealthCheckRequest, await self._messages.read_only(context))
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r} here")
        return self._health_of(request.service)

    async def _watch(self, context: Context) -> None:
        request = await _parse(HealthCheckRequest, await self._messages.read_only(context))
        if not self._stopping.is_set():
            with self._counted():
                await context.write(self._health_of(request.service))
                await self._stopping.wait()
        await context.write(self._health_of(request.service))
        raise Unavailable("this node is stopping; watch another, or wait until it is back")

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
        questions = self._questions(context)
        with self._counted():
            async for answer in self._reflection.ServerReflectionInfo(questions, context):
                await context.write(answer.SerializeToString())

    async def _questions(self, context: Context) -> AsyncIterator[ServerReflectionRequest]:
        while (message := await self._messages.read_next(context)) is not None:
            yield await _parse(ServerReflectionRequest, message)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._open_count >= OPEN_COUNT_MAX:
            raise Overloaded(f"{self._open_count} calls like this are open; try again later")
        self._open_count += 1
        try:
            yield
        finally:
            self._open_count -= 1


async def _parse(kind: type[M], message: bytes) -> M:
    if len(message) > MESSAGE_BYTES_MAX:
        raise TooLarge(f"the message has {len(message)} bytes, above {MESSAGE_BYTES_MAX}")
    message = await unpack(message, _decompress)
    try:
        return kind.FromString(message)
    except DecodeError:
        raise Malformed(f"the message is no {kind.DESCRIPTOR.full_name}") from None


async def _decompress(encoding: str, message: bytes) -> bytes:
    return decompress(encoding, message, MESSAGE_BYTES_MAX)
