"""The API described for programs: OpenAPI 3.1, made from the endpoints themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from frazil.asking import ErrorAnswer
from frazil.serve.endpoints import Endpoint

REFS = "#/components/schemas/{name}"
COMMON = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
"""Answers that any endpoint may give."""
OF_BODIES = (HTTPStatus.UNSUPPORTED_MEDIA_TYPE,)


def describe(endpoints: Sequence[Endpoint[Any]], version: str) -> dict[str, Any]:
    """The whole description."""
    types = [each.gives for each in endpoints if each.gives is not None]
    bodies = [each.takes for each in endpoints if each.method == "POST"]
    kinds = list(dict.fromkeys([ErrorAnswer, *types, *bodies]))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFS)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Frazil",
            "version": version,
            "description": "SQL and questions over telemetry, and how the node does.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(endpoint: Endpoint[Any], schema_of: dict[Any, Any]) -> dict[str, Any]:
    statuses = {*COMMON, *endpoint.statuses, *(OF_BODIES if endpoint.method == "POST" else ())}
    error = {"application/json": {"schema": schema_of[ErrorAnswer]}}
    content = _content(endpoint, schema_of)
    responses: dict[str, Any] = {"200": {"description": "OK", "content": content}}
    for status in sorted(statuses):
        responses[str(int(status))] = {"description": status.phrase, "content": error}
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": _name(endpoint),
        "responses": responses,
    }
    parameters = list(_parameters(endpoint))
    if parameters:
        described["parameters"] = parameters
    if endpoint.method == "POST" and endpoint.takes.__struct_fields__:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[endpoint.takes]}},
        }
    return described


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
    for name, described in properties.items():
        where = "path" if name in in_path else "query"
        given = dict(described)
        if given.get("default") is None:
            given.pop("default", None)
        yield {
            "name": name,
            "in": where,
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
    words = re.findall(r"\w+", endpoint.path.removeprefix("/api/v1"))
    return "_".join([endpoint.method.lower(), *words])
