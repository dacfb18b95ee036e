"""From file, environment and flags to a `Config`. The only place that reads the environment."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from frazil.config.config import Config
from frazil.config.environment import FILE_VARIABLE, take_environment
from frazil.config.secrets import resolved
from frazil.config.settings import Keys, by_keys, settings, tables
from frazil.config.sources import FLAG, Origin, SettingValues, Value
from frazil.config.toml_lines import key_lines
from frazil.errors import Malformed

FILE = "frazil.toml"
"""Read when it is in the current folder and no other is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings in force, and what they were made from."""

    config: Config
    values: Mapping[Keys, Value]
    """What was set; all else is default. Secrets as they were written: references stay."""
    file: str | None


def load(
    path: str | None,
    overrides: Mapping[str, Any],
    *,
    assignments: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The settings in force. See `read`."""
    return read(path, overrides, assignments=assignments, environ=environ).config


def read(
    path: str | None,
    overrides: Mapping[str, Any],
    *,
    assignments: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """The settings in force, and where they come from.

    From weak to strong: the defaults; the file (`path`, else what FRAZIL_CONFIG names, else
    frazil.toml if it is in the current folder); the environment; `assignments`, as in
    `log.disk_bytes_max=1000`; and `overrides`, the flags that a verb has. Maps are joined.
    `Malformed` names all settings that do not exist or hold the wrong thing, or the first that
    cannot work, and where each was set.
    """
    environ = os.environ if environ is None else environ
    given = SettingValues()
    file = _file(path, environ)
    if file is not None:
        _take_file(given, file)
    take_environment(given, environ)
    _take_assignments(given, assignments)
    given.take_tree(overrides, lambda _: FLAG)
    if given.findings:
        raise Malformed("\n".join(given.findings))
    return Loaded(config=_config(given, environ), values=given.values, file=file)


def _file(path: str | None, environ: Mapping[str, str]) -> str | None:
    if path is not None:
        return path
    if FILE_VARIABLE in environ:
        return environ[FILE_VARIABLE]
    return FILE if Path(FILE).exists() else None


def _take_file(given: SettingValues, path: str) -> None:
    try:
        text = Path(path).read_bytes().decode().replace("\r\n", "\n")
        tree = tomllib.loads(text)
    except OSError as error:
        raise Malformed(f"{path or FILE_VARIABLE} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"{path} is not TOML: {error}") from None
    lines = key_lines(text)
    given.take_tree(tree, lambda keys: Origin(source="file", name=path, line=lines.get(keys)))


def _take_assignments(given: SettingValues, assignments: Iterable[str]) -> None:
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        origin = Origin(source="flag", name=f"--set {name}")
        if not equals:
            given.findings.append(f"{origin.where}: there is no value; write {name}=VALUE")
            continue
        given.take_text(_keys_of(name.strip()), text, origin)


def _keys_of(name: str) -> Keys:
    """The keys of a name; what stands behind the name of a map is one key, dots and all."""
    for setting in settings():
        if setting.kind.base == "map" and name.startswith(f"{setting.name}."):
            return (*setting.keys, name.removeprefix(f"{setting.name}."))
    return tuple(name.split("."))


def _config(given: SettingValues, environ: Mapping[str, str]) -> Config:
    tree: dict[str, Any] = {}
    for keys in given.tables:
        _table(tree, keys)
    for keys, value in given.values.items():
        try:
            _table(tree, keys[:-1])[keys[-1]] = resolved(keys, value.value, environ)
        except Malformed as error:
            raise Malformed(f"{value.origin.where}: {error}") from None
    try:
        return msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:
        raise Malformed(f"{_incomplete(given) or error}") from None
    except Malformed as error:
        raise Malformed(_with_origins(str(error), given.values)) from None


def _table(tree: dict[str, Any], keys: Keys) -> dict[str, Any]:
    for key in keys:
        tree = tree.setdefault(key, {})
    return tree


def _incomplete(given: SettingValues) -> str | None:
    """A table that is there, without a setting that has no default."""
    for keys, origin in given.tables.items():
        struct = tables()[keys].struct
        for field in msgspec.structs.fields(struct):
            name = ".".join((*keys, field.name))
            if field.required and (*keys, field.name) not in given.values:
                return f"{origin.where}: {'.'.join(keys)} is set, and it needs {name}"
    return None


def _with_origins(sentence: str, values: Mapping[Keys, Value]) -> str:
    """A room's own words, and where the values come from that it names."""
    named = re.findall(r"^data\b|[a-z_]+(?:\.[a-z_]+)+", sentence)
    origins = {
        ".".join(keys): value.origin.where
        for keys, value in values.items()
        if ".".join(keys) in named
        or (keys not in by_keys() and ".".join(keys[:-1]) in named and keys[-1] in sentence)
    }
    if len(origins) == 1:
        (where,) = origins.values()
        return f"{where}: {sentence}"
    listed = "; ".join(f"{name} is from {where}" for name, where in origins.items())
    return f"{sentence} ({listed})" if listed else sentence
