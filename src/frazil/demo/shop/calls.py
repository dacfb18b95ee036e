"""Calls from one service to another: HTTP, gRPC, databases, and what lies outside of the shop.

A call is a client's span, and inside it a server's, which may end later than the client waits.
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
    CLIENT,
    INFO,
    NS_PER_S,
    SERVER,
    Facts,
    OpenSpan,
    RequestTrace,
)
from frazil.model import NS_PER_MS

OK, DEADLINE_EXCEEDED, FAILED_PRECONDITION, INTERNAL, UNAVAILABLE = 0, 4, 9, 13, 14
"""Codes of gRPC."""
RPC_SERVER_ERRORS = frozenset({DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE})
CLIENT_ERROR, SERVER_ERROR, TIMED_OUT = 400, 500, 504
NETWORK_MS = 0.4

Done = tuple[int, int]
"""When it was done, and with which status: of HTTP, or of gRPC."""
Handle = Callable[[RequestTrace, OpenSpan, int], Done]
"""What a service does: from a server's span and a time on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One thing that a service does over HTTP."""

    service: ShopService
    method: str
    route: str
    handle: Handle
    timeout_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Method:
    """One thing that a service does over gRPC."""

    service: ShopService
    rpc: str
    name: str
    handle: Handle
    timeout_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DatabaseQuery:
    """One thing that is asked of a database."""

    system: str
    server: str
    port: int
    operation: str
    collection: str
    text: str


def serve_http(
    trip: RequestTrace,
    route: Route,
    path: str,
    at_ns: int,
    caller: OpenSpan | None = None,
    **more: str,
) -> Done:
    """Do it, in a pod of the service."""
    pod = trip.fleet.pick(route.service)
    pod.served_count += 1
    span = trip.begin(pod, f"{route.method} {route.route}", SERVER, at_ns, caller)
    span.parts.append(_http_server(route))
    span.say({"url.path": path, **more})
    end_ns, status = route.handle(trip, span, at_ns)
    span.say({"http.response.status_code": status})
    if status >= SERVER_ERROR:
        span.say({"error.type": str(status)})
        span.fail("")
    if route.service is GATEWAY:
        took_ms = (end_ns - at_ns) // NS_PER_MS
        trip.log(span, end_ns, INFO, f"{route.method} {path} {status} {took_ms} ms")
    trip.end(span, end_ns)
    labels = (
        ("http.request.method", route.method),
        ("http.route", route.route),
        ("http.response.status_code", status),
        ("url.scheme", "http"),
    )
    trip.measure(HTTP_DURATION, span, end_ns, (end_ns - at_ns) / NS_PER_S, labels)
    return end_ns, status


def call_http(
    trip: RequestTrace, caller: OpenSpan, route: Route, path: str, at_ns: int, tries: int = 1
) -> Done:
    """Ask another service, and wait no longer than the route allows."""
    service = route.service
    url = f"http://{service.name}:{service.port}{path}"
    for attempt in range(tries):
        span = trip.begin(caller.pod, route.method, CLIENT, at_ns, caller)
        span.parts.append(_http_client(route.method, service.name, service.port))
        span.say({"url.full": url})
        if attempt:
            span.say({"http.request.resend_count": attempt})
        begun_ns = trip.after(at_ns, caller.pod, NETWORK_MS)
        end_ns, status = serve_http(trip, route, path, begun_ns, span)
        end_ns = trip.after(end_ns, caller.pod, NETWORK_MS)
        end_ns, status = _end_http(trip, span, at_ns, end_ns, status, route.timeout_ms)
        if status < SERVER_ERROR:
            break
        at_ns = end_ns
    return end_ns, status


def call_outside(
    trip: RequestTrace,
    caller: OpenSpan,
    url: str,
    host: str,
    at_ns: int,
    done: Done,
    timeout_ms: int,
) -> Done:
    """Ask somebody who sends us no spans."""
    span = trip.begin(caller.pod, "POST", CLIENT, at_ns, caller)
    span.parts.append(_http_client("POST", host, 443))
    span.say({"url.full": url})
    return _end_http(trip, span, at_ns, *done, timeout_ms)


def _end_http(
    trip: RequestTrace, span: OpenSpan, at_ns: int, end_ns: int, status: int, timeout_ms: int
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
    trip.end(span, end_ns)
    return end_ns, status


def call_rpc(
    trip: RequestTrace, caller: OpenSpan, method: Method, at_ns: int, tries: int = 1
) -> Done:
    """Ask another service by gRPC; again, if it is not there or does not answer."""
    for attempt in range(tries):
        end_ns, code = _call_rpc(trip, caller, method, at_ns)
        if code not in (DEADLINE_EXCEEDED, UNAVAILABLE):
            break
        if attempt + 1 < tries:
            facts: Facts = {"retry.attempt": attempt + 1, "rpc.grpc.status_code": code}
            caller.happen("retry", end_ns, facts)
        at_ns = end_ns
    return end_ns, code


def _call_rpc(trip: RequestTrace, caller: OpenSpan, method: Method, at_ns: int) -> Done:
    service, name = method.service, f"{method.rpc}/{method.name}"
    span = trip.begin(caller.pod, name, CLIENT, at_ns, caller)
    span.parts.append(_rpc_client(method))
    begun_ns = trip.after(at_ns, caller.pod, NETWORK_MS)
    pod = trip.fleet.pick(service)
    pod.served_count += 1
    served = trip.begin(pod, name, SERVER, begun_ns, span)
    served.parts.append(_rpc_server(method))
    end_ns, code = method.handle(trip, served, begun_ns)
    served.say({"rpc.grpc.status_code": code})
    if code in RPC_SERVER_ERRORS:
        served.fail("")
    trip.end(served, end_ns)
    labels = (
        ("rpc.system", "grpc"),
        ("rpc.service", method.rpc),
        ("rpc.method", method.name),
        ("rpc.grpc.status_code", code),
    )
    trip.measure(RPC_DURATION, served, end_ns, (end_ns - begun_ns) / NS_PER_S, labels)
    end_ns = trip.after(end_ns, caller.pod, NETWORK_MS)
    if end_ns > (latest_ns := at_ns + method.timeout_ms * NS_PER_MS):
        end_ns, code = latest_ns, DEADLINE_EXCEEDED
    span.say({"rpc.grpc.status_code": code})
    if code != OK:
        span.fail(f"code {code}")
    trip.end(span, end_ns)
    return end_ns, code


def ask_database(
    trip: RequestTrace,
    caller: OpenSpan,
    query: DatabaseQuery,
    at_ns: int,
    median_ms: float,
    **more: int,
) -> int:
    """Ask a database. Returns when it has answered."""
    span = trip.begin(caller.pod, f"{query.operation} {query.collection}", CLIENT, at_ns, caller)
    span.parts.append(_database(query))
    if more:
        span.say({"db.response.returned_rows": more["returned_rows"]})
    end_ns = trip.after(at_ns, caller.pod, median_ms)
    trip.end(span, end_ns)
    labels = (
        ("db.system.name", query.system),
        ("db.operation.name", query.operation),
        ("db.collection.name", query.collection),
    )
    trip.measure(DB_DURATION, span, end_ns, (end_ns - at_ns) / NS_PER_S, labels)
    return end_ns


def raise_in(span: OpenSpan, at_ns: int, kind: str, message: str, trace: str) -> None:
    """Record an exception."""
    facts = {"exception.type": kind, "exception.message": message, "exception.stacktrace": trace}
    span.happen("exception", at_ns, facts)


@cache
def _http_server(route: Route) -> bytes:
    return _said(
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
    return _said({"http.request.method": method, "server.address": host, "server.port": port})


@cache
def _rpc_client(method: Method) -> bytes:
    service = method.service
    return _rpc_server(method) + _said(
        {"server.address": service.name, "server.port": service.port}
    )


@cache
def _rpc_server(method: Method) -> bytes:
    return _said({"rpc.system": "grpc", "rpc.service": method.rpc, "rpc.method": method.name})


@cache
def _database(query: DatabaseQuery) -> bytes:
    return _said(
        {
            # Both names, as while the semantic conventions change: many dashboards know the first.
            "db.system": query.system,
            "db.system.name": query.system,
            "db.namespace": "shop",
            "db.operation.name": query.operation,
            "db.collection.name": query.collection,
            "db.query.text": query.text,
            "server.address": query.server,
            "server.port": query.port,
        }
    )


def _said(facts: Facts) -> bytes:
    return protobuf.attributes(ATTRIBUTES, facts)
