"""The parameters of a tool as JSON Schema, in one piece."""

from __future__ import annotations

from typing import Any

import msgspec

REFS = "#/$defs/{name}"
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["total", "is_total_exact", "shown", "is_cut", "shortened", "page"],
    "properties": {
        "total": {"type": ["integer", "null"], "description": "Rows there are; null if unknown."},
        "is_total_exact": {"type": "boolean", "description": "False if there may be more."},
        "shown": {"type": "integer", "description": "Rows in this answer."},
        "is_cut": {"type": "boolean", "description": "Whether something was left out."},
        "shortened": {"type": "integer", "description": "Rows with texts that were shortened."},
        "narrow": {"type": ["string", "null"], "description": "What would give fewer rows."},
        "after": {"type": ["string", "null"], "description": "Pass it to get the next rows."},
        "page": {"type": ["string", "null"], "description": "Where people see the same."},
    },
}
"""What all answers have, beside their rows."""


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the schema of an object with these fields."""
    (_,), components = msgspec.json.schema_components([kind], ref_template=REFS)
    schema: dict[str, Any] = components.pop(kind.__name__)
    if components:
        schema["$defs"] = components
    schema.pop("title", None)
    return schema
