"""Parameters and bodies of requests to the registry."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from frazil.errors import Malformed, Unavailable
from frazil.registry import (
    VERSION_MAX,
    Registration,
    Registry,
    RegistryError,
    RegistryErrorCode,
    SchemaContent,
    SchemaReference,
    SchemaType,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.http.handler import Handler

T = TypeVar("T")
ALL_CONTEXTS = ":*:"
"""As a prefix of subjects: all of them."""


class SchemaBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A schema to register, to look up, or to check."""

    schema: str | None = None
    schema_type: SchemaType | None = None
    references: tuple[SchemaReference, ...] | None = None
    id: int | None = None
    version: int | None = None
    metadata: Any = None
    rule_set: Any = None


def registry_of(handler: Handler) -> Registry:
    """Return the registry. `Unavailable` if the node has none."""
    registry = handler.context.registry
    if registry is None:
        raise Unavailable("this process has no schema registry; a node has one")
    return registry


def flag(request: DoorRequest, name: str) -> bool:
    """Return a parameter that is true or false, and false without it."""
    text = (request.first(name) or "false").lower()
    if text not in ("true", "false"):
        raise Malformed(f"{name} is {text!r}; write true or false")
    return text == "true"


def number(request: DoorRequest, name: str, default: int) -> int:
    """Return a parameter that is a number."""
    text = request.first(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise Malformed(f"{name} is {text[:40]!r}; write a number") from None


def page(request: DoorRequest, values: list[T]) -> list[T]:
    """Return the part of a list that `offset` and `limit` choose."""
    begin, limit = max(0, number(request, "offset", 0)), number(request, "limit", -1)
    return values[begin:] if limit < 0 else values[begin : begin + limit]


def prefix_of(request: DoorRequest) -> str:
    """Return how subjects must begin."""
    return (request.first("subjectPrefix") or "").removeprefix(ALL_CONTEXTS)


def version_of(text: str) -> int | None:
    """Return the number of a version, None for the latest."""
    if text in ("latest", "-1"):
        return None
    version = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    if not 0 < version <= VERSION_MAX:
        raise RegistryError(
            RegistryErrorCode.INVALID_VERSION,
            f"The specified version '{text[:40]}' is not a valid version id. Allowed values are "
            'between [1, 2^31-1] and the string "latest"',
        )
    return version


def id_of(text: str) -> int:
    """Return the id of a schema."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise RegistryError(RegistryErrorCode.SCHEMA_NOT_FOUND, f"Schema {text[:40]} not found")
    return int(text)


def body_of(request: DoorRequest, kind: type[T]) -> T:
    """Parse the body of a request."""
    try:
        return msgspec.json.decode(request.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is not what is needed here: {error}") from None


def registration_of(request: DoorRequest) -> Registration:
    """Return the schema in a body."""
    body = body_of(request, SchemaBody)
    if not body.schema:
        raise RegistryError(RegistryErrorCode.INVALID_SCHEMA, "Empty schema")
    if body.metadata or body.rule_set:
        raise RegistryError(
            RegistryErrorCode.INVALID_SCHEMA,
            "Invalid schema: metadata and rule sets are not built; register it without them",
        )
    content = SchemaContent(
        text=body.schema,
        schema_type=body.schema_type or SchemaType.AVRO,
        references=body.references or (),
    )
    return Registration(
        content=content,
        normalizes=flag(request, "normalize"),
        schema_id=None if body.id is None or body.id < 0 else body.id,
        version=None if body.version is None or body.version < 1 else body.version,
    )
