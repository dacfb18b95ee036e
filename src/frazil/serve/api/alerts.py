"""Endpoints of alerts and rules."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.rules import RulesReport
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.router import NoParams


class AlertsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Rules and their alerts, as of the last evaluation of each group."""

    is_configured: Annotated[
        bool, doc("Whether the node has rule files or receivers of notifications.")
    ]
    now_ms: Annotated[int, doc("Time of the node.")]
    report: RulesReport


async def alerts(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """List groups of rules with their alerts, changes of alerts, and receivers."""
    rules = handler.context.rules
    now_ms = handler.context.clock.wall_ms()
    return await handler.respond_without_sql(
        lambda: AlertsAnswer(
            is_configured=rules is not None,
            now_ms=now_ms,
            report=EMPTY if rules is None else rules.report(),
        )
    )


EMPTY = RulesReport(groups=[], file_error=None, notifiers=[], changes=[])
