"""One version of a message: which fields it has, what each is, and how few bytes it can be."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.kafka.wire.schema import Column, KafkaMessage, Struct, columns

FIXED = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
"""Kinds of a fixed size: format for `struct`, and bytes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One version of one message."""

    message: type[KafkaMessage]
    version: int

    @property
    def is_flexible(self) -> bool:
        """Are lengths compact, and may there be tagged fields?"""
        return self.version in self.message.VERSIONS.flexible

    @property
    def name(self) -> str:
        return self.message.VERSIONS.name

    def kind_of(self, name: str) -> type[Struct]:
        """Return the class of a struct, which is inside the class of its message."""
        kind: type[Struct] = getattr(self.message, name)
        return kind

    def plain(self, kind: type[Struct]) -> list[Column]:
        """Return the fields that are always there."""
        version = self.version
        return [
            column
            for column in columns(kind)
            if version in column.field.versions and version not in column.field.tagged
        ]

    def tagged(self, kind: type[Struct]) -> list[Column]:
        """Return the tagged fields, by tag."""
        found = [
            column
            for column in columns(kind)
            if self.version in column.field.versions and self.version in column.field.tagged
        ]
        return sorted(found, key=lambda column: column.field.tag)

    def absent(self, kind: type[Struct]) -> list[Column]:
        """Return the fields that this version does not have."""
        return [column for column in columns(kind) if self.version not in column.field.versions]

    def is_nullable(self, column: Column) -> bool:
        return self.version in column.field.nullable

    def is_struct(self, kind: str) -> bool:
        return kind[0].isupper()

    def null_struct(self, column: Column) -> int:
        """Return the byte that stands for no struct. In a tagged field it is a length."""
        return 0 if self.version in column.field.tagged else -1

    def size_min(self, kind: type[Struct]) -> int:
        """Return the least number of bytes that a struct takes. No struct takes none, so a count
        of structs can be compared with the bytes that are left."""
        sizes = [self._column_size_min(column) for column in self.plain(kind)]
        size = sum(sizes) + (1 if self.is_flexible else 0)
        assert size, f"{kind.__qualname__} is empty in version {self.version}"
        return size

    def element_size_min(self, column: Column) -> int:
        """Return the least number of bytes that an element of an array takes."""
        return self._size_min(column.element, is_nullable=False)

    def _column_size_min(self, column: Column) -> int:
        if column.is_array:
            return 1 if self.is_flexible else 4
        return self._size_min(column.field.kind, is_nullable=self.is_nullable(column))

    def _size_min(self, kind: str, *, is_nullable: bool) -> int:
        if kind in FIXED:
            return FIXED[kind][1]
        if kind == "string":
            return 1 if self.is_flexible else 2
        if kind in ("bytes", "records"):
            return 1 if self.is_flexible else 4
        return 1 if is_nullable else self.size_min(self.kind_of(kind))
