"""Converts OTLP/JSON requests to protobuf, so that the log holds one encoding.

The rules are proto3's JSON mapping with OTLP's changes, and what collectors accept beyond it:

| in JSON            | rule                                                                       |
| ------------------ | -------------------------------------------------------------------------- |
| keys               | lowerCamelCase, or as in the .proto files (snake_case); both: refused      |
| unknown keys       | ignored, with any value                                                    |
| duplicate keys     | the last one wins                                                          |
| null               | as if the key were absent; as an element of an array: refused              |
| ids                | hex in either case, an even number of digits; the scan checks the length   |
| bytes              | base64, standard or URL-safe alphabet, padded or not                       |
| integers           | a number or a string of one; 1.0 and 1e3 are integers, 1.5 is not          |
| doubles            | a number, a string of one, or "NaN", "Infinity", "-Infinity"               |
| enums              | an integer, or one of the names; an unknown name is refused                |
| bool               | true and false                                                             |
| oneof              | at most one member                                                         |
| depth              | the limit of protobuf's parser                                             |

A number with a fraction or an exponent is read as a double, also where an integer is expected:
beyond 2^53 it becomes the nearest double. Other integers are exact; -0 is 0. Values out of range
are refused, not clamped. So is a byte order mark, by RFC 8259.

Fields are written in the order of the JSON keys. Zeros are omitted where proto3 omits them, and
kept in fields with presence.

The JSON is parsed by msgspec, not orjson. msgspec keeps integers of any size, where orjson turns
those beyond 64 bits into doubles (-2^63 - 1 becomes -2^63, which is in range); it builds no second
tree in memory; and orjson reports some truncated bodies as a failure "to allocate memory", which
cannot be told from a real one. Both refuse a bare NaN, 1e400 and lone surrogates, and keep the last
of two equal keys. msgspec's nesting limit is Python's recursion limit, far beyond ours.
"""

from __future__ import annotations

import binascii
import json
import math
import re
import struct
from collections.abc import Callable
from operator import length_hint
from typing import NamedTuple

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from frazil.errors import Malformed
from frazil.ingest.otlp.messages import REQUESTS
from frazil.model import Signal

__all__ = ["protobuf_of_json"]

DEPTH_MAX = 100
"""Nesting depth of messages below the request: the limit of protobuf's parsers."""
ID_NAMES = frozenset({"trace_id", "span_id", "parent_span_id"})
"""The bytes fields that OTLP writes in hex."""
BASE64 = re.compile(r"([\w+/-]*)(=*)", re.ASCII)
"""Characters of either alphabet, then padding. Python's own decoders accept more."""
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
NUMBER_CHARS_MAX = 2_000
"""Enough to write any double exactly; Python converts at most 4,300 digits."""
INT32, INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
UINT32, UINT64 = range(2**32), range(2**64)
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
QUOTED_CHARS_MAX = 40
"""How much of a wrong value an error quotes."""
SHORT_COUNT = 2_048
"""Varints of numbers below this, which are most, are encoded once."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""
PACK_DOUBLE = struct.Struct("<d").pack
ZEROS = {VARINT: b"\0", FIXED64: bytes(8), LENGTH: b"\0", FIXED32: bytes(4)}

Write = Callable[[object, int], bytes]
"""From a JSON value, and the nesting depth left, to a field with its tag."""
Scalar = Callable[[object], bytes]
"""From a JSON value to the bytes after the tag."""


class JsonKey(NamedTuple):
    """How to write a key. The spellings of a key, and the members of a oneof, share a bit."""

    bit: int
    write: Write


class JsonError(Exception):
    """Why the JSON is refused. The path is collected while the error propagates."""

    def __init__(self, expected: str, found: object) -> None:
        super().__init__(f"expected {expected}, found {_quoted(found)}")
        self.steps: list[str] = []

    def below(self, step: str) -> JsonError:
        self.steps.append(step)
        return self

    def __str__(self) -> str:
        path = "".join(reversed(self.steps)).removeprefix(".")
        return f"{path or 'the body'}: {self.args[0]}"


def protobuf_of_json(signal: Signal, body: bytes) -> bytes:
    """Convert an OTLP/JSON request to protobuf.

    Protobuf's parser accepts every result. Raises only `Malformed`, with the path in the JSON and
    the value expected there.
    """
    try:
        request = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise Malformed(f"the body is not JSON: {reason}") from None
    except RecursionError:
        raise Malformed("the body is nested too deeply") from None
    try:
        return ENCODERS[signal](request, DEPTH_MAX)
    except JsonError as error:
        raise Malformed(str(error)) from None


def _quoted(value: object) -> str:
    """Return a value for an error message: short, printable, in JSON's terms."""
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return "an array"
    text = json.dumps(value[:QUOTED_CHARS_MAX] if type(value) is str else value)
    return text if len(text) <= QUOTED_CHARS_MAX else f"{text[:QUOTED_CHARS_MAX]}..."


# Objects and arrays.


def _message(fields: dict[str, JsonKey], tag: bytes | None) -> Write:
    """Write an object as a message. Without a tag it is the request, which has no length."""
    field_of = fields.get

    def write(value: object, depth: int) -> bytes:
        if type(value) is not dict:
            raise JsonError("an object", value)
        if depth < 0:
            raise JsonError(f"at most {DEPTH_MAX} nested messages", value)
        depth -= 1
        data = b""
        seen = 0
        try:
            for key, item in value.items():
                field = field_of(key)
                if field is None or item is None:
                    continue
                bit, write_field = field
                if seen & bit:
                    raise JsonError(f"only one of {_conflicting(fields, value, bit)}", item)
                seen |= bit
                data += write_field(item, depth)
        except JsonError as error:
            raise error.below(f".{key}") from None
        if tag is None:
            return data
        size = len(data)
        return tag + (SHORT[size] if size < SHORT_COUNT else _varint(size)) + data

    return write


def _conflicting(fields: dict[str, JsonKey], value: dict[str, object], bit: int) -> str:
    """Return the keys of an object that exclude each other."""
    present = (key for key in value if value[key] is not None and key in fields)
    return ", ".join(key for key in present if fields[key].bit == bit)


def _repeated(write_element: Write) -> Write:
    """Write an array as one field per element."""

    def write(value: object, depth: int) -> bytes:
        if type(value) is not list:
            raise JsonError("an array", value)
        # Not a list of parts: millions of small ones would take fifty times the body's memory.
        data = bytearray()
        elements = iter(value)
        try:
            for element in elements:
                data += write_element(element, depth)
        except JsonError as error:
            raise error.below(f"[{len(value) - length_hint(elements) - 1}]") from None
        return bytes(data)

    return write


def _packed(tag: bytes, scalar: Scalar) -> Write:
    """Write an array of numbers as one packed field."""
    write_elements = _repeated(lambda element, _: scalar(element))

    def write(value: object, depth: int) -> bytes:
        data = write_elements(value, depth)
        return tag + _framed(data) if data else b""

    return write


# Single values.


def _single(tag: bytes, scalar: Scalar, omitted: bytes | None) -> Write:
    """Write one value, unless its encoding is `omitted`."""

    def write(value: object, _: int) -> bytes:
        data = scalar(value)
        return b"" if data == omitted else tag + data

    return write


def _text(tag: bytes, omitted: bytes | None) -> Write:
    """Write a string. `_single` in one call, since half of all values are strings."""

    def write(value: object, _: int) -> bytes:
        if type(value) is not str:
            raise JsonError("a string", value)
        data = value.encode()
        size = len(data)
        if size == 0 and omitted is not None:
            return b""
        return tag + (SHORT[size] if size < SHORT_COUNT else _varint(size)) + data

    return write


def _hex(value: object) -> bytes:
    if type(value) is str:
        try:
            return _framed(binascii.unhexlify(value))
        except ValueError:
            pass
    raise JsonError("a string of hex digits, two for each byte", value)


def _base64(value: object) -> bytes:
    match = BASE64.fullmatch(value) if type(value) is str else None
    if match is not None:
        digits, padding = match[1], match[2]
        if len(digits) % 4 != 1 and len(padding) in (0, -len(digits) % 4):
            standard = digits.replace("-", "+").replace("_", "/")
            return _framed(binascii.a2b_base64(standard + "=="))
    raise JsonError("a string in base64", value)


def _bool(value: object) -> bytes:
    if type(value) is not bool:
        raise JsonError("true or false", value)
    return b"\1" if value else b"\0"


def _double(value: object) -> bytes:
    if type(value) is str and value in NOT_FINITE:
        return PACK_DOUBLE(NOT_FINITE[value])
    if type(value) is float or type(value) is int or (type(value) is str and _is_number(value)):
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            number = math.inf
        if math.isfinite(number):
            return PACK_DOUBLE(number)
    raise JsonError('a double, or "NaN", "Infinity" or "-Infinity"', value)


def _integer(allowed: range, bytes_of: Callable[[int], bytes]) -> Scalar:
    """Write an integer of this range with `bytes_of`."""
    low, high = allowed[0], allowed[-1]

    def scalar(value: object) -> bytes:
        number = value
        if type(value) is str and _is_number(value):
            number = int(value) if value.lstrip("-").isdigit() else float(value)
        if type(number) is float and number.is_integer():
            number = int(number)
        if type(number) is int and low <= number <= high:
            return bytes_of(number)
        raise JsonError(f"an integer from {low} to {high}", value)

    return scalar


def _is_number(text: str) -> bool:
    if len(text) > NUMBER_CHARS_MAX:
        return False
    return (text.isdigit() and text.isascii()) or NUMBER.fullmatch(text) is not None


def _enum(names: EnumDescriptor) -> Scalar:
    """Write an enum by number, also an unknown one, or by name."""
    numbers = {name: _varint(value.number) for name, value in names.values_by_name.items()}
    number = _integer(INT32, _varint)

    def scalar(value: object) -> bytes:
        if type(value) is not str:
            return number(value)
        if value not in numbers:
            raise JsonError(f"an integer or a name of {names.name}", value)
        return numbers[value]

    return scalar


# Bytes.


def _varint(number: int) -> bytes:
    """Encode a varint; negative numbers as 64-bit two's complement."""
    return SHORT[number] if 0 <= number < SHORT_COUNT else _long_varint(number & 2**64 - 1)


def _long_varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _zigzag(number: int) -> bytes:
    """Encode a sint32: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return _varint(number << 1 if number >= 0 else ~(number << 1))


def _framed(data: bytes) -> bytes:
    return _varint(len(data)) + data


# Tables, built at import.

SHORT = [_long_varint(number) for number in range(SHORT_COUNT)]
SCALARS: dict[int, tuple[int, Scalar]] = {
    FieldDescriptor.TYPE_BOOL: (VARINT, _bool),
    FieldDescriptor.TYPE_INT32: (VARINT, _integer(INT32, _varint)),
    FieldDescriptor.TYPE_INT64: (VARINT, _integer(INT64, _varint)),
    FieldDescriptor.TYPE_UINT32: (VARINT, _integer(UINT32, _varint)),
    FieldDescriptor.TYPE_UINT64: (VARINT, _integer(UINT64, _varint)),
    FieldDescriptor.TYPE_SINT32: (VARINT, _integer(INT32, _zigzag)),
    FieldDescriptor.TYPE_FIXED32: (FIXED32, _integer(UINT32, struct.Struct("<I").pack)),
    FieldDescriptor.TYPE_FIXED64: (FIXED64, _integer(UINT64, struct.Struct("<Q").pack)),
    FieldDescriptor.TYPE_SFIXED64: (FIXED64, _integer(INT64, struct.Struct("<q").pack)),
    FieldDescriptor.TYPE_DOUBLE: (FIXED64, _double),
}
"""OTLP's field types. A new one in a later OTLP fails the import, not a request."""


def _scalar(field: FieldDescriptor) -> tuple[int, Scalar]:
    if field.enum_type is not None:
        return VARINT, _enum(field.enum_type)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return LENGTH, _hex if field.name in ID_NAMES else _base64
    return SCALARS[field.type]


def _write(field: FieldDescriptor, known: dict[str, dict[str, JsonKey]]) -> Write:
    """Return the writer of a field."""
    omitted_of = ZEROS if not (field.has_presence or field.is_repeated) else {}
    if field.message_type is not None:
        write = _message(_fields(field.message_type, known), _tag(field, LENGTH))
    elif field.type == FieldDescriptor.TYPE_STRING:
        write = _text(_tag(field, LENGTH), omitted_of.get(LENGTH))
    else:
        wire_type, scalar = _scalar(field)
        if field.is_repeated:
            assert field.is_packed
            return _packed(_tag(field, LENGTH), scalar)
        return _single(_tag(field, wire_type), scalar, omitted_of.get(wire_type))
    return _repeated(write) if field.is_repeated else write


def _tag(field: FieldDescriptor, wire_type: int) -> bytes:
    return _varint(field.number << 3 | wire_type)


def _fields(message: Descriptor, known: dict[str, dict[str, JsonKey]]) -> dict[str, JsonKey]:
    """Return the table of a message. Registered before it is filled: messages are recursive."""
    if message.full_name in known:
        return known[message.full_name]
    fields = known[message.full_name] = {}
    for field in message.fields:
        first = field.containing_oneof.fields[0] if field.containing_oneof else field
        entry = JsonKey(1 << first.index, _write(field, known))
        fields[field.json_name] = fields[field.name] = entry
    return fields


ENCODERS = {signal: _message(_fields(REQUESTS[signal], {}), None) for signal in Signal}
