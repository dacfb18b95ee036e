"""Schemas by id, and all of them."""

from __future__ import annotations

from frazil.httpd import Response
from frazil.registry import (
    RegistryError,
    RegistryErrorCode,
    RegistryState,
    SchemaType,
    SchemaVersion,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.registry.answers import CONTENT_TYPE, answer, described, schema_fields
from frazil.serve.doors.registry.params import (
    flag,
    id_of,
    page,
    prefix_of,
    registry_of,
)
from frazil.serve.doors.registry.subjects import formatted
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of_body
from frazil.version import __version__


async def types(_: Handler, __: DoorRequest) -> Response:
    """List the types of schemas."""
    return answer(list(SchemaType))


async def schema(handler: Handler, request: DoorRequest) -> Response:
    """Return the schema with an id."""
    registry = registry_of(handler)
    found = (await _users(handler, request))[0]
    fields = schema_fields(found, await formatted(handler, request, found))
    if flag(request, "fetchMaxId"):
        fields["maxId"] = await handler.run(lambda: registry.read(lambda state: state.id_max))
    return answer(fields)


async def text(handler: Handler, request: DoorRequest) -> Response:
    """Return the text of the schema with an id."""
    found = (await _users(handler, request))[0]
    content = await formatted(handler, request, found)
    return answer_of_body(content.encode(), CONTENT_TYPE)


async def subjects_of_id(handler: Handler, request: DoorRequest) -> Response:
    """List the subjects that have an id."""
    found = await _users(handler, request, hides_deleted=not flag(request, "deleted"))
    return answer(page(request, list(dict.fromkeys(version.subject for version in found))))


async def versions_of_id(handler: Handler, request: DoorRequest) -> Response:
    """List the versions that have an id."""
    found = await _users(handler, request, hides_deleted=not flag(request, "deleted"))
    pairs = [{"subject": each.subject, "version": each.version} for each in found]
    return answer(page(request, pairs))


async def schemas(handler: Handler, request: DoorRequest) -> Response:
    """List all versions of all subjects."""
    registry, prefix = registry_of(handler), prefix_of(request)
    deleted, latest_only = flag(request, "deleted"), flag(request, "latestOnly")

    def every(state: RegistryState) -> list[SchemaVersion]:
        names = [name for name in state.subjects(deleted=deleted) if name.startswith(prefix)]
        lists = (state.versions(name, deleted=deleted) for name in names)
        return [each for found in lists for each in (found[-1:] if latest_only else found)]

    found = page(request, await handler.run(lambda: registry.read(every)))
    return await handler.run(lambda: answer([described(version) for version in found]))


async def contexts(_: Handler, __: DoorRequest) -> Response:
    """There is the default context only."""
    return answer(["."])


async def root(_: Handler, __: DoorRequest) -> Response:
    """Clients look whether this is here."""
    return answer({})


async def cluster(_: Handler, __: DoorRequest) -> Response:
    """Tell whose registry this is."""
    return answer({"scope": {"path": [], "clusters": {"schema-registry-cluster": "frazil"}}})


async def version(_: Handler, __: DoorRequest) -> Response:
    """Tell the version."""
    return answer({"version": __version__, "commitId": f"frazil-{__version__}"})


async def _users(
    handler: Handler, request: DoorRequest, *, hides_deleted: bool = False
) -> list[SchemaVersion]:
    """Return the versions with an id, those that are not deleted first; at least one."""
    registry, schema_id = registry_of(handler), id_of(request.path_values["id"])
    subject = request.first("subject")

    def find(state: RegistryState) -> list[SchemaVersion]:
        every = state.of_id(schema_id)
        if not every:
            raise RegistryError(RegistryErrorCode.SCHEMA_NOT_FOUND, f"Schema {schema_id} not found")
        if hides_deleted:
            every = [each for each in every if not each.is_deleted]
            return [each for each in every if subject in (None, each.subject)]
        return sorted(every, key=lambda each: (each.subject != subject, each.is_deleted))

    return await handler.run(lambda: registry.read(find))
