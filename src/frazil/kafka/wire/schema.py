"""What a message class says of its own layout: one `Field` per field, one `Versions` per message.

The classes in `messages/` are written like this:

    class HeartbeatRequest(KafkaMessage):
        VERSIONS = Versions("HeartbeatRequest", "0-4", flexible="4+", api_key=12)

        group_id: Annotated[str, Field("string", "0+")] = ""
        group_instance_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = None

A class has the fields of all versions. `layout` says which of them one version has, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, get_args, get_type_hints

import msgspec

Bytes = bytes | bytearray | memoryview
"""Anything whose bytes are sent as they are."""

UUID_ZERO = bytes(16)
"""The topic id that means none."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of versions, `first` and `last` included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Read `3`, `3-5`, `3+`, or an empty text for no version at all."""
        if not text:
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), 0x7FFF)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


class Field:
    """How a field is written, and in which versions."""

    __slots__ = ("ignorable", "kind", "nullable", "tag", "tagged", "versions")

    def __init__(
        self,
        kind: str,
        versions: str,
        *,
        nullable: str = "",
        tagged: str = "",
        tag: int = -1,
        ignorable: bool = False,
    ) -> None:
        self.kind = kind
        """Kafka's type: `int32`, `string`, `[]int32`, `FetchTopic`, `[]FetchTopic`."""
        self.versions = VersionRange.parse(versions)
        self.nullable = VersionRange.parse(nullable)
        self.tagged = VersionRange.parse(tagged)
        """Versions in which the field is tagged: sent only if it differs from its default."""
        self.tag = tag
        self.ignorable = ignorable
        """In a version without this field, its value is left out. If false, a value other than
        the default is an error."""


class Versions:
    """Name, versions and key of a message."""

    __slots__ = ("api_key", "flexible", "name", "valid")

    def __init__(self, name: str, valid: str, *, flexible: str = "", api_key: int = -1) -> None:
        self.name = name
        self.valid = VersionRange.parse(valid)
        self.flexible = VersionRange.parse(flexible)
        """Versions with compact lengths and tagged fields."""
        self.api_key = api_key
        """Key of a request and its response; type of a record's key and value."""


class Struct(msgspec.Struct, gc=False):
    """Part of a message. Never part of a cycle, so the garbage collector need not look at it."""


class KafkaMessage(Struct):
    """A request, a response, or a record of an internal topic."""

    VERSIONS: ClassVar[Versions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One field of a class: its name, how it is written, and its default."""

    name: str
    field: Field
    default: Any
    """None, a number, a text, bytes; an empty list for arrays; `Struct` for a struct that is
    always there."""

    @property
    def is_array(self) -> bool:
        return self.field.kind.startswith("[]")

    @property
    def element(self) -> str:
        """The kind of the elements of an array."""
        return self.field.kind.removeprefix("[]")


@cache
def columns(kind: type[Struct]) -> tuple[Column, ...]:
    """Return the fields of a class in all versions, in the order of the class."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for each in msgspec.structs.fields(kind):
        field = next(part for part in get_args(hints[each.name]) if isinstance(part, Field))
        default = each.default
        if default is msgspec.NODEFAULT:
            default = [] if field.kind.startswith("[]") else Struct
        found.append(Column(name=each.name, field=field, default=default))
    return tuple(found)
