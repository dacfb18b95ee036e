"""Protobuf classes that are made from a list of their fields, for protocols whose files we do not
have.

A field is a number, a type and, if it repeats, `*`. The type may be another message of the list.
All fields tell whether they are set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Message: TypeAlias = Any
"""An object of a class that exists at run time only."""

Fields: TypeAlias = Mapping[str, str]


def message_classes(file: str, package: str, messages: Mapping[str, Fields]) -> dict[str, Any]:
    """Return the class of each message, by its name."""
    # A pool of our own: a client of the protocol in the same process may have these names as well.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file(file, package, messages))
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in messages
    }


def _file(
    name: str, package: str, messages: Mapping[str, Fields]
) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for title, fields in messages.items():
        message = file.message_type.add(name=title)
        for field, text in fields.items():
            number, kind, *repeated = text.split()
            is_message = kind in messages
            message.field.add(
                name=field,
                number=int(number),
                type=kinds.TYPE_MESSAGE if is_message else kinds.Type.Value(f"TYPE_{kind.upper()}"),
                type_name=f".{package}.{kind}" if is_message else None,
                label=kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL,
            )
    return file
