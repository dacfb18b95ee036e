"""The series ALERTS and ALERTS_FOR_STATE of the alerts of one rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from frazil.rules.samples import (
    ALERT_STATE,
    ALERTS,
    ALERTS_FOR_STATE,
    METRIC_NAME,
    RuleSample,
    label_pairs,
)
from frazil.rules.state.alert import Alert


def alert_series(alerts: Iterable[Alert], at_ms: int) -> Iterator[RuleSample]:
    """Yield two samples of each active alert: its phase, and since when it has been active."""
    for alert in alerts:
        labels = dict(alert.labels)
        phase = label_pairs({**labels, METRIC_NAME: ALERTS, ALERT_STATE: alert.phase})
        since = label_pairs({**labels, METRIC_NAME: ALERTS_FOR_STATE})
        yield RuleSample(labels=phase, value=1.0, time_ms=at_ms)
        yield RuleSample(labels=since, value=float(alert.active_ms // 1000), time_ms=at_ms)
