"""Names of attributes, and their values, for completion."""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import INTRINSIC_TAGS, tag_names, tag_of, tag_values
from frazil.query import Ask, TimeRange
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.trace_params import number, time_range
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of

NAMES_DEFAULT = 1000
VALUES_DEFAULT = 1000
SCOPES = ("span", "resource", "event", "link", "instrumentation")
INTRINSIC = "intrinsic"


async def tags_v1(handler: Handler, call: DoorRequest) -> Response:
    """List the names of attributes."""
    scopes, within = _scopes(call), time_range(call)
    limit = number(call, "limit", NAMES_DEFAULT)

    def load(ask: Ask) -> Response:
        found = _names(ask, scopes, within=within, limit=limit)
        names = {name for scope, some in found if scope != INTRINSIC for name in some}
        return answer_of({"tagNames": sorted(names), "metrics": {}})

    return await handler.load(call.request, load)


async def tags_v2(handler: Handler, call: DoorRequest) -> Response:
    """List the names of attributes and intrinsics by scope."""
    scopes, within = _scopes(call), time_range(call)
    limit = number(call, "limit", NAMES_DEFAULT)

    def load(ask: Ask) -> Response:
        found = _names(ask, scopes, within=within, limit=limit)
        listed = [{"name": scope, "tags": names} for scope, names in found]
        return answer_of({"scopes": listed, "metrics": {}})

    return await handler.load(call.request, load)


def _scopes(call: DoorRequest) -> tuple[str, ...]:
    scope = call.first("scope")
    if scope in (None, "none"):
        return (*SCOPES, INTRINSIC)
    if scope not in (*SCOPES, INTRINSIC):
        raise Malformed(f"scope is {scope[:100]!r}; choose {', '.join(SCOPES)} or {INTRINSIC}")
    return (scope,)


def _names(
    ask: Ask, scopes: tuple[str, ...], *, within: TimeRange, limit: int
) -> list[tuple[str, list[str]]]:
    found = []
    for scope in scopes:
        is_listed = scope == INTRINSIC
        names = INTRINSIC_TAGS if is_listed else tag_names(ask, scope, within=within, limit=limit)
        found.append((scope, list(names)))
    return found


async def values_v1(handler: Handler, call: DoorRequest) -> Response:
    """List the values of an attribute as text."""
    tag = tag_of(call.path_values["tag"])
    within, limit = time_range(call), number(call, "limit", VALUES_DEFAULT)

    def load(ask: Ask) -> Response:
        values = tag_values(ask, tag, None, within=within, limit=limit)
        texts = sorted({each.value for each in values})
        return answer_of({"tagValues": texts, "metrics": {}})

    return await handler.load(call.request, load)


async def values_v2(handler: Handler, call: DoorRequest) -> Response:
    """List the values of an attribute or intrinsic with their types."""
    tag, query = tag_of(call.path_values["tag"]), call.first("q")
    within, limit = time_range(call), number(call, "limit", VALUES_DEFAULT)

    def load(ask: Ask) -> Response:
        values = tag_values(ask, tag, query, within=within, limit=limit)
        return answer_of({"tagValues": values, "metrics": {}})

    return await handler.load(call.request, load)
