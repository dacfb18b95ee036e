"""The words of the pages: comments of the settings from the source, and values for people."""

from __future__ import annotations

import inspect
import json
import re

from frazil.config.settings import Setting, SettingsTable
from frazil.serve import comments_of

BYTES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
TIMES = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def comment_of(setting: Setting) -> str:
    """What the setting is for: the text below its field, in one line."""
    return comments_of(setting.table.struct)[setting.keys[-1]]


def purpose_of(table: SettingsTable) -> str:
    """What the settings of a table are for, in one line."""
    return " ".join(inspect.getdoc(table.struct).split())  # type: ignore[union-attr]


def toml_value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    if isinstance(value, str):
        # What JSON must escape, TOML must, too; and one more.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def toml_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else toml_value(key)


def spoken(name: str, value: object) -> str | None:
    """A size or a time for people, as in 64 MiB; None when the number itself is best."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    units = BYTES if "_bytes" in name else TIMES if "_ms" in name else ()
    for unit, size in units:
        if value >= size and value * 10 % size == 0:
            return f"{value / size:g} {unit}"
    return None
