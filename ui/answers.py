"""The API's answers as TypeScript, made from its description: `python ui/answers.py`.

Writes `src/house/answers.ts`, so that the page cannot be about an API that is no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from frazil.serve import description

TARGET = Path(__file__).parent / "src" / "house" / "answers.ts"
HEAD = "// Made by `python ui/answers.py` from the description of the API. Do not edit.\n"


def typescript() -> str:
    """All named answers, one interface each."""
    schemas: dict[str, Any] = msgspec.json.decode(description())["components"]["schemas"]
    parts = [HEAD]
    for name, schema in sorted(schemas.items()):
        if "properties" not in schema:
            parts.append(f"export type {name} = {_type(schema)};\n")
            continue
        parts.append(f"export interface {name} {_fields(schema, '')}\n")
    return "\n".join(parts)


def _fields(schema: dict[str, Any], indent: str) -> str:
    required = set(schema.get("required", ()))
    lines = []
    for name, field in schema["properties"].items():
        key = name if name.isidentifier() else f'"{name}"'
        lines.append(
            f"{indent}  {key}{'' if name in required else '?'}: {_type(field, indent + '  ')};"
        )
    return "\n".join(["{", *lines, indent + "}"])


def _type(schema: dict[str, Any], indent: str = "") -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each, indent) for each in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(
            f'"{each}"' if isinstance(each, str) else str(each) for each in schema["enum"]
        )
    match schema.get("type"):
        case "string":
            return "string"
        case "integer" | "number":
            return "number"
        case "boolean":
            return "boolean"
        case "null":
            return "null"
        case "array":
            return _list(schema, indent)
        case "object" if "properties" in schema:
            return _fields(schema, indent)
        case "object":
            inner = schema.get("additionalProperties", True)
            return (
                f"Record<string, {_type(inner, indent) if isinstance(inner, dict) else 'unknown'}>"
            )
        case list(kinds):
            return " | ".join(_type({**schema, "type": kind}, indent) for kind in kinds)
    return "unknown"


def _list(schema: dict[str, Any], indent: str) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each, indent) for each in schema['prefixItems'])}]"
    items = _type(schema.get("items") or {}, indent)
    return f"({items})[]" if "|" in items else f"{items}[]"


if __name__ == "__main__":
    TARGET.write_text(typescript(), encoding="utf-8")
