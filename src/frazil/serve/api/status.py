"""Endpoints of status, health, metrics and probes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import msgspec

from frazil.httpd import Response
from frazil.model import doc
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import TEXT, answer_of, answer_of_body
from frazil.serve.http.router import NoParams
from frazil.serve.metrics.exposition import OPENMETRICS_TYPE, exposition
from frazil.serve.status.collect import status_of
from frazil.serve.status.health import checks_of
from frazil.status import Check, is_ready, readiness_text

METRICS_TYPES = ("text/plain", OPENMETRICS_TYPE)


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How detailed the response is."""

    verbose: Annotated[Name | None, doc("If present, list every component.")] = None


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """State of every component, with cause and remedy."""

    is_ready: bool
    checks: list[Check]


async def status(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Return the node status: rates, lag, sizes, last commit, problems."""
    return answer_of(await handler.run_quickly(lambda: status_of(handler.context)))


async def health(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Return the state of every component, with cause and remedy."""
    checks = await handler.run_quickly(lambda: checks_of(handler.context))
    return answer_of(HealthAnswer(is_ready=is_ready(checks), checks=checks))


async def metrics(handler: Handler, _: NoParams, request: ApiRequest) -> Response:
    """Return all metrics in Prometheus or OpenMetrics text format."""
    accept = request.headers.get("accept", "")
    content_type, text = await handler.run_quickly(lambda: exposition(handler.context, accept))
    return answer_of_body(text, content_type.encode())


async def livez(_: Handler, __: ProbeRequest, ___: ApiRequest) -> Response:
    """Liveness: 200 while the process responds, whatever Spark, catalog or disk do."""
    return answer_of_body(b"ok\n", TEXT)


async def readyz(handler: Handler, params: ProbeRequest, _: ApiRequest) -> Response:
    """Readiness: 503 if any component failed. `verbose` lists all components."""
    checks = await handler.run_quickly(lambda: checks_of(handler.context))
    ready = is_ready(checks)
    is_verbose = params.verbose is not None or not ready
    text = readiness_text(checks) if is_verbose else "ok\n"
    status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    return answer_of_body(text.encode(), TEXT, status)
