"""Alert: one row of an alert rule, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from frazil.rules.samples import LabelPairs

AlertPhase = Literal["inactive", "pending", "firing"]


@dataclass(slots=True, kw_only=True)
class Alert:
    """Owned by the thread that evaluates; others take copies."""

    labels: LabelPairs
    annotations: Mapping[str, str]
    value: float
    phase: AlertPhase
    active_ms: int
    """Since when its row has been there, without a gap."""
    fired_ms: int | None = None
    resolved_ms: int | None = None
    keep_firing_since_ms: int | None = None
    """Since when its row has been gone while it fires on."""
    sent_ms: int | None = None
    """When it was last given to the notifiers."""

    def needs_sending(self, now_ms: int, resend_delay_ms: int) -> bool:
        """Return whether notifiers must hear of it: it fires, or has just been resolved."""
        if self.phase == "pending" or self.fired_ms is None:
            return False
        if self.sent_ms is None:
            return True
        if self.resolved_ms is not None and self.resolved_ms > self.sent_ms:
            return True
        return self.sent_ms + resend_delay_ms < now_ms
