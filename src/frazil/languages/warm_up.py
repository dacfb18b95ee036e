"""Compile what evaluations call, ahead of the first one."""

from __future__ import annotations

from frazil.languages.prometheus.warm_series import warm_series
from frazil.languages.promql.warm_promql import warm_promql


def warm() -> None:
    """Compile the loops of this room, or load them from the cache on disk."""
    warm_promql()
    warm_series()
