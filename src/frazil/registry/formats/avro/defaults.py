"""Does the JSON of a default value fit a type? As Avro's own parser checks it."""

from __future__ import annotations

from typing import Any

from frazil.registry.formats.avro.types import AvroType

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1


def fits(kind: AvroType, value: Any) -> bool:
    """Return whether a value is one of a type. The default of a union may be one of any of its
    types, as since Avro 1.12."""
    match kind.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return _is_integer(value, INT_MAX)
        case "long":
            return _is_integer(value, LONG_MAX)
        case "float" | "double":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed" | "enum":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list) and all(fits(kind.inner, each) for each in value)
        case "map":
            return isinstance(value, dict) and all(
                fits(kind.inner, each) for each in value.values()
            )
        case "union":
            return any(fits(branch, value) for branch in kind.branches)
        case _:
            return isinstance(value, dict) and all(
                fits(field.type, value.get(field.name, field.default))
                for field in kind.fields
                if field.name in value or not field.has_default
            )


def _is_integer(value: Any, largest: int) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and -largest - 1 <= value <= largest
    )
