"""The dashboards of `frazil grafana provision` on the shop: every panel of services has data."""

from __future__ import annotations

from urllib.parse import urlencode

from frazil.cli.grafana.red import RED
from tests.serve.doors.test_prometheus import END, FORM
from tests.serve.served import Served

VALUES = {"$__rate_interval": "1m", "$__range": "1h", "$service": ".+"}


def has_data(there: Served, expr: str) -> bool:
    for name, value in VALUES.items():
        expr = expr.replace(name, value)
    body = urlencode({"query": expr, "time": END + 10}).encode()
    said = there.ask("POST", "/prometheus/api/v1/query", body, FORM)
    assert said.status == 200, said.body
    return bool(said.json["data"]["result"])


def test_every_panel_has_data(there: Served) -> None:
    empty = [
        (panel.title, query.expr)
        for panel in RED.panels
        for query in panel.queries
        if not has_data(there, query.expr)
    ]
    assert not empty
