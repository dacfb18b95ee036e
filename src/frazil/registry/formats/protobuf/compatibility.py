"""What a later file can read: the rules of Confluent's registry for Protocol Buffers.

Fields are known by their numbers. They may come and go, and change within a group of types that
are written alike; messages may not go, nor the package change. Fields that could be set together
may not move into one oneof, where the last excludes the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from frazil.registry.formats.protobuf.names import ProtoType, named_types

Field = FieldDescriptorProto
_VARINT, _ZIGZAG, _BYTES, _FIXED_32, _FIXED_64 = "varint", "zigzag", "bytes", "fixed32", "fixed64"
KINDS = {
    **dict.fromkeys(
        (Field.TYPE_INT32, Field.TYPE_UINT32, Field.TYPE_INT64, Field.TYPE_UINT64), _VARINT
    ),
    **dict.fromkeys((Field.TYPE_BOOL, Field.TYPE_ENUM), _VARINT),
    **dict.fromkeys((Field.TYPE_SINT32, Field.TYPE_SINT64), _ZIGZAG),
    **dict.fromkeys((Field.TYPE_STRING, Field.TYPE_BYTES), _BYTES),
    **dict.fromkeys((Field.TYPE_FIXED32, Field.TYPE_SFIXED32), _FIXED_32),
    **dict.fromkeys((Field.TYPE_FIXED64, Field.TYPE_SFIXED64), _FIXED_64),
    Field.TYPE_FLOAT: "float",
    Field.TYPE_DOUBLE: "double",
}
"""Types of one kind are written alike."""


class ProtoTypes(NamedTuple):
    """A file, and the types that it can use, by full name."""

    file: FileDescriptorProto
    types: Mapping[str, ProtoType]


def unreadable_protobuf(earlier: ProtoTypes, later: ProtoTypes) -> list[str]:
    """Return why data of an earlier file cannot be read with a later one."""
    return list(_Comparison(earlier, later).reasons())


class _Comparison:
    def __init__(self, earlier: ProtoTypes, later: ProtoTypes) -> None:
        self._earlier = earlier
        self._later = later
        self._seen: set[tuple[int, int]] = set()
        """Pairs of messages that are compared, or being compared."""

    def reasons(self) -> Iterator[str]:
        before, after = self._earlier.file, self._later.file
        if before.package != after.package:
            yield f"PACKAGE_CHANGED: {before.package or 'none'} became {after.package or 'none'}"
        messages = {
            name: each for name, each in named_types(after) if isinstance(each, DescriptorProto)
        }
        for name, message in named_types(before):
            if not isinstance(message, DescriptorProto) or message.options.map_entry:
                continue
            path = f"#/{name.replace('.', '/')}"
            if name not in messages:
                yield f"MESSAGE_REMOVED at {path}"
            else:
                yield from self._message(message, messages[name], path)

    def _message(self, before: DescriptorProto, after: DescriptorProto, path: str) -> Iterator[str]:
        pair = id(before), id(after)
        if pair in self._seen:
            return
        self._seen.add(pair)
        old = {field.number: field for field in before.field}
        new = {field.number: field for field in after.field}
        for number, field in old.items():
            if number in new:
                yield from self._field(field, new[number], f"{path}/{number}")
            elif field.label == Field.LABEL_REQUIRED:
                yield f"REQUIRED_FIELD_REMOVED at {path}/{number}"
        for number, field in new.items():
            if number not in old and field.label == Field.LABEL_REQUIRED:
                yield f"REQUIRED_FIELD_ADDED at {path}/{number}"
        yield from _oneof_reasons(before, after, path)

    def _field(
        self, before: FieldDescriptorProto, after: FieldDescriptorProto, path: str
    ) -> Iterator[str]:
        old_map, new_map = self._entry(before, self._earlier), self._entry(after, self._later)
        if old_map is not None and new_map is not None:
            for old, new in zip(old_map.field, new_map.field, strict=False):
                yield from self._field(old, new, f"{path}/{old.name}")
            return
        if (old_map is None) != (new_map is None):
            # A map is written as repeated messages, but clients see something else.
            yield f"FIELD_KIND_CHANGED at {path}"
            return
        if _is_message(before) != _is_message(after):
            yield f"FIELD_KIND_CHANGED at {path}"
        elif _is_message(before):
            yield from self._named(before, after, path)
        elif KINDS[before.type] != KINDS[after.type]:
            kinds = f"{Field.Type.Name(before.type)[5:]} became {Field.Type.Name(after.type)[5:]}"
            yield f"FIELD_SCALAR_KIND_CHANGED at {path}: {kinds.lower()}"
        elif KINDS[before.type] != _BYTES and _is_repeated(before) != _is_repeated(after):
            yield f"FIELD_NUMERIC_LABEL_CHANGED at {path}"

    def _named(
        self, before: FieldDescriptorProto, after: FieldDescriptorProto, path: str
    ) -> Iterator[str]:
        """Compare messages by their names without packages, and what is in them."""
        old = self._earlier.types[before.type_name[1:]]
        new = self._later.types[after.type_name[1:]]
        assert isinstance(old, DescriptorProto)
        assert isinstance(new, DescriptorProto)
        if old.name != new.name or before.type != after.type:
            yield f"FIELD_NAMED_TYPE_CHANGED at {path}: {old.name} became {new.name}"
        else:
            yield from self._message(old, new, path)

    def _entry(self, field: FieldDescriptorProto, known: ProtoTypes) -> DescriptorProto | None:
        if field.type != Field.TYPE_MESSAGE:
            return None
        found = known.types[field.type_name[1:]]
        assert not isinstance(found, EnumDescriptorProto)
        return found if found.options.map_entry else None


def _is_repeated(field: FieldDescriptorProto) -> bool:
    return field.label == Field.LABEL_REPEATED


def _is_message(field: FieldDescriptorProto) -> bool:
    return field.type in (Field.TYPE_MESSAGE, Field.TYPE_GROUP)


def _oneof_reasons(before: DescriptorProto, after: DescriptorProto, path: str) -> Iterator[str]:
    old, new = _oneofs(before), _oneofs(after)
    kept = {field.number for field in after.field}
    names = {number: name for name, members in old.items() for number in members}
    for name, members in old.items():
        # Without any of them, it is as if each field had been removed.
        if members & kept:
            for number in sorted(members - kept):
                yield f"ONEOF_FIELD_REMOVED at {path}/{name}/{number}"
    was = {field.number for field in before.field}
    for name, members in new.items():
        # A field that was in no oneof could be set beside all others.
        origins = {names.get(number, number) for number in members & was}
        if len(origins) > 1:
            yield f"FIELDS_MOVED_TO_ONEOF at {path}/{name}"


def _oneofs(message: DescriptorProto) -> dict[str, set[int]]:
    """Return the numbers of the fields of each oneof that someone wrote."""
    found: dict[str, set[int]] = {}
    for field in message.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            found.setdefault(message.oneof_decl[field.oneof_index].name, set()).add(field.number)
    return found
