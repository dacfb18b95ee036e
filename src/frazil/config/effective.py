"""Effective settings and their origins. Secrets are redacted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frazil.config.formatting import human_readable, toml_key, toml_value
from frazil.config.loader import Loaded
from frazil.config.secrets import redact
from frazil.config.settings import Keys, Setting, settings
from frazil.config.sources import DEFAULT, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """One setting, or one entry of a map."""

    keys: Keys
    value: object
    """None if not set."""
    origin: Origin

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    @property
    def human_readable(self) -> str | None:
        """A size or a time with its unit, as in 64 MiB."""
        return human_readable(self.keys[-1], self.value)

    def to_dict(self) -> dict[str, object]:
        return {"name": self.name, "value": self.value, "origin": str(self.origin)}


def effective_settings(loaded: Loaded) -> list[EffectiveSetting]:
    """Return every setting: of a map each entry, of a table that is not set only its name."""
    return [effective for setting in settings() for effective in _effective(loaded, setting)]


def toml_line(setting: EffectiveSetting) -> str:
    """Return the setting as a line of TOML; as a comment if there is no value."""
    keys = ".".join(map(toml_key, setting.keys))
    if setting.value is None:
        return f"# {keys} is not set"
    if setting.value == {}:
        return f"# {keys} is empty"
    return f"{keys} = {toml_value(setting.value)}"


def _effective(loaded: Loaded, setting: Setting) -> Iterator[EffectiveSetting]:
    struct: object = loaded.config
    for key in setting.keys[:-1]:
        struct = getattr(struct, key)
        if struct is None:
            if setting == next(other for other in settings() if other.table == setting.table):
                yield EffectiveSetting(keys=setting.table.keys, value=None, origin=DEFAULT)
            return
    value = getattr(struct, setting.keys[-1])
    if setting.kind.base == "map" and value:
        for entry in value:
            keys = (*setting.keys, entry)
            source = loaded.values[keys]
            redacted = redact(keys, source.value)
            yield EffectiveSetting(keys=keys, value=redacted, origin=source.origin)
        return
    if setting.kind.base == "rules" and value:
        value = loaded.values[setting.keys].value
    origin = loaded.values[setting.keys].origin if setting.keys in loaded.values else DEFAULT
    yield EffectiveSetting(keys=setting.keys, value=redact(setting.keys, value), origin=origin)
