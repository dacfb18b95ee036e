"""GrpcExports: finds the handler of a call, and serves exports.

A call is admitted by its headers, before its message is read: first the token, then the gate. Every
method is served as a stream of messages, which is the same on the wire. So we read the message
ourselves, and can end a call whose message does not arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """Finds handlers and serves exports. Owned by the event loop."""

    def __init__(
        self,
        auth: Auth,
        receiver: Receiver,
        messages: MessageReader,
        services: HealthAndReflection,
    ) -> None:
        self._auth = auth
        self._receiver = receiver
        self._messages = messages
        serve = grpc.stream_unary_rpc_method_handler
        self._open = services.health()
        self._guarded: dict[str, Handler] = services.reflection()
        self._guarded |= {s.method: serve(partial(self._export, s)) for s in Signal}
        self._denials = {s.method: serve(partial(self._deny, s)) for s in Signal}
        self._denial = serve(partial(self._deny, None))

    def service(self, call: grpc.HandlerCallDetails) -> Handler | None:
        """Return the handler of a call by its headers; None if the method is unknown."""
        method: str = call.method
        if method in self._open:
            return self._open[method]
        if not self._auth.knows(_authorization(call.invocation_metadata)):
            return self._denials.get(method, self._denial)
        return self._guarded.get(method)

    async def _export(self, signal: Signal, _: object, context: Context) -> bytes:
        """Answer one request. Its memory is released before a refusal is sent."""
        outcome = await self._accept(signal, context)
        if isinstance(outcome, FrazilError):
            await refuse(context, outcome)
            return b""
        return outcome

    async def _accept(self, signal: Signal, context: Context) -> bytes | FrazilError:
        """Store one request. Returns the response once it is durable, or the error."""
        message = b""
        try:
            with self._receiver.gate.enter() as reservation:
                message = await self._messages.read_only(context)
                reservation.take(len(message))
                body = await unpack(message, self._receiver.decompress)
                if body is not message:
                    reservation.take(len(body))
                receipt = await self._receiver.accept(signal, "grpc", body)
            if not receipt.rejected_count and not receipt.message:
                return b""
            response = response_of(signal, receipt.rejected_count, receipt.message)
            return response.SerializeToString()
        except grpc.aio.BaseError as error:
            _count(signal, Unavailable(), message)  # answered by `MessageReader`
            raise error.with_traceback(None) from None
        except Exception as error:  # noqa: BLE001 # top of loop: one request ends, no other does
            refusal = refusal_of(error)
            _count(signal, refusal, message)
            return refusal

    async def _deny(self, signal: Signal | None, _: object, context: Context) -> bytes:
        """Refuse a call without a valid token, whatever its method."""
        try:
            await self._auth.deny(_authorization(context.invocation_metadata() or ()))
        except FrazilError as refusal:
            if signal is not None:
                _count(signal, refusal, b"")
            await refuse(context, refusal)
        return b""


def _authorization(metadata: Iterable[tuple[str, str | bytes]]) -> str | None:
    for key, value in metadata:
        if key == "authorization":
            return str(value)
    return None


def _count(signal: Signal, refusal: FrazilError, message: bytes) -> None:
    count_refused(signal, "grpc", refusal, len(message))
