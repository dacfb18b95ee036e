"""The list of all settings, made from the structs of the rooms: nothing is said twice."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from frazil.config.config import Config
from frazil.config.types import SettingType, kind_of

Keys = tuple[str, ...]
"""A setting, or an entry of a map, by its keys: ("log", "disk_bytes_max")."""

PREFIX = "FRAZIL_"
BETWEEN = "__"
"""Between the parts of a name in the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsTable:
    """A struct: a table of the file."""

    keys: Keys
    struct: type[msgspec.Struct]
    is_optional: bool
    """Is it absent unless it is set?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Something that an operator may set."""

    keys: Keys
    kind: SettingType
    default: Any
    """None when there is none."""
    table: SettingsTable

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + BETWEEN.join(self.keys).upper()

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "type": str(self.kind),
            "default": self.default,
            "variable": self.variable,
        }


@functools.cache
def tables() -> dict[Keys, SettingsTable]:
    """All tables by their keys, in the order of the structs; the top one has none."""
    return {
        table.keys: table
        for table in _tables(SettingsTable(keys=(), struct=Config, is_optional=False))
    }


@functools.cache
def settings() -> tuple[Setting, ...]:
    """All settings, in the order of the structs."""
    return tuple(
        Setting(
            keys=(*table.keys, field.name),
            kind=kind_of(field.type),
            default=_default(field),
            table=table,
        )
        for table in tables().values()
        for field in msgspec.structs.fields(table.struct)
        if _struct(field.type) is None
    )


@functools.cache
def by_keys() -> dict[Keys, Setting]:
    return {setting.keys: setting for setting in settings()}


def _tables(table: SettingsTable) -> list[SettingsTable]:
    found = [table]
    for field in msgspec.structs.fields(table.struct):
        struct = _struct(field.type)
        if struct is not None:
            is_optional = field.type is not struct
            found += _tables(
                SettingsTable(
                    keys=(*table.keys, field.name), struct=struct, is_optional=is_optional
                )
            )
    return found


def _struct(hint: Any) -> type[msgspec.Struct] | None:
    """The struct that a type is, or that it is when it is not None."""
    for part in (hint, *get_args(hint)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default
