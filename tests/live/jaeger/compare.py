"""Asks a real Jaeger over a node, and our own HTTP door of the same node, and compares.

python -m tests.live.jaeger.compare

Needs Go. The first run downloads and builds Jaeger for some minutes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.live.jaeger.server import RealJaeger, program, real_jaeger
from tests.serve.doors.trace_clients import BEGIN_S, RANGE_US
from tests.serve.jaeger_storage.opened import jaeger_port
from tests.serve.served import Served, served, settings
from tests.serve.shop import send_shop

TOKEN = "jaeger-0123456789"
SERVICE = "everything"
TRACE_ID = bytes(range(1, 17))
STATUSES = (
    Status(),
    Status(code=Status.STATUS_CODE_OK),
    Status(code=Status.STATUS_CODE_ERROR, message="why"),
)
LOOKS_MAX = 2000
LINES_MAX = 60
SPAN_COUNT = 7
COUNT = f"SELECT count(*) FROM spans WHERE service_name = '{SERVICE}'"
TRACES_MAX = 40
"""Traces that are asked for one by one."""
END_MS, HOUR_MS = (BEGIN_S + 600) * 1000, 3_600_000
SEARCHES: tuple[dict[str, Any], ...] = (
    {},
    {"limit": 3},
    {"operation": "GET /", "limit": 100},
    {"minDuration": "20ms", "limit": 100},
    {"maxDuration": "3ms", "limit": 100},
    {"minDuration": "5ms", "maxDuration": "20ms"},
    {"tags": '{"http.request.method":"GET"}', "limit": 100},
    {"tags": '{"http.response.status_code":"200","span.kind":"server"}'},
    {"tags": '{"error":"true"}', "limit": 100},
    {"tags": '{"otel.status_code":"ERROR"}'},
    {"tag": "http.request.method:POST"},
    {"start": (BEGIN_S + 5) * 10**6, "end": (BEGIN_S + 7) * 10**6},
    {"tags": '{"no.such.tag":"x"}'},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JaegerCase:
    """A request to both, and what to compare of the answers."""

    path: str
    fields: dict[str, Any]


def cases(there: Served, trace_ids: list[str]) -> Iterator[JaegerCase]:
    services = _ours(there, JaegerCase(path="services", fields={}))[1]["data"]
    yield JaegerCase(path="services", fields={})
    for service in (*services, "no-such-service"):
        yield JaegerCase(path=f"services/{service}/operations", fields={})
        yield JaegerCase(path="operations", fields={"service": service})
        yield JaegerCase(path="operations", fields={"service": service, "spanKind": "server"})
        for search in SEARCHES:
            which = {"service": service, "limit": 20, "raw": "true", **RANGE_US, **search}
            yield JaegerCase(path="traces", fields=which)
    for trace_id in (*trace_ids, "f" * 32):
        yield JaegerCase(path=f"traces/{trace_id}", fields={"raw": "true"})
    several = {"traceID": [*trace_ids[:5], "e" * 32], "raw": "true"}
    yield JaegerCase(path="traces", fields=several)
    yield JaegerCase(path="v3/services", fields={})
    yield JaegerCase(path="v3/operations", fields={"service": "storefront"})
    for trace_id in trace_ids:
        yield JaegerCase(path=f"v3/traces/{trace_id}", fields={"raw_traces": "true"})
    yield JaegerCase(path="dependencies", fields={"endTs": END_MS, "lookback": HOUR_MS})
    yield JaegerCase(path="dependencies", fields={"endTs": 1000, "lookback": 1000})


def everything(trace_id: bytes) -> bytes:
    """A request with a trace that has all that a span can have."""
    values = {
        "text": AnyValue(string_value='\U0001f9ca "quoted" <&>'),
        "empty": AnyValue(string_value=""),
        "whole": AnyValue(int_value=-(2**53) + 1),
        "real": AnyValue(double_value=0.1),
        "flag": AnyValue(bool_value=False),
        "list": AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue()])),
        "map": AnyValue(
            kvlist_value=KeyValueList(values=[KeyValue(key="a", value=AnyValue(bool_value=True))])
        ),
    }
    attributes = [KeyValue(key=key, value=value) for key, value in values.items()]
    begin_ns = BEGIN_S * 10**9 + 123_456_789
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add(schema_url="https://example.org/schema")
    resource.resource.attributes.extend(attributes)
    resource.resource.attributes.add(key="service.name").value.string_value = SERVICE
    scope = resource.scope_spans.add()
    scope.scope.name, scope.scope.version = "a scope", "1.2"
    for number in range(SPAN_COUNT):
        made = scope.spans.add(
            trace_id=trace_id,
            span_id=bytes([number + 1]) * 8,
            parent_span_id=bytes([number]) * 8 if number else b"",
            name=f"operation {number}",
            kind=Span.SpanKind.values()[number % 6],
            start_time_unix_nano=begin_ns + number * 10**6,
            end_time_unix_nano=begin_ns + number * 10**6 + 5_000_000,
            attributes=attributes,
            trace_state="a=1,b=2",
            flags=0x101,
            status=STATUSES[number % 3],
        )
        made.events.add(name="event", time_unix_nano=begin_ns + 5, attributes=attributes)
        made.links.add(trace_id=bytes([9]) * 16, span_id=bytes([8]) * 8, attributes=attributes)
    return request.SerializeToString()


def _ours(there: Served, case: JaegerCase) -> tuple[int, Any]:
    query = urlencode(case.fields, doseq=True)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    said = there.ask("GET", f"/jaeger/api/{case.path}?{query}", headers=headers)
    return said.status, said.json


def difference(theirs: Any, ours: Any) -> str:
    """Return how two answers differ; nothing if they do not."""
    given, own = (json.dumps(each, indent=1, sort_keys=True) for each in (theirs, ours))
    lines = unified_diff(given.splitlines(), own.splitlines(), "Jaeger", "ours", lineterm="", n=1)
    return "\n".join([*lines][:LINES_MAX])


def plain_answer(data: Any) -> Any:
    """Return its data without an order that says nothing: of names, traces, spans and tags."""
    if "result" in data:
        return sorted(_otlp_spans(data["result"]["resourceSpans"]), key=str)
    if "data" not in data:
        return {key: sorted(values, key=str) for key, values in data.items()}
    data = data["data"]
    if data and isinstance(data[0], dict) and "spans" in data[0]:
        return {trace["traceID"]: _spans(trace) for trace in data}
    return sorted(data or [], key=str)


def _otlp_spans(resources: Any) -> Iterator[list[Any]]:
    """Yield each span with what it is in."""
    for resource in resources:
        for scope in resource["scopeSpans"]:
            for each in scope["spans"]:
                yield [_sorted(part) for part in (each, scope["scope"], resource["resource"])]


def _sorted(part: Any) -> Any:
    """Return a part of OTLP with its attributes by key, and without a kind that is 0: some write
    it, others do not."""
    if isinstance(part, dict):
        return {
            key: sorted(value, key=str) if key == "attributes" else _sorted(value)
            for key, value in part.items()
            if (key, value) != ("kind", 0)
        }
    return [_sorted(each) for each in part] if isinstance(part, list) else part


def _spans(trace: Any) -> dict[str, Any]:
    return {each["spanID"]: _span(each, trace["processes"]) for each in trace["spans"]}


def _span(span: Any, processes: Any) -> dict[str, Any]:
    process = processes[span["processID"]]
    logs = sorted((log["timestamp"], _tags(log["fields"])) for log in span["logs"])
    return {
        **{key: span[key] for key in ("operationName", "startTime", "duration")},
        "references": sorted(map(str, span["references"])),
        "tags": _tags(span["tags"]),
        "logs": logs,
        "process": (process["serviceName"], _tags(process["tags"])),
    }


def _tags(tags: Any) -> list[str]:
    return sorted(json.dumps(tag, sort_keys=True) for tag in tags)


def main() -> int:
    program()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "token").write_text(TOKEN)
        ingest = {"token_file": str(folder / "token")}
        config = settings(folder, ingest=ingest, jaeger={"enabled": True, "port": 0})
        with (
            served(folder / "data", ingest=ingest) as there,
            jaeger_port(there, config) as port,
            real_jaeger(
                folder, storage=port, writer=there.rooms.otlp.grpc_port, token=TOKEN
            ) as jaeger,
        ):
            return compare(there, jaeger)


def compare(there: Served, jaeger: RealJaeger) -> int:
    rows = there.embedded.sql
    sent = send_shop(there.rooms.otlp.http_port, lambda text: rows(text).fetchall(), token=TOKEN)
    jaeger.send(everything(TRACE_ID))
    for _ in range(LOOKS_MAX):  # Jaeger sends them on by its queue
        if rows(COUNT).fetchall() == [(SPAN_COUNT,)]:
            break
        there.rooms.clock.sleep(0.01)
    ids = [TRACE_ID.hex()]
    ids += list(dict.fromkeys(row.record.trace_id.hex() for row in sent.spans))[:TRACES_MAX]
    failures = filled = count = 0
    for case in cases(there, ids):
        status, theirs = jaeger.ask(case.path, **case.fields)
        our_status, ours = _ours(there, case)
        given, own = (status, plain_answer(theirs)), (our_status, plain_answer(ours))
        count += 1
        filled += bool(given[1])
        if given != own:
            failures += 1
            sys.stdout.write(f"{case.path} {case.fields}:\n{difference(given, own)}\n")
    sys.stdout.write(
        f"{count - failures} of {count} answers of Jaeger are those of our door; {filled} have "
        "something in them\n"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
