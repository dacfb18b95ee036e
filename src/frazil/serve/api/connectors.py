"""Endpoints of connectors: sources and sinks with their state."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.connectors.runtime import Connectors
from frazil.errors import Unavailable
from frazil.httpd import Response
from frazil.model import doc
from frazil.serve.api.loads import or_not_found
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams
from frazil.serve.status.connectors import ConnectorSummary, connector_summaries, summary


class ConnectorsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Sources, then sinks, by name."""

    connectors: list[ConnectorSummary]


class ConnectorRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which connector."""

    role: Annotated[Literal["source", "sink"], doc("What it is.")]
    connector: Annotated[Name, doc("Its name.")]


async def list_connectors(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List sources and sinks with their state."""
    context = handler.context
    return await handler.respond_without_sql(
        lambda: ConnectorsAnswer(
            connectors=connector_summaries(context.connectors, context.clock.wall_ms())
        )
    )


async def restart_connector(handler: Handler, params: ConnectorRequest, _: ApiRequest) -> Response:
    """End the process of a connector and start another one at once; RESUME is for paused ones."""

    def restart() -> ConnectorSummary:
        connectors = _connectors_of(handler)
        found = or_not_found(lambda: connectors.restart(params.role, params.connector))
        return summary(found, handler.context.clock.wall_ms())

    return await handler.respond_without_sql(restart)


def _connectors_of(handler: Handler) -> Connectors:
    connectors = handler.context.connectors
    if connectors is None:
        raise Unavailable("this node runs no connectors: hot.enabled is false")
    return connectors
