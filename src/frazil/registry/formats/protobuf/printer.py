"""print_proto: a FileDescriptorProto as the text of a .proto file, in the layout of `laid_out`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.message import Message

from frazil.registry.formats.protobuf.parser import LABELS, NUMBER_MAX, SCALARS
from frazil.registry.formats.protobuf.tokens import laid_out

NAME_OF_TYPE = {number: name for name, number in SCALARS.items()}
NAME_OF_LABEL = {number: name for name, number in LABELS.items()}
Field = FieldDescriptorProto


def print_proto(file: FileDescriptorProto) -> str:
    """Return the text. Options of extensions that are not known here are left out."""
    return laid_out(" ".join(_file(file)))


def _file(file: FileDescriptorProto) -> Iterator[str]:
    yield f'syntax = "{file.syntax or "proto2"}";'
    if file.package:
        yield f"package {file.package};"
    for number, name in enumerate(file.dependency):
        kind = "public " if number in file.public_dependency else ""
        kind = "weak " if number in file.weak_dependency else kind
        yield f"import {kind}{json.dumps(name)};"
    yield from _options(file.options)
    yield from _extensions(file.extension, file)
    for enum in file.enum_type:
        yield from _enum(enum)
    for message in file.message_type:
        yield from _message(message, file)
    for service in file.service:
        yield f"service {service.name} {{"
        for method in service.method:
            taken, given = (
                ("stream " if method.client_streaming else "") + method.input_type,
                ("stream " if method.server_streaming else "") + method.output_type,
            )
            options = " ".join(_options(method.options))
            yield f"rpc {method.name} ({taken}) returns ({given})"
            yield f"{{ {options} }}" if options else ";"
        yield "}"


def _message(message: DescriptorProto, file: FileDescriptorProto) -> Iterator[str]:
    yield f"message {message.name} {{"
    yield from _body(message, file)
    yield "}"


def _body(message: DescriptorProto, file: FileDescriptorProto) -> Iterator[str]:
    yield from _options(message.options)
    for words in _reserved(message):
        yield f"reserved {words};"
    for span in message.extension_range:
        yield f"extensions {_range(span.start, span.end - 1, NUMBER_MAX)};"
    groups = {
        field.type_name.rpartition(".")[2]
        for field in message.field
        if field.type == Field.TYPE_GROUP
    }
    maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    for enum in message.enum_type:
        yield from _enum(enum)
    for nested in message.nested_type:
        if nested.name not in groups and nested.name not in maps:
            yield from _message(nested, file)
    begun: set[int] = set()
    for field in message.field:
        if not field.HasField("oneof_index") or field.proto3_optional:
            yield from _field(field, message, file, maps)
        elif field.oneof_index not in begun:
            begun.add(field.oneof_index)
            yield f"oneof {message.oneof_decl[field.oneof_index].name} {{"
            for each in message.field:
                if each.HasField("oneof_index") and each.oneof_index == field.oneof_index:
                    yield from _field(each, message, file, maps)
            yield "}"
    yield from _extensions(message.extension, file)


def _field(
    field: FieldDescriptorProto,
    message: DescriptorProto | None,
    file: FileDescriptorProto,
    maps: dict[str, DescriptorProto],
) -> Iterator[str]:
    is_repeated = field.label == Field.LABEL_REPEATED
    is_plain = file.syntax == "proto3" and not is_repeated and not field.proto3_optional
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    label = "" if is_plain or in_oneof else NAME_OF_LABEL[field.label]
    if field.type == Field.TYPE_GROUP and message is not None:
        name = field.type_name.rpartition(".")[2]
        group = next(each for each in message.nested_type if each.name == name)
        yield f"{label} group {name} = {field.number} {{"
        yield from _body(group, file)
        yield "}"
        return
    entry = maps.get(field.type_name.rpartition(".")[2])
    if entry is not None and is_repeated:
        key, value = entry.field
        yield f"map<{_type(key)}, {_type(value)}> {field.name} = {field.number}"
    else:
        yield f"{label} {_type(field)} {field.name} = {field.number}"
    options = []
    if field.HasField("default_value"):
        quotes = field.type in (Field.TYPE_STRING, Field.TYPE_BYTES)
        value_text = field.default_value
        if field.type == Field.TYPE_STRING:
            value_text = json.dumps(value_text, ensure_ascii=False)
        elif quotes:
            value_text = f'"{value_text}"'
        options.append(f"default = {value_text}")
    if field.json_name and field.json_name != _json_name(field.name):
        options.append(f"json_name = {json.dumps(field.json_name)}")
    options += [each.removeprefix("option ").removesuffix(";") for each in _options(field.options)]
    yield f"[{', '.join(options)}];" if options else ";"


def _type(field: FieldDescriptorProto) -> str:
    return field.type_name or NAME_OF_TYPE[field.type]


def _enum(enum: EnumDescriptorProto) -> Iterator[str]:
    yield f"enum {enum.name} {{"
    yield from _options(enum.options)
    for span in enum.reserved_range:
        yield f"reserved {_range(span.start, span.end, 2**31 - 1)};"
    if enum.reserved_name:
        yield f"reserved {', '.join(map(json.dumps, enum.reserved_name))};"
    for value in enum.value:
        options = [
            each.removeprefix("option ").removesuffix(";") for each in _options(value.options)
        ]
        yield f"{value.name} = {value.number}" + (f" [{', '.join(options)}];" if options else ";")
    yield "}"


def _reserved(message: DescriptorProto) -> Iterator[str]:
    for span in message.reserved_range:
        yield _range(span.start, span.end - 1, NUMBER_MAX)
    if message.reserved_name:
        yield ", ".join(map(json.dumps, message.reserved_name))


def _range(begin: int, end: int, largest: int) -> str:
    if begin == end:
        return str(begin)
    return f"{begin} to {'max' if end >= largest else end}"


def _extensions(fields: Iterable[FieldDescriptorProto], file: FileDescriptorProto) -> Iterator[str]:
    for field in fields:
        yield f"extend {field.extendee} {{"
        yield from _field(field, None, file, {})
        yield "}"


def _options(options: Message) -> Iterator[str]:
    """Yield the options that protobuf itself defines and whose values are simple."""
    for described, value in options.ListFields():
        if described.is_extension or described.is_repeated or described.name == "map_entry":
            continue
        if described.enum_type is not None:
            text = described.enum_type.values_by_number[value].name
        elif isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, str):
            text = json.dumps(value)
        elif isinstance(value, int):
            text = str(value)
        else:
            continue
        yield f"option {described.name} = {text};"


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
