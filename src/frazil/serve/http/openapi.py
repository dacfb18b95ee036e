"""The API described for programs: OpenAPI 3.1, made from the endpoints themselves."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.results import ErrorAnswer
from frazil.serve.http.field_docs import comments_of
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
"""Answers that any endpoint may give."""
OF_BODIES = (HTTPStatus.UNSUPPORTED_MEDIA_TYPE,)
OF_QUESTIONS = (HTTPStatus.GATEWAY_TIMEOUT,)
HEADERS = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate", "How to say who one is.", {"type": "string"}),
    HTTPStatus.TOO_MANY_REQUESTS: (
        "Retry-After",
        "Seconds to wait before one asks again.",
        {"type": "integer", "minimum": 1},
    ),
}
ABOUT = """SQL and questions over telemetry, and how the node does.

Every answer that is no success is `{"error": {"kind": ..., "message": ...}}`: one word for
programs, and one sentence that says what to do. Answers are bounded, and whoever hangs up ends
what he has asked for. Times are RFC 3339 in UTC.

Whole numbers have up to 64 bits (`format: int64`): nanoseconds and ids of snapshots are above
2^53, where JavaScript's numbers are no longer exact. Read them with a parser that keeps them, or
have them as text: `CAST(time_unix_nano AS VARCHAR)`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EndpointGroup:
    """Endpoints that belong together."""

    name: str
    about: str
    endpoints: Sequence[Endpoint[Any]]


def describe(groups: Sequence[EndpointGroup], version: str) -> dict[str, Any]:
    """The whole description."""
    endpoints = [each for group in groups for each in group.endpoints]
    kinds = list(dict.fromkeys([ErrorAnswer, *_kinds(endpoints)]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFS)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for group in groups:
        for each in group.endpoints:
            operation = {"tags": [group.name], **_operation(each, schema_of)}
            paths.setdefault(each.path, {})[each.method.lower()] = operation
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
            "schemas": _commented(components, _named(kinds)),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A line of serve.token_file, where the node has one.",
                }
            },
        },
        "security": [{}, {"token": []}],
    }


def _kinds(endpoints: Sequence[Endpoint[Any]]) -> Iterable[Any]:
    for each in endpoints:
        if each.gives is not None:
            yield each.gives
        body = _body(each)
        if body is not None:
            yield body


def _body(endpoint: Endpoint[Any]) -> Any | None:
    """The type of what is sent in JSON."""
    if endpoint.body is not None:
        return endpoint.body_type
    return (
        endpoint.takes if endpoint.method == "POST" and endpoint.takes.__struct_fields__ else None
    )


def _named(kinds: Sequence[Any]) -> dict[str, type]:
    """Every class that the answers are made of, by its name."""
    found: dict[str, type] = {}

    def look(info: Any) -> None:
        kind = getattr(info, "cls", None)
        if isinstance(kind, type):
            if kind.__name__ in found:
                return
            found[kind.__name__] = kind
        for field in getattr(info, "fields", ()):
            look(field.type)
        for name in ("type", "item_type", "key_type", "value_type"):
            if hasattr(info, name):
                look(getattr(info, name))
        for each in (*getattr(info, "types", ()), *getattr(info, "item_types", ())):
            look(each)

    for info in msgspec.inspect.multi_type_info(kinds):
        look(info)
    return found


def _commented(components: dict[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    """Schemas with what is said of each field."""
    for name, schema in components.items():
        comments = comments_of(kinds[name]) if name in kinds else {}
        for field, given in schema.get("properties", {}).items():
            _widen(given)
            if field in comments and "$ref" not in given:
                given.setdefault("description", comments[field])
    return components


def _widen(schema: Any) -> None:
    """Say how large whole numbers may be."""
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
    if endpoint.is_open:
        described["security"] = []
    return described


def _responses(endpoint: Endpoint[Any], schema_of: dict[Any, Any]) -> dict[str, Any]:
    more = OF_BODIES if endpoint.method in ("POST", "PUT") else ()
    questions = OF_QUESTIONS if not endpoint.is_open else ()
    error: dict[str, Any] = {"application/json": {"schema": schema_of[ErrorAnswer]}}
    content = _content(endpoint, schema_of)
    responses: dict[str, Any] = {"200": {"description": "OK", "content": content}}
    for status in sorted({*COMMON, *endpoint.statuses, *more, *questions}):
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
    if endpoint.method == "POST":
        assert not in_path, "a POST takes its values from its body"
        return
    _, components = msgspec.json.schema_components([endpoint.takes], ref_template=REFS)
    properties = components[endpoint.takes.__name__]["properties"]
    required = components[endpoint.takes.__name__].get("required", [])
    kind: type = endpoint.takes
    comments = comments_of(kind)
    for name, described in properties.items():
        if name == endpoint.body:
            continue
        where = "path" if name in in_path else "query"
        given = dict(described)
        if given.get("default") is None:
            given.pop("default", None)
        yield {
            "name": name,
            "in": where,
            "description": comments[name],
            "required": name in required or where == "path",
            "schema": _without_null(given),
            **({"explode": True} if where == "query" and given.get("type") == "array" else {}),
        }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query string has no null: what may be absent is left out."""
    choices = schema.get("anyOf")
    if choices is None:
        return schema
    kept = [choice for choice in choices if choice.get("type") != "null"]
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**rest, **kept[0]} if len(kept) == 1 else {**rest, "anyOf": kept}


def _name(endpoint: Endpoint[Any]) -> str:
    """Unlike any other: a page for probes is not the question of the same name."""
    words = re.findall(r"\w+", endpoint.path)
    words = words[2:] if endpoint.path.startswith("/api/v1/") else ["node", *words]
    return "_".join([endpoint.method.lower(), *words])
