"""GrpcExports: who may call what, and what becomes of an export.

A call is let in by what its headers say, before gRPC is asked for its message: the token, then the
gate. Every method is served as a stream of messages, which looks the same on the wire; so the edge
itself asks for the message, and can end a call whose message does not come.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import grpc

from frazil.errors import FrazilError, Unavailable
from frazil.httpd import Auth
from frazil.ingest.grpc.compression import unpack
from frazil.ingest.grpc.deadlines import MessageReader
from frazil.ingest.grpc.errors import Context, refusal_of, refuse
from frazil.ingest.grpc.reflection import HealthAndReflection
from frazil.ingest.receiver import Receiver, count_refused
from frazil.ingest.status_codes import response_of
from frazil.model import Signal

Handler: TypeAlias = grpc.RpcMethodHandler


class GrpcExports:
    """Finds the handler of a call, and is the one of exports. Belongs to the event loop."""

    def __init__(
        self,
        access: Auth,
        receiver: Receiver,
        messages: MessageReader,
        services: HealthAndReflection,
    ) -> None:
        self._access = access
        self._receiver = receiver
        self._messages = messages
        serve = grpc.stream_unary_rpc_method_handler
        self._open = services.health()
        self._guarded: dict[str, Handler] = services.reflection()
        self._guarded |= {s.method: serve(partial(self._export, s)) for s in Signal}
        self._denials = {s.method: serve(partial(self._deny, s)) for s in Signal}
        self._denial = serve(partial(self._deny, None))

    def service(self, call: grpc.HandlerCallDetails) -> Handler | None:
        """What gRPC asks when the headers of a call are there. None: no such method."""
        method: str = call.method
        if method in self._open:
            return self._open[method]
        if not self._access.knows(_authorization(call)):
            return self._denials.get(method, self._denial)
        return self._guarded.get(method)

    async def _export(self, signal: Signal, _: object, context: Context) -> bytes:
        """Answer one request. What it held is free before a refusal is sent."""
        outcome = await self._accept(signal, context)
        if isinstance(outcome, FrazilError):
            await refuse(context, outcome)
            return b""
        return outcome

    async def _accept(self, signal: Signal, context: Context) -> bytes | FrazilError:
        """Take one request in. Returns the answer once it is durable, or why it is not."""
        message = b""
        try:
            with self._receiver.gate.enter() as reservation:
                message = await self._messages.read_only(context)
                reservation.take(len(message))
                body = await unpack(message, self._receiver.decompress)
                if body is not message:
                    reservation.take(len(body))
                receipt = await self._receiver.accept(signal, "grpc", body)
            if not receipt.rejected_count:
                return b""
            answer = response_of(signal, receipt.rejected_count, receipt.message)
            return answer.SerializeToString()
        except grpc.aio.BaseError as error:
            _count(signal, Unavailable(), message)  # `MessageReader` has told the caller
            raise error.with_traceback(None) from None
        except Exception as error:  # noqa: BLE001 # top of loop: one request ends, no other does
            refusal = refusal_of(error)
            _count(signal, refusal, message)
            return refusal

    async def _deny(self, signal: Signal | None, _: object, context: Context) -> bytes:
        """Turn away a caller who does not know a token, whatever he calls."""
        try:
            await self._access.deny()
        except FrazilError as refusal:
            if signal is not None:
                _count(signal, refusal, b"")
            await refuse(context, refusal)
        return b""


def _authorization(call: grpc.HandlerCallDetails) -> str | None:
    for key, value in call.invocation_metadata:
        if key == "authorization":
            return str(value)
    return None


def _count(signal: Signal, refusal: FrazilError, message: bytes) -> None:
    count_refused(signal, "grpc", refusal, len(message))
