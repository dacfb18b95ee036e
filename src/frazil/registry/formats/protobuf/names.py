"""resolve_names: what a type's name means where it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from frazil.errors import Malformed

ProtoType = DescriptorProto | EnumDescriptorProto
Types = dict[str, ProtoType]
"""By full name, without a leading dot."""


def types_of(files: Iterable[FileDescriptorProto]) -> Types:
    """Return all messages and enums of files."""
    found: Types = {}
    for file in files:
        for name, each in named_types(file):
            found[qualified(file.package, name)] = each
    return found


def named_types(where: FileDescriptorProto | DescriptorProto) -> Iterator[tuple[str, ProtoType]]:
    """Yield messages and enums, and those within, by their names from here."""
    for enum in where.enum_type:
        yield enum.name, enum
    messages = where.message_type if isinstance(where, FileDescriptorProto) else where.nested_type
    for message in messages:
        yield message.name, message
        for name, each in named_types(message):
            yield f"{message.name}.{name}", each


def qualified(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def resolve_names(file: FileDescriptorProto, types: Mapping[str, ProtoType]) -> None:
    """Replace the names of types by full ones, and set whether they are messages or enums.
    `Malformed` if there is no such type."""
    for field in file.extension:
        _resolve_field(field, file.package, types)
    for message in file.message_type:
        _resolve_message(message, file.package, types)
    for service in file.service:
        scope = qualified(file.package, service.name)
        for method in service.method:
            method.input_type = "." + _find(method.input_type, scope, types)
            method.output_type = "." + _find(method.output_type, scope, types)


def _resolve_message(message: DescriptorProto, scope: str, types: Mapping[str, ProtoType]) -> None:
    inside = qualified(scope, message.name)
    for field in (*message.field, *message.extension):
        _resolve_field(field, inside, types)
    for nested in message.nested_type:
        _resolve_message(nested, inside, types)


def _resolve_field(field: FieldDescriptorProto, scope: str, types: Mapping[str, ProtoType]) -> None:
    if field.HasField("extendee"):
        field.extendee = "." + _find(field.extendee, scope, types)
    if not field.type_name:
        return
    name = _find(field.type_name, scope, types)
    field.type_name = f".{name}"
    if isinstance(types[name], EnumDescriptorProto):
        field.type = FieldDescriptorProto.TYPE_ENUM
    elif field.type != FieldDescriptorProto.TYPE_GROUP:
        field.type = FieldDescriptorProto.TYPE_MESSAGE


def _find(name: str, scope: str, types: Mapping[str, ProtoType]) -> str:
    if name.startswith("."):
        candidates = [name[1:]]
    else:
        parts = scope.split(".") if scope else []
        candidates = [
            qualified(".".join(parts[:count]), name) for count in range(len(parts), -1, -1)
        ]
    for candidate in candidates:
        if candidate in types:
            return candidate
    raise Malformed(f"there is no type {name[:80]}; define it, or import its file")
