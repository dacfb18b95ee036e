"""What the registry sends back: JSON in Confluent's form."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from frazil.errors import Conflict, FrazilError, Overloaded, Unresolved
from frazil.httpd import HttpError, Response
from frazil.registry import RegistryError, SchemaType, SchemaVersion
from frazil.serve.http.responses import answer_of_body, answer_of_error

CONTENT_TYPE = b"application/vnd.schemaregistry.v1+json"
STORE_FAILED, TIMED_OUT = 50001, 50002
BASIC = (b"www-authenticate", b'Basic realm="token"')
"""A second way to send a token: clients of registries have no other."""


def answer(value: Any) -> Response:
    return answer_of_body(msgspec.json.encode(value), CONTENT_TYPE)


def described(version: SchemaVersion) -> dict[str, Any]:
    """Return a version with its schema."""
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.schema_id,
        **schema_fields(version),
    }


def schema_fields(version: SchemaVersion, text: str | None = None) -> dict[str, Any]:
    """Return a schema. Avro is the type of one that names none."""
    content = version.content
    fields: dict[str, Any] = {}
    if content.schema_type is not SchemaType.AVRO:
        fields["schemaType"] = content.schema_type
    if content.references:
        fields["references"] = content.references
    return fields | {"schema": content.text if text is None else text}


def failure(error: FrazilError | HttpError) -> Response:
    """Return an error with its number."""
    usual = answer_of_error(error)
    status, code = usual.status, int(usual.status)
    if isinstance(error, RegistryError):
        code = int(error.code)
        status = HTTPStatus(int(str(code)[:3]))
    elif isinstance(error, Unresolved):
        status, code = HTTPStatus.INTERNAL_SERVER_ERROR, TIMED_OUT
    elif isinstance(error, Conflict):  # 409 is a schema that is incompatible
        status, code = HTTPStatus.SERVICE_UNAVAILABLE, STORE_FAILED
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, Overloaded):
        code = STORE_FAILED
    headers = [(name, value) for name, value in usual.headers if name != b"content-type"]
    headers.insert(0, (b"content-type", CONTENT_TYPE))
    if status is HTTPStatus.UNAUTHORIZED:
        headers.append(BASIC)
    body = msgspec.json.encode({"error_code": code, "message": str(error)})
    return Response(status=status, headers=headers, body=body)
