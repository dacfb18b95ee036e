"""What protobuf's compiler refuses, and its library does not."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import DescriptorProto

from frazil.errors import Malformed

OF_PROTOBUF = range(19_000, 20_000)
"""Numbers that protobuf keeps for itself."""


def check_numbers(message: DescriptorProto) -> None:
    """Raise `Malformed` if a field has a number or a name that it must not have."""
    names = set(message.reserved_name)
    spans = [(span.start, span.end) for span in message.reserved_range]
    spans += [(span.start, span.end) for span in message.extension_range]
    for field in message.field:
        if field.number in OF_PROTOBUF:
            raise Malformed(f"{field.name} has the number {field.number}, which is protobuf's own")
        if field.name in names or any(begin <= field.number < end for begin, end in spans):
            raise Malformed(
                f"{message.name}.{field.name} = {field.number} is reserved, or of extensions"
            )
    for nested in message.nested_type:
        check_numbers(nested)
