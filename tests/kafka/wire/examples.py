"""Random messages of one version, made from Kafka's definitions and not from our classes.

A message is made as a tree of JSON in the form that Kafka's own converters read. `message`
makes an object of ours of it.
"""

from __future__ import annotations

import base64
from random import Random
from typing import Any

from frazil.kafka.wire.apis import message_class
from frazil.kafka.wire.schema import KafkaMessage, Struct, VersionRange
from tests.kafka.wire.definitions import Definition, definitions, missing_jars, snake

Tree = dict[str, Any]

INTEGERS = {"int8": (8, True), "int16": (16, True), "uint16": (16, False)} | {
    "int32": (32, True),
    "int64": (64, True),
}
"""Bits, and whether there is a sign."""
TEXTS = ("", "a", "orders", "größe", "测试", "🦊", "x" * 126, "y" * 127, "z" * 1_100)
MANY = 200
"""Elements of an array whose count takes two bytes."""

DEFINITIONS = {} if missing_jars() else {each.name: each for each in definitions()}
"""All messages by name; none if Kafka's jars are not there."""


def versions_of(definition: Definition) -> range:
    valid = VersionRange.parse(definition.json["validVersions"])
    return range(valid.first, valid.last + 1)


def class_of(definition: Definition) -> type[KafkaMessage]:
    return message_class(definition.module, definition.name)


class Examples:
    """Makes trees of one version of a message."""

    def __init__(self, definition: Definition, version: int, random: Random) -> None:
        self._definition = definition
        self._version = version
        self._random = random
        self._shared = {each["name"]: each for each in definition.json.get("commonStructs", ())}

    def tree(self) -> Tree:
        return self._struct(self._definition.json["fields"])

    def message(self, tree: Tree) -> KafkaMessage:
        """Return the same as an object of ours."""
        kind = class_of(self._definition)
        return self._object(kind, kind, self._definition.json["fields"], tree)  # type: ignore[return-value]

    def _inner(self, field: Tree) -> list[Tree]:
        fields: list[Tree] = (
            field.get("fields") or self._shared[field["type"].removeprefix("[]")]["fields"]
        )
        return fields

    def _has(self, field: Tree, key: str) -> bool:
        text = field.get(key, "none")
        return text != "none" and self._version in VersionRange.parse(text)

    def _present(self, fields: list[Tree]) -> list[Tree]:
        return [
            each
            for each in fields
            if self._has(each, "versions" if "versions" in each else "taggedVersions")
        ]

    def _struct(self, fields: list[Tree]) -> Tree:
        tree = {}
        for field in self._present(fields):
            if self._has(field, "taggedVersions") and self._random.random() < 0.5:
                continue
            tree[_camel(field["name"])] = self._value(field)
        return tree

    def _value(self, field: Tree) -> Any:
        if self._has(field, "nullableVersions") and self._random.random() < 0.3:
            return None
        kind = field["type"]
        if not kind.startswith("[]"):
            return self._single(kind, field)
        count = self._random.choice([0, 1, 1, 2, 3])
        if not kind[2].isupper() and self._random.random() < 0.05:
            count = MANY
        return [self._single(kind[2:], field) for _ in range(count)]

    def _single(self, kind: str, field: Tree) -> Any:
        random = self._random
        if kind in INTEGERS:
            bits, is_signed = INTEGERS[kind]
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
            return random.choice([0, 1, low, high, random.randint(low, high)])
        match kind:
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice([0.0, -1.5, random.random()])
            case "string":
                return random.choice(TEXTS)
            case "uuid":
                return _url_base64(random.choice([bytes(16), random.randbytes(16)]))
            case "bytes" | "records":
                size = random.choice([0, 1, 126, 127, 128, 2_000])
                return base64.b64encode(random.randbytes(size)).decode()
        return self._struct(self._inner(field))

    def _object(
        self, message: type[KafkaMessage], kind: type[Struct], fields: list[Tree], tree: Tree
    ) -> Struct:
        values = {}
        for field in self._present(fields):
            name = _camel(field["name"])
            if name not in tree:
                continue
            value = self._our_value(message, field, tree[name])
            if self._is_default_struct(field, value):
                value = None
            values[snake(field["name"])] = value
        return kind(**values)

    def _is_default_struct(self, field: Tree, value: Any) -> bool:
        """Is it a tagged struct of nothing but defaults? It is not sent, and read as None. One
        that may be null is sent: its default is null."""
        if self._has(field, "nullableVersions") or not self._has(field, "taggedVersions"):
            return False
        return isinstance(value, Struct) and value == type(value)()

    def _our_value(self, message: type[KafkaMessage], field: Tree, value: Any) -> Any:
        if value is None:
            return None
        if field["type"].startswith("[]"):
            inner = field | {"type": field["type"][2:]}
            return [self._our_value(message, inner, each) for each in value]
        match field["type"]:
            case "uuid":
                return base64.urlsafe_b64decode(value + "==")
            case "bytes" | "records":
                return base64.b64decode(value)
            case kind if kind[0].isupper():
                return self._object(message, getattr(message, kind), self._inner(field), value)
        return value


def _camel(name: str) -> str:
    return name[0].lower() + name[1:]


def _url_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
