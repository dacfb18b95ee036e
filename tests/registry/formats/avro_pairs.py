"""Pairs of Avro schemas: a random one, and the same after a few changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS: dict[str, Any] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": -2,
    "float": 1.5,
    "double": 2.5,
    "bytes": "b",
    "string": "text",
}
DEPTH_MAX = 3


class AvroSchemas:
    """Makes schemas of a seed."""

    def __init__(self, seed: int) -> None:
        self.rand = Random(seed)
        self._count = 0

    def pairs(self, count: int) -> Iterator[tuple[str, str]]:
        for _ in range(count):
            self._count = 0
            schema = self.record(0) if self.rand.random() < 0.7 else self.any_type(0)
            other = copy.deepcopy(schema)
            for _ in range(self.rand.choice((0, 1, 1, 1, 2, 3))):
                other = self.changed(other)
            yield json.dumps(schema), json.dumps(other)

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def any_type(self, depth: int) -> Any:
        kinds = ["primitive"] * 5
        if depth < DEPTH_MAX:
            kinds += ["record", "enum", "fixed", "array", "map", "union", "union"]
        kind = self.rand.choice(kinds)
        if kind == "primitive":
            name = self.rand.choice(PRIMITIVES)
            return {"type": name, "p": [1, {"q": "é"}]} if self.rand.random() < 0.1 else name
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            return {"type": kind, part: self.any_type(depth + 1)}
        if kind == "union":
            names = self.rand.sample(PRIMITIVES, self.rand.randint(1, 3))
            if self.rand.random() < 0.5:
                return [*names, self.record(depth + 1)]
            return names
        return self.record(depth) if kind == "record" else self.small(kind)

    def small(self, kind: str) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": kind, "name": self._name("N")}
        if kind == "fixed":
            return schema | {"size": self.rand.randint(0, 3)}
        symbols = self.rand.sample("ABCD", self.rand.randint(1, 3))
        schema["symbols"] = symbols
        if self.rand.random() < 0.3:
            schema["default"] = symbols[0]
        return schema

    def record(self, depth: int) -> dict[str, Any]:
        name = self._name("R")
        schema: dict[str, Any] = {"type": "record", "name": name}
        if self.rand.random() < 0.3:
            schema["namespace"] = self.rand.choice(("a", "a.b"))
        schema["fields"] = [self.field(depth) for _ in range(self.rand.randint(0, 3))]
        if self.rand.random() < 0.2:  # a list
            schema["fields"].append({"name": self._name("f"), "type": ["null", name]})
        return schema

    def field(self, depth: int) -> dict[str, Any]:
        field: dict[str, Any] = {"name": self._name("f"), "type": self.any_type(depth + 1)}
        if isinstance(field["type"], str) and self.rand.random() < 0.5:
            field["default"] = DEFAULTS[field["type"]]
        for name, value in (("doc", "why"), ("order", "descending"), ("aliases", ["old"])):
            if self.rand.random() < 0.1:
                field[name] = value
        return field

    def changed(self, schema: Any) -> Any:
        """Return a schema with one change somewhere."""
        if isinstance(schema, dict) and self.rand.random() < 0.75:
            if schema["type"] == "record" and schema["fields"] and self.rand.random() < 0.6:
                field = self.rand.choice(schema["fields"])
                field["type"] = self.changed(field["type"])
                if field.get("default", field) is not field:
                    del field["default"]
                return schema
            for part in ("items", "values"):
                if part in schema and self.rand.random() < 0.8:
                    return schema | {part: self.changed(schema[part])}
            return self._definition_changed(schema)
        if isinstance(schema, list) and self.rand.random() < 0.8:
            return self._union_changed(schema)
        return self.rand.choice(
            (self.any_type(2), schema, ["null", schema], self._promoted(schema))
        )

    def _promoted(self, schema: Any) -> Any:
        return self.rand.choice(PRIMITIVES) if isinstance(schema, str) else schema

    def _definition_changed(self, schema: dict[str, Any]) -> dict[str, Any]:
        change = self.rand.choice(("name", "alias", "namespace", "inside", "inside", "inside"))
        old = schema.get("name", "")
        if change == "name" and old:
            schema["name"] = self._name("X")
        elif change == "alias" and old:
            schema |= {"name": self._name("Y"), "aliases": [old]}
        elif change == "namespace" and old:
            schema["namespace"] = self.rand.choice(("", "c"))
        elif schema["type"] == "record":
            self._fields_changed(schema["fields"])
        elif schema["type"] == "enum":
            schema["symbols"] = self.rand.sample("ABCDE", self.rand.randint(1, 4))
            schema.pop("default", None)
            if self.rand.random() < 0.4:
                schema["default"] = schema["symbols"][-1]
        elif schema["type"] == "fixed":
            schema["size"] += self.rand.choice((0, 1))
        return schema

    def _fields_changed(self, fields: list[dict[str, Any]]) -> None:
        change = self.rand.choice(("add", "remove", "rename", "shuffle"))
        if change == "add":
            fields.append(self.field(2))
        elif change == "shuffle":
            self.rand.shuffle(fields)
        elif fields:
            chosen = self.rand.choice(fields)
            if change == "remove":
                fields.remove(chosen)
            else:
                aliases = [chosen["name"]] if self.rand.random() < 0.6 else []
                chosen |= {"name": self._name("g"), "aliases": aliases}

    def _union_changed(self, schema: list[Any]) -> list[Any]:
        branches = list(schema)
        change = self.rand.choice(("add", "remove", "shuffle", "inside"))
        if change == "add":
            missing = [name for name in PRIMITIVES if name not in branches]
            branches.append(self.rand.choice(missing))
        elif change == "remove" and len(branches) > 1:
            branches.remove(self.rand.choice(branches))
        elif change == "inside" and isinstance(branches[-1], dict):
            branches[-1] = self._definition_changed(branches[-1])
        self.rand.shuffle(branches)
        return branches
