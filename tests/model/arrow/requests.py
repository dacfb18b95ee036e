"""Requests for the decoder: random ones of every shape that protobuf can read.

`Writer` writes the bytes itself, from protobuf's descriptors, so that it can do what no client
does: fields in any order, numbers that come twice, messages in pieces, choices made again, lists
half packed, fields that nobody knows. Values are taken from pools of what is likely to go wrong.

The strategies let hypothesis choose; the fuzzer takes a seeded `Random`, which is fast.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from hypothesis import strategies as st

from frazil.model.arrow.types import ExportRequest
from tests.fuzz.corpus import varint
from tests.fuzz.mutate import scribble
from tests.model.arrow.decoder.reference import CLASSES

F = FieldDescriptor
KEYS = (
    *("", "a", "b", "ab", "a\x00", "aa", "zz", "a.b", "é", "日本", "\U0001f600", "key" * 9),
    *("service.name", "service.namespace", "service.instance.id", "host.name", "k8s.pod.name"),
    *("deployment.environment", "deployment.environment.name", "k8s.namespace.name"),
    *("k8s.container.name", "http.request.method", "http.response.status_code", "http.route"),
    *("url.path", "db.system", "rpc.system", "rpc.method", "messaging.system", "http.routf"),
)
TEXTS = (
    *("", "", "a", "GET", "200", "0404", "2147483647", "2147483648", "-7", "2" * 40, "٣", "1.5"),
    *('"', "\\", "\b\f\n\r\t", "\x00\x01\x1f\x7f", "é", "日本語", "\U0001f600\U0010ffff"),
    *("\u2028\u2029", "x" * 31, "y" * 32, "z" * 33, "long " * 30, "é" * 40, "checkout"),
)
INT32S = (0, 1, 2, 3, 4, 5, 6, 9, 17, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + 5, 2**64 - 1, 2**63)
INT64S = (0, 1, 5, 200, 127, 128, 10**18, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 200)
"""As varints write them: those above 2^63-1 are negative."""
TIMES = (
    *(0, 0, 1, 999, 1000, 1001, 1_700_000_000_000_000_000, 1_700_000_000_123_456_789),
    *(2**63 - 1, 2**62),
)
TIME_BEYOND = 2**63
DOUBLES = (
    *(0.0, -0.0, 1.0, -1.5, 0.1, 100000.0, 1e20, 1e21, 1e22, 123456789012345680000.0, 1e-6, 1e-7),
    *(5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 2.0**53, 1 / 3, 1e23, 9.5e-323),
    *(float("nan"), float("inf"), float("-inf")),
)
BYTES = (b"", b"\x00", b"ab", b"abc", b"\xff\xfe\xfd\xfc", bytes(range(40)))
ID_LENGTHS = {"trace_id": 16, "span_id": 8, "parent_span_id": 8}
ID_LENGTHS_ODD = (1, 7, 9, 15, 17)

COUNTS = (0, 0, 1, 1, 1, 2, 2, 3)
"""How many there are of a message of which there can be many."""
ATTRIBUTE_COUNTS = (0, 1, 2, 2, 3, 3, 4, 5, 7)
PLAIN = 0.1
"""How many requests have hardly any values but strings."""
MANY = 60
NUMBER_COUNTS = (0, 1, 2, 3, 6)
NESTING_MAX = 3
"""Values inside values, save for a few that go to protobuf's limit and beyond."""
DEPTHS = (5, 30, 45, 46, 47, 48, 49, 60)
POOL_SIZE = 400
"""Attributes are written once and used again, since most of a request is attributes."""
POOL_SIZE_SMALL = 4
"""For hypothesis, which does not like to make many choices."""

UNKNOWN_FIELDS = (
    varint(900 << 3) + varint(5),
    varint(900 << 3 | 1) + bytes(8),
    varint(29 << 3 | 2) + b"\x03abc",
    varint(31 << 3 | 5) + bytes(4),
    # Numbers that OTLP knows, with a wire type that it does not.
    *(varint(number << 3 | 5) + bytes(4) for number in (1, 2, 3)),
)
PLAIN_VALUES = (1, 1, 1, 1, 2, 3, 3, 4, 7)
"""Fields of an AnyValue that hold no other values."""
ARRAY, KVLIST, STRINDEX = 5, 6, 8


class Writer:
    """Writes random requests."""

    def __init__(
        self,
        rand: Random,
        *,
        wildness: float = 0.15,
        badness: float = 0.005,
        pool_size: int = POOL_SIZE,
    ) -> None:
        self._rand = rand
        self._pool_size = pool_size
        self._wildness = wildness
        """How many messages are as no client writes them."""
        self._badness = badness
        """How many ids, times and counts are such that their record can never be a row."""
        self._attributes: list[bytes] = []
        self._is_plain = False

    def request(self, signal: str) -> bytes:
        """The bytes of a request."""
        message: Any = CLASSES[signal]
        self._is_plain = self._happens(PLAIN)
        return self._message(message.DESCRIPTOR)

    def _pick(self, pool: Sequence[Any]) -> Any:
        return pool[int(self._rand.random() * len(pool))]

    def _happens(self, chance: float) -> bool:
        return self._rand.random() < chance

    def _message(self, message: Descriptor) -> bytes:
        is_wild = self._happens(self._wildness)
        pieces: list[bytes] = []
        chosen = {oneof.name: self._pick(oneof.fields) for oneof in message.oneofs}
        for field in message.fields:
            oneof = field.containing_oneof
            is_wanted = oneof is None or field is chosen[oneof.name]
            if (is_wanted and self._happens(0.85)) or (is_wild and self._happens(0.3)):
                pieces += self._field(field)
                if is_wild and self._happens(0.3):
                    pieces += self._field(field)
        return self._joined(pieces, is_wild)

    def _joined(self, pieces: list[bytes], is_wild: bool) -> bytes:
        """In their order; a wild message in any order, and with more."""
        if is_wild:
            if self._happens(0.3):
                pieces.append(self._pick(UNKNOWN_FIELDS))
            pieces.sort(key=lambda _: self._rand.random())
        return b"".join(pieces)

    def _field(self, field: FieldDescriptor) -> list[bytes]:
        inner = field.message_type
        if inner is None:
            return self._numbers(field) if field.is_repeated else [self._scalar(field)]
        if inner.name == "KeyValue":
            count = self._pick(ATTRIBUTE_COUNTS) if self._happens(0.99) else MANY
            return [_delimited(field.number, self._attribute()) for _ in range(count)]
        if inner.name == "AnyValue":
            return [_delimited(field.number, self._value(0))]
        count = self._pick(COUNTS) if field.is_repeated else 1
        return [_delimited(field.number, self._message(inner)) for _ in range(count)]

    # Attributes and values.

    def _attribute(self) -> bytes:
        if self._is_plain:
            return self._key_value(0)
        if len(self._attributes) < self._pool_size:
            self._attributes.append(self._key_value(0))
            return self._attributes[-1]
        index = int(self._rand.random() * self._pool_size)
        if self._happens(0.03):
            self._attributes[index] = self._key_value(0)
        return self._attributes[index]

    def _key_value(self, nesting: int) -> bytes:
        is_wild = self._happens(self._wildness / 2)
        pieces = []
        for _ in range(2 if is_wild else 1):
            if self._happens(0.95):
                pieces.append(_delimited(1, self._pick(KEYS).encode()))
            if self._happens(0.95):
                pieces.append(_delimited(2, self._value(nesting)))
        return self._joined(pieces, is_wild)

    def _value(self, nesting: int) -> bytes:
        """What an AnyValue holds; a wild one has made its choice several times."""
        if self._is_plain:
            return _delimited(1, self._pick(TEXTS).encode())
        if self._happens(0.002):
            return self._deep()
        is_wild = self._happens(self._wildness / 2)
        pieces = [self._choice(nesting) for _ in range(3 if is_wild else self._happens(0.95))]
        return self._joined(pieces, is_wild)

    def _choice(self, nesting: int) -> bytes:
        number = self._pick(PLAIN_VALUES)
        if nesting < NESTING_MAX and self._happens(0.3):
            number = self._pick((ARRAY, KVLIST))
        elif self._happens(0.01):
            number = STRINDEX
        if number == 1:
            return _delimited(1, self._pick(TEXTS).encode())
        if number == 4:
            return b"\x21" + self._double()
        if number == 7:
            return _delimited(7, self._pick(BYTES))
        if number < ARRAY or number == STRINDEX:
            return varint(number << 3) + varint(self._pick(INT64S))
        inner = self._value if number == ARRAY else self._key_value
        count = self._pick(COUNTS) if self._happens(0.98) else MANY // 3
        items = [_delimited(1, inner(nesting + 1)) for _ in range(count)]
        return _delimited(number, b"".join(items))

    def _deep(self) -> bytes:
        value = b"\x0a\x01a"
        for _ in range(self._pick(DEPTHS)):
            if self._happens(0.5):
                value = _delimited(ARRAY, _delimited(1, value))
            else:
                value = _delimited(KVLIST, _delimited(1, _delimited(2, value)))
        return value

    # Numbers, texts and bytes.

    def _scalar(self, field: FieldDescriptor) -> bytes:
        number, kind = field.number, field.type
        if kind == F.TYPE_STRING:
            return _delimited(number, self._pick(TEXTS).encode())
        if kind == F.TYPE_BYTES:
            return _delimited(number, self._id(ID_LENGTHS[field.name]))
        if kind in (F.TYPE_FIXED64, F.TYPE_DOUBLE, F.TYPE_SFIXED64):
            return varint(number << 3 | 1) + self._fixed64(kind)
        if kind == F.TYPE_FIXED32:
            return varint(number << 3 | 5) + struct.pack("<I", self._pick(INT32S) % 2**32)
        width = 10 if self._happens(0.02) else 0
        return varint(number << 3) + varint(self._pick(INT32S), width)

    def _fixed64(self, kind: int) -> bytes:
        if kind == F.TYPE_DOUBLE:
            return self._double()
        if kind == F.TYPE_SFIXED64:
            return struct.pack("<Q", self._pick(INT64S))
        is_bad = self._happens(self._badness)
        return struct.pack("<Q", TIME_BEYOND if is_bad else self._pick(TIMES))

    def _double(self) -> bytes:
        if self._happens(0.3):
            return struct.pack("<Q", int(self._rand.random() * 2**53) * 2047)
        if self._happens(0.3):
            return struct.pack("<d", round(self._rand.random() * 1000, 3))
        return struct.pack("<d", self._pick(DOUBLES))

    def _id(self, length: int) -> bytes:
        if self._happens(0.1):
            return b""
        if self._happens(self._badness):
            length = self._pick(ID_LENGTHS_ODD)
        if self._happens(0.05):
            return bytes(length)
        return (int(self._rand.random() * 2**53).to_bytes(8, "big") * 3)[:length]

    def _numbers(self, field: FieldDescriptor) -> list[bytes]:
        """A list of numbers: packed, one by one, or both."""
        values = [self._item(field.type) for _ in range(self._pick(NUMBER_COUNTS))]
        if field.type == F.TYPE_STRING:
            return [_delimited(field.number, value) for value in values]
        cut = self._pick((0, 0, 0, len(values), len(values) // 2))
        wire_type = 0 if field.type == F.TYPE_UINT64 else 1
        pieces = [varint(field.number << 3 | wire_type) + value for value in values[:cut]]
        if cut < len(values) or self._happens(0.1):
            pieces.append(_delimited(field.number, b"".join(values[cut:])))
        return pieces

    def _item(self, kind: int) -> bytes:
        if kind == F.TYPE_STRING:
            return bytes(self._pick(TEXTS).encode())
        if kind == F.TYPE_UINT64:
            return varint(TIME_BEYOND if self._happens(self._badness) else self._pick(TIMES))
        return self._fixed64(kind)


def _delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def numbered(bodies: Iterable[bytes]) -> list[ExportRequest]:
    """Requests as the log would hand them out."""
    return [
        ExportRequest(
            partition=3, offset=100 + number, ingest_time_ms=1_700_000_000_000 + number, body=body
        )
        for number, body in enumerate(bodies)
    ]


@st.composite
def bodies(draw: st.DrawFn, signal: str) -> list[bytes]:
    """Several requests, some of them damaged."""
    rand = draw(st.randoms(use_true_random=False))
    wildness = draw(st.sampled_from((0.0, 0.2, 0.9)))
    writer = Writer(rand, wildness=wildness, pool_size=POOL_SIZE_SMALL)
    written = [writer.request(signal) for _ in range(draw(st.integers(0, 3)))]
    return [scribble(body, rand) if draw(st.booleans()) and body else body for body in written]
