"""StoredFor: since when alerts were active before a restart.

An alert that is pending in the middle of its `for` goes on where it was, less the time without
evaluations: nobody knows whether its row was there meanwhile. If it would fire less than the grace
period after the restart, it fires at the end of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from frazil.rules.samples import LabelPairs


@dataclass(frozen=True, slots=True)
class LastState:
    """What ALERTS_FOR_STATE said last of an alert."""

    active_ms: int
    seen_ms: int
    """When the node last evaluated it."""


@dataclass(frozen=True, slots=True)
class StoredFor:
    """Alerts that were active when the node stopped, by their labels."""

    states: Mapping[LabelPairs, LastState]
    grace_ms: int

    def active_since(self, labels: LabelPairs, for_ms: int, at_ms: int) -> int | None:
        """Return since when an alert counts as active, None if it was not."""
        state = self.states.get(labels)
        if state is None:
            return None
        left_ms = for_ms - (state.seen_ms - state.active_ms)
        if left_ms <= 0:
            return state.active_ms  # it fired
        if left_ms < self.grace_ms <= for_ms:
            return at_ms + self.grace_ms - for_ms
        return state.active_ms + (at_ms - state.seen_ms)
