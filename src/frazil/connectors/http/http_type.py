"""HTTP: the type `http`, for sources and sinks."""

from __future__ import annotations

from frazil.connectors.contract import ConnectorContext, ConnectorType
from frazil.connectors.http.http_sink import HttpSink, HttpSinkOptions
from frazil.connectors.http.http_source import HttpSource, HttpSourceOptions
from frazil.connectors.http.web_client import WebClient


def _source(options: HttpSourceOptions, context: ConnectorContext) -> HttpSource:
    return HttpSource(options, WebClient(context.connection, options.path), context.clock)


def _sink(options: HttpSinkOptions, context: ConnectorContext) -> HttpSink:
    return HttpSink(options, WebClient(context.connection, options.path), context.clock)


HTTP = ConnectorType(
    title="A web server: polled for JSON, or sent records in batches",
    options=HttpSourceOptions,
    sink_options=HttpSinkOptions,
    source=_source,
    sink=_sink,
    connection="required",
)
