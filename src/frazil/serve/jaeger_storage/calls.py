"""JaegerCalls: finds the handler of a call, and serves it: token, limits, errors, cancellation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

import grpc

from frazil.errors import FrazilError, Overloaded, Unavailable
from frazil.httpd import Auth, WorkerThreads
from frazil.ingest import codes_of, decompress, unpack
from frazil.model import KiB
from frazil.query import Ask
from frazil.results import CancelToken
from frazil.serve.context import Sql
from frazil.serve.http.handler import ask_with, disconnect
from frazil.serve.jaeger_storage import answers
from frazil.serve.jaeger_storage.answers import Answer, Answers
from frazil.serve.jaeger_storage.messages import PACKAGE
from frazil.serve.jaeger_storage.port import CALLS

logger = logging.getLogger(__name__)

Context: TypeAlias = grpc.aio.ServicerContext
Handler: TypeAlias = grpc.RpcMethodHandler

READER, DEPENDENCIES = f"/{PACKAGE}.TraceReader", f"/{PACKAGE}.DependencyReader"
HEALTH = "/grpc.health.v1.Health/Check"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

ONE: Mapping[str, Answer] = {
    f"{READER}/GetServices": answers.get_services,
    f"{READER}/GetOperations": answers.get_operations,
    f"{READER}/FindTraceIDs": answers.find_trace_ids_only,
    f"{DEPENDENCIES}/GetDependencies": answers.get_dependencies,
}
"""Methods with one answer."""
MANY: Mapping[str, Answers] = {
    f"{READER}/GetTraces": answers.get_traces,
    f"{READER}/FindTraces": answers.find_traces,
}
"""Methods with a stream of answers."""

REQUEST_BYTES_MAX = 256 * KiB
THREADS = 8
"""Calls whose answers are made at the same time; others wait. The engine has a limit of its own."""
UNREAD_S = 60.0
"""How long a client may not read its stream."""
SERVING = b"\x08\x01"
"""HealthCheckResponse with SERVING."""
NO_WRITING = (
    "spans are not written through this port: set writer.endpoint of Jaeger's storage to the "
    "node's port of OTLP/gRPC (ingest.grpc_port)"
)


class JaegerCalls:
    """Finds handlers and serves calls. Owned by the event loop."""

    def __init__(self, sql: Sql, auth: Auth, *, calls_max: int, answer_bytes_max: int) -> None:
        self._sql = sql
        self._auth = auth
        self._calls_max = calls_max
        self._answer_bytes_max = answer_bytes_max
        self._call_count = 0
        self._threads = WorkerThreads("frazil-jaeger", THREADS)
        one, many = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        self._guarded: dict[str, Handler] = {
            method: one(_refusing(partial(self._one, answer))) for method, answer in ONE.items()
        }
        self._guarded |= {
            method: many(_refusing(partial(self._many, answer))) for method, answer in MANY.items()
        }
        self._guarded[EXPORT] = one(_no_writing)
        self._health = one(_serving)
        # Served as a stream: the request of a call without a token is not waited for.
        self._denial = grpc.stream_stream_rpc_method_handler(_refusing(self._deny))

    def service(self, call: grpc.HandlerCallDetails) -> Handler | None:
        """Return the handler of a call by its headers; None if the method is unknown."""
        method: str = call.method
        if method == HEALTH:  # load balancers have no token
            return self._health
        if not self._auth.knows(_authorization(call.invocation_metadata)):
            return self._denial
        if method in self._guarded:
            CALLS.add(method=method.rpartition("/")[2])
        return self._guarded.get(method)

    def close(self) -> None:
        """Wait for running threads."""
        self._threads.close()

    async def _one(self, answer: Answer, message: bytes, _: Context) -> bytes:
        with self._asking() as ask:
            body = await _unpacked(message)
            return await self._threads.run(lambda: answer(ask, body))

    async def _many(self, answers: Answers, message: bytes, context: Context) -> None:
        with self._asking() as ask:
            body = await _unpacked(message)
            # Some answers run their first query before there is anything to iterate over.
            rest = await self._threads.run(lambda: answers(ask, body))
            while (part := await self._threads.run(lambda: next(rest, None))) is not None:
                try:
                    await asyncio.wait_for(context.write(part), UNREAD_S)
                except TimeoutError:
                    raise Unavailable(
                        f"the answer was not read for {UNREAD_S:g} s; ask again"
                    ) from None

    @contextmanager
    def _asking(self) -> Iterator[Ask]:
        """Count a call, and give it a function that runs queries until the client leaves."""
        if self._call_count >= self._calls_max:
            raise Overloaded(
                f"{self._call_count} calls are running, the limit jaeger.calls_max; retry in a "
                "moment"
            )
        token = CancelToken()
        self._call_count += 1
        try:
            yield ask_with(self._sql, token, self._answer_bytes_max)
        finally:
            self._call_count -= 1
            disconnect(token)  # of no effect once all queries are done

    async def _deny(self, _: object, context: Context) -> None:
        await self._auth.deny(_authorization(context.invocation_metadata() or ()))


Serve: TypeAlias = Callable[..., Awaitable[bytes | None]]


def _refusing(serve: Serve) -> Serve:
    """Answer errors with their code of gRPC."""

    async def handle(message: object, context: Context) -> bytes | None:
        try:
            return await serve(message, context)
        except grpc.aio.BaseError:
            raise  # the call is over
        except FrazilError as error:
            await context.abort(codes_of(error)[1], str(error))
        except Exception:  # top of loop: one call ends, no other does
            logger.exception("a call of Jaeger's storage failed")
            await context.abort(grpc.StatusCode.INTERNAL, "internal error; see the log of the node")
        return None

    return handle


async def _serving(_: bytes, __: Context) -> bytes:
    return SERVING


async def _no_writing(_: bytes, context: Context) -> None:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, NO_WRITING)


async def _unpacked(message: bytes) -> bytes:
    async def limited(encoding: str, body: bytes) -> bytes:
        return decompress(encoding, body, REQUEST_BYTES_MAX)

    return await unpack(message, limited)


def _authorization(metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    for key, value in metadata:
        if key == "authorization":
            return str(value)
    return None
