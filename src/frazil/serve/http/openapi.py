"""OpenAPI 3.1 description of the API, generated from the endpoints."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.results import ErrorAnswer
from frazil.serve.http.router import Endpoint

REFS = "#/components/schemas/{name}"
COMMON = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.REQUEST_URI_TOO_LONG,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""Error responses of every endpoint."""
WITH_BODY = (HTTPStatus.UNSUPPORTED_MEDIA_TYPE,)
WITH_QUERY = (HTTPStatus.GATEWAY_TIMEOUT,)
HEADERS = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate", "Authentication challenge.", {"type": "string"}),
    HTTPStatus.TOO_MANY_REQUESTS: (
        "Retry-After",
        "Seconds to wait before retrying.",
        {"type": "integer", "minimum": 1},
    ),
}
ABOUT = """SQL, logs, traces and metrics, and the status of the node.

Every error is `{"error": {"kind": ..., "message": ...}}`: one word for programs, and one sentence
that says what to do. Responses are bounded; closing the connection cancels the query. Times are
RFC 3339 in UTC.

Integers have up to 64 bits (`format: int64`). Nanoseconds and snapshot ids exceed 2^53, above
which JavaScript numbers are not exact: use a parser that keeps them, or select text:
`CAST(time_unix_nano AS VARCHAR)`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EndpointGroup:
    """Endpoints under one tag."""

    name: str
    about: str
    endpoints: Sequence[Endpoint[Any]]


def describe(groups: Sequence[EndpointGroup], version: str) -> dict[str, Any]:
    """The whole description."""
    endpoints = [endpoint for group in groups for endpoint in group.endpoints]
    kinds = list(dict.fromkeys([ErrorAnswer, *_kinds(endpoints)]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFS)
    _widen(components)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for group in groups:
        for endpoint in group.endpoints:
            operation = {"tags": [group.name], **_operation(endpoint, schema_of)}
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Frazil",
            "version": version,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This node."}],
        "tags": [{"name": group.name, "description": group.about} for group in groups],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A line of serve.token_file, if the node requires tokens.",
                }
            },
        },
        "security": [{}, {"token": []}],
    }


def _kinds(endpoints: Sequence[Endpoint[Any]]) -> Iterable[Any]:
    for endpoint in endpoints:
        if endpoint.gives is not None:
            yield endpoint.gives
        body = _body(endpoint)
        if body is not None:
            yield body


def _body(endpoint: Endpoint[Any]) -> Any | None:
    """Type of the JSON body, if any."""
    if endpoint.body_types:
        return None
    if endpoint.body is not None:
        return endpoint.body_type
    return (
        endpoint.takes if endpoint.method == "POST" and endpoint.takes.__struct_fields__ else None
    )


def _widen(schema: Any) -> None:
    """Mark integers without a bound as 64-bit."""
    if isinstance(schema, list):
        for each in schema:
            _widen(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "integer" and "maximum" not in schema:
            schema["format"] = "int64"
        for each in schema.values():
            _widen(each)


def _operation(endpoint: Endpoint[Any], schema_of: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _name(endpoint),
        "responses": _responses(endpoint, schema_of),
    }
    parameters = list(_parameters(endpoint))
    if parameters:
        described["parameters"] = parameters
    body = _body(endpoint)
    if body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[body]}},
        }
    if endpoint.body_types:
        described["requestBody"] = {
            "required": True,
            "content": {kind: {} for kind in endpoint.body_types},
        }
    elif endpoint.takes_bytes:
        described["requestBody"] = {"required": True, "content": {"application/octet-stream": {}}}
    if endpoint.is_open:
        described["security"] = []
    return described


def _responses(endpoint: Endpoint[Any], schema_of: dict[Any, Any]) -> dict[str, Any]:
    with_body = WITH_BODY if endpoint.method in ("POST", "PUT") else ()
    with_query = WITH_QUERY if not endpoint.is_open else ()
    error: dict[str, Any] = {"application/json": {"schema": schema_of[ErrorAnswer]}}
    content = _content(endpoint, schema_of)
    responses: dict[str, Any] = {"200": {"description": "OK", "content": content}}
    for status in sorted({*COMMON, *endpoint.statuses, *with_body, *with_query}):
        described: dict[str, Any] = {"description": status.phrase, "content": error}
        if status == HTTPStatus.SERVICE_UNAVAILABLE and "text/plain" in content:
            described["content"] = {**error, **content}
        if status in HEADERS:
            name, words, schema = HEADERS[status]
            described["headers"] = {name: {"description": words, "schema": schema}}
        responses[str(int(status))] = described
    return responses


def _content(endpoint: Endpoint[Any], schema_of: dict[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for kind in endpoint.types:
        is_json = kind == "application/json" and endpoint.gives is not None
        content[kind] = {"schema": schema_of[endpoint.gives]} if is_json else {}
    return content


def _parameters(endpoint: Endpoint[Any]) -> Iterable[dict[str, Any]]:
    in_path = set(re.findall(r"{(\w+)}", endpoint.path))
    if endpoint.method == "POST" and endpoint.body is None:
        assert not in_path, "a POST takes its values from its body"
        return
    _, components = msgspec.json.schema_components([endpoint.takes], ref_template=REFS)
    properties = components[endpoint.takes.__name__]["properties"]
    required = components[endpoint.takes.__name__].get("required", [])
    for name, described in properties.items():
        if name == endpoint.body:
            continue
        where = "path" if name in in_path else "query"
        schema = dict(described)
        description = schema.pop("description")
        if schema.get("default") is None:
            schema.pop("default", None)
        yield {
            "name": name,
            "in": where,
            "description": description,
            "required": name in required or where == "path",
            "schema": _without_null(schema),
            **({"explode": True} if where == "query" and schema.get("type") == "array" else {}),
        }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop null: a query string omits absent values."""
    choices = schema.get("anyOf")
    if choices is None:
        return schema
    kept = [choice for choice in choices if choice.get("type") != "null"]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**rest, **kept[0]} if len(kept) == 1 else {**rest, "anyOf": kept}


def _name(endpoint: Endpoint[Any]) -> str:
    """Operation id, unique: `/healthz` and `/api/v1/health` differ."""
    words = re.findall(r"\w+", endpoint.path)
    words = words[2:] if endpoint.path.startswith("/api/v1/") else ["node", *words]
    return "_".join([endpoint.method.lower(), *words])
