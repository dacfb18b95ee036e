"""serve: the HTTP API and web page of a node.

    connection ─> http/app ─> http/router ─> api/... ─> query, lake, log
                                 │
                                 └─> http/handler: threads, limits, cancellation

    server.py        ApiServer: the open port
    config.py        ServeConfig: settings
    context.py       NodeContext: the components of a node
    routes.py        all endpoints
    http/            requests, routing, responses, OpenAPI
    api/             the endpoints
    status/          node status and health
    metrics/         the Prometheus page
    dashboards/      dashboards as files
    demo_process.py  DemoShop: the process that sends demo data
    uptime.py        Uptime: state, start time and rates of a node

The event loop owns everything here; long work runs in threads.
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
