"""Calls between services, to databases and to external providers.

A call is a client span with a server span inside, which may end after the client's timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from frazil.demo import protobuf
from frazil.demo.services import GATEWAY, ShopService
from frazil.demo.telemetry.instruments import DB_DURATION, HTTP_DURATION, RPC_DURATION
from frazil.demo.telemetry.request_trace import (
    ATTRIBUTES,
    NS_PER_S,
    Attributes,
    OpenSpan,
    RequestTrace,
)
from frazil.model import NS_PER_MS

OK, DEADLINE_EXCEEDED, FAILED_PRECONDITION, INTERNAL, UNAVAILABLE = 0, 4, 9, 13, 14
"""gRPC status codes."""
RPC_SERVER_ERRORS = frozenset({DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE})
CLIENT_ERROR, SERVER_ERROR, TIMED_OUT = 400, 500, 504
NETWORK_MS = 0.4

Done = tuple[int, int]
"""End time, and HTTP or gRPC status."""
Handle = Callable[[RequestTrace, OpenSpan, int], Done]
"""The work of a service, given the server span and its start time."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """An HTTP route of a service."""

    service: ShopService
    method: str
    route: str
    handle: Handle
    timeout_ms: int = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A gRPC method of a service."""

    service: ShopService
    rpc: str
    name: str
    handle: Handle
    timeout_ms: int = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class DatabaseQuery:
    """A database query."""

    server: tuple[str, str, int]
    """System, host and port."""
    operation: str
    collection: str
    text: str


def serve_http(
    trace: RequestTrace,
    route: Route,
    path: str,
    at_ns: int,
    caller: OpenSpan | None = None,
    **more: str,
) -> Done:
    """Handle a request in a pod of the service."""
    pod = trace.fleet.pick(route.service)
    pod.served_count += 1
    span = trace.begin(pod, f"{route.method} {route.route}", "SERVER", at_ns, caller)
    span.parts.append(_http_server(route))
    span.say({"url.path": path, **more})
    end_ns, status = route.handle(trace, span, at_ns)
    span.say({"http.response.status_code": status})
    if status >= SERVER_ERROR:
        span.say({"error.type": str(status)})
        span.fail("")
    if route.service is GATEWAY:
        took_ms = (end_ns - at_ns) // NS_PER_MS
        trace.log(span, end_ns, "INFO", f"{route.method} {path} {status} {took_ms} ms")
    trace.end(span, end_ns)
    labels = (
        ("http.request.method", route.method),
        ("http.route", route.route),
        ("http.response.status_code", status),
        ("url.scheme", "http"),
    )
    trace.measure(HTTP_DURATION, span, end_ns, (end_ns - at_ns) / NS_PER_S, labels)
    return end_ns, status


def call_http(
    trace: RequestTrace, caller: OpenSpan, route: Route, path: str, at_ns: int, tries: int = 1
) -> Done:
    """Call another service, with the timeout of the route."""
    service = route.service
    url = f"http://{service.name}:{service.port}{path}"
    for attempt in range(tries):
        span = trace.begin(caller.pod, route.method, "CLIENT", at_ns, caller)
        span.parts.append(_http_client(route.method, service.name, service.port))
        span.say({"url.full": url})
        if attempt:
            span.say({"http.request.resend_count": attempt})
        start_ns = trace.after(at_ns, caller.pod, NETWORK_MS)
        end_ns, status = serve_http(trace, route, path, start_ns, span)
        end_ns = trace.after(end_ns, caller.pod, NETWORK_MS)
        end_ns, status = _end_http(trace, span, at_ns, end_ns, status, route.timeout_ms)
        if status < SERVER_ERROR:
            break
        at_ns = end_ns
    return end_ns, status


def call_external(
    trace: RequestTrace,
    caller: OpenSpan,
    url: str,
    host: str,
    at_ns: int,
    done: Done,
    timeout_ms: int,
) -> Done:
    """Call an external service, which sends no spans."""
    span = trace.begin(caller.pod, "POST", "CLIENT", at_ns, caller)
    span.parts.append(_http_client("POST", host, 443))
    span.say({"url.full": url})
    return _end_http(trace, span, at_ns, *done, timeout_ms)


def _end_http(
    trace: RequestTrace, span: OpenSpan, at_ns: int, end_ns: int, status: int, timeout_ms: int
) -> Done:
    latest_ns = at_ns + timeout_ms * NS_PER_MS
    if end_ns > latest_ns:
        end_ns, status = latest_ns, TIMED_OUT
        span.say({"error.type": "timeout"})
        span.fail(f"no answer within {timeout_ms} ms")
    else:
        span.say({"http.response.status_code": status})
        if status >= CLIENT_ERROR:
            span.say({"error.type": str(status)})
            span.fail("")
    trace.end(span, end_ns)
    return end_ns, status


def call_rpc(
    trace: RequestTrace, caller: OpenSpan, method: Method, at_ns: int, tries: int = 1
) -> Done:
    """Call another service over gRPC; retry if unavailable or timed out."""
    for attempt in range(tries):
        end_ns, code = _call_rpc(trace, caller, method, at_ns)
        if code not in (DEADLINE_EXCEEDED, UNAVAILABLE):
            break
        if attempt + 1 < tries:
            attributes: Attributes = {"retry.attempt": attempt + 1, "rpc.grpc.status_code": code}
            caller.happen("retry", end_ns, attributes)
        at_ns = end_ns
    return end_ns, code


def _call_rpc(trace: RequestTrace, caller: OpenSpan, method: Method, at_ns: int) -> Done:
    service, name = method.service, f"{method.rpc}/{method.name}"
    span = trace.begin(caller.pod, name, "CLIENT", at_ns, caller)
    span.parts.append(_rpc_client(method))
    start_ns = trace.after(at_ns, caller.pod, NETWORK_MS)
    pod = trace.fleet.pick(service)
    pod.served_count += 1
    served = trace.begin(pod, name, "SERVER", start_ns, span)
    served.parts.append(_rpc_server(method))
    end_ns, code = method.handle(trace, served, start_ns)
    served.say({"rpc.grpc.status_code": code})
    if code in RPC_SERVER_ERRORS:
        served.fail("")
    trace.end(served, end_ns)
    labels = (
        ("rpc.system", "grpc"),
        ("rpc.service", method.rpc),
        ("rpc.method", method.name),
        ("rpc.grpc.status_code", code),
    )
    trace.measure(RPC_DURATION, served, end_ns, (end_ns - start_ns) / NS_PER_S, labels)
    end_ns = trace.after(end_ns, caller.pod, NETWORK_MS)
    if end_ns > (latest_ns := at_ns + method.timeout_ms * NS_PER_MS):
        end_ns, code = latest_ns, DEADLINE_EXCEEDED
    span.say({"rpc.grpc.status_code": code})
    if code != OK:
        span.fail(f"code {code}")
    trace.end(span, end_ns)
    return end_ns, code


def query_database(
    trace: RequestTrace,
    caller: OpenSpan,
    query: DatabaseQuery,
    at_ns: int,
    median_ms: float,
    **more: int,
) -> int:
    """Query a database. Returns the end time."""
    span = trace.begin(caller.pod, f"{query.operation} {query.collection}", "CLIENT", at_ns, caller)
    span.parts.append(_database(query))
    if more:
        span.say({"db.response.returned_rows": more["returned_rows"]})
    end_ns = trace.after(at_ns, caller.pod, median_ms)
    trace.end(span, end_ns)
    labels = (
        ("db.system.name", query.server[0]),
        ("db.operation.name", query.operation),
        ("db.collection.name", query.collection),
    )
    trace.measure(DB_DURATION, span, end_ns, (end_ns - at_ns) / NS_PER_S, labels)
    return end_ns


def raise_in(span: OpenSpan, at_ns: int, exception: tuple[str, str, str]) -> None:
    """Record an exception: type, message and stack trace."""
    keys = ("exception.type", "exception.message", "exception.stacktrace")
    span.happen("exception", at_ns, dict(zip(keys, exception, strict=True)))


@cache
def _http_server(route: Route) -> bytes:
    return _attributes(
        {
            "http.request.method": route.method,
            "http.route": route.route,
            "url.scheme": "http",
            "server.address": route.service.name,
            "server.port": route.service.port,
            "network.protocol.version": "1.1",
        }
    )


@cache
def _http_client(method: str, host: str, port: int) -> bytes:
    return _attributes({"http.request.method": method, "server.address": host, "server.port": port})


@cache
def _rpc_client(method: Method) -> bytes:
    service = method.service
    return _rpc_server(method) + _attributes(
        {"server.address": service.name, "server.port": service.port}
    )


@cache
def _rpc_server(method: Method) -> bytes:
    return _attributes({"rpc.system": "grpc", "rpc.service": method.rpc, "rpc.method": method.name})


@cache
def _database(query: DatabaseQuery) -> bytes:
    system, host, port = query.server
    return _attributes(
        {
            # Both names, as the conventions are in transition: many dashboards use the first.
            "db.system": system,
            "db.system.name": system,
            "db.namespace": "shop",
            "db.operation.name": query.operation,
            "db.collection.name": query.collection,
            "db.query.text": query.text,
            "server.address": host,
            "server.port": port,
        }
    )


def _attributes(attributes: Attributes) -> bytes:
    return protobuf.attributes(ATTRIBUTES, attributes)
