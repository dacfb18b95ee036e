"""Compatibility levels and modes; is a schema compatible?"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.httpd import Response
from frazil.registry import (
    CompatibilityLevel,
    RegistryError,
    RegistryErrorCode,
    RegistryMode,
    no_level,
    no_mode,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.registry.answers import answer
from frazil.serve.doors.registry.params import (
    body_of,
    flag,
    registration_of,
    registry_of,
    version_of,
)
from frazil.serve.http.handler import Handler

OTHER_SETTINGS = frozenset(
    {
        *("alias", "compatibilityGroup", "compatibilityPolicy", "defaultMetadata"),
        *("defaultRuleSet", "normalize", "overrideMetadata", "overrideRuleSet"),
        *("validateFields", "validateNames"),
    }
)
"""Of Confluent's registry. Taking them without effect would be worse than refusing them."""


class ModeBody(msgspec.Struct, frozen=True, kw_only=True):
    """A mode to set."""

    mode: str


async def level(handler: Handler, request: DoorRequest) -> Response:
    """Return the level of a subject, or of all."""
    registry, subject = registry_of(handler), request.path_values.get("subject")
    falls_back = subject is None or flag(request, "defaultToGlobal")

    def find() -> CompatibilityLevel:
        found = registry.read(
            lambda state: state.effective_level(subject) if falls_back else state.level(subject)
        )
        if found is None:
            raise no_level(subject or "")
        return found

    return answer({"compatibilityLevel": await handler.run(find)})


async def set_level(handler: Handler, request: DoorRequest) -> Response:
    """Set the level of a subject, or of all."""
    registry, subject = registry_of(handler), request.path_values.get("subject")
    body = body_of(request, dict[str, Any])
    others = sorted(name for name in OTHER_SETTINGS if body.get(name))
    wanted = body.get("compatibility")
    try:
        if others:
            raise ValueError(f"{', '.join(others)} cannot be set here; set compatibility only")
        chosen = CompatibilityLevel(str(wanted).upper())
    except ValueError as error:
        reason = str(error) if others else f"choose one of {', '.join(CompatibilityLevel)}"
        raise RegistryError(
            RegistryErrorCode.INVALID_LEVEL,
            f"Invalid compatibility level {str(wanted)[:40]}: {reason}",
        ) from None
    await handler.run(lambda: registry.set_level(subject, chosen))
    return answer({"compatibility": chosen})


async def delete_level(handler: Handler, request: DoorRequest) -> Response:
    """Remove the level of a subject, or of all. Returns what it was."""
    registry, subject = registry_of(handler), request.path_values.get("subject")

    def delete() -> CompatibilityLevel:
        before = registry.read(lambda state: state.effective_level(subject))
        registry.set_level(subject, None)
        return before

    return answer({"compatibilityLevel": await handler.run(delete)})


async def mode(handler: Handler, request: DoorRequest) -> Response:
    """Return the mode of a subject, or of all."""
    registry, subject = registry_of(handler), request.path_values.get("subject")
    falls_back = subject is None or flag(request, "defaultToGlobal")

    def find() -> RegistryMode:
        found = registry.read(
            lambda state: state.effective_mode(subject) if falls_back else state.mode(subject)
        )
        if found is None:
            raise no_mode(subject or "")
        return found

    return answer({"mode": await handler.run(find)})


async def set_mode(handler: Handler, request: DoorRequest) -> Response:
    """Set the mode of a subject, or of all."""
    registry, subject = registry_of(handler), request.path_values.get("subject")
    wanted, force = body_of(request, ModeBody).mode, flag(request, "force")
    try:
        chosen = RegistryMode(wanted.upper())
    except ValueError:
        raise RegistryError(
            RegistryErrorCode.INVALID_MODE,
            f"Invalid mode {wanted[:40]}: choose one of {', '.join(RegistryMode)}",
        ) from None
    await handler.run(lambda: registry.set_mode(subject, chosen, force=force))
    return answer({"mode": chosen})


async def delete_mode(handler: Handler, request: DoorRequest) -> Response:
    """Remove the mode of a subject, or of all. Returns what it was."""
    registry, subject = registry_of(handler), request.path_values.get("subject")

    def delete() -> RegistryMode:
        before = registry.read(lambda state: state.effective_mode(subject))
        registry.set_mode(subject, None, force=True)
        return before

    return answer({"mode": await handler.run(delete)})


async def compatible(handler: Handler, request: DoorRequest) -> Response:
    """Tell whether a schema is compatible with a version, or with all that the level names."""
    registry, subject = registry_of(handler), request.path_values["subject"]
    registration, verbose = registration_of(request), flag(request, "verbose")
    text = request.path_values.get("version")
    number = None if text is None else version_of(text)
    is_latest = text is not None and number is None
    reasons = await handler.run(
        lambda: registry.compatibility(subject, registration, number, latest=is_latest)
    )
    answered: dict[str, Any] = {"is_compatible": not reasons}
    if verbose:
        answered["messages"] = reasons
    return answer(answered)
