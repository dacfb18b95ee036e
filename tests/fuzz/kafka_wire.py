"""Sends mutated messages to the decoders of the Kafka port.

Every message version is in the corpus. Bytes are either refused with Malformed, or accepted: then
the message can be encoded, and reading that gives the same bytes again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from frazil.errors import Malformed
from frazil.kafka.wire.apis import APIS
from frazil.kafka.wire.codec import decode, encode
from frazil.kafka.wire.headers import decode_request, decode_request_header, encode_request
from frazil.kafka.wire.schema import KafkaMessage
from tests.kafka.wire.examples import DEFINITIONS, Examples, class_of, versions_of

DISAGREEMENTS_MAX = 10
"""Examples in the report."""
PER_VERSION = 2
LENGTHS = (0, 1, 2, -1, -2, 127, 128, 0x7FFF, -0x8000, 0x7FFF_FFFF, -0x8000_0000)
VARINTS = tuple(
    bytes.fromhex(digits)
    for digits in (
        *("00", "01", "7f", "8000", "8001", "ff7f", "ffffffff07", "ffffffff0f", "ffffffff1f"),
        *("ffffffffff01", "8080808000", "808080808000", "80"),
    )
)
TEXTS = tuple(map(bytes.fromhex, ("80", "ff", "c2", "e282", "c1bf", "eda080", "f4908080", "c328")))
"""Not UTF-8."""


def run(count: int, seed: int) -> dict[str, object]:
    """Decode `count` mutated messages and frames. Same seed, same bytes."""
    rand = Random(seed)
    corpus = list(examples(rand))
    accepted = 0
    disagreements: list[str] = []
    for number in range(count):
        kind, version, data = corpus[number % len(corpus)]
        mutated = mutate(data, rand.choice(corpus)[2], rand)
        is_frame = kind.VERSIONS.name.endswith("Request") and number % 3 == 0
        if is_frame:
            head = struct.pack(">hhih", kind.VERSIONS.api_key, version, number % 1000, 1) + b"c"
            mutated = mutate(head + mutated, head, rand)
        try:
            accepted += judge_frame(mutated) if is_frame else judge(kind, version, mutated)
        except Exception as error:  # noqa: BLE001 - top of loop: any other error is a finding
            if len(disagreements) < DISAGREEMENTS_MAX:
                name = kind.VERSIONS.name
                disagreements.append(f"{name} {version} {mutated.hex()}: {error!r}")
    return {
        "messages": count,
        "accepted": accepted,
        "refused": count - accepted,
        "disagreements": disagreements,
    }


def examples(rand: Random) -> list[tuple[type[KafkaMessage], int, bytes]]:
    """Return valid bytes of every version of every message."""
    found = []
    for definition in DEFINITIONS.values():
        for version in versions_of(definition):
            for _ in range(PER_VERSION):
                made = Examples(definition, version, rand)
                data = b"".join(encode(made.message(made.tree()), version))
                found.append((class_of(definition), version, data))
    return found


def judge(kind: type[KafkaMessage], version: int, data: bytes) -> bool:
    """Is it accepted? Raises what must not happen."""
    try:
        message = decode(kind, version, data)
    except Malformed:
        return False
    once = b"".join(encode(message, version))
    again = b"".join(encode(decode(kind, version, once), version))
    assert once == again, "a message changes when it is written and read"
    return True


def judge_frame(frame: bytes) -> bool:
    """The same for a request with its header."""
    try:
        header = decode_request_header(frame)
        request = decode_request(header, frame)
    except Malformed:
        return False
    assert APIS[header.api_key].request is type(request)
    sent = encode_request(request, header.api_version, header.correlation_id, header.client_id)
    again = b"".join(sent)[4:]
    assert decode_request_header(again)[:4] == header[:4], "a header changes"
    return judge(type(request), header.api_version, frame[header.size :])


def mutate(data: bytes, other: bytes, rand: Random) -> bytes:
    """Return the bytes after one to three mutations."""
    for _ in range(rand.choice((1, 1, 2, 3))):
        data = rand.choice(MUTATIONS)(data, other, rand)
    return data


def _place(data: bytes, rand: Random) -> int:
    return rand.randrange(len(data) + 1)


def _flip(data: bytes, _: bytes, rand: Random) -> bytes:
    at = _place(data, rand)
    return data[:at] + bytes([rand.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, _: bytes, rand: Random) -> bytes:
    return data[: _place(data, rand)]


def _remove(data: bytes, _: bytes, rand: Random) -> bytes:
    at = _place(data, rand)
    return data[:at] + data[at + rand.choice((1, 2, 4, 8)) :]


def _repeat(data: bytes, _: bytes, rand: Random) -> bytes:
    begin, end = sorted((_place(data, rand), _place(data, rand)))
    return data[:end] + data[begin:end][:64] + data[end:]


def _splice(data: bytes, other: bytes, rand: Random) -> bytes:
    return data[: _place(data, rand)] + other[_place(other, rand) :]


def _length(data: bytes, _: bytes, rand: Random) -> bytes:
    at = _place(data, rand)
    value = rand.choice(LENGTHS)
    piece = struct.pack(">i", value)
    piece = piece[2:] if rand.random() < 0.4 else piece
    return data[:at] + piece + data[at + len(piece) :]


def _varint(data: bytes, _: bytes, rand: Random) -> bytes:
    at = _place(data, rand)
    return data[:at] + rand.choice(VARINTS) + data[at + 1 :]


def _text(data: bytes, _: bytes, rand: Random) -> bytes:
    at = _place(data, rand)
    piece = rand.choice(TEXTS)
    return data[:at] + piece + data[at + len(piece) :]


MUTATIONS: tuple[Callable[[bytes, bytes, Random], bytes], ...] = (
    *(_flip, _flip, _cut, _remove, _repeat, _splice, _length, _varint, _text),
)
