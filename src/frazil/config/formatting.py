"""Values as TOML and for people."""

from __future__ import annotations

import json
import re

BYTES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
TIMES = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_value(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        pairs = (f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        # TOML escapes what JSON escapes, and DEL as well.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def toml_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else toml_value(key)


def human_readable(name: str, value: object) -> str | None:
    """Return a size or a time with its unit, as in 64 MiB; None if the plain number reads best."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    units = BYTES if "_bytes" in name else TIMES if "_ms" in name else ()
    for unit, size in units:
        if value >= size and value * 10 % size == 0:
            return f"{value / size:g} {unit}"
    return None
