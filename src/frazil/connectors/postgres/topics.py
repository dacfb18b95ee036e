"""Names that follow from others: the topic of a table, the slot of a source."""

from __future__ import annotations

import re

UNFIT = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)
LENGTH_MAX = 249
SLOT_MAX = 63


def topic_of(pattern: str, schema: str, table: str) -> str:
    """Return the topic of a table. What topics cannot be called becomes `_`."""
    filled = pattern.replace("{schema}", _plain(schema)).replace("{table}", _plain(table))
    return filled[:LENGTH_MAX]


def progress_topic(pattern: str, connector: str) -> str:
    """Return the topic in which it is noted how far a source has read. One that fits the pattern;
    the topic itself, if there is only that."""
    return topic_of(pattern, "frazil", f"{connector}.progress")


def slot_of(connector: str) -> str:
    """Return the name of the slot of a source, and of its publication, unless it has others."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in connector.lower())
    return f"frazil_{plain}"[:SLOT_MAX]


def _plain(name: str) -> str:
    return UNFIT.sub("_", name)
