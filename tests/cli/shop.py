"""Telemetry with known values: one trace of four spans, one of one span, and four logs."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.clients.node import Node

TRACE = "aa" * 15 + "01"
OTHER = "aa" * 15 + "02"
ROOT, CALL, FAILED, ORPHAN, LONELY = (f"{n:016x}" for n in range(1, 6))
BEGIN = 1_700_000_000_000_000_000
MS = 1_000_000
LOG_COUNT = 4


def send(node: Node) -> None:
    """Send everything and wait for the acknowledgement."""
    post(node, "traces", {"resourceSpans": [_spans("shop", _shop()), _spans("bank", _bank())]})
    send_logs(node, _logs())


def send_logs(node: Node, records: list[dict[str, Any]]) -> None:
    resource = {"attributes": [_text("service.name", "shop")]}
    scope = {"logRecords": records}
    post(node, "logs", {"resourceLogs": [{"resource": resource, "scopeLogs": [scope]}]})


def post(node: Node, signal: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{node.http_port}/v1/{signal}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.status == 200


def log(text: str, severity: int, **more: Any) -> dict[str, Any]:
    return {
        "timeUnixNano": str(BEGIN + 15 * MS),
        "severityNumber": severity,
        "body": {"stringValue": text},
        **more,
    }


def _spans(service: str, spans: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": [_text("service.name", service)]}
    return {"resource": resource, "scopeSpans": [{"spans": spans}]}


def _shop() -> list[dict[str, Any]]:
    return [
        _span(TRACE, ROOT, "", "buy", 0, 100),
        _span(TRACE, CALL, ROOT, "call the bank", 10, 60),
        _span(OTHER, LONELY, "", "look", 0, 5),
    ]


def _bank() -> list[dict[str, Any]]:
    exception = {
        "timeUnixNano": str(BEGIN + 30 * MS),
        "name": "exception",
        "attributes": [
            _text("exception.type", "NoMoney"),
            _text("exception.message", "the account is empty"),
        ],
    }
    return [
        _span(TRACE, FAILED, CALL, "charge", 20, 40, status={"code": 2}, events=[exception]),
        _span(
            TRACE,
            ORPHAN,
            "ff" * 8,
            "audit",
            50,
            10,
            links=[{"traceId": OTHER, "spanId": LONELY}],
            attributes=[_text("who", "\x1b[31mme")],
        ),
    ]


def _span(
    trace: str, span: str, parent: str, name: str, at_ms: int, long_ms: int, **more: Any
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(BEGIN + at_ms * MS),
        "endTimeUnixNano": str(BEGIN + (at_ms + long_ms) * MS),
        **more,
    }


def _logs() -> list[dict[str, Any]]:
    return [
        log("basket, with two\nthings", 9, traceId=TRACE, spanId=ROOT),
        log("no money", 17, traceId=TRACE, spanId=FAILED, attributes=[_text("user", "bob")]),
        log("from nowhere", 13, traceId=TRACE, spanId="ee" * 8),
        log("日本 🙂", 5),
    ]


def _text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}
