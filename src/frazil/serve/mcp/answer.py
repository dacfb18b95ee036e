"""ToolAnswer: what a tool has found, before it is made to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frazil.results import json_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """Rows in order of importance, and facts about all of them."""

    rows_name: str
    rows: Sequence[bytes]
    """Each as JSON."""
    total: int | None
    """How many rows there are; None if unknown."""
    is_at_least: bool = False
    """Whether there may be more than `total`."""
    narrow: str
    """What would give fewer or other rows."""
    page: str | None
    """Where people see the same."""
    cursors: Sequence[str] = ()
    """By row: what continues after it."""
    facts: Mapping[str, object] = field(default_factory=dict)


def rows_of(values: Sequence[object]) -> list[bytes]:
    """Encode rows."""
    return [json_of(value) for value in values]
