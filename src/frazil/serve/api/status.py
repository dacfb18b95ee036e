"""How a node does, over HTTP: status for people and pages, probes for orchestrators."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from frazil.httpd import Response
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import TEXT, answer_of, answer_of_body
from frazil.serve.http.router import NoParams
from frazil.serve.metrics.exposition import OPENMETRICS_TYPE, exposition
from frazil.serve.status.collect import status_of
from frazil.serve.status.health import Check, checks_of, is_ready, readiness_text

METRICS_TYPES = ("text/plain", OPENMETRICS_TYPE)


class ProbeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much to say."""

    verbose: Name | None = None
    """If it is there, whatever it is, each room is named."""


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Each room, why it is not well, and what to do."""

    is_ready: bool
    checks: list[Check]


async def status(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """How the node does: what came in, how far each stage is, sizes, the last commit, trouble."""
    return answer_of(status_of(desk.rooms))


async def health(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Each room: is it well, why not, and what next."""
    checks = checks_of(desk.rooms)
    return answer_of(HealthAnswer(is_ready=is_ready(checks), checks=checks))


async def metrics(desk: Handler, _: NoParams, request: ApiRequest) -> Response:
    """All metrics, for Prometheus; OpenMetrics for whoever accepts that."""
    content_type, text = exposition(desk.rooms, request.headers.get("accept", ""))
    return answer_of_body(text, content_type.encode())


async def livez(_: Handler, __: ProbeRequest, ___: ApiRequest) -> Response:
    """Is the process alive? Whatever Spark, a catalog or the disk do."""
    return answer_of_body(b"ok\n", TEXT)


async def readyz(desk: Handler, asked: ProbeRequest, _: ApiRequest) -> Response:
    """Should requests be sent here? 503 when not; with `verbose`, each room and why."""
    checks = checks_of(desk.rooms)
    ready = is_ready(checks)
    says_more = asked.verbose is not None or not ready
    text = readiness_text(checks) if says_more else "ok\n"
    found = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    return answer_of_body(text.encode(), TEXT, found)
