"""Compares the OTLP/JSON reader with protobuf's on bodies generated from descriptors and mutated.

`run(count, seed)` compares, for each body, whether it is accepted and its meaning. The oracle is
`google.protobuf.json_format`, adapted to OTLP's ids and to our documented rules where it differs:
`DIFFERENCES` is the whole list.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from frazil.errors import Malformed
from frazil.ingest.otlp.json import protobuf_of_json
from frazil.ingest.otlp.messages import REQUESTS
from frazil.model import Signal

DIFFERENCES = {
    "ids": "OTLP writes ids in hex; proto3's JSON has base64 for all bytes",
    "objects": "json_format accepts any iterable as a message: a string, an array",
    "spellings": "a field under both of its names: json_format merges them, or the last wins",
    "brackets": "json_format refuses keys like [a.b] as extensions; Frazil ignores them",
    "integers": "strings: json_format accepts what Python's int() and float() do: _ + tabs, ...",
    "doubles": "the same for doubles; it also accepts bools and strings beyond the largest double",
    "enums": "json_format drops unknown names; takes quoted numbers, bools, 1.5 for 1, 2^32 for 0",
    "base64": "json_format skips characters that are not base64, and accepts any padding",
    "overflow": "Python reads 1e400 as infinity; Frazil refuses it, also in unknown fields",
    "surrogates": "Python reads lone surrogates; Frazil refuses them, also in unknown fields",
}
"""Where Frazil and json_format differ, and why. Frazil is more lenient only for `brackets`."""

CLASSES: dict[Signal, type[Message]] = {
    signal: GetMessageClass(REQUESTS[signal]) for signal in Signal
}
EXAMPLES_MAX = 10
"""Disagreements that are reported."""


def run(count: int, seed: int) -> dict[str, object]:
    """Compare `count` bodies. Same seed, same bodies."""
    rand = Random(seed)
    signals = list(Signal)
    kinds: Counter[str] = Counter()
    differences: Counter[str] = Counter()
    disagreements: list[str] = []
    accepted_count = disagreement_count = 0
    for number in range(count):
        signal = signals[number % len(signals)]
        kind, body = body_of(rand, signal)
        expected = oracle(signal, body, differences)
        found = verdict(signal, body)
        kinds[f"{kind}, {'refused' if found is None else 'accepted'}"] += 1
        accepted_count += found is not None
        if found != expected:
            disagreement_count += 1
            if len(disagreements) < EXAMPLES_MAX:
                disagreements.append(f"{signal.value} {body!r}: {found!r}, not {expected!r}")
    return {
        "bodies": count,
        "accepted": accepted_count,
        "refused": count - accepted_count,
        "disagreement_count": disagreement_count,
        "disagreements": disagreements,
        "kinds": dict(sorted(kinds.items())),
        "differences": dict(sorted(differences.items())),
    }


# Frazil's reader.


def verdict(signal: Signal, body: bytes) -> bytes | str | None:
    """Return the body as Frazil reads it, serialized by protobuf; None if refused.

    An unexpected error or invalid output is returned as text.
    """
    try:
        data = protobuf_of_json(signal, body)
    except Malformed:
        return None
    except Exception as error:  # noqa: BLE001 - every error belongs into the verdict
        return f"raised {error!r}"
    try:
        again = CLASSES[signal].FromString(data).SerializeToString()
    except DecodeError as error:
        return f"protobuf refuses {data!r}: {error}"
    # Only the order of fields may differ. Unknown fields or explicit zeros would add bytes.
    return again if len(again) == len(data) else f"{data!r} where protobuf writes {again!r}"


# The oracle.


class Stricter(Exception):
    """Refused because of one of the `DIFFERENCES`, named by the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The field behind a key."""

    name: str
    json_name: str
    kind: str
    repeated: bool
    oneof: str | None
    table: Table
    names: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The fields of a message, and its keys in both spellings."""

    fields: list[Known]
    keys: dict[str, Known]


def oracle(signal: Signal, body: bytes, differences: Counter[str]) -> bytes | None:
    """Return the body as json_format reads it by our rules, serialized; None if refused."""
    message = CLASSES[signal]()
    try:
        request = by_our_rules(read(body), TABLES[signal])
        # json_format counts the request as one level; protobuf parsers do not.
        json_format.ParseDict(request, message, ignore_unknown_fields=True, max_recursion_depth=101)
    except Stricter as refused:
        differences[str(refused)] += 1
        return None
    except (json_format.ParseError, ValueError, TypeError, OverflowError, RecursionError):
        return None
    return message.SerializeToString()


def read(body: bytes) -> object:
    """Read JSON as in RFC 8259, with Python's reader."""
    text = body.decode()
    value: object = json.loads(text, parse_float=_finite, parse_constant=_no_constant)
    if "\\u" in text:
        # Lists of pairs keep the values of duplicate keys.
        decoded = json.dumps(json.loads(text, object_pairs_hook=list), ensure_ascii=False)
        if SURROGATE.search(decoded):
            raise Stricter("surrogates")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Stricter("overflow")
    return number


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def by_our_rules(value: object, table: Table) -> dict[str, object]:
    """Convert an object so that json_format reads it by our rules, or raise `Stricter`."""
    if type(value) is not dict:
        raise Stricter("objects")
    result: dict[str, object] = {}
    keys = table.keys
    names = Counter([keys[key].name for key in value if key in keys and value[key] is not None])
    for key, item in value.items():
        known = keys.get(key)
        if known is None:
            if not BRACKETS.match(key):
                result[key] = item
        elif item is None:
            if known.name not in names:
                result[key] = None
        elif names[known.name] > 1:
            raise Stricter("spellings")
        elif known.repeated and type(item) is list:
            result[key] = [e if e is None else _strict(e, known) for e in item]
        else:
            result[key] = item if known.repeated else _strict(item, known)
    return result


def _strict(value: Any, known: Known) -> object:
    kind = known.kind
    if kind == "message":
        return by_our_rules(value, known.table)
    if kind == "id":
        return _base64_of_hex(value)
    text = type(value) is str
    if (
        (kind == "integer" and text and not _is_number(value))
        or (kind == "double" and not _is_double(value))
        or (kind == "enum" and not _is_enum(value, known.names))
        or (kind == "bytes" and text and not _is_base64(value))
    ):
        raise Stricter("base64" if kind == "bytes" else f"{kind}s")
    return value


def _base64_of_hex(value: object) -> str:
    if type(value) is not str or len(value) % 2 or not HEX.fullmatch(value):
        raise Stricter("ids")
    return base64.b64encode(bytes.fromhex(value)).decode()


def _is_number(text: str) -> bool:
    return len(text) <= 2000 and NUMBER.fullmatch(text) is not None


def _is_double(value: object) -> bool:
    if type(value) is str:
        special = value in ("NaN", "Infinity", "-Infinity")
        return special or (_is_number(value) and not math.isinf(float(value)))
    return type(value) is not bool


def _is_enum(value: Any, names: dict[str, int]) -> bool:
    if type(value) is str:
        return value in names
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return whole and -(2**31) <= value < 2**31


def _is_base64(text: str) -> bool:
    letters = text.rstrip("=")
    padding = len(text) - len(letters)
    fits = padding in (0, -len(letters) % 4) and len(letters) % 4 != 1
    return fits and LETTERS.fullmatch(letters) is not None


HEX = re.compile(r"[0-9a-fA-F]*")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
LETTERS = re.compile(r"[A-Za-z0-9+/_-]*")
BRACKETS = re.compile(r"\[[a-zA-Z0-9._]*\]$")
SURROGATE = re.compile("[\ud800-\udfff]")


def table_of(message: Descriptor | None, made: dict[str, Table]) -> Table:
    """Return the table of a message, built recursively for its fields."""
    if message is None:
        return NOTHING
    if message.full_name in made:
        return made[message.full_name]
    table = made[message.full_name] = Table(fields=[], keys={})
    for field in message.fields:
        enum, oneof = field.enum_type, field.containing_oneof
        known = Known(
            name=field.name,
            json_name=field.json_name,
            kind=_kind(field),
            repeated=field.is_repeated,
            oneof=None if oneof is None else oneof.name,
            table=table_of(field.message_type, made),
            names={} if enum is None else {value.name: value.number for value in enum.values},
        )
        table.fields.append(known)
        table.keys[field.json_name] = table.keys[field.name] = known
    return table


def _kind(field: FieldDescriptor) -> str:
    if field.type == FieldDescriptor.TYPE_BYTES and field.name.endswith("_id"):
        return "id"
    return {
        FieldDescriptor.TYPE_MESSAGE: "message",
        FieldDescriptor.TYPE_STRING: "string",
        FieldDescriptor.TYPE_BYTES: "bytes",
        FieldDescriptor.TYPE_BOOL: "bool",
        FieldDescriptor.TYPE_DOUBLE: "double",
        FieldDescriptor.TYPE_ENUM: "enum",
    }.get(field.type, "integer")


NOTHING = Table(fields=[], keys={})
MADE: dict[str, Table] = {}
TABLES = {signal: table_of(REQUESTS[signal], MADE) for signal in Signal}
OTHER_SPELLING = {
    key: known.name if key == known.json_name else known.json_name
    for table in MADE.values()
    for key, known in table.keys.items()
}
KEYS = sorted(OTHER_SPELLING)
KINDS = {key: known.kind for table in MADE.values() for key, known in table.keys.items()}


# Bodies.


def body_of(rand: Random, signal: Signal) -> tuple[str, bytes]:
    """Return the kind of a body, and a random body of that kind."""
    request = generate(rand, TABLES[signal], depth=0)
    dice = rand.random()
    if dice < 0.1:
        return "as generated", text_of(request)
    if dice < 0.7:
        for _ in range(1 + int(rand.random() * 3)):
            mutate(rand, request)
        return "values mutated", text_of(request)
    return "bytes mutated", mutate_bytes(rand, text_of(request))


def text_of(request: object) -> bytes:
    """Return the JSON text, with the raw tokens and duplicate keys of `RAW` and `TWICE`."""
    text = msgspec.json.encode(request)
    if b"@@" in text:
        text = re.sub(rb'"@@(\d+)@@"', lambda match: RAW[int(match[1])], text)
    return text.replace(TWICE_TEXT, b"") if TWICE_TEXT in text else text


TWICE, TWICE_TEXT = "\2", b"\\u0002"
"""A suffix of keys that is removed from the text, which makes duplicate keys."""

RAW = [
    *[b"1e400", b"-1e400", b"NaN", b"-Infinity", b"-0", b"-0.0", b"1E3", b"120e-1", b"1e-400"],
    *[b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809", b"9" * 309],
    *[b"1.7976931348623157e308", b"1.7976931348623159e308", b"9007199254740993.0", b"4.9e-324"],
    *[b"1.8446744073709552e19", b"-9.223372036854775808e18", b"9" * 5000, b"01", b"+1", b"1."],
    *[b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\xed\xa0\x80"'],
    *[b'"\xff"', b'"\xc3\xa9"', b'"\\u0031\\u0032"', b'{"a":1,"a":{}}', b"true ", b" null", b"tru"],
    *[b"[" * 5000, b"[" * 5000 + b"]" * 5000, b'{"arrayValue":{"values":[' * 9000],
]
"""Raw tokens that no JSON value encodes to."""

WILD: dict[str, list[object]] = {
    "integer": [
        *[0, 1, -1, 1.0, -1.0, 1.5, -0.0, 1e19, "0", "1", "-1", "1.0", "1.5", "1e3", "1e19", "007"],
        *[2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63],
        *[-(2**63), 2**64 - 1, "2147483648", "4294967296", "9223372036854775807"],
        *["9223372036854775808", "-9223372036854775808", "-9223372036854775809"],
        *["18446744073709551615", "18446744073709551616", "", "+1", " 1", "1 ", "1_0", "\t1"],
        *["--1", "\u0661", "0x10", "1e", "1e400", "0" * 1999 + "1", "0" * 2000 + "1"],
    ],
    "double": [
        *[0, -1, 1.5, -0.0, 2**53 + 1, 2**64 - 1, 1e308, 5e-324, "0.1", "-0", "1e3", "1e400"],
        *["-1e400", "1" + "0" * 400, "NaN", "Infinity", "-Infinity", "nan", "inf", "infinity"],
        *["+1", " 1", "1_0", ".5", "5.", "", True],
    ],
    "enum": [
        *[0, 1, 2, -1, 99, 2.0, 1.5, 2**31 - 1, 2**31, -(2**31), 2**32, True, "1", "1.0", "SERVER"],
        *["SPAN_KIND_SERVER", "SEVERITY_NUMBER_INFO", "STATUS_CODE_ERROR", "span_kind_server", ""],
    ],
    "id": [
        *["", "00", "0g", "abc", "AbCdEf", "00 11", "\u0661\u0661", "0x00", "YWJj", "YQ==", 0],
        *["5b8efff798038103d269b633813fc60c", "EEE19B7EC3C1B174", "00" * 17],
    ],
    "bytes": [
        *["", "YQ==", "YQ=", "YQ", "Y", "YWJj", "YWJj=", "-_-_", "+/+/", "-/8=", "YW\nJj", "=", 0],
        *["YQ==YQ==", "YR==", "Y*Q=", "\u00e9\u00e9", "YWI=", "YWI=="],
    ],
    "string": ["", "a", "\u00e9", "\U0001f600", "\0", "\uffff", "x" * 300, 0, True],
    "bool": [True, False, 0, 1, "true", "false", ""],
    "message": [
        *[None, "", "x", 0, [], {}, [{}], [None], [1, "2"], ["a"], {"a": {"b": [1]}}],
        *[{"stringValue": ""}, {"intValue": "0"}, {"key": "k", "value": {}}, {"boolValue": None}],
        *[{"bytesValue": "YQ"}, {"bytesValue": "YQ="}, {"bytesValue": "Y*Q="}, {"asInt": 1}],
        *[{"intValue": 1, "doubleValue": 1}, {"arrayValue": {}}, {"kvlistValue": {"values": [{}]}}],
    ],
}
WILD_TEXTS = {kind: [msgspec.json.encode(v) for v in values] for kind, values in WILD.items()}
WILD_TEXTS["any"] = [text for texts in WILD_TEXTS.values() for text in texts]
"""Edge values as JSON text, so that each use decodes a new object."""

SPINE = {
    *("resource_logs", "scope_logs", "log_records", "resource_spans", "scope_spans", "spans"),
    *("resource_metrics", "scope_metrics", "metrics", "data_points", "key", "value"),
}
"""Fields that are always set, because records depend on them."""

SCALARS: dict[str, list[object]] = {
    "string": ["", "a", "GET", "/items/7", "service.name", "grüße", "\0", "x" * 130],
    "bytes": ["", "YQ==", "YQ", "-_8", "+/8=", "AAECAwQFBgc="],
    "id": ["", "5b8efff798038103d269b633813fc60c", "EEE19B7EC3C1B174", "0a", "00" * 16, "aB" * 15],
    "bool": [True, False],
    "integer": [0, 1, 7, 127, 128, 2**31 - 1, "0", "300", "1700000000", 2.0, "1e3", "5.0"],
    "double": [0, 0.0, -0.0, 1, -1.5, 1e-300, "NaN", "Infinity", "-Infinity", "0.25", "1e3", 2**70],
    "enum": [0, 1, 2, 3, 9, 77, -1, 2.0],
}


def generate(rand: Random, table: Table, *, depth: int) -> dict[str, object]:
    """Return a random valid object with the fields of SPINE."""
    result: dict[str, object] = {}
    oneofs: set[str] = set()
    start = int(rand.random() * len(table.fields))
    for known in table.fields[start:] + table.fields[:start]:
        odds = 1.0 if known.name in SPINE else 0.9 if known.oneof else 0.15
        deep = depth > DEPTH_MAX and known.kind == "message"
        if deep or rand.random() >= odds or known.oneof in oneofs:
            continue
        if known.oneof:
            oneofs.add(known.oneof)
        key = known.json_name if rand.random() < 0.9 else known.name
        if known.repeated:
            count = 1 if rand.random() < 0.8 else int(rand.random() * 4)
            result[key] = [_generated(rand, known, depth) for _ in range(count)]
        else:
            result[key] = _generated(rand, known, depth)
    return result


DEPTH_MAX = 9


def _generated(rand: Random, known: Known, depth: int) -> object:
    if known.kind == "message":
        return generate(rand, known.table, depth=depth + 1)
    if known.names and rand.random() < 0.3:
        return _one(rand, list(known.names))
    return _one(rand, SCALARS[known.kind])


def _one(rand: Random, choices: list[Any]) -> Any:
    return choices[int(rand.random() * len(choices))]


# Mutations of values.

Holder = Any
"""A dict or a list."""


def mutate(rand: Random, request: dict[str, object]) -> None:
    """Apply a random mutation at a random position."""
    slot = _random_slot(rand, request)
    if slot is not None:
        _one(rand, MUTATIONS)(rand, *slot, request)


def _random_slot(rand: Random, request: Holder) -> tuple[Holder, Any] | None:
    """Return a random container and a key or index in it."""
    holder = request
    while holder:
        key = _one(rand, list(holder)) if type(holder) is dict else int(rand.random() * len(holder))
        inner = holder[key]
        if type(inner) not in (dict, list) or not inner or rand.random() < 0.06:
            return holder, key
        holder = inner
    return None


def _wild(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    holder[key] = _any_value(rand, "any")


def _close(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    """Set an edge value of the field's kind."""
    holder[key] = _any_value(rand, KINDS.get(key, "any"))


def _any_value(rand: Random, kind: str) -> object:
    return msgspec.json.decode(_one(rand, WILD_TEXTS[kind]))


def _raw(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    holder[key] = f"@@{int(rand.random() * len(RAW))}@@"


def _drop(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    del holder[key]


def _rename(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    if type(holder) is dict:
        holder[_other_key(rand, key)] = holder.pop(key)


def _add(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    if type(holder) is dict:
        other = _other_key(rand, key)
        holder[other] = _any_value(rand, KINDS.get(other.removesuffix(TWICE), "any"))
    else:
        holder.insert(key, _any_value(rand, "any"))


def _other_key(rand: Random, key: str) -> str:
    """Return another key: the other spelling, a duplicate, another field's, or an unknown one."""
    dice = rand.random()
    if dice < 0.4:
        return OTHER_SPELLING.get(key, key)
    if dice < 0.6:
        return key + TWICE
    return str(_one(rand, KEYS)) if dice < 0.9 else str(_one(rand, ["", "[a.b]", key + "s", "é"]))


def _swap(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    other = _random_slot(rand, request)
    if other is not None:
        other_holder, other_key = other
        holder[key], other_holder[other_key] = other_holder[other_key], holder[key]


def _graft(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    other = _random_slot(rand, request)
    if other is not None:
        holder[key] = _copy(other[0][other[1]])


def _copy(value: object) -> object:
    """Copy a value: a container that occurs twice could be swapped into itself."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _wrap(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    value = holder[key]
    holder[key] = _one(
        rand, [[value], {"value": value}, {"values": [value]}, [value, _copy(value)]]
    )


def _nest(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    """Nest a value: in 5 % of cases to about the depth limit, otherwise a few levels."""
    value = holder[key] if type(holder[key]) is dict else {"intValue": 1}
    levels = 44 + int(rand.random() * 8) if rand.random() < 0.05 else 1 + int(rand.random() * 3)
    for _ in range(levels):
        inside = [value] if rand.random() < 0.9 else []
        value = {"arrayValue": {"values": inside}}
        if rand.random() < 0.03:
            value = {"kvlistValue": {"values": [{"key": "k", "value": value}]}}
    holder[key] = value


def _respell(rand: Random, holder: Holder, key: Any, request: Holder) -> None:
    """Write a value in another way, mostly with the same meaning."""
    value = holder[key]
    if type(value) is str:
        holder[key] = _one(rand, [value.upper(), value.lower(), value.rstrip("="), value + "0"])
    elif type(value) is int or type(value) is float:
        holder[key] = _one(rand, [str(value), float(value), -value, f"{value}e0"])
    else:
        holder[key] = None


MUTATIONS: list[Callable[[Random, Holder, Any, Holder], None]] = [
    *[_wild, _raw, _close, _close, _close, _close, _drop, _drop, _rename, _rename, _add, _add],
    *[_swap, _graft, _wrap, _nest, _respell, _respell, _respell],
]


# Mutations of bytes.

TOKENS = [
    *[b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u00", b"\\ud83d", b"0", b"1", b"-"],
    *[b".", b"e9", b"null", b"true", b"{}", b"[]", b'""', b" ", b"\n", b"\t", b"\0", b"\xff"],
    *[b"\xef\xbb\xbf", b"a", b'"a":1,', b'"traceId":"",', b"null,", b"{},", b"1,"],
]


def mutate_bytes(rand: Random, text: bytes) -> bytes:
    """Flip, delete, insert, repeat, move, splice or cut, up to three times."""
    for _ in range(1 + int(rand.random() * 3)):
        start = int(rand.random() * (len(text) + 1))
        elsewhere = int(rand.random() * (len(text) + 1))
        end = start + int(rand.random() * 9)
        before, piece, after = text[:start], text[start:end], text[end:]
        dice = rand.random()
        if dice < 0.35:
            flipped = bytes([piece[0] ^ 1 << int(rand.random() * 8)]) if piece else b""
            text = before + flipped + piece[1:] + after
        elif dice < 0.5:
            text = before + after
        elif dice < 0.8:
            text = before + _one(rand, TOKENS) + piece + after
        elif dice < 0.87:
            text = before + piece + piece + after
        elif dice < 0.94:
            text = text[:elsewhere] + piece + text[elsewhere:]
        elif dice < 0.97:
            text = before + text[elsewhere:]
        else:
            text = before
    return text
