"""Types as JSON, in the order of attributes that Avro's own printer has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from frazil.registry.formats.avro.types import NAMED, PRIMITIVES, AvroField, AvroType


def avro_document(schema: AvroType, known: Collection[str], *, is_sorted: bool = False) -> Any:
    """Return the JSON of a type. Types that are `known` are named only. With `is_sorted`,
    attributes that Avro does not define are in the order of their names."""
    return _Printer(set(known), is_sorted).printed(schema, "")


class _Printer:
    def __init__(self, seen: set[str], is_sorted: bool) -> None:
        self._seen = seen
        self._is_sorted = is_sorted

    def printed(self, schema: AvroType, namespace: str) -> Any:
        if schema.kind in PRIMITIVES:
            if not schema.properties:
                return schema.kind
            return {"type": schema.kind, **self._others(schema.properties)}
        if schema.kind == "union":
            return [self.printed(branch, namespace) for branch in schema.branches]
        if schema.kind in NAMED:
            return self._named(schema, namespace)
        part = "items" if schema.kind == "array" else "values"
        inner = self.printed(schema.inner, namespace)
        return {"type": schema.kind, part: inner, **self._others(schema.properties)}

    def _named(self, schema: AvroType, namespace: str) -> Any:
        if schema.name in self._seen:
            in_same = schema.namespace == namespace
            return schema.simple_name if in_same else schema.name
        self._seen.add(schema.name)
        document: dict[str, Any] = {"type": schema.kind, "name": schema.simple_name}
        if schema.namespace != namespace:
            document["namespace"] = schema.namespace
        if schema.doc is not None:
            document["doc"] = schema.doc
        if schema.is_record:
            document["fields"] = [self._field(each, schema.namespace) for each in schema.fields]
        elif schema.kind == "enum":
            document["symbols"] = list(schema.symbols)
            if schema.enum_default is not None:
                document["default"] = schema.enum_default
        else:
            document["size"] = schema.size
        document |= self._others(schema.properties)
        if schema.aliases:
            document["aliases"] = [_relative(each, schema.namespace) for each in schema.aliases]
        return document

    def _field(self, field: AvroField, namespace: str) -> dict[str, Any]:
        document: dict[str, Any] = {"name": field.name, "type": self.printed(field.type, namespace)}
        if field.doc is not None:
            document["doc"] = field.doc
        if field.has_default:
            document["default"] = field.default
        if field.order is not None and field.order.lower() != "ascending":
            document["order"] = field.order.lower()
        if field.aliases:
            document["aliases"] = list(field.aliases)
        return document | self._others(field.properties)

    def _others(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sorted(properties.items())) if self._is_sorted else dict(properties)


def _relative(name: str, namespace: str) -> str:
    space, _, simple = name.rpartition(".")
    return simple if space == namespace else name
