"""config: settings from flags, environment, file and defaults, in this order of precedence.

Each room gets its own frozen struct and knows no other. Nothing below reads the environment.

    config.py       Config: one struct per room, and the rules between rooms
    disk_share.py   limits of log and hot tier that fit the disk, and the reserve of free space
    settings.py     the list of all settings, derived from the structs
    types.py        types of settings, and parsing of text
    secrets.py      secrets: redaction, and `env:` and `file:` references
    sources.py      values and their origins, and the problems found
    environment.py  settings from environment variables
    loader.py       file, environment and flags to a Config
    effective.py    effective settings and their origins, for `frazil config show`
    formatting.py   values as TOML and for people
    reference.py    docs/configuration.md
    template.py     the commented frazil.toml of `frazil init`
"""

from frazil.config.config import Config
from frazil.config.disk_share import disk_use, fit_to_disk, reserve_bytes
from frazil.config.effective import EffectiveSetting, effective_settings, toml_line
from frazil.config.loader import Loaded, load, read
from frazil.config.reference import reference
from frazil.config.settings import Setting, settings
from frazil.config.sources import InvalidConfig, Origin, SettingProblem
from frazil.config.template import template

__all__ = [
    "Config",
    "EffectiveSetting",
    "InvalidConfig",
    "Loaded",
    "Origin",
    "Setting",
    "SettingProblem",
    "disk_use",
    "effective_settings",
    "fit_to_disk",
    "load",
    "read",
    "reference",
    "reserve_bytes",
    "settings",
    "template",
    "toml_line",
]
