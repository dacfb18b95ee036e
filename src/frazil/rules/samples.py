"""RuleSample: one row of a query of a rule; and names of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LabelPairs = tuple[tuple[str, str], ...]
"""Labels, sorted by name. None is empty."""

METRIC_NAME = "__name__"
ALERT_NAME = "alertname"
ALERT_STATE = "alertstate"
ALERTS = "ALERTS"
ALERTS_FOR_STATE = "ALERTS_FOR_STATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSample:
    """Labels and a value at a time. Without a value, the series has ended."""

    labels: LabelPairs
    value: float | None
    time_ms: int


def label_pairs(labels: Mapping[str, str]) -> LabelPairs:
    """Return labels as a key. An empty text is no label."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))
