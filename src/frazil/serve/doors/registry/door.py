"""REGISTRY: the paths of a schema registry. The URL of clients is that of the API and /registry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from frazil.httpd import Response
from frazil.serve.doors.endpoint import Door, DoorEndpoint, DoorRequest
from frazil.serve.doors.registry import schemas, settings, subjects
from frazil.serve.doors.registry.answers import failure
from frazil.serve.http.handler import Handler

PREFIX = "/registry/"


def _endpoint(
    method: str, path: str, serve: Callable[[Handler, DoorRequest], Awaitable[Response]]
) -> DoorEndpoint:
    # A POST may look up or check only.
    is_change = method in ("PUT", "DELETE") or serve is subjects.register
    return DoorEndpoint(
        path=f"{PREFIX}{path}", serve=serve, methods=(method,), takes_statements=is_change
    )


_VERSIONS, _VERSION = "subjects/{subject}/versions", "subjects/{subject}/versions/{version}"
_COMPATIBLE = "compatibility/subjects/{subject}/versions"

REGISTRY = Door(
    prefix=PREFIX,
    endpoints=(
        _endpoint("GET", "", schemas.root),
        _endpoint("GET", "subjects", subjects.subjects),
        _endpoint("POST", "subjects/{subject}", subjects.look_up),
        _endpoint("DELETE", "subjects/{subject}", subjects.delete_subject),
        _endpoint("GET", _VERSIONS, subjects.versions),
        _endpoint("POST", _VERSIONS, subjects.register),
        _endpoint("GET", _VERSION, subjects.one_version),
        _endpoint("DELETE", _VERSION, subjects.delete_version),
        _endpoint("GET", f"{_VERSION}/schema", subjects.schema_of_version),
        _endpoint("GET", f"{_VERSION}/referencedby", subjects.referenced_by),
        _endpoint("GET", "schemas", schemas.schemas),
        _endpoint("GET", "schemas/types", schemas.types),
        _endpoint("GET", "schemas/ids/{id}", schemas.schema),
        _endpoint("GET", "schemas/ids/{id}/schema", schemas.text),
        _endpoint("GET", "schemas/ids/{id}/subjects", schemas.subjects_of_id),
        _endpoint("GET", "schemas/ids/{id}/versions", schemas.versions_of_id),
        _endpoint("POST", _COMPATIBLE, settings.compatible),
        _endpoint("POST", f"{_COMPATIBLE}/{{version}}", settings.compatible),
        *(
            endpoint
            for path in ("config", "config/{subject}")
            for endpoint in (
                _endpoint("GET", path, settings.level),
                _endpoint("PUT", path, settings.set_level),
                _endpoint("DELETE", path, settings.delete_level),
            )
        ),
        *(
            endpoint
            for path in ("mode", "mode/{subject}")
            for endpoint in (
                _endpoint("GET", path, settings.mode),
                _endpoint("PUT", path, settings.set_mode),
                _endpoint("DELETE", path, settings.delete_mode),
            )
        ),
        _endpoint("GET", "contexts", schemas.contexts),
        _endpoint("GET", "v1/metadata/id", schemas.cluster),
        _endpoint("GET", "v1/metadata/version", schemas.version),
    ),
    error_response=failure,
    takes_basic=True,
)
