"""Settings of a room: descriptions of fields, and the check that most fields share."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from frazil.errors import InvalidSetting


def doc(description: str) -> msgspec.Meta:
    """Describe a field: `Annotated[int, doc("Open connections.")]`."""
    return msgspec.Meta(description=description)


def require_at_least(
    minimum: int, table: str, config: msgspec.Struct, names: Iterable[str] | None = None
) -> None:
    """Raise InvalidSetting if one of the fields (by default any number) is below `minimum`."""
    for name in config.__struct_fields__ if names is None else names:
        value = getattr(config, name)
        if isinstance(value, int) and not isinstance(value, bool) and value < minimum:
            setting = f"{table}.{name}"
            raise InvalidSetting(f"{setting} is {value}; it must be at least {minimum}", setting)
