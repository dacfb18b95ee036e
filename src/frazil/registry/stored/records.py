"""Keys and values of `_schemas`, in Confluent's format, so that its tools can read them.

key                                                            value
{"keytype":"SCHEMA","subject":S,"version":V,"magic":1}         the schema; none: removed
{"keytype":"DELETE_SUBJECT","subject":S,"magic":0}             versions up to V are deleted
{"keytype":"CLEAR_SUBJECT","subject":S,"magic":0}              deleted versions are removed
{"keytype":"CONFIG","subject":S or null,"magic":0}             the level; none: removed
{"keytype":"MODE","subject":S or null,"magic":0}               the mode; none: removed
{"keytype":"NOOP","magic":0}                                   nothing
"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.registry.stored.model import (
    ID_MAX,
    VERSION_MAX,
    CompatibilityLevel,
    RegistryMode,
    SchemaContent,
    SchemaReference,
    SchemaType,
    SchemaVersion,
)

KeyValue = tuple[bytes, bytes | None]
"""A record; None as value removes the key."""

SCHEMA, DELETE_SUBJECT, CLEAR_SUBJECT = "SCHEMA", "DELETE_SUBJECT", "CLEAR_SUBJECT"
CONFIG, MODE, NOOP = "CONFIG", "MODE", "NOOP"


class RecordKey(msgspec.Struct, frozen=True, kw_only=True):
    """Any key."""

    keytype: str
    subject: str | None = None
    version: int = 0
    magic: int = 0


class SchemaValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: str
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[SchemaReference, ...] | None = None
    deleted: bool = False


class DeleteValue(msgspec.Struct, frozen=True, kw_only=True):
    """The last version that is deleted."""

    subject: str
    version: int


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A level. Confluent's records may have more; those fields are skipped."""

    compatibility_level: CompatibilityLevel | None = None


class ModeValue(msgspec.Struct, frozen=True, kw_only=True):
    """A mode."""

    mode: RegistryMode


Change = SchemaVersion | DeleteValue | ConfigValue | ModeValue | None


def decode(key: bytes, value: bytes | None) -> tuple[RecordKey, Change]:
    """Parse a record. ValueError or `msgspec.DecodeError` if it is none of the above."""
    parsed = msgspec.json.decode(key, type=RecordKey)
    if parsed.keytype == SCHEMA:
        if parsed.subject is None or not 1 <= parsed.version <= VERSION_MAX:
            raise ValueError("a SCHEMA key needs a subject and a version")
        return parsed, None if value is None else _version(parsed, value)
    if parsed.keytype in (DELETE_SUBJECT, CLEAR_SUBJECT):
        if parsed.subject is None:
            raise ValueError(f"a {parsed.keytype} key needs a subject")
        if parsed.keytype == CLEAR_SUBJECT or value is None:
            return parsed, None
        return parsed, msgspec.json.decode(value, type=DeleteValue)
    if parsed.keytype == CONFIG:
        return parsed, None if value is None else msgspec.json.decode(value, type=ConfigValue)
    if parsed.keytype == MODE:
        return parsed, None if value is None else msgspec.json.decode(value, type=ModeValue)
    if parsed.keytype == NOOP:
        return parsed, None
    raise ValueError(f"unknown keytype {parsed.keytype}")


def _version(key: RecordKey, value: bytes) -> SchemaVersion:
    stored = msgspec.json.decode(value, type=SchemaValue)
    if not 0 <= stored.id <= ID_MAX:
        raise ValueError(f"the id {stored.id} does not fit into 32 bits")
    content = SchemaContent(
        text=stored.schema, schema_type=stored.schema_type, references=stored.references or ()
    )
    assert key.subject is not None
    return SchemaVersion(
        subject=key.subject,
        version=key.version,
        schema_id=stored.id,
        content=content,
        is_deleted=stored.deleted,
        digest=content.digest(),
    )


def schema_record(version: SchemaVersion) -> KeyValue:
    """Store a version."""
    value: dict[str, Any] = {
        "subject": version.subject,
        "version": version.version,
        "id": version.schema_id,
    }
    content = version.content
    if content.schema_type is not SchemaType.AVRO:
        value["schemaType"] = content.schema_type
    if content.references:
        value["references"] = content.references
    value |= {"schema": content.text, "deleted": version.is_deleted}
    return _schema_key(version.subject, version.version), msgspec.json.encode(value)


def removed_record(version: SchemaVersion) -> KeyValue:
    """Remove a version for good."""
    return _schema_key(version.subject, version.version), None


def _schema_key(subject: str, version: int) -> bytes:
    key = {"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1}
    return msgspec.json.encode(key)


def deleted_subject_record(subject: str, version: int) -> KeyValue:
    """Mark the versions of a subject as deleted, up to this one."""
    return _key(DELETE_SUBJECT, subject), msgspec.json.encode(
        {"subject": subject, "version": version}
    )


def level_record(subject: str | None, level: CompatibilityLevel | None) -> KeyValue:
    """Set or remove the level of a subject, or of all."""
    value = None if level is None else msgspec.json.encode({"compatibilityLevel": level})
    return _key(CONFIG, subject), value


def mode_record(subject: str | None, mode: RegistryMode | None) -> KeyValue:
    """Set or remove the mode of a subject, or of all."""
    return _key(MODE, subject), None if mode is None else msgspec.json.encode({"mode": mode})


def _key(keytype: str, subject: str | None) -> bytes:
    return msgspec.json.encode({"keytype": keytype, "subject": subject, "magic": 0})
