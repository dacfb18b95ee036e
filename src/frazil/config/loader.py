"""Build a `Config` from file, environment and flags. Nothing below reads the environment."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from frazil.config.config import Config
from frazil.config.environment import FILE_VARIABLE, add_environment
from frazil.config.secrets import resolve
from frazil.config.settings import Keys, settings, tables
from frazil.config.sources import (
    FLAG,
    InvalidConfig,
    Origin,
    SettingProblem,
    SettingValues,
    Value,
)
from frazil.errors import InvalidSetting

FILE = "frazil.toml"
"""Read if it is in the current folder and no other file is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The effective settings and the values they were built from."""

    config: Config
    values: Mapping[Keys, Value]
    """What was set; the rest is default. Secrets as written: references are not resolved."""
    file: str | None


def load(
    path: str | None,
    overrides: Mapping[str, Any],
    *,
    assignments: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Return the effective settings. See `read`."""
    return read(path, overrides, assignments=assignments, environ=environ).config


def read(
    path: str | None,
    overrides: Mapping[str, Any],
    *,
    assignments: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Return the effective settings and where they come from.

    From weak to strong: defaults; the file (`path`, else FRAZIL_CONFIG, else frazil.toml in the
    current folder if present); the environment; `assignments`, as in `log.disk_bytes_max=1000`; and
    `overrides`, the flags of a verb. Maps are merged. InvalidConfig lists all settings that do not
    exist or have the wrong type, or the first that cannot work, and where each was set.
    """
    environ = os.environ if environ is None else environ
    values = SettingValues()
    file = _file(path, environ)
    if file is not None:
        _add_file(values, file)
    add_environment(values, environ)
    _add_assignments(values, assignments)
    values.add_tree(overrides, FLAG)
    if values.problems:
        raise InvalidConfig(*values.problems)
    return Loaded(config=_build(values, environ), values=values.values, file=file)


def _file(path: str | None, environ: Mapping[str, str]) -> str | None:
    if path is not None:
        return path
    if FILE_VARIABLE in environ:
        return environ[FILE_VARIABLE]
    return FILE if Path(FILE).exists() else None


def _add_file(values: SettingValues, path: str) -> None:
    origin = Origin(source="file", name=path or FILE_VARIABLE)
    try:
        tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        message = f"{origin.name} cannot be read: {error.strerror}"
        problem = SettingProblem(kind="unreadable", message=message, origin=origin)
        raise InvalidConfig(problem) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{path} is not TOML: {error}"
        problem = SettingProblem(kind="not_toml", message=message, origin=origin)
        raise InvalidConfig(problem) from None
    values.add_tree(tree, origin)


def _add_assignments(values: SettingValues, assignments: Iterable[str]) -> None:
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        origin = Origin(source="flag", name=f"--set {name}")
        keys = _keys_of(name.strip())
        if equals:
            values.add_text(keys, text, origin)
        else:
            values.add_problem(origin, keys, f"has no value; write {name}=VALUE")


def _keys_of(name: str) -> Keys:
    """Return the keys of a name. What follows the name of a map is one key, dots included."""
    for setting in settings():
        if setting.kind.base == "map" and name.startswith(f"{setting.name}."):
            return (*setting.keys, name.removeprefix(f"{setting.name}."))
    return tuple(name.split("."))


def _build(values: SettingValues, environ: Mapping[str, str]) -> Config:
    tree: dict[str, Any] = {}
    for keys in values.tables:
        _table(tree, keys)
    try:
        for keys, value in values.values.items():
            _table(tree, keys[:-1])[keys[-1]] = resolve(keys, value.value, environ)
        return msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_missing(values, error)) from None
    except InvalidSetting as error:
        raise InvalidConfig(_with_origins(error, values.values)) from None


def _table(tree: dict[str, Any], keys: Keys) -> dict[str, Any]:
    for key in keys:
        tree = tree.setdefault(key, {})
    return tree


def _missing(values: SettingValues, error: msgspec.ValidationError) -> SettingProblem:
    """Return the table that was set without a setting that has no default."""
    for keys, origin in values.tables.items():
        for field in msgspec.structs.fields(tables()[keys].struct):
            name = ".".join((*keys, field.name))
            if field.required and (*keys, field.name) not in values.values:
                message = f"{origin.where}: {'.'.join(keys)} is set, but {name} is missing"
                return SettingProblem(kind="invalid", message=message, origin=origin, name=name)
    # Only lists of tables are not checked before: `Object missing … - at `$.redact[0]``.
    name = str(error).rpartition("$.")[2].partition("[")[0]
    value = values.values.get((name,))
    if value is None:
        return SettingProblem(kind="invalid", message=str(error))
    message = f"{value.origin.where}: {name}: {error}"
    return SettingProblem(kind="invalid", message=message, origin=value.origin, name=name)


def _with_origins(error: InvalidSetting, values: Mapping[Keys, Value]) -> SettingProblem:
    """Return a room's own message, with where the values it names come from."""
    origins = {
        ".".join(keys): value.origin
        for keys, value in values.items()
        if any(f"{'.'.join(keys)}.".startswith(f"{name}.") for name in error.names)
    }
    if len(origins) == 1:
        ((name, origin),) = origins.items()
        message = f"{origin.where}: {error}"
        return SettingProblem(kind="invalid", message=message, origin=origin, name=name)
    listed = "; ".join(f"{name} is from {origin.where}" for name, origin in origins.items())
    return SettingProblem(kind="invalid", message=f"{error} ({listed})" if listed else str(error))
