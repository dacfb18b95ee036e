"""Which topic the events of a table go to."""

from __future__ import annotations

import re

UNFIT = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)
LENGTH_MAX = 249


def topic_of(pattern: str, schema: str, table: str) -> str:
    """Return the topic of a table. What topics cannot be called becomes `_`."""
    filled = pattern.replace("{schema}", _plain(schema)).replace("{table}", _plain(table))
    return filled[:LENGTH_MAX]


def progress_topic(pattern: str, connector: str) -> str:
    """Return the topic in which it is noted how far a source has read. One that fits the pattern;
    the topic itself, if there is only that."""
    return topic_of(pattern, "frazil", f"{connector}.progress")


def _plain(name: str) -> str:
    return UNFIT.sub("_", name)
