"""Options of a connector: from `NAME=value` of a statement to the dataclass that its type has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import msgspec

from frazil.errors import Malformed

OptionValue = str | int | float | bool | tuple[str, ...]
"""What a statement can say: a text or a word, a number, TRUE or FALSE, a list of texts."""


def options_of(kind: type, given: Mapping[str, OptionValue]) -> Any:
    """Return the options of a connector. `Malformed` names one that is unknown, missing, or of
    another type."""
    known = {field.name: field for field in fields(kind)}
    for name in given:
        if name not in known:
            takes = ", ".join(sorted(known)).upper() or "none"
            raise Malformed(f"there is no option {name.upper()}; there are: {takes}")
    missing = [
        name.upper()
        for name, field in known.items()
        if field.default is MISSING and field.default_factory is MISSING and name not in given
    ]
    if missing:
        raise Malformed(f"the option {missing[0]}=… is missing")
    try:
        return msgspec.convert(dict(given), type=kind)
    except msgspec.ValidationError as error:
        raise Malformed(f"option {_place(error)}") from error


def _place(error: msgspec.ValidationError) -> str:
    """`Expected int, got str - at $.limit` becomes `LIMIT: expected int, got str`."""
    text, _, path = str(error).partition(" - at `$.")
    return f"{path.rstrip('`').upper()}: {text[:1].lower()}{text[1:]}"
