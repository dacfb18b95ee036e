"""RegistryState: subjects, ids, levels and modes, as the records of `_schemas` make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from frazil.registry.stored.model import (
    DEFAULT_LEVEL,
    DEFAULT_MODE,
    CompatibilityLevel,
    RegistryMode,
    SchemaContent,
    SchemaReference,
    SchemaVersion,
)
from frazil.registry.stored.records import (
    CLEAR_SUBJECT,
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    SCHEMA,
    ConfigValue,
    DeleteValue,
    ModeValue,
    decode,
)

_T = TypeVar("_T")


class RegistryState:
    """Equal logs make equal states. Owned by whoever folds."""

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, SchemaVersion]] = {}
        self._users: dict[int, set[tuple[str, int]]] = {}
        """Versions with an id."""
        self._ids: dict[bytes, set[int]] = {}
        """Ids of a content, by its digest. More than one only if they were imported."""
        self._levels: dict[str | None, CompatibilityLevel] = {}
        self._modes: dict[str | None, RegistryMode] = {}
        self.id_max = 0
        """The largest id that any record had."""

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Apply a record. ValueError or `msgspec.DecodeError` if it is no record of a registry; it
        changes nothing then."""
        parsed, change = decode(key, value)
        subject = parsed.subject
        if parsed.keytype == SCHEMA:
            assert subject is not None
            assert change is None or isinstance(change, SchemaVersion)
            self._put(subject, parsed.version, change)
        elif parsed.keytype == DELETE_SUBJECT and isinstance(change, DeleteValue):
            for version in self.versions(change.subject, deleted=True):
                if version.version <= change.version and not version.is_deleted:
                    self._put(version.subject, version.version, replace(version, is_deleted=True))
        elif parsed.keytype == CLEAR_SUBJECT and subject is not None:
            for version in self.versions(subject, deleted=True):
                if version.is_deleted:
                    self._put(subject, version.version, None)
        elif parsed.keytype == CONFIG:
            level = change.compatibility_level if isinstance(change, ConfigValue) else None
            _set(self._levels, subject, level)
        elif parsed.keytype == MODE:
            _set(self._modes, subject, change.mode if isinstance(change, ModeValue) else None)

    def _put(self, subject: str, number: int, version: SchemaVersion | None) -> None:
        versions = self._subjects.setdefault(subject, {})
        old = versions.pop(number, None)
        if old is not None:
            self._forget(old)
        if version is not None:
            versions[number] = version
            self._users.setdefault(version.schema_id, set()).add((subject, number))
            self._ids.setdefault(version.digest, set()).add(version.schema_id)
            self.id_max = max(self.id_max, version.schema_id)
        if not versions:
            del self._subjects[subject]

    def _forget(self, old: SchemaVersion) -> None:
        users = self._users[old.schema_id]
        users.discard((old.subject, old.version))
        if not any(self._subjects[s][v].digest == old.digest for s, v in users):
            ids = self._ids[old.digest]
            ids.discard(old.schema_id)
            if not ids:
                del self._ids[old.digest]
        if not users:
            del self._users[old.schema_id]

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Return the subjects in order; with `deleted` also those without another version."""
        return sorted(
            subject
            for subject, versions in self._subjects.items()
            if deleted or any(not version.is_deleted for version in versions.values())
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[SchemaVersion]:
        """Return the versions of a subject, the first first."""
        found = self._subjects.get(subject, {})
        return [found[n] for n in sorted(found) if deleted or not found[n].is_deleted]

    def version(self, subject: str, number: int) -> SchemaVersion | None:
        """Return a version, also if it is deleted."""
        return self._subjects.get(subject, {}).get(number)

    def last_number(self, subject: str) -> int:
        """Return the largest version of a subject, deleted or not; 0 without one."""
        return max(self._subjects.get(subject, {}), default=0)

    def of_id(self, schema_id: int, *, deleted: bool = True) -> list[SchemaVersion]:
        """Return all versions with an id, by subject and version."""
        found = sorted(self._users.get(schema_id, ()))
        versions = [self._subjects[subject][number] for subject, number in found]
        return [version for version in versions if deleted or not version.is_deleted]

    def id_of(self, content: SchemaContent) -> int | None:
        """Return the id of a content, None if it has none."""
        return min(self._ids.get(content.digest(), ()), default=None)

    def referrers(self, subject: str, number: int) -> Iterator[SchemaVersion]:
        """Yield the versions that use one, and are not deleted."""
        for versions in self._subjects.values():
            for version in versions.values():
                if not version.is_deleted and any(
                    _points_at(each, subject, number) for each in version.content.references
                ):
                    yield version

    def level(self, subject: str | None) -> CompatibilityLevel | None:
        """Return the level that is set for a subject, or for all; None if there is none."""
        return self._levels.get(subject)

    def mode(self, subject: str | None) -> RegistryMode | None:
        """Return the mode that is set for a subject, or for all; None if there is none."""
        return self._modes.get(subject)

    def effective_level(self, subject: str | None) -> CompatibilityLevel:
        return self._levels.get(subject) or self._levels.get(None) or DEFAULT_LEVEL

    def effective_mode(self, subject: str | None) -> RegistryMode:
        overall = self._modes.get(None, DEFAULT_MODE)
        if overall is RegistryMode.READONLY_OVERRIDE:
            return overall
        return self._modes.get(subject, overall)


def _points_at(reference: SchemaReference, subject: str, number: int) -> bool:
    return reference.subject == subject and reference.version == number


def _set(values: dict[str | None, _T], subject: str | None, value: _T | None) -> None:
    if value is None:
        values.pop(subject, None)
    else:
        values[subject] = value
