"""AvroType: a parsed type. Named types refer to each other, perhaps in circles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})


@dataclass(slots=True, eq=False, kw_only=True)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    order: str | None = None
    has_default: bool = False
    default: Any = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class AvroType:
    """A type. Which attributes count depends on its kind."""

    kind: str
    name: str = ""
    """With its namespace."""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    """With their namespaces."""
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    enum_default: str | None = None
    size: int = 0
    item: AvroType | None = None
    """Of an array or a map."""
    branches: tuple[AvroType, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that Avro does not define, and logical types."""

    @property
    def simple_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def namespace(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def is_record(self) -> bool:
        return self.kind in ("record", "error")

    @property
    def inner(self) -> AvroType:
        """The type of the items of an array, or of the values of a map."""
        assert self.item is not None
        return self.item

    @property
    def label(self) -> str:
        """How messages name it."""
        return self.name or self.kind
