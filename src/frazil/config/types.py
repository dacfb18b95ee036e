"""Types of settings, and how text from the environment or a flag is parsed."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import msgspec

UNSET = "none"
"""Text that unsets what a weaker source has set. A file of that name is `./none`."""
BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingType:
    """The type of a setting."""

    base: Literal["number", "switch", "text", "choice", "list", "map", "rules"]
    choices: tuple[str, ...] = ()
    is_optional: bool = False
    """Whether it may be absent. Such a setting has no default."""

    def __str__(self) -> str:
        """As in `it must be …`."""
        names = {
            "number": "an integer",
            "switch": "true or false",
            "text": "a string",
            "choice": " or ".join(f'"{choice}"' for choice in self.choices),
            "list": "a list of strings",
            "map": "a table of strings",
            "rules": "a list of tables",
        }
        return names[self.base]


def type_of(hint: Any) -> SettingType:
    """Return the type of a field with this type hint."""
    if get_origin(hint) is types.UnionType or types.NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not types.NoneType)
        kind = type_of(inner)
        return SettingType(base=kind.base, choices=kind.choices, is_optional=True)
    if get_origin(hint) is Literal:
        return SettingType(base="choice", choices=get_args(hint))
    if hint in (list[str], tuple[str, ...]):
        return SettingType(base="list")
    if hint == dict[str, str]:
        return SettingType(base="map")
    if hint is int:
        return SettingType(base="number")
    if hint is bool:
        return SettingType(base="switch")
    if hint is str:
        return SettingType(base="text")
    if get_origin(hint) is tuple and issubclass(get_args(hint)[0], msgspec.Struct):
        return SettingType(base="rules")
    raise TypeError(f"a setting cannot be of type {hint}: it cannot be parsed from text")


def accepts(kind: SettingType, value: object) -> bool:
    """Return whether the value is of this type."""
    if value is None:
        return kind.is_optional
    if kind.base == "number":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind.base == "switch":
        return isinstance(value, bool)
    if kind.base == "choice":
        return value in kind.choices
    if kind.base == "list":
        return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if kind.base == "rules":
        return isinstance(value, list) and all(isinstance(item, dict) for item in value)
    if kind.base == "map":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, str)


def parse(kind: SettingType, text: str) -> object:
    """Parse a value of this type. ValueError if it is not one.

    Lists are separated by commas; lists may be JSON, maps and lists of tables must be. `none`
    unsets an optional setting. Empty text is the empty list, and an ordinary string for other
    types.
    """
    if kind.is_optional and text == UNSET:
        return None
    value: object = text
    if kind.base == "number":
        value = int(text.strip())
    elif kind.base == "switch":
        value = BOOLEANS.get(text.strip().lower())
    elif kind.base == "list":
        value = _parse_list(text)
    elif kind.base in ("map", "rules"):
        value = json.loads(text)
    if value is None or not accepts(kind, value):
        raise ValueError(f"{text!r} is not {kind}")
    return value


def _parse_list(text: str) -> object:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [part.strip() for part in text.split(",")] if text.strip() else []
