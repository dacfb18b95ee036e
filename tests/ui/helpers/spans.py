"""Spans with unusual names, as OTLP/JSON."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from tests.cli.commands.test_ask_a_node import wait_for
from tests.clients.node import Node

TIMEOUT_S = 30
ERROR = 2
ODD_NAMES = (
    '<img src=x onerror="document.title=`broken`">',
    "</script><script>document.title='broken'</script>",
    "\u202eevil\u202c\u0007\u0000name",
    "__proto__",
    "constructor",
    "javascript:document.title='broken'",
    "a=b&c=d#e?f%00",
    "' OR 1=1 --",
    "x" * 5000,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u05d0\u05d1\u05d2 {{7*7}} ${7*7}",
)
"""Names of services, operations and messages."""


def send_odd_traces(node: Node) -> None:
    """Send one trace per odd name: a service of that name calls another one, which fails."""
    now = time.time_ns()
    resources: list[dict[str, Any]] = []
    for number, name in enumerate(ODD_NAMES, 1):
        trace_id = f"{number:032x}"
        begin = now - number * 1_000_000_000
        parent = span(trace_id, number, name, begin, 50_000_000)
        child = span(trace_id, 1000 + number, name, begin + 1_000_000, 20_000_000)
        child |= {"parentSpanId": parent["spanId"], "status": {"code": ERROR, "message": name}}
        resources += [resource(name, parent), resource("called", child)]
    request = urllib.request.Request(
        f"http://127.0.0.1:{node.http_port}/v1/traces",
        data=json.dumps({"resourceSpans": resources}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        assert response.status == 200, response.read()
    wait_for(node, "SELECT span_id FROM spans", 2 * len(ODD_NAMES))


def resource(service: str, of: dict[str, Any]) -> dict[str, Any]:
    named = {"key": "service.name", "value": {"stringValue": service}}
    return {"resource": {"attributes": [named]}, "scopeSpans": [{"spans": [of]}]}


def span(trace_id: str, number: int, name: str, begin_ns: int, took_ns: int) -> dict[str, Any]:
    return {
        "traceId": trace_id,
        "spanId": f"{number:016x}",
        "name": name,
        "kind": 2,
        "startTimeUnixNano": str(begin_ns),
        "endTimeUnixNano": str(begin_ns + took_ns),
        "attributes": [{"key": "error.type", "value": {"stringValue": name}}],
    }
