"""Log records as OTLP/JSON."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from tests.clients.node import Node

INFO = 9
TIMEOUT_S = 30


def log(
    body: str,
    attributes: Mapping[str, str] | None = None,
    *,
    severity: int = INFO,
    severity_text: str = "",
    event_name: str = "",
) -> dict[str, Any]:
    """Return a log record with the current time."""
    now = str(time.time_ns())
    return {
        "timeUnixNano": now,
        "observedTimeUnixNano": now,
        "severityNumber": severity,
        "severityText": severity_text,
        "eventName": event_name,
        "body": {"stringValue": body},
        "attributes": _attributes(attributes or {}),
    }


def send_logs(
    node: Node,
    records: Sequence[Mapping[str, Any]],
    *,
    service: str,
    scope: str = "test",
    resource: Mapping[str, str] | None = None,
) -> None:
    """Send records in one request. Returns once they are durable."""
    resource_attributes = {**(resource or {}), "service.name": service}
    body = {
        "resourceLogs": [
            {
                "resource": {"attributes": _attributes(resource_attributes)},
                "scopeLogs": [{"scope": {"name": scope}, "logRecords": list(records)}],
            }
        ]
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{node.http_port}/v1/logs",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        assert response.status == 200, response.read()


def _attributes(attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
