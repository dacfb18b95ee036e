"""What a registry stores. Names and values are those of Confluent's API."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

ID_MAX = VERSION_MAX = 2**31 - 1
"""Both are signed 32-bit integers on the wire."""


class SchemaType(StrEnum):
    """The language of a schema."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class CompatibilityLevel(StrEnum):
    """What a new version must be able to read, or be read by."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all versions count, not only the last."""
        return self.endswith("_TRANSITIVE")

    @property
    def reads_earlier(self) -> bool:
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_earlier(self) -> bool:
        return self.startswith(("FORWARD", "FULL"))


class RegistryMode(StrEnum):
    """What may be changed."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


DEFAULT_LEVEL = CompatibilityLevel.BACKWARD
DEFAULT_MODE = RegistryMode.READWRITE


class SchemaReference(msgspec.Struct, frozen=True, kw_only=True):
    """Another schema that one uses, by the name that it uses."""

    name: str
    subject: str
    version: int


class SchemaContent(msgspec.Struct, frozen=True, kw_only=True):
    """A schema as registered. Equal contents have one id."""

    text: str
    schema_type: SchemaType = SchemaType.AVRO
    references: tuple[SchemaReference, ...] = ()

    def digest(self) -> bytes:
        """Return a key for equal contents."""
        return hashlib.blake2b(msgspec.msgpack.encode(self), digest_size=16).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaVersion:
    """A schema as a version of a subject."""

    subject: str
    version: int
    schema_id: int
    content: SchemaContent
    is_deleted: bool = False
    digest: bytes = field(default=b"", compare=False, repr=False)
