"""The telemetry of a small shop in a node, and the same as protobuf's own parser reads it."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from typing import Any

from frazil.model import SystemClock
from tests.demo.records import NS_PER_S, START_NS, Sent, parse, traffic

ANSWER_S = 60
LOOKS_MAX = 2000
COUNTS = (
    "SELECT (SELECT count(*) FROM logs) AS a, (SELECT count(*) FROM spans) AS b, "
    "(SELECT count(*) FROM metrics) AS c"
)

Rows = Callable[[str], list[tuple[Any, ...]]]
"""Runs SQL."""


def send_shop(port: int, rows: Rows, *, seconds: int = 20, token: str = "") -> Sent:
    """Send it over OTLP/HTTP, and wait until all of it is visible."""
    shop = traffic(7, 4)
    exports = [*shop.advance(START_NS + seconds * NS_PER_S), *shop.end()]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    for export in exports:
        headers = {"Content-Type": "application/x-protobuf", "Authorization": f"Bearer {token}"}
        connection.request("POST", f"/v1/{export.signal}", export.body, headers)
        response = connection.getresponse()
        assert response.status == 200
        response.read()
    connection.close()
    sent = parse(exports)
    wanted = (len(sent.logs), len(sent.spans), len(sent.points))
    clock = SystemClock()
    for _ in range(LOOKS_MAX):
        if rows(COUNTS) == [wanted]:
            return sent
        clock.sleep(0.01)
    raise AssertionError(f"not all of {wanted} became visible")
