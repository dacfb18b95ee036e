"""What is in force, and where it comes from. Secrets are not shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frazil.config.descriptions import spoken, toml_key, toml_value
from frazil.config.loader import Loaded
from frazil.config.secrets import hidden
from frazil.config.settings import Keys, Setting, settings
from frazil.config.sources import DEFAULT, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """One setting, or one entry of a map."""

    keys: Keys
    value: object
    """None when it is not set."""
    origin: Origin

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    @property
    def spoken(self) -> str | None:
        """A size or a time for people, as in 64 MiB."""
        return spoken(self.keys[-1], self.value)

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "value": self.value, "origin": str(self.origin)}


def shown(loaded: Loaded) -> list[EffectiveSetting]:
    """Every setting. Of a map each entry, and of a table that is not set only its name."""
    return [each for setting in settings() for each in _shown(loaded, setting)]


def toml_line(each: EffectiveSetting) -> str:
    """As a line of TOML, and as a comment when there is nothing to set."""
    keys = ".".join(map(toml_key, each.keys))
    if each.value is None:
        return f"# {keys} is not set"
    if each.value == {}:
        return f"# {keys} is empty"
    return f"{keys} = {toml_value(each.value)}"


def _shown(loaded: Loaded, setting: Setting) -> Iterator[EffectiveSetting]:
    holder: object = loaded.config
    for key in setting.keys[:-1]:
        holder = getattr(holder, key)
        if holder is None:
            if setting == next(each for each in settings() if each.table == setting.table):
                yield EffectiveSetting(keys=setting.table.keys, value=None, origin=DEFAULT)
            return
    value = getattr(holder, setting.keys[-1])
    if setting.kind.base == "map" and value:
        for entry in value:
            keys = (*setting.keys, entry)
            given = loaded.values[keys]
            yield EffectiveSetting(keys=keys, value=hidden(keys, given.value), origin=given.origin)
        return
    origin = loaded.values[setting.keys].origin if setting.keys in loaded.values else DEFAULT
    yield EffectiveSetting(keys=setting.keys, value=hidden(setting.keys, value), origin=origin)
