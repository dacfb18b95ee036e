"""serve: the HTTP API and web page of a node.

    connection ─> http/app ─> http/router ─> api/... ─> query, lake, log
                                 │
                                 └─> http/handler: threads, limits, cancellation

    server.py        ApiServer: the application and its connections
    context.py       NodeContext: the components of a node
    routes.py        all endpoints
    proto_messages.py  protobuf classes from lists of fields
    http/            requests, routing, responses, OpenAPI
    api/             the endpoints
    doors/           protocols of other tools: Grafana, MCP
    flight/          the Flight SQL port
    jaeger_storage/  the port on which a Jaeger reads traces
    mcp/             tools for agents, over HTTP and on standard input
    status/          node status and health
    metrics/         the Prometheus page
    tables/          rows and keys of keyed tables, in JSON
    topics/          topics and their messages, from the log's files
    saved/           dashboards, saved views and queries as files
    demo_process.py  DemoShop: the process that sends demo data

The event loop owns everything here; long work runs in threads.
"""

from frazil.serve.context import NodeContext
from frazil.serve.flight.port import FlightPort
from frazil.serve.flight.rows import FlightSource
from frazil.serve.jaeger_storage.port import JaegerPort
from frazil.serve.mcp.protocol import McpServer
from frazil.serve.mcp.sources import McpSource
from frazil.serve.mcp.stdio import serve_lines
from frazil.serve.routes import description
from frazil.serve.server import ApiServer
from frazil.serve.status.collect import reader_rates, status_of
from frazil.serve.status.health import checks_of, reader_checks
from frazil.serve.status.model import Status

__all__ = [
    "ApiServer",
    "FlightPort",
    "FlightSource",
    "JaegerPort",
    "McpServer",
    "McpSource",
    "NodeContext",
    "Status",
    "checks_of",
    "description",
    "reader_checks",
    "reader_rates",
    "serve_lines",
    "status_of",
]
