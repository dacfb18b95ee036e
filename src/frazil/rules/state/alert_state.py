"""AlertState: the state machine of one alert rule, as Prometheus has it.

    (no row) ── row ──> pending ── for ──> firing ── row gone ──> inactive ── 15 min ──> forgotten
                          │                   └── keep_firing_for: fires on meanwhile
                          └── row gone: forgotten

A failed evaluation changes nothing: what fires goes on to fire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from frazil.errors import Malformed, TooLarge
from frazil.rules.files.model import AlertRule
from frazil.rules.samples import ALERT_NAME, METRIC_NAME, LabelPairs, RuleSample, label_pairs
from frazil.rules.state.alert import Alert
from frazil.rules.template.evaluate import TemplateValues, compile_template

RESOLVED_KEPT_MS = 15 * 60 * 1000
"""How long a resolved alert is kept, and sent again."""

Expand = Callable[[str, TemplateValues], str]


class AlertState:
    """Alerts of one rule. Owned by the thread that evaluates."""

    def __init__(self, rule: AlertRule, *, limit: int, values: TemplateValues) -> None:
        """`values` has the external labels and address. `limit`: alerts, 0 for any number."""
        self.rule = rule
        self._limit = limit
        self._values = values
        self._alerts: dict[LabelPairs, Alert] = {}

    @property
    def alerts(self) -> list[Alert]:
        """All alerts, with those that were resolved a short time ago."""
        return list(self._alerts.values())

    @property
    def active(self) -> list[Alert]:
        return [alert for alert in self._alerts.values() if alert.phase != "inactive"]

    def take_over(self, other: AlertState) -> None:
        """Continue with the alerts of the same rule before a change of its file."""
        self._alerts = {labels: replace(alert) for labels, alert in other._alerts.items()}

    def step(
        self,
        samples: Sequence[RuleSample],
        at_ms: int,
        active_since: Callable[[LabelPairs, int], int | None],
    ) -> list[Alert]:
        """Take the rows of one evaluation. Returns the alerts that are active now.

        `active_since` returns since when an alert counts as active that is new to this process.
        `Malformed` if two rows have the same labels, `TooLarge` above the limit; then the rows
        count as if the query had failed.
        """
        found = self._found(samples, at_ms)
        for labels, alert in found.items():
            known = self._alerts.get(labels)
            if known is not None and known.phase != "inactive":
                known.value, known.annotations = alert.value, alert.annotations
            else:
                alert.active_ms = active_since(labels, at_ms) or at_ms
                self._alerts[labels] = alert
        for labels, alert in list(self._alerts.items()):
            if labels in found:
                alert.keep_firing_since_ms = None
                self._ripen(alert, at_ms)
            elif not self._keeps_firing(alert, at_ms):
                self._end(alert, at_ms)
        return self.active

    def _found(self, samples: Sequence[RuleSample], at_ms: int) -> dict[LabelPairs, Alert]:
        found: dict[LabelPairs, Alert] = {}
        for sample in samples:
            if sample.value is None:
                continue
            alert = self._alert(sample, sample.value, at_ms)
            if alert.labels in found:
                text = ", ".join(f"{name}={value!r}" for name, value in alert.labels)
                raise Malformed(f"two rows give an alert the same labels: {text}")
            found[alert.labels] = alert
        if self._limit and len(found) > self._limit:
            raise TooLarge(f"{len(found)} alerts exceed the limit of {self._limit}")
        return found

    def _alert(self, sample: RuleSample, value: float, at_ms: int) -> Alert:
        found = dict(sample.labels)
        values = replace(self._values, labels=found, value=value)
        row = {name: text for name, text in found.items() if name != METRIC_NAME}
        added = {name: expanded(text, values) for name, text in self.rule.labels.items()}
        labels = label_pairs({**row, **added, ALERT_NAME: self.rule.name})
        return Alert(
            labels=labels,
            annotations={
                name: expanded(text, values) for name, text in self.rule.annotations.items()
            },
            value=value,
            phase="pending",
            active_ms=at_ms,
        )

    def _ripen(self, alert: Alert, at_ms: int) -> None:
        if alert.phase == "pending" and at_ms - alert.active_ms >= self.rule.for_ms:
            alert.phase, alert.fired_ms = "firing", at_ms

    def _keeps_firing(self, alert: Alert, at_ms: int) -> bool:
        if alert.phase != "firing" or not self.rule.keep_firing_for_ms:
            return False
        if alert.keep_firing_since_ms is None:
            alert.keep_firing_since_ms = at_ms
        return at_ms - alert.keep_firing_since_ms < self.rule.keep_firing_for_ms

    def _end(self, alert: Alert, at_ms: int) -> None:
        resolved_ms = alert.resolved_ms
        is_old = resolved_ms is not None and at_ms - resolved_ms > RESOLVED_KEPT_MS
        if alert.phase == "pending" or is_old:
            del self._alerts[alert.labels]
        elif alert.phase == "firing":
            alert.phase, alert.resolved_ms = "inactive", at_ms


def expanded(text: str, values: TemplateValues) -> str:
    """Return the text of a template; of one that fails, what failed."""
    try:
        return compile_template(text).expand(values)
    except Malformed as error:
        return f"<error expanding template: {error}>"
