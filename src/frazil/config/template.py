"""The commented frazil.toml of `frazil init`: every setting with its default and description."""

from __future__ import annotations

import textwrap

from frazil.config.formatting import human_readable, toml_value
from frazil.config.settings import Setting, SettingsTable, settings, tables

WIDTH = 100
EXAMPLE = "#   "
"""Marks settings without a default, so that uncommenting all defaults does not set them."""

HEAD = """\
# Settings of Frazil. A line that begins with # and a name is a default: remove the # and change
# the value. Lines that begin with # and spaces are descriptions, and examples without a default.
# Flags override the environment, which overrides this file. `frazil config show --origin` shows
# the effective settings.
"""


def template() -> str:
    """Return the text of the file. It sets nothing, even with every default uncommented."""
    return HEAD + "".join(_table(table) for table in tables().values())


def _table(table: SettingsTable) -> str:
    """Return a table with its settings, then its maps, which are TOML tables themselves."""
    inside = [setting for setting in settings() if setting.table == table]
    maps = [setting for setting in inside if setting.kind.base == "map"]
    sign = EXAMPLE if table.is_optional else ""
    text = ""
    if table.keys:
        text = f"\n\n{_comment(table.description)}{sign}[{'.'.join(table.keys)}]\n"
    text += "".join(_line(setting) for setting in inside if setting not in maps)
    return text + "".join(
        f"\n{_comment(setting.description)}{sign}[{setting.name}]\n" for setting in maps
    )


def _line(setting: Setting) -> str:
    name, value = setting.keys[-1], setting.default
    sign = EXAMPLE if value is None or setting.table.is_optional else "#"
    text = '"…"' if value is None else toml_value(value)
    readable = human_readable(name, value)
    note = f"  # {readable}" if readable else ""
    return f"\n{_comment(setting.description)}{sign}{name} = {text}{note}\n"


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 2))
