"""serve: what a node shows over HTTP: SQL, questions, how it does.

    config.py        ServeConfig
    context.py       NodeContext: what there is to show
    demo_process.py  DemoShop: the process that sends it
    routes.py        all of them
    server.py        ApiServer: the port, open
    uptime.py        Uptime: since when a node runs, and how fast data comes

    api/             the endpoints
    dashboards/      dashboards as files
    http/            requests, routing, responses, OpenAPI
    metrics/         the Prometheus page
    status/          node status and health

Everything here belongs to the event loop; whatever takes long runs in threads of its own.
"""

from frazil.serve.config import ServeConfig
from frazil.serve.context import NodeContext
from frazil.serve.routes import description
from frazil.serve.server import ApiServer
from frazil.serve.status.collect import status_of
from frazil.serve.status.health import Check, checks_of, is_ready, readiness_text
from frazil.serve.status.model import Status
from frazil.serve.uptime import Uptime

__all__ = [
    "ApiServer",
    "Check",
    "NodeContext",
    "ServeConfig",
    "Status",
    "Uptime",
    "checks_of",
    "description",
    "is_ready",
    "readiness_text",
    "status_of",
]
