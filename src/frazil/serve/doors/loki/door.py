"""LOKI: the paths of Loki's API, and its errors."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from frazil.errors import FrazilError, Rejected, Unauthenticated
from frazil.httpd import HttpError, Response
from frazil.serve.doors.endpoint import Door, DoorEndpoint
from frazil.serve.doors.loki import discovery, node_facts, queries
from frazil.serve.doors.loki.tail import tail
from frazil.serve.http.responses import answer_of_error

BOTH = ("GET", "POST")
PREFIX = "/loki/"
API = "/loki/api/v1"


def error_response(error: FrazilError | HttpError) -> Response:
    """An error as Grafana and logcli show it: `message` has the sentence."""
    ours = answer_of_error(error)
    is_wrong = isinstance(error, Rejected) and not isinstance(error, Unauthenticated)
    status = HTTPStatus.BAD_REQUEST if is_wrong else ours.status
    body = {
        "status": "error",
        "errorType": "bad_data" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "internal",
        "error": str(error),
        "message": str(error),
        "code": int(status),
    }
    return Response(status=status, headers=ours.headers, body=msgspec.json.encode(body))


LOKI = Door(
    prefix=PREFIX,
    endpoints=(
        DoorEndpoint(path=f"{API}/query", serve=queries.query, methods=BOTH),
        DoorEndpoint(path=f"{API}/query_range", serve=queries.query_range, methods=BOTH),
        DoorEndpoint(path=f"{API}/format_query", serve=queries.format_query, methods=BOTH),
        DoorEndpoint(path=f"{API}/label", serve=discovery.labels, methods=BOTH),
        DoorEndpoint(path=f"{API}/labels", serve=discovery.labels, methods=BOTH),
        DoorEndpoint(path=f"{API}/label/{{name}}/values", serve=discovery.values, methods=BOTH),
        DoorEndpoint(path=f"{API}/series", serve=discovery.series, methods=BOTH),
        DoorEndpoint(path=f"{API}/index/stats", serve=discovery.stats, methods=BOTH),
        DoorEndpoint(path=f"{API}/index/volume", serve=discovery.volume, methods=BOTH),
        DoorEndpoint(path=f"{API}/index/volume_range", serve=discovery.volume_range, methods=BOTH),
        DoorEndpoint(path=f"{API}/detected_labels", serve=discovery.detected_labels, methods=BOTH),
        DoorEndpoint(path=f"{API}/detected_fields", serve=discovery.detected_fields, methods=BOTH),
        DoorEndpoint(
            path=f"{API}/detected_field/{{name}}/values",
            serve=discovery.detected_field_values,
            methods=BOTH,
        ),
        DoorEndpoint(path=f"{API}/patterns", serve=discovery.patterns, methods=BOTH),
        DoorEndpoint(path=f"{API}/drilldown-limits", serve=node_facts.drilldown_limits),
        DoorEndpoint(path=f"{API}/status/buildinfo", serve=node_facts.build_info),
        DoorEndpoint(path=f"{API}/tail", serve=tail),
    ),
    error_response=error_response,
)
