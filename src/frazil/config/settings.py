"""The list of all settings, derived from the config structs of the rooms."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import msgspec

from frazil.config.config import Config
from frazil.config.types import SettingType, type_of

Keys = tuple[str, ...]
"""The path of a setting, or of a map entry: ("log", "disk_bytes_max")."""

PREFIX = "FRAZIL_"
BETWEEN = "__"
"""Between the keys in the name of an environment variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsTable:
    """A table of the file: one struct."""

    keys: Keys
    struct: type[msgspec.Struct]
    is_optional: bool
    """Whether it is absent by default."""

    @property
    def description(self) -> str:
        """The docstring of the struct, in one line."""
        return " ".join((inspect.getdoc(self.struct) or "").split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting."""

    keys: Keys
    kind: SettingType
    default: Any
    """None if there is none."""
    description: str
    table: SettingsTable

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
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
    """Return all tables by keys, in the order of the structs. The top one has no keys."""
    return {
        table.keys: table
        for table in _tables(SettingsTable(keys=(), struct=Config, is_optional=False))
    }


@functools.cache
def settings() -> tuple[Setting, ...]:
    """Return all settings, in the order of the structs."""
    return tuple(
        _setting(table, field)
        for table in tables().values()
        for field in msgspec.structs.fields(table.struct)
        if _struct(field.type) is None
    )


@functools.cache
def by_keys() -> dict[Keys, Setting]:
    return {setting.keys: setting for setting in settings()}


def _setting(table: SettingsTable, field: msgspec.structs.FieldInfo) -> Setting:
    assert get_origin(field.type) is Annotated, f"{field.name} has no description"
    hint, meta = get_args(field.type)
    return Setting(
        keys=(*table.keys, field.name),
        kind=type_of(hint),
        default=_default(field),
        description=meta.description,
        table=table,
    )


def _tables(table: SettingsTable) -> list[SettingsTable]:
    """Return a table and those inside it."""
    result = [table]
    for field in msgspec.structs.fields(table.struct):
        struct = _struct(field.type)
        if struct is not None:
            keys = (*table.keys, field.name)
            is_optional = field.type is not struct
            result += _tables(SettingsTable(keys=keys, struct=struct, is_optional=is_optional))
    return result


def _struct(hint: Any) -> type[msgspec.Struct] | None:
    """Return the struct of a field of type `Struct` or `Struct | None`."""
    for part in (hint, *get_args(hint)):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default
