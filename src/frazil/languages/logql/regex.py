"""Regular expressions in the syntax of RE2, which Loki's clients expect."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

from frazil.errors import Malformed

_GROUP = re.compile(r"\$(?:\{(\w+)\}|(\w+)|\$)")

MEMORY_BYTES_MAX = 8 << 20
"""Of one compiled expression."""


@lru_cache(maxsize=256)
def compiled_regex(pattern: str) -> Any:
    """Compile a regular expression. `Malformed` says what is wrong."""
    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be parsed"
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise Malformed(f"the regular expression {pattern!r} is invalid: {shown}") from None


@lru_cache(maxsize=256)
def anchored_regex(pattern: str) -> Any:
    """Compile an expression that must match a whole value, newlines included."""
    compiled_regex(pattern)
    return compiled_regex(anchored(pattern))


def anchored(pattern: str) -> str:
    return f"^(?s:{pattern})$"


def expand_groups(template: str, match: Any) -> str:
    """Fill in `$1`, `${1}` and `${name}`; a group that there is not is empty."""

    def group(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name is None:
            return "$"
        try:
            return match.group(int(name) if name.isdigit() else name) or ""
        except (IndexError, KeyError, re2.error):
            return ""

    return _GROUP.sub(group, template)
