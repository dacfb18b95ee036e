"""Endpoints that tell what the server is, and its rules and alerts."""

from __future__ import annotations

import datetime
import platform

from frazil.httpd import Response
from frazil.rules import alerts_data, rules_data
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.prometheus.answers import answer, success
from frazil.serve.doors.prometheus.params import MS_PER_S
from frazil.serve.http.handler import Handler
from frazil.version import __version__

PROMETHEUS_VERSION = "3.15.0"
"""Whose API this is: clients decide by the version what they may call."""


async def buildinfo(_: Handler, __: DoorRequest) -> Response:
    """Tell the version. Without `features`, Grafana takes this for Prometheus itself."""
    return answer(
        success(
            {
                "version": PROMETHEUS_VERSION,
                "revision": f"frazil-{__version__}",
                "branch": "",
                "buildUser": "",
                "buildDate": "",
                "goVersion": f"Python {platform.python_version()}",
            }
        )
    )


async def runtimeinfo(handler: Handler, _: DoorRequest) -> Response:
    """Tell the time, and that there is data."""
    now = datetime.datetime.fromtimestamp(handler.context.clock.wall_ms() / MS_PER_S, datetime.UTC)
    return answer(success({"serverTime": now.isoformat(), "reloadConfigSuccess": True}))


async def flags(_: Handler, __: DoorRequest) -> Response:
    """There are no flags of Prometheus."""
    return answer(success({}))


async def config(_: Handler, __: DoorRequest) -> Response:
    """There is no configuration of Prometheus."""
    return answer(success({"yaml": ""}))


async def rules(handler: Handler, request: DoorRequest) -> Response:
    """List groups of rules; `type` is alert or record."""
    found = handler.context.rules
    if found is None:
        return answer(success({"groups": []}))
    return answer(success(rules_data(found.report(), request.first("type"))))


async def alerts(handler: Handler, _: DoorRequest) -> Response:
    """List active alerts."""
    found = handler.context.rules
    return answer(success({"alerts": []} if found is None else alerts_data(found.report())))
