"""RegistryError: an error with a number that clients of schema registries know."""

from __future__ import annotations

from enum import IntEnum

from frazil.errors import Rejected


class RegistryErrorCode(IntEnum):
    """Numbers of Confluent's API. The first three digits are the HTTP status."""

    INCOMPATIBLE = 409
    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    NO_LEVEL_OF_SUBJECT = 40408
    NO_MODE_OF_SUBJECT = 40409
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_LEVEL = 42203
    INVALID_MODE = 42204
    NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206
    INVALID_SUBJECT = 42208


class RegistryError(Rejected):
    """A request that cannot succeed as things are."""

    def __init__(self, code: RegistryErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[RegistryError], tuple[RegistryErrorCode, str]]:
        return RegistryError, (self.code, str(self))


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(RegistryErrorCode.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(RegistryErrorCode.VERSION_NOT_FOUND, f"Version {version} not found.")


def invalid_schema(reason: str) -> RegistryError:
    return RegistryError(RegistryErrorCode.INVALID_SCHEMA, f"Invalid schema: {reason}")


def not_permitted(reason: str) -> RegistryError:
    return RegistryError(RegistryErrorCode.NOT_PERMITTED, reason)
