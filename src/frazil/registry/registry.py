"""Registry: registers schemas, and answers what is registered.

Every call first folds what is new in `_schemas`. A change is decided over the fold, and appended
only if nothing was written meanwhile; otherwise it is decided again. So several registries over one
log, such as two nodes, never give one id to two schemas, nor two ids to one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from frazil.disk import Disk, DurableCounter, make_directories
from frazil.errors import Conflict, Malformed, Overloaded
from frazil.model import Clock
from frazil.registry.compatibility import incompatibilities
from frazil.registry.formats.parsed import ParsedSchema
from frazil.registry.references import SchemaTexts, pinned
from frazil.registry.stored.errors import (
    RegistryError,
    RegistryErrorCode,
    not_permitted,
    subject_not_found,
    version_not_found,
)
from frazil.registry.stored.model import (
    ID_MAX,
    VERSION_MAX,
    CompatibilityLevel,
    RegistryMode,
    SchemaContent,
    SchemaVersion,
)
from frazil.registry.stored.records import (
    KeyValue,
    deleted_subject_record,
    level_record,
    mode_record,
    removed_record,
    schema_record,
)
from frazil.registry.stored.state import RegistryState
from frazil.registry.stored.topic import RegistryLog, SchemasTopic

FOLDER = "registry"
IDS_PATH = f"{FOLDER}/ids.ckpt"
ATTEMPTS_MAX = 100
"""A change is decided again if someone else was first."""
RETRY_AFTER_MS = 100
TEXT_CHARS_MAX = 1024 * 1024
"""Of a schema: it must fit into a batch of the log, and be parsed in a moment."""
SUBJECT_CHARS_MAX = 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What is registered: a content, perhaps with the id and version that an import gives it."""

    content: SchemaContent
    normalizes: bool = False
    schema_id: int | None = None
    version: int | None = None


class Registry:
    """Any thread may use it. Close it before the log."""

    def __init__(self, topic: SchemasTopic, ids: DurableCounter) -> None:
        self._topic = topic
        self._ids = ids
        self._texts = SchemaTexts()
        self._turn = threading.Lock()

    @classmethod
    def open(cls, disk: Disk, log: RegistryLog, *, clock: Clock) -> Registry:
        """Read all of `_schemas`. One per data folder: it owns the counter of ids."""
        make_directories(disk, FOLDER)
        topic = SchemasTopic(log, clock)
        floor = topic.follow().id_max + 1
        # One at a time: ids are few, and people read them.
        ids = DurableCounter.open(disk, IDS_PATH, floor=floor, reserve_count=1)
        return cls(topic, ids)

    def read(self, ask: Callable[[RegistryState], T]) -> T:
        """Answer a question over what is durable now."""
        with self._turn:
            return ask(self._topic.follow())

    def register(self, subject: str, registration: Registration) -> SchemaVersion:
        """Register a schema, or return the version that it already is. It is durable then."""
        check_subject(subject)

        def decide(state: RegistryState) -> tuple[list[KeyValue], SchemaVersion]:
            is_import = registration.schema_id is not None
            _check_mode(state, subject, is_import=is_import)
            content, parsed = self._parsed(state, registration)
            known = _find(state.versions(subject), content)
            if known is not None and registration.schema_id in (None, known.schema_id):
                return [], known
            if not is_import:
                self._check_compatible(state, subject, content, parsed)
            number = registration.version or state.last_number(subject) + 1
            schema_id = registration.schema_id
            if schema_id is None:
                schema_id = state.id_of(content) or self._next_id(state)
            version = SchemaVersion(
                subject=subject, version=number, schema_id=schema_id, content=content
            )
            _check_import(state, version)
            return [schema_record(version)], version

        return self._change(decide)

    def _parsed(
        self, state: RegistryState, registration: Registration
    ) -> tuple[SchemaContent, ParsedSchema]:
        """Return a content with the text that is stored."""
        content = registration.content
        if len(content.text) > TEXT_CHARS_MAX:
            raise RegistryError(
                RegistryErrorCode.INVALID_SCHEMA,
                f"Invalid schema: it has {len(content.text)} characters, above {TEXT_CHARS_MAX}",
            )
        references = tuple(pinned(state, content.references))
        given = SchemaContent(
            text=content.text, schema_type=content.schema_type, references=references
        )
        parsed = self._texts.parse(state, given, is_new=True)
        text = parsed.normalized if registration.normalizes else parsed.text
        if registration.normalizes:
            references = tuple(sorted(references, key=lambda each: each.name))
        stored = SchemaContent(text=text, schema_type=content.schema_type, references=references)
        return stored, parsed

    def _check_compatible(
        self, state: RegistryState, subject: str, content: SchemaContent, parsed: ParsedSchema
    ) -> None:
        level = state.effective_level(subject)
        versions = state.versions(subject)
        reasons = incompatibilities(state, self._texts, parsed, content, versions, level)
        if reasons:
            raise RegistryError(
                RegistryErrorCode.INCOMPATIBLE,
                "Schema being registered is incompatible with an earlier schema for subject "
                f'"{subject}", details: {reasons}, compatibility: {level}',
            )

    def _next_id(self, state: RegistryState) -> int:
        """Return an id that no schema ever had: above all of the log, and never returned before,
        also if the log has forgotten the schema that it was for."""
        while True:
            number = self._ids.next()
            if number > ID_MAX:
                raise not_permitted(f"all ids up to {ID_MAX} are used")
            if number > state.id_max:
                return number

    def look_up(
        self, subject: str, registration: Registration, *, deleted: bool = False
    ) -> SchemaVersion:
        """Return the version of a subject that has a content."""
        with self._turn:
            state = self._topic.follow()
            versions = state.versions(subject, deleted=deleted)
            if not versions:
                raise subject_not_found(subject)
            content, _ = self._parsed(state, registration)
            found = _find(versions, content)
            if found is None:
                raise RegistryError(RegistryErrorCode.SCHEMA_NOT_FOUND, "Schema not found")
            return found

    def compatibility(
        self, subject: str, registration: Registration, number: int | None, *, latest: bool = False
    ) -> list[str]:
        """Return why a schema is incompatible with a version, the `latest`, or, without both, with
        all that the level of the subject names."""
        with self._turn:
            state = self._topic.follow()
            versions = state.versions(subject)
            if latest:
                versions = versions[-1:]
            elif number is not None:
                if not versions:
                    raise subject_not_found(subject)
                versions = [each for each in versions if each.version == number]
                if not versions:
                    raise version_not_found(number)
            content, parsed = self._parsed(state, registration)
            level = state.effective_level(subject)
            return incompatibilities(state, self._texts, parsed, content, versions, level)

    def serialized(self, version: SchemaVersion) -> str:
        """Return the text of a version in the form that clients of its language serialize."""
        with self._turn:
            state = self._topic.follow()
            return self._texts.parse(state, version.content, is_new=False).serialized()

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete the versions of a subject; those deleted before for good if `permanent`. Returns
        their numbers."""

        def decide(state: RegistryState) -> tuple[list[KeyValue], list[int]]:
            _check_writable(state, subject)
            everything = state.versions(subject, deleted=True)
            alive = [version for version in everything if not version.is_deleted]
            if not everything:
                raise subject_not_found(subject)
            if permanent and alive:
                raise RegistryError(
                    RegistryErrorCode.SUBJECT_NOT_SOFT_DELETED,
                    f"Subject '{subject}' was not deleted first before being permanently deleted",
                )
            if not permanent and not alive:
                raise RegistryError(
                    RegistryErrorCode.SUBJECT_SOFT_DELETED,
                    f"Subject '{subject}' was soft deleted. Set permanent=true to delete "
                    "permanently",
                )
            chosen = everything if permanent else alive
            for version in chosen:
                _check_unused(state, version)
            if permanent:
                records = [removed_record(version) for version in chosen]
            else:
                records = [deleted_subject_record(subject, chosen[-1].version)]
                if state.level(subject) is not None:
                    records.append(level_record(subject, None))
                if state.mode(subject) is not None:
                    records.append(mode_record(subject, None))
            return records, [version.version for version in chosen]

        return self._change(decide)

    def delete_version(self, subject: str, number: int | None, *, permanent: bool) -> int:
        """Delete a version, None for the latest; for good if it was deleted before and this is
        `permanent`. Returns its number."""

        def decide(state: RegistryState) -> tuple[list[KeyValue], int]:
            _check_writable(state, subject)
            everything = state.versions(subject, deleted=True)
            if not everything:
                raise subject_not_found(subject)
            version = _numbered(everything, number)
            name = f"Subject '{subject}' Version {version.version}"
            if permanent and not version.is_deleted:
                raise RegistryError(
                    RegistryErrorCode.VERSION_NOT_SOFT_DELETED,
                    f"{name} was not deleted first before being permanently deleted",
                )
            if not permanent and version.is_deleted:
                raise RegistryError(
                    RegistryErrorCode.VERSION_SOFT_DELETED,
                    f"{name} was soft deleted. Set permanent=true to delete permanently",
                )
            _check_unused(state, version)
            if permanent:
                return [removed_record(version)], version.version
            deleted = SchemaVersion(
                subject=subject,
                version=version.version,
                schema_id=version.schema_id,
                content=version.content,
                is_deleted=True,
            )
            return [schema_record(deleted)], version.version

        return self._change(decide)

    def set_level(self, subject: str | None, level: CompatibilityLevel | None) -> None:
        """Set the level of a subject, or of all; None removes it."""
        if subject is not None:
            check_subject(subject)

        def decide(state: RegistryState) -> tuple[list[KeyValue], None]:
            _check_writable(state, subject)
            if level is None and state.level(subject) is None:
                if subject is None:
                    return [], None
                raise no_level(subject)
            return [level_record(subject, level)], None

        self._change(decide)

    def set_mode(self, subject: str | None, mode: RegistryMode | None, *, force: bool) -> None:
        """Set the mode of a subject, or of all; None removes it. IMPORT needs that there are no
        schemas, or `force`."""
        if subject is not None:
            check_subject(subject)

        def decide(state: RegistryState) -> tuple[list[KeyValue], None]:
            if mode is None and state.mode(subject) is None:
                if subject is None:
                    return [], None
                raise no_mode(subject)
            if (
                mode is RegistryMode.IMPORT
                and state.effective_mode(subject) is not RegistryMode.IMPORT
                and not force
            ):
                used = state.subjects() if subject is None else state.versions(subject)
                if used:
                    raise not_permitted("Cannot import since found existing subjects")
            return [mode_record(subject, mode)], None

        self._change(decide)

    def _change(self, decide: Callable[[RegistryState], tuple[Sequence[KeyValue], T]]) -> T:
        """Decide and append, again if someone else was first. `Overloaded` if that never ends."""
        with self._turn:
            for _ in range(ATTEMPTS_MAX):
                records, result = decide(self._topic.follow())
                if not records:
                    return result
                try:
                    self._topic.append(records)
                except Conflict:
                    continue
                return result
        raise Overloaded(
            "others change the registry all the time; retry", retry_after_ms=RETRY_AFTER_MS
        )

    def close(self) -> None:
        with self._turn:
            self._ids.close()
            self._topic.close()


def check_subject(subject: str) -> None:
    """Raise unless a subject may be written to."""
    if not 0 < len(subject) <= SUBJECT_CHARS_MAX or not subject.isprintable():
        reason = f"use 1 to {SUBJECT_CHARS_MAX} printable characters"
    elif subject.startswith(":.") or subject in ("__GLOBAL", "__EMPTY"):
        reason = "contexts of schemas are not built, and these names mean something to them"
    else:
        return
    raise RegistryError(
        RegistryErrorCode.INVALID_SUBJECT,
        f"The specified subject '{subject[:80]}' is not valid: {reason}",
    )


def no_level(subject: str) -> RegistryError:
    return RegistryError(
        RegistryErrorCode.NO_LEVEL_OF_SUBJECT,
        f"Subject '{subject}' does not have subject-level compatibility configured",
    )


def no_mode(subject: str) -> RegistryError:
    return RegistryError(
        RegistryErrorCode.NO_MODE_OF_SUBJECT,
        f"Subject '{subject}' does not have subject-level mode configured",
    )


def _numbered(versions: Sequence[SchemaVersion], number: int | None) -> SchemaVersion:
    if number is None:
        alive = [version for version in versions if not version.is_deleted]
        return (alive or versions)[-1]
    for version in versions:
        if version.version == number:
            return version
    raise version_not_found(number)


def _find(versions: Sequence[SchemaVersion], content: SchemaContent) -> SchemaVersion | None:
    return next((each for each in reversed(versions) if each.content == content), None)


def _check_mode(state: RegistryState, subject: str, *, is_import: bool) -> None:
    mode = state.effective_mode(subject)
    wanted = RegistryMode.IMPORT if is_import else RegistryMode.READWRITE
    if mode is not wanted:
        name = "import" if is_import else "read-write"
        raise not_permitted(f"Subject {subject} is not in {name} mode")


def _check_writable(state: RegistryState, subject: str | None) -> None:
    mode = state.effective_mode(subject)
    if mode in (RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE):
        raise not_permitted(f"Subject {subject} is in read-only mode")


def _check_import(state: RegistryState, version: SchemaVersion) -> None:
    """An id is one content, a version is written once."""
    if not 0 < version.schema_id <= ID_MAX or not 0 < version.version <= VERSION_MAX:
        raise Malformed(f"ids and versions are 1 to {ID_MAX}")
    for other in state.of_id(version.schema_id):
        if other.content != version.content:
            raise not_permitted(
                f"Overwrite new schema with id {version.schema_id} is not permitted."
            )
    there = state.version(version.subject, version.version)
    if there is not None and there.content != version.content:
        raise not_permitted(
            f"Version {version.version} of subject {version.subject} is another schema"
        )


def _check_unused(state: RegistryState, version: SchemaVersion) -> None:
    user = next(state.referrers(version.subject, version.version), None)
    if user is not None:
        raise RegistryError(
            RegistryErrorCode.REFERENCE_EXISTS,
            f"One or more references exist to the schema {version.subject} version "
            f"{version.version}: {user.subject} version {user.version} uses it",
        )
