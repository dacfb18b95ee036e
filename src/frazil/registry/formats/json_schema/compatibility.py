"""Is all that fits one JSON Schema valid by another? By the rules of Confluent's registry.

The answer is safe, not complete: what these rules cannot decide counts as incompatible. Where a
property or an item is not named by a schema, what it says of others counts: additional properties,
patterns of names, further items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import re2

from frazil.registry.formats.json_schema.documents import JsonDocuments, SchemaNode

ANNOTATIONS = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary"),
        *("contentEncoding", "contentMediaType", "contentSchema", "default", "definitions"),
        *("deprecated", "description", "example", "examples", "format", "id", "readOnly"),
        *("title", "writeOnly"),
    }
)
"""Keywords that exclude no value. `format` is one unless a validator is told otherwise."""
COMBINING = ("allOf", "anyOf", "oneOf")
UPPER = ("maxLength", "maximum", "maxItems", "maxProperties", "maxContains")
LOWER = ("minLength", "minimum", "minItems", "minProperties", "minContains")
COUNTS = frozenset({"minLength", "minItems", "minProperties"})
UNDECIDED = ("if", "then", "else", "$dynamicRef")
"""These must stay as they are, or go."""
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
"""Beside combined schemas these must, too; elsewhere they are as additional ones."""
PARTS_MAX = 300
"""Schemas that one combines, for which pairs are searched."""
ANYTHING, NOTHING = True, False


def unreadable_json(
    earlier: SchemaNode, earlier_in: JsonDocuments, later: SchemaNode, later_in: JsonDocuments
) -> list[str]:
    """Return why values of an earlier schema may be invalid by a later one."""
    return _Comparison(earlier_in, later_in).reasons(earlier, later, "#")


class _Comparison:
    def __init__(self, earlier: JsonDocuments, later: JsonDocuments) -> None:
        self._earlier = earlier
        self._later = later
        self._known: dict[tuple[int, int], list[str]] = {}
        self._kept: list[Any] = []
        """What ids in `_known` are of, so that no other object gets them."""

    def reasons(self, old: SchemaNode, new: SchemaNode, path: str) -> list[str]:
        old, new = self._earlier.resolved(old), self._later.resolved(new)
        pair = id(old.value), id(new.value)
        if pair not in self._known:
            self._kept += (old.value, new.value)
            self._known[pair] = []  # a schema that holds itself is as compatible as the rest
            self._known[pair] = self._compare(old, new, path)
        return self._known[pair]

    def _is_compatible(self, old: SchemaNode, new: SchemaNode, path: str) -> bool:
        return not self.reasons(old, new, path)

    def _compare(self, old: SchemaNode, new: SchemaNode, path: str) -> list[str]:
        if old.value is NOTHING or is_anything(new.value):
            return []
        if new.value is NOTHING:
            return [f"SCHEMA_REMOVED_VALUES at {path}: no value is valid any more"]
        if is_anything(old.value):
            return [f"SCHEMA_ADDED at {path}: any value was valid"]
        old_how, old_parts = parts_of(old)
        new_how, new_parts = parts_of(new)
        if not old_how and not new_how:
            return list(self._simple(old, new, path))
        if any(new.value.get(name) != old.value.get(name) for name in UNEVALUATED):
            return [f"COMBINED_TYPE_CHANGED at {path}: unevaluated ones changed beside others"]
        if max(len(old_parts), len(new_parts)) > PARTS_MAX:
            return [f"COMBINED_TYPE_CHANGED at {path}: more than {PARTS_MAX} schemas"]
        return self._combined(old_how, old_parts, new_how, new_parts, path)

    def _combined(
        self, old_how: str, old: list[SchemaNode], new_how: str, new: list[SchemaNode], path: str
    ) -> list[str]:
        """Compare two schemas of which one, at least, combines others."""
        if len(old) == 1 or not old_how:
            old_how = new_how if new_how else old_how
        if len(new) == 1:
            # All that fits an `anyOf` fits its only part if all of its parts do.
            new_how = old_how
        if old_how == "allOf":
            if new_how == "allOf":
                return self._all_of(old, new, path)
            if any(self._is_compatible(a, b, path) for a in old for b in new):
                return []
            return [f"COMBINED_TYPE_SUBSCHEMAS_CHANGED at {path}"]
        if new_how == "allOf":
            return [f"COMBINED_TYPE_CHANGED at {path}: {old_how} became allOf"]
        if old_how == "anyOf" and new_how == "oneOf":
            return [f"COMBINED_TYPE_CHANGED at {path}: anyOf became oneOf"]
        if len(new) < len(old):
            return [f"SUM_TYPE_NARROWED at {path}"]
        if self._matched(old, new, path) < len(old):
            return [f"COMBINED_TYPE_SUBSCHEMAS_CHANGED at {path}"]
        return []

    def _all_of(self, old: list[SchemaNode], new: list[SchemaNode], path: str) -> list[str]:
        if len(new) > len(old):
            return [f"PRODUCT_TYPE_EXTENDED at {path}"]
        if self._matched(old, new, path) < len(new):
            return [f"COMBINED_TYPE_SUBSCHEMAS_CHANGED at {path}"]
        return []

    def _matched(self, old: list[SchemaNode], new: list[SchemaNode], path: str) -> int:
        """Return how many of one can be paired with compatible ones of the other, each once."""
        partner: dict[int, int] = {}

        def place(number: int, tried: set[int]) -> bool:
            for other, each in enumerate(new):
                if other in tried or not self._is_compatible(old[number], each, path):
                    continue
                tried.add(other)
                if other not in partner or place(partner[other], tried):
                    partner[other] = number
                    return True
            return False

        return sum(place(number, set()) for number in range(len(old)))

    def _simple(self, old: SchemaNode, new: SchemaNode, path: str) -> Iterator[str]:
        yield from _type_reasons(old.value, new.value, path)
        yield from _bound_reasons(old.value, new.value, path)
        yield from self._negation(old, new, path)
        yield from self._object(old, new, path)
        yield from self._array(old, new, path)
        for name in UNDECIDED:
            if name in new.value and new.value[name] != old.value.get(name):
                yield f"{name} changed at {path}: whether that is compatible is not decided"

    def _negation(self, old: SchemaNode, new: SchemaNode, path: str) -> Iterator[str]:
        if "not" not in new.value:
            return
        if "not" not in old.value:
            yield f"NOT_TYPE_ADDED at {path}/not"
        elif _Comparison(self._later, self._earlier).reasons(
            _child(new, "not"), _child(old, "not"), f"{path}/not"
        ):
            yield f"NOT_TYPE_EXTENDED at {path}/not"

    def _object(self, old: SchemaNode, new: SchemaNode, path: str) -> Iterator[str]:
        before, after = old.value, new.value
        named = before.get("properties", {}), after.get("properties", {})
        for name in _names_required(after):
            if name not in _names_required(before):
                own = named[1].get(name)
                if not (isinstance(own, dict) and "default" in own):
                    yield f"REQUIRED_ATTRIBUTE_ADDED at {path}/required/{name}"
        for name in dict.fromkeys((*named[0], *named[1])):
            yield from self.reasons(
                _property(old, name), _property(new, name), f"{path}/properties/{name}"
            )
        patterns = before.get("patternProperties", {}), after.get("patternProperties", {})
        for pattern in dict.fromkeys((*patterns[0], *patterns[1])):
            yield from self.reasons(
                _of_pattern(old, pattern),
                _of_pattern(new, pattern),
                f"{path}/patternProperties/{pattern}",
            )
        yield from self.reasons(_others(old), _others(new), f"{path}/additionalProperties")
        yield from self.reasons(
            _child(old, "propertyNames"), _child(new, "propertyNames"), f"{path}/propertyNames"
        )
        yield from self._dependencies(old, new, path)

    def _dependencies(self, old: SchemaNode, new: SchemaNode, path: str) -> Iterator[str]:
        before, after = _dependencies_of(old), _dependencies_of(new)
        for name, wanted in after.items():
            at = f"{path}/dependencies/{name}"
            had = before.get(name)
            if isinstance(wanted.value, list):
                names = had.value if had is not None and isinstance(had.value, list) else None
                if names is None:
                    yield f"DEPENDENCY_ARRAY_ADDED at {at}"
                elif not set(wanted.value) <= set(names):
                    yield f"DEPENDENCY_ARRAY_EXTENDED at {at}"
            elif had is None or isinstance(had.value, list):
                yield f"DEPENDENCY_SCHEMA_ADDED at {at}"
            else:
                yield from self.reasons(had, wanted, at)

    def _array(self, old: SchemaNode, new: SchemaNode, path: str) -> Iterator[str]:
        (before, further), (after, others) = _items(old), _items(new)
        for number in range(max(len(before), len(after))):
            yield from self.reasons(
                before[number] if number < len(before) else further,
                after[number] if number < len(after) else others,
                f"{path}/items/{number}",
            )
        yield from self.reasons(further, others, f"{path}/items")
        if new.value.get("uniqueItems") is True and old.value.get("uniqueItems") is not True:
            yield f"UNIQUE_ITEMS_ADDED at {path}/uniqueItems"
        if "contains" in new.value:
            at = f"{path}/contains"
            if "contains" not in old.value:
                yield f"CONTAINS_ADDED at {at}"
            else:
                yield from self.reasons(_child(old, "contains"), _child(new, "contains"), at)


def is_anything(value: Any) -> bool:
    """Return whether a schema excludes no value."""
    return value is ANYTHING or (isinstance(value, dict) and value.keys() <= ANNOTATIONS)


def parts_of(node: SchemaNode) -> tuple[str, list[SchemaNode]]:
    """Return how a schema combines others, and these; "" and itself if it does not."""
    value = node.value
    found = [name for name in COMBINING if value.get(name)]
    own = {name: each for name, each in value.items() if name not in COMBINING}
    kinds = own.get("type")
    if isinstance(kinds, list):
        choices = [SchemaNode({**own, "type": kind}, node.base) for kind in kinds]
        if not found:
            return ("anyOf", choices) if len(choices) > 1 else ("", choices)
        own_parts = [SchemaNode(own, node.base)]
    else:
        own_parts = [] if is_anything(own) else [SchemaNode(own, node.base)]
    if not found:
        return "", [node]
    if len(found) == 1 and not own_parts:
        return found[0], _different(SchemaNode(each, node.base) for each in value[found[0]])
    parts = own_parts
    for name in found:
        if name == "allOf":
            parts += [SchemaNode(each, node.base) for each in value[name]]
        else:
            parts.append(SchemaNode({name: value[name]}, node.base))
    return "allOf", _different(parts)


def _different(nodes: Iterable[SchemaNode]) -> list[SchemaNode]:
    found: list[SchemaNode] = []
    for node in nodes:
        if len(found) > PARTS_MAX or node not in found:
            found.append(node)
    return found


def _type_reasons(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    before, after = old.get("type"), new.get("type")
    before = before[0] if isinstance(before, list) else before
    after = after[0] if isinstance(after, list) else after
    if after is not None and before != after and (before, after) != ("integer", "number"):
        kind = "TYPE_NARROWED" if (before, after) == ("number", "integer") else "TYPE_CHANGED"
        yield f"{kind} at {path}: {before or 'any type'} became {after}"
    had, allowed = _choices(old), _choices(new)
    if allowed is not None:
        if had is None:
            yield f"ENUM_ARRAY_ADDED at {path}/enum"
        elif not all(any(_equal(value, each) for each in allowed) for value in had):
            yield f"ENUM_ARRAY_NARROWED at {path}/enum"


def _bound_reasons(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    for keywords, sign, exclusive in (
        (UPPER, 1, "exclusiveMaximum"),
        (LOWER, -1, "exclusiveMinimum"),
    ):
        for name in (*keywords, exclusive):
            wanted, had = new.get(name), old.get(name, 0 if name in COUNTS else None)
            if wanted is None or isinstance(wanted, bool):
                if wanted is True and had is not True:  # draft 4
                    yield f"{name} added at {path}"
            elif had is None or isinstance(had, bool) or wanted * sign < had * sign:
                yield f"{name} at {path} is {wanted}, was {had}"
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        yield f"PATTERN_CHANGED at {path}/pattern"
    if "multipleOf" in new:
        had, wanted = old.get("multipleOf"), new["multipleOf"]
        if had is None or had % wanted != 0:
            yield f"MULTIPLE_OF_CHANGED at {path}/multipleOf"


def _choices(value: dict[str, Any]) -> list[Any] | None:
    if "const" in value:
        return [value["const"]]
    found: list[Any] | None = value.get("enum")
    return found


def _equal(one: Any, other: Any) -> bool:
    """JSON's equality: 1 is not true."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _names_required(value: dict[str, Any]) -> list[str]:
    names = value.get("required")
    return names if isinstance(names, list) else []


def _child(node: SchemaNode, name: str) -> SchemaNode:
    return SchemaNode(node.value.get(name, ANYTHING), node.base)


def _property(node: SchemaNode, name: str) -> SchemaNode:
    """Return what a schema says of a property."""
    named = node.value.get("properties", {})
    if name in named:
        return SchemaNode(named[name], node.base)
    for pattern, value in node.value.get("patternProperties", {}).items():
        if _matches(pattern, name):
            return SchemaNode(value, node.base)
    return _others(node)


def _others(node: SchemaNode) -> SchemaNode:
    """Return what a schema says of properties that it does not name."""
    if "additionalProperties" in node.value:
        return _child(node, "additionalProperties")
    return _child(node, "unevaluatedProperties")


def _of_pattern(node: SchemaNode, pattern: str) -> SchemaNode:
    patterns = node.value.get("patternProperties", {})
    if pattern in patterns:
        return SchemaNode(patterns[pattern], node.base)
    return _others(node)


def _matches(pattern: str, name: str) -> bool:
    """Search with RE2, which takes linear time. What it cannot parse matches nothing."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options).search(name) is not None
    except re2.error:
        return False


def _dependencies_of(node: SchemaNode) -> dict[str, SchemaNode]:
    value = node.value
    every = {
        **value.get("dependencies", {}),
        **value.get("dependentSchemas", {}),
        **value.get("dependentRequired", {}),
    }
    return {name: SchemaNode(each, node.base) for name, each in every.items()}


def _items(node: SchemaNode) -> tuple[list[SchemaNode], SchemaNode]:
    """Return the schemas of the first items, and of those after them."""
    value = node.value
    first, rest = value.get("prefixItems"), "items"
    if isinstance(value.get("items"), list):
        first, rest = value["items"], "additionalItems"
    elif "items" not in value:
        rest = "additionalItems" if "additionalItems" in value else "unevaluatedItems"
    return [SchemaNode(each, node.base) for each in first or ()], _child(node, rest)
