"""Subjects and their versions."""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.registry import (
    RegistryState,
    SchemaType,
    SchemaVersion,
    subject_not_found,
    version_not_found,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.registry.answers import CONTENT_TYPE, answer, described, schema_fields
from frazil.serve.doors.registry.params import (
    flag,
    page,
    prefix_of,
    registration_of,
    registry_of,
    version_of,
)
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of_body

DEFAULT_FORMAT, SERIALIZED = "", "serialized"


async def subjects(handler: Handler, request: DoorRequest) -> Response:
    """List subjects."""
    registry, prefix = registry_of(handler), prefix_of(request)
    deleted, deleted_only = flag(request, "deleted"), flag(request, "deletedOnly")

    def names(state: RegistryState) -> list[str]:
        alive = set(state.subjects()) if deleted_only else set()
        every = state.subjects(deleted=deleted or deleted_only)
        return [name for name in every if name.startswith(prefix) and name not in alive]

    found = await handler.run(lambda: registry.read(names))
    return answer(page(request, found))


async def versions(handler: Handler, request: DoorRequest) -> Response:
    """List the versions of a subject."""
    registry, subject = registry_of(handler), request.path_values["subject"]
    deleted, deleted_only = flag(request, "deleted"), flag(request, "deletedOnly")

    def numbers(state: RegistryState) -> list[int]:
        found = state.versions(subject, deleted=deleted or deleted_only)
        if deleted_only:
            found = [version for version in found if version.is_deleted]
        if not found:
            raise subject_not_found(subject)
        return [version.version for version in found]

    return answer(page(request, await handler.run(lambda: registry.read(numbers))))


async def register(handler: Handler, request: DoorRequest) -> Response:
    """Register a schema."""
    registry, subject = registry_of(handler), request.path_values["subject"]
    registration = registration_of(request)
    version = await handler.run(lambda: registry.register(subject, registration))
    return answer({"id": version.schema_id})


async def look_up(handler: Handler, request: DoorRequest) -> Response:
    """Find the version that has a schema."""
    registry, subject = registry_of(handler), request.path_values["subject"]
    registration, deleted = registration_of(request), flag(request, "deleted")
    found = await handler.run(lambda: registry.look_up(subject, registration, deleted=deleted))
    return answer(described(found))


async def one_version(handler: Handler, request: DoorRequest) -> Response:
    """Return one version."""
    version = await _version(handler, request)
    text = await formatted(handler, request, version)
    return answer(described(version) | schema_fields(version, text))


async def schema_of_version(handler: Handler, request: DoorRequest) -> Response:
    """Return the text of one version."""
    text = await formatted(handler, request, await _version(handler, request))
    return answer_of_body(text.encode(), CONTENT_TYPE)


async def referenced_by(handler: Handler, request: DoorRequest) -> Response:
    """List the ids of schemas that use a version."""
    registry, version = registry_of(handler), await _version(handler, request)

    def ids(state: RegistryState) -> list[int]:
        users = state.referrers(version.subject, version.version)
        return sorted({user.schema_id for user in users})

    return answer(page(request, await handler.run(lambda: registry.read(ids))))


async def delete_subject(handler: Handler, request: DoorRequest) -> Response:
    """Delete a subject."""
    registry, subject = registry_of(handler), request.path_values["subject"]
    permanent = flag(request, "permanent")
    return answer(await handler.run(lambda: registry.delete_subject(subject, permanent=permanent)))


async def delete_version(handler: Handler, request: DoorRequest) -> Response:
    """Delete a version."""
    registry, subject = registry_of(handler), request.path_values["subject"]
    number, permanent = version_of(request.path_values["version"]), flag(request, "permanent")
    return answer(
        await handler.run(lambda: registry.delete_version(subject, number, permanent=permanent))
    )


async def formatted(handler: Handler, request: DoorRequest, version: SchemaVersion) -> str:
    """Return the text of a version as the client wants it."""
    wanted = request.first("format") or DEFAULT_FORMAT
    if wanted not in (DEFAULT_FORMAT, SERIALIZED):
        raise Malformed(f"format is {wanted[:40]!r}; write serialized, or leave it out")
    if wanted == DEFAULT_FORMAT or version.content.schema_type is not SchemaType.PROTOBUF:
        return version.content.text
    registry = registry_of(handler)
    return await handler.run(lambda: registry.serialized(version))


async def _version(handler: Handler, request: DoorRequest) -> SchemaVersion:
    registry, subject = registry_of(handler), request.path_values["subject"]
    number, deleted = version_of(request.path_values["version"]), flag(request, "deleted")

    def find(state: RegistryState) -> SchemaVersion:
        found = state.versions(subject, deleted=deleted)
        if not found:
            raise subject_not_found(subject)
        if number is None:
            return found[-1]
        for version in found:
            if version.version == number:
                return version
        raise version_not_found(number)

    return await handler.run(lambda: registry.read(find))
