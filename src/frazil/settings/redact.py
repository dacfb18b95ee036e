"""RedactRule: what to remove from requests before they are stored."""

from __future__ import annotations

from typing import Literal

import msgspec

from frazil.errors import InvalidSetting


class RedactRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replaces values of one attribute, or the text that matches a pattern."""

    action: Literal["hash", "mask", "drop"]
    key: str | None = None
    """Key of an attribute, or of a member of a map, anywhere in a request."""
    pattern: str | None = None
    """Regular expression of RE2, for all texts but keys."""

    def __post_init__(self) -> None:
        if (self.key is None) == (self.pattern is None):
            raise InvalidSetting(
                "each rule of redact has either a key or a pattern, and an action", "redact"
            )
        if not (self.key or self.pattern):
            raise InvalidSetting("a rule of redact has an empty key or pattern", "redact")
