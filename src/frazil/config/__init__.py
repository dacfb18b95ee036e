"""config: what an operator may set, from where, and what is refused.

A flag is stronger than the environment, that than the file, that than the default. A room gets its
own frozen struct and knows no other; nothing below this reads the environment.

    config.py        the settings of a node, one struct per room, and rules between rooms
    descriptions.py  the comments of the settings, from the source
    effective.py     what is in force, and where it comes from
    environment.py   which variables are settings, and which are slips
    loader.py        from file, environment and flags to a `Config`
    reference.py     the page docs/configuration.md
    secrets.py       values that are not shown, and references to them
    settings.py      the list of all settings, made from the structs
    sources.py       what was set, and where; what is wrong with it
    template.py      a commented frazil.toml
    toml_lines.py    on which line of a TOML file each key stands
    types.py         what a setting holds, and how a text becomes that
"""

from frazil.config.config import Config
from frazil.config.effective import EffectiveSetting, shown, toml_line
from frazil.config.loader import Loaded, load, read
from frazil.config.reference import reference
from frazil.config.settings import Setting, settings
from frazil.config.sources import Origin
from frazil.config.template import template

__all__ = [
    "Config",
    "EffectiveSetting",
    "Loaded",
    "Origin",
    "Setting",
    "load",
    "read",
    "reference",
    "settings",
    "shown",
    "template",
    "toml_line",
]
