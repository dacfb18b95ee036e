"""Notification: an alert as it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """An alert that fires or is resolved."""

    labels: Mapping[str, str]
    """With the external ones."""
    annotations: Mapping[str, str]
    value: float
    starts_ms: int
    ends_ms: int
    """When it was resolved; of one that fires, when it counts as resolved unless it is sent
    again."""
    is_resolved: bool
    is_change: bool
    """It has begun to fire, or was resolved, since it was last sent."""
    url: str
    """Of the rule on the web page."""
