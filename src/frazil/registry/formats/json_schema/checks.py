"""Are the values of keywords what they must be?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from frazil.errors import Malformed

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

COUNTED = (
    *("maxLength", "minLength", "maxItems", "minItems"),
    *("maxProperties", "minProperties", "maxContains", "minContains"),
)
NESTED = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
MAPPED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return is_whole and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_bound(value: Any) -> bool:
    return isinstance(value, bool) or _is_number(value)  # draft 4 has booleans


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _is_list_of_schemas(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_schema, value))


def _is_items(value: Any) -> bool:
    return _is_schema(value) or _is_list_of_schemas(value)


def _is_map_of_schemas(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_schema, value.values()))


def _is_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _is_map_of_dependencies(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_schema(each) or _is_names(each) for each in value.values()
    )


def _is_map_of_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _is_names(value) and bool(value) and all(name in TYPES for name in value)


def _is_required(value: Any) -> bool:
    return _is_names(value) or isinstance(value, bool)  # draft 3


KEYWORDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, f"one of {', '.join(sorted(TYPES))}, or several"),
    "required": (_is_required, "an array of different names"),
    "enum": (lambda value: isinstance(value, list), "an array"),
    "pattern": (lambda value: isinstance(value, str), "a text"),
    "$ref": (lambda value: isinstance(value, str), "a text"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "maximum": (_is_number, "a number"),
    "minimum": (_is_number, "a number"),
    "exclusiveMaximum": (_is_bound, "a number"),
    "exclusiveMinimum": (_is_bound, "a number"),
    "items": (_is_items, "a schema, or an array of schemas"),
    "dependencies": (_is_map_of_dependencies, "an object with schemas or arrays of names"),
    "dependentRequired": (_is_map_of_names, "an object with arrays of names"),
    **dict.fromkeys(COUNTED, (_is_count, "a whole number from 0 on")),
    **dict.fromkeys(NESTED, (_is_schema, "a schema: an object, true or false")),
    **dict.fromkeys(LISTED, (_is_list_of_schemas, "an array of schemas")),
    **dict.fromkeys(MAPPED, (_is_map_of_schemas, "an object with schemas")),
}


def check_keywords(schema: Any) -> None:
    """Raise `Malformed` if a keyword of one schema has a value that means nothing."""
    if not isinstance(schema, dict):
        if not isinstance(schema, bool):
            raise Malformed(f"{repr(schema)[:80]} is not a schema: write an object, true or false")
        return
    for name, value in schema.items():
        known = KEYWORDS.get(name)
        if known is not None and not known[0](value):
            raise Malformed(f"{name} is {repr(value)[:80]}; write {known[1]}")
