"""A port over an open node, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from frazil.config import Config
from frazil.httpd import Auth
from frazil.serve import JaegerPort
from tests.serve.jaeger_storage.protocol import PACKAGE, kind, message
from tests.serve.served import Served

WAIT_S = 60


@contextmanager
def jaeger_port(there: Served, config: Config) -> Iterator[int]:
    """Open the port on the event loop of the node."""

    def on_loop(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, there.loop).result(WAIT_S)

    access = Auth.load(config.ingest)
    sql = there.embedded.sql
    port = on_loop(JaegerPort.open(sql, config.jaeger, config.ingest, config.serve, access))
    try:
        yield port.port
    finally:
        on_loop(port.close(1))


@dataclass(frozen=True, slots=True)
class StorageClient:
    """Calls methods with messages, or with any bytes."""

    channel: grpc.Channel
    metadata: tuple[tuple[str, str], ...] = ()

    def one(self, method: str, body: Any, *, service: str = "TraceReader") -> Any:
        """The answer to a call with one."""
        return kind(f"{method}Response").FromString(self.raw(f"{PACKAGE}.{service}/{method}", body))

    def many(self, method: str, body: Any) -> Any:
        """The call, which is the stream of its answers."""
        call = self.channel.unary_stream(f"/{PACKAGE}.TraceReader/{method}")
        return call(_bytes(body), timeout=WAIT_S, metadata=self.metadata, wait_for_ready=True)

    def traces(self, method: str, body: Any) -> dict[str, list[Any]]:
        """The spans of each trace, with their resource and scope. Messages are as the protocol has
        them: with spans, of one trace, and those of a trace follow each other."""
        found: dict[str, list[Any]] = {}
        last = ""
        for part in self.many(method, body):
            spans = [
                (resource, scope, span)
                for resource in TracesData.FromString(part).resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]
            (trace_id,) = {span.trace_id.hex() for _, _, span in spans}
            assert trace_id == last or trace_id not in found
            found.setdefault(trace_id, []).extend(spans)
            last = trace_id
        return found

    def raw(self, path: str, body: Any) -> bytes:
        call = self.channel.unary_unary(f"/{path}")
        answer: bytes = call(
            _bytes(body), timeout=WAIT_S, metadata=self.metadata, wait_for_ready=True
        )
        return answer


def _bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else body.SerializeToString()


@contextmanager
def connected(port: int) -> Iterator[StorageClient]:
    """A client that takes no more of a stream than it reads, as far as gRPC lets it."""
    options = [("grpc.http2.lookahead_bytes", 1), ("grpc.http2.bdp_probe", 0)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        yield StorageClient(channel)


def find(**fields: Any) -> Any:
    """A request to find traces."""
    attributes = [
        message("KeyValue", key=key, value=message("AnyValue", **value))
        for key, value in fields.pop("attributes", {}).items()
    ]
    query = message("TraceQueryParameters", attributes=attributes, **fields)
    return message("FindTracesRequest", query=query)


def by_id(*trace_ids: str, **times: Any) -> Any:
    """A request for traces."""
    query = [message("GetTraceParams", trace_id=bytes.fromhex(each), **times) for each in trace_ids]
    return message("GetTracesRequest", query=query)
