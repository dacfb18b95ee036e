"""OTLP/JSON in, protobuf out: `protobuf_of_json` rewrites an export request, so that the log holds
one encoding.

The rules are proto3's JSON mapping with the changes that OTLP makes to it, and what collectors
let through besides:

| in JSON            | rule                                                                       |
| ------------------ | -------------------------------------------------------------------------- |
| keys               | lowerCamelCase, or as in the .proto files (snake_case); both: refused      |
| unknown keys       | ignored, whatever they hold                                                |
| the same key twice | the last one counts                                                        |
| null               | as if the key were absent; as an element of an array: refused              |
| ids                | hex in either case, an even number of digits; the scan judges the length   |
| bytes              | base64, standard or URL-safe letters, padded or not                        |
| integers           | a number or a string of one; 1.0 and 1e3 are integers, 1.5 is not          |
| doubles            | a number, a string of one, or "NaN", "Infinity", "-Infinity"               |
| enums              | an integer, or one of the names; an unknown name is refused                |
| bool               | true and false                                                             |
| oneof              | at most one member                                                         |
| depth              | what protobuf's parser takes afterwards                                    |

A number with a fraction or an exponent is read as a double, also where an integer is expected:
beyond 2^53 it means the nearest double. Other integers are exact, and -0 is one: 0. Nothing is
bent into its range: what does not fit is refused. So is a byte order mark, by RFC 8259.

Fields come out in the order of the JSON keys. Zeros are left out where proto3 leaves them out, and
kept where their presence means something.

The JSON itself is read by msgspec. It keeps integers of any size, where orjson makes doubles of
those beyond 64 bits (-2^63 - 1 becomes -2^63, which is in range); it builds no second tree in
memory; and orjson calls some bodies that end too early a failure "to allocate memory", which could
not be told from a real one. Both refuse a bare NaN, 1e400 and lone surrogates, and keep the last
of two equal keys. msgspec nests as deeply as Python calls functions, which is far beyond us.
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
"""Messages inside each other below the request: the limit of protobuf's parsers."""
ID_NAMES = frozenset({"trace_id", "span_id", "parent_span_id"})
"""The fields of bytes that OTLP writes in hex."""
BASE64 = re.compile(r"([\w+/-]*)(=*)", re.ASCII)
"""Letters of either alphabet, and the padding; Python's own readers let more through."""
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
NUMBER_CHARS_MAX = 2_000
"""Every double can be written down exactly in fewer; Python converts no more than 4,300 digits."""
INT32, INT64 = range(-(2**31), 2**31), range(-(2**63), 2**63)
UINT32, UINT64 = range(2**32), range(2**64)
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SHOWN_CHARS_MAX = 40
"""How much of a wrong value an error repeats."""
SHORT_COUNT = 2_048
"""Most lengths and numbers are below it; their varints are made once."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Protobuf's wire types."""
PACK_DOUBLE = struct.Struct("<d").pack
ZEROS = {VARINT: b"\0", FIXED64: bytes(8), LENGTH: b"\0", FIXED32: bytes(4)}

Write = Callable[[object, int], bytes]
"""From a JSON value, and how many messages may be inside each other from here on, to a field with
its tag."""
Scalar = Callable[[object], bytes]
"""From a JSON value to what follows the tag."""


class JsonKey(NamedTuple):
    """What a key stands for. The spellings of a key, and the members of a oneof, share a bit."""

    bit: int
    write: Write


class JsonError(Exception):
    """Why the JSON is refused. The path is put together while this travels out."""

    def __init__(self, expected: str, found: object) -> None:
        super().__init__(f"expected {expected}, found {_shown(found)}")
        self.steps: list[str] = []

    def below(self, step: str) -> JsonError:
        self.steps.append(step)
        return self

    def __str__(self) -> str:
        path = "".join(reversed(self.steps)).removeprefix(".")
        return f"{path or 'the body'}: {self.args[0]}"


def protobuf_of_json(signal: Signal, body: bytes) -> bytes:
    """The protobuf bytes that mean what this OTLP/JSON request means.

    Protobuf's parser accepts every result. Raises `Malformed`, with the path in the JSON and what
    is expected there, and nothing else whatever the bytes are.
    """
    try:
        request = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        why = str(wrong).removeprefix("JSON is malformed: ")
        raise Malformed(f"the body is not JSON: {why}") from None
    except RecursionError:
        raise Malformed("the body is nested more deeply than any request") from None
    try:
        return ENCODERS[signal](request, DEPTH_MAX)
    except JsonError as trouble:
        raise Malformed(str(trouble)) from None


def _shown(value: object) -> str:
    """A value in an error: short, printable, and in the words of JSON."""
    if type(value) is dict:
        return "an object"
    if type(value) is list:
        return "an array"
    text = json.dumps(value[:SHOWN_CHARS_MAX] if type(value) is str else value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}..."


# Objects and arrays.


def _message(fields: dict[str, JsonKey], tag: bytes | None) -> Write:
    """Writes an object as a message; without a tag, as the outermost, which has no length."""
    field_of = fields.get

    def write(value: object, depth: int) -> bytes:
        if type(value) is not dict:
            raise JsonError("an object", value)
        if depth < 0:
            raise JsonError(f"at most {DEPTH_MAX} messages inside each other", value)
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
                    raise JsonError(f"only one of {_rivals(fields, value, bit)}", item)
                seen |= bit
                data += write_field(item, depth)
        except JsonError as trouble:
            raise trouble.below(f".{key}") from None
        if tag is None:
            return data
        size = len(data)
        return tag + (SHORT[size] if size < SHORT_COUNT else _varint(size)) + data

    return write


def _rivals(fields: dict[str, JsonKey], value: dict[str, object], bit: int) -> str:
    """The keys of an object that cannot be there together."""
    present = (key for key in value if value[key] is not None and key in fields)
    return ", ".join(key for key in present if fields[key].bit == bit)


def _repeated(write_element: Write) -> Write:
    """Writes an array as one field for each element."""

    def write(value: object, depth: int) -> bytes:
        if type(value) is not list:
            raise JsonError("an array", value)
        # Not a list of parts: millions of tiny ones would take fifty times the memory of the body.
        data = bytearray()
        elements = iter(value)
        try:
            for element in elements:
                data += write_element(element, depth)
        except JsonError as trouble:
            raise trouble.below(f"[{len(value) - length_hint(elements) - 1}]") from None
        return bytes(data)

    return write


def _packed(tag: bytes, scalar: Scalar) -> Write:
    """Writes an array of numbers as one field."""
    write_elements = _repeated(lambda element, _: scalar(element))

    def write(value: object, depth: int) -> bytes:
        data = write_elements(value, depth)
        return tag + _framed(data) if data else b""

    return write


# Single values.


def _single(tag: bytes, scalar: Scalar, left_out: bytes | None) -> Write:
    """Writes one value, unless its encoding is the one to leave out."""

    def write(value: object, _: int) -> bytes:
        data = scalar(value)
        return b"" if data == left_out else tag + data

    return write


def _text(tag: bytes, left_out: bytes | None) -> Write:
    """`_single` for strings, in one call: half of all values are strings."""

    def write(value: object, _: int) -> bytes:
        if type(value) is not str:
            raise JsonError("a string", value)
        data = value.encode()
        size = len(data)
        if size == 0 and left_out is not None:
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
        letters, padding = match[1], match[2]
        if len(letters) % 4 != 1 and len(padding) in (0, -len(letters) % 4):
            standard = letters.replace("-", "+").replace("_", "/")
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
    """Writes an integer of this range by `bytes_of`."""
    least, most = allowed[0], allowed[-1]

    def scalar(value: object) -> bytes:
        number = value
        if type(value) is str and _is_number(value):
            number = int(value) if value.lstrip("-").isdigit() else float(value)
        if type(number) is float and number.is_integer():
            number = int(number)
        if type(number) is int and least <= number <= most:
            return bytes_of(number)
        raise JsonError(f"an integer from {least} to {most}", value)

    return scalar


def _is_number(text: str) -> bool:
    if len(text) > NUMBER_CHARS_MAX:
        return False
    return (text.isdigit() and text.isascii()) or NUMBER.fullmatch(text) is not None


def _enum(names: EnumDescriptor) -> Scalar:
    """Writes a number of the enum, also one that is not known yet, or what a name stands for."""
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
    """As protobuf writes integers; negative ones as 64 bits in two's complement."""
    return SHORT[number] if 0 <= number < SHORT_COUNT else _long_varint(number & 2**64 - 1)


def _long_varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _zigzag(number: int) -> bytes:
    """As protobuf writes sint32: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return _varint(number << 1 if number >= 0 else ~(number << 1))


def _framed(data: bytes) -> bytes:
    return _varint(len(data)) + data


# The tables, made once.

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
"""The types of fields in OTLP. One that a later OTLP brings stops the import, not a request."""


def _scalar(field: FieldDescriptor) -> tuple[int, Scalar]:
    if field.enum_type is not None:
        return VARINT, _enum(field.enum_type)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return LENGTH, _hex if field.name in ID_NAMES else _base64
    return SCALARS[field.type]


def _write(field: FieldDescriptor, known: dict[str, dict[str, JsonKey]]) -> Write:
    """How to write this field of a message."""
    left_out_of = ZEROS if not (field.has_presence or field.is_repeated) else {}
    if field.message_type is not None:
        write = _message(_fields(field.message_type, known), _tag(field, LENGTH))
    elif field.type == FieldDescriptor.TYPE_STRING:
        write = _text(_tag(field, LENGTH), left_out_of.get(LENGTH))
    else:
        wire_type, scalar = _scalar(field)
        if field.is_repeated:
            assert field.is_packed
            return _packed(_tag(field, LENGTH), scalar)
        return _single(_tag(field, wire_type), scalar, left_out_of.get(wire_type))
    return _repeated(write) if field.is_repeated else write


def _tag(field: FieldDescriptor, wire_type: int) -> bytes:
    return _varint(field.number << 3 | wire_type)


def _fields(message: Descriptor, known: dict[str, dict[str, JsonKey]]) -> dict[str, JsonKey]:
    """The table of a message. It is known before it is full: messages contain each other."""
    if message.full_name in known:
        return known[message.full_name]
    fields = known[message.full_name] = {}
    for field in message.fields:
        first = field.containing_oneof.fields[0] if field.containing_oneof else field
        entry = JsonKey(1 << first.index, _write(field, known))
        fields[field.json_name] = fields[field.name] = entry
    return fields


ENCODERS = {signal: _message(_fields(REQUESTS[signal], {}), None) for signal in Signal}
