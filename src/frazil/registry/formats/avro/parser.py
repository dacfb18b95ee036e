"""parse_avro: the JSON of a schema as types, checked as Avro's own parser does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from frazil.errors import Malformed
from frazil.registry.formats.avro.defaults import fits
from frazil.registry.formats.avro.types import NAMED, PRIMITIVES, AvroField, AvroType

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
ORDERS = frozenset({"ascending", "descending", "ignore"})
BRANCHES_MAX = 1000
"""Of a union: two are compared type by type."""
FIXED_BYTES_MAX = 2**31 - 1
_OF_NAMED = frozenset({"type", "name", "namespace", "doc", "aliases"})
_OF_KIND = {
    "record": _OF_NAMED | {"fields"},
    "error": _OF_NAMED | {"fields"},
    "enum": _OF_NAMED | {"symbols", "default"},
    "fixed": _OF_NAMED | {"size"},
    "array": frozenset({"type", "items"}),
    "map": frozenset({"type", "values"}),
}
_OF_FIELD = frozenset({"name", "type", "doc", "default", "aliases", "order"})

Names = dict[str, AvroType]


def parse_avro(document: Any, names: Names, *, checks_defaults: bool) -> AvroType:
    """Return the type that a document describes. `names` are types that it may use; its own are
    added. `Malformed` says what is wrong."""
    return _Parser(names, checks_defaults).parsed(document, "")


class _Parser:
    def __init__(self, names: Names, checks_defaults: bool) -> None:
        self._names = names
        self._checks_defaults = checks_defaults

    def parsed(self, node: Any, namespace: str) -> AvroType:
        if isinstance(node, str):
            return self._named(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace)
        if not isinstance(node, dict):
            raise Malformed(f"{_shown(node)} is not a type; write a name, an object or an array")
        kind = node.get("type")
        if not isinstance(kind, str):
            raise Malformed(f"{_shown(node)} has no type that is a name")
        if kind in PRIMITIVES:
            return AvroType(kind=kind, properties=_others(node, frozenset({"type"})))
        if kind in NAMED:
            return self._definition(kind, node, namespace)
        if kind in ("array", "map"):
            part = "items" if kind == "array" else "values"
            if part not in node:
                raise Malformed(f"the {kind} {_shown(node)} has no {part}")
            item = self.parsed(node[part], namespace)
            return AvroType(kind=kind, item=item, properties=_others(node, _OF_KIND[kind]))
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(kind=name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._names.get(full) or self._names.get(name)
        if found is None:
            raise Malformed(f"undefined name: {_shown(name)}")
        return found

    def _union(self, node: list[Any], namespace: str) -> AvroType:
        if len(node) > BRANCHES_MAX:
            raise Malformed(f"a union has {len(node)} types, above {BRANCHES_MAX}")
        branches = tuple(self.parsed(branch, namespace) for branch in node)
        seen: set[str] = set()
        for branch in branches:
            if branch.kind == "union":
                raise Malformed("a union holds a union directly; write the types of both in one")
            if branch.label in seen:
                raise Malformed(f"a union holds {branch.label} twice")
            seen.add(branch.label)
        return AvroType(kind="union", branches=branches)

    def _definition(self, kind: str, node: Mapping[str, Any], namespace: str) -> AvroType:
        name = self._full_name(node, namespace)
        inside = name.rpartition(".")[0]
        if name in self._names:
            raise Malformed(f"{name} is defined twice")
        defined = AvroType(
            kind=kind,
            name=name,
            doc=_text(node, "doc"),
            aliases=tuple(_aliased(alias, inside) for alias in _texts(node, "aliases")),
            properties=_others(node, _OF_KIND[kind]),
        )
        if kind == "enum":
            self._fill_enum(defined, node)
        elif kind == "fixed":
            size = node.get("size")
            if type(size) is not int or not 0 <= size <= FIXED_BYTES_MAX:
                raise Malformed(f"the size of {name} is {_shown(size)}; write a number of bytes")
            defined.size = size
        self._names[name] = defined
        if defined.is_record:
            self._fill_record(defined, node)
        return defined

    def _full_name(self, node: Mapping[str, Any], namespace: str) -> str:
        name = node.get("name")
        if not isinstance(name, str) or not name:
            raise Malformed(f"{_shown(node)} has no name")
        own = node.get("namespace")
        if own is not None and not isinstance(own, str):
            raise Malformed(f"the namespace of {name} is {_shown(own)}; write a text")
        if "." not in name:
            space = namespace if own is None else own
            name = f"{space}.{name}" if space else name
        name = name.removeprefix(".")  # the null namespace
        for part in name.split("."):
            if not NAME.fullmatch(part):
                raise Malformed(
                    f"{_shown(name)} is not a name: use letters, digits and _, and begin with no "
                    "digit"
                )
        if name in PRIMITIVES:
            raise Malformed(f"{name} is the name of a type of Avro; choose another")
        return name

    def _fill_enum(self, defined: AvroType, node: Mapping[str, Any]) -> None:
        symbols = node.get("symbols")
        if not isinstance(symbols, list):
            raise Malformed(f"the enum {defined.name} has no symbols")
        for symbol in symbols:
            if not isinstance(symbol, str) or not NAME.fullmatch(symbol):
                raise Malformed(f"{_shown(symbol)} is not a symbol of an enum")
        if len(set(symbols)) != len(symbols):
            raise Malformed(f"a symbol of the enum {defined.name} is there twice")
        defined.symbols = tuple(symbols)
        defined.enum_default = _text(node, "default")
        if defined.enum_default is not None and defined.enum_default not in symbols:
            raise Malformed(
                f"the default of the enum {defined.name} is {defined.enum_default}, which is none "
                "of its symbols"
            )

    def _fill_record(self, defined: AvroType, node: Mapping[str, Any]) -> None:
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise Malformed(f"the record {defined.name} has no fields")
        parsed: list[AvroField] = []
        seen: set[str] = set()
        for each in fields:
            one = self._field(each, defined)
            if one.name in seen:
                raise Malformed(f"{defined.name} has two fields named {one.name}")
            seen.add(one.name)
            parsed.append(one)
        defined.fields = tuple(parsed)
        if self._checks_defaults:
            for one in parsed:
                if one.has_default and not fits(one.type, one.default):
                    raise Malformed(
                        f"the default {_shown(one.default)} of the field {one.name} is no "
                        f"{one.type.label}"
                    )

    def _field(self, node: Any, record: AvroType) -> AvroField:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise Malformed(f"a field of {record.name} is {_shown(node)}; write an object, a name")
        name = node["name"]
        if not NAME.fullmatch(name):
            raise Malformed(f"{_shown(name)} is not the name of a field")
        if "type" not in node:
            raise Malformed(f"the field {name} of {record.name} has no type")
        order = _text(node, "order")
        if order is not None and order.lower() not in ORDERS:
            raise Malformed(f"the order of the field {name} is {order}")
        return AvroField(
            name=name,
            type=self.parsed(node["type"], record.namespace),
            aliases=tuple(_texts(node, "aliases")),
            doc=_text(node, "doc"),
            order=order,
            has_default="default" in node,
            default=node.get("default"),
            properties=_others(node, _OF_FIELD),
        )


def _aliased(alias: str, namespace: str) -> str:
    return alias if "." in alias or not namespace else f"{namespace}.{alias}"


def _text(node: Mapping[str, Any], name: str) -> str | None:
    value = node.get(name)
    if value is not None and not isinstance(value, str):
        raise Malformed(f"{name} is {_shown(value)}; write a text")
    return value


def _texts(node: Mapping[str, Any], name: str) -> list[str]:
    values = node.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise Malformed(f"{name} is {_shown(values)}; write an array of texts")
    return values


def _others(node: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name not in known}


def _shown(value: Any) -> str:
    return repr(value)[:80]
