"""A commented frazil.toml: every setting with its default, and what it is for."""

from __future__ import annotations

import textwrap

from frazil.config.descriptions import comment_of, purpose_of, spoken, toml_value
from frazil.config.settings import Setting, SettingsTable, settings, tables

WIDTH = 100
EXAMPLE = "#   "
"""Before what is there to be copied: taking the # away everywhere must not set it."""

HEAD = """\
# Settings of Frazil. A line that begins with # and a name is a default: take the # away and change
# the value. Lines that begin with # and spaces are words, and examples of what has no default.
# A flag is stronger than the environment, and that than this file. `frazil config show --origin`
# says what is in force.
"""


def template() -> str:
    """The text of the file. It sets nothing; with the # of each default away, neither."""
    return HEAD + "".join(_table(table) for table in tables().values())


def _table(table: SettingsTable) -> str:
    """A table with its settings, then its maps, which are tables of their own in TOML."""
    of_it = [setting for setting in settings() if setting.table == table]
    heads = [setting for setting in of_it if setting.kind.base == "map"]
    sign = EXAMPLE if table.is_optional else ""
    text = ""
    if table.keys:
        text = f"\n\n{_words(purpose_of(table))}{sign}[{'.'.join(table.keys)}]\n"
    text += "".join(_line(setting) for setting in of_it if setting not in heads)
    return text + "".join(
        f"\n{_words(comment_of(setting))}{sign}[{setting.name}]\n" for setting in heads
    )


def _line(setting: Setting) -> str:
    name, value = setting.keys[-1], setting.default
    sign = EXAMPLE if value is None or setting.table.is_optional else "#"
    shown = '"…"' if value is None else toml_value(value)
    human = spoken(name, value)
    note = f"  # {human}" if human else ""
    return f"\n{_words(comment_of(setting))}{sign}{name} = {shown}{note}\n"


def _words(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 2))
