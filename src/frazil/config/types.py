"""What a setting holds, and how a text from the environment or a flag becomes that."""

from __future__ import annotations

import json
import types
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

UNSET = "none"
"""The text that takes back what a weaker source has set. A file of that name is `./none`."""
SWITCH = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingType:
    """What a setting holds."""

    base: Literal["number", "switch", "text", "choice", "list", "map"]
    choices: tuple[str, ...] = ()
    """What a text may be, when it is not any."""
    is_optional: bool = False
    """May it be absent? Such a setting has no default."""

    def __str__(self) -> str:
        """As in `it must be …`."""
        names = {
            "number": "a whole number",
            "switch": "true or false",
            "text": "a text",
            "choice": " or ".join(f'"{choice}"' for choice in self.choices),
            "list": "a list of texts",
            "map": "a table of texts",
        }
        return names[self.base]


def kind_of(hint: Any) -> SettingType:
    """What a field of this type holds."""
    if get_origin(hint) is types.UnionType or types.NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not types.NoneType)
        kind = kind_of(inner)
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
    raise TypeError(f"a setting cannot be of type {hint}: no text becomes one")


def accepts(kind: SettingType, value: object) -> bool:
    """Is this such a value?"""
    if value is None:
        return kind.is_optional
    if kind.base == "number":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind.base == "switch":
        return isinstance(value, bool)
    if kind.base == "choice":
        return value in kind.choices
    if kind.base == "list":
        return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    if kind.base == "map":
        return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    return isinstance(value, str)


def parse(kind: SettingType, text: str) -> object:
    """The value that a text stands for. ValueError when it is none of this kind.

    Lists are written with commas; lists and tables also as JSON. `none` is an optional setting that
    is not set. An empty text is the empty list, and to all others a text like any.
    """
    if kind.is_optional and text == UNSET:
        return None
    value: object = text
    if kind.base == "number":
        value = int(text.strip())
    elif kind.base == "switch":
        value = SWITCH.get(text.strip().lower())
    elif kind.base == "list":
        value = _list_of(text)
    elif kind.base == "map":
        value = json.loads(text)
    if value is None or not accepts(kind, value):
        raise ValueError(f"{text!r} is not {kind}")
    return value


def _list_of(text: str) -> object:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [part.strip() for part in text.split(",")] if text.strip() else []
