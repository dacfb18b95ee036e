"""Endpoints of alerts and rules."""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from frazil.errors import Unavailable, Unknown
from frazil.httpd import HttpError, Response
from frazil.model import doc
from frazil.results import CancelToken, json_of
from frazil.rules import RuleChart, RuleRunner, RulesReport
from frazil.serve.http.handler import Handler, ask_with, watched
from frazil.serve.http.params import Since, Until
from frazil.serve.http.request import ApiRequest, range_of, wall_time
from frazil.serve.http.responses import JSON, answer_of_body
from frazil.serve.http.router import NoParams

CHART_RANGE = timedelta(hours=1)
"""Of a chart without a time range."""

RuleName = Annotated[str, Meta(max_length=1000, examples=["HighLatency"])]


class AlertsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Rules and their alerts, as of the last evaluation of each group."""

    is_configured: Annotated[
        bool, doc("Whether the node has rule files or receivers of notifications.")
    ]
    now_ms: Annotated[int, doc("Time of the node.")]
    report: RulesReport


class RuleChartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule, and a time range; the last hour by default."""

    group: Annotated[RuleName, doc("Name of its group.")]
    rule: Annotated[RuleName, doc("Name of the rule.")]
    since: Since = None
    until: Until = None


EMPTY = RulesReport(groups=[], file_error=None, notifiers=[], changes=[])


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


async def chart(handler: Handler, params: RuleChartRequest, request: ApiRequest) -> Response:
    """Run the query of a rule as of several times, and count its alerts."""
    clock = handler.context.clock
    within = range_of(params.since, params.until, clock)
    until = within.until or wall_time(clock)
    since = within.since or until - CHART_RANGE
    rules = _rules(handler)
    token = CancelToken()
    ask = ask_with(handler.sql, token, handler.config.answer_bytes_max)

    def load() -> RuleChart:
        try:
            return rules.chart(ask, params.group, params.rule, _ms(since), _ms(until), token)
        except Unknown as error:
            raise HttpError(HTTPStatus.NOT_FOUND, str(error)) from None

    async with watched(request, token):
        return answer_of_body(await handler.run(lambda: json_of(load())), JSON)


def _rules(handler: Handler) -> RuleRunner:
    if handler.context.rules is None:
        raise Unavailable("this node has no rules; set rules.files")
    return handler.context.rules


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
