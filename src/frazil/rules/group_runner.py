"""GroupRunner: evaluates the rules of one group, one after the other, as of a time.

1. Each query runs. One that fails leaves the states of its rule as they are.
2. Alerts step; series of recording rules are stored at once if a later rule reads them.
3. The series of all others are stored together.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from frazil.errors import FrazilError, Malformed, TooLarge
from frazil.metrics import Counter, Histogram
from frazil.model import NS_PER_MS, Clock
from frazil.results import CancelToken
from frazil.rules.alert_series import alert_series
from frazil.rules.evaluate import RuleEvaluator
from frazil.rules.files.model import AlertRule, RecordingRule, Rule, RuleGroup
from frazil.rules.report import AlertChange, AlertReport, RuleGroupReport, RuleHealth, RuleReport
from frazil.rules.samples import METRIC_NAME, LabelPairs, RuleSample, label_pairs
from frazil.rules.state.alert import Alert
from frazil.rules.state.alert_state import AlertState
from frazil.rules.state.restore import StoredFor
from frazil.rules.state.series_state import SeriesState
from frazil.rules.template.evaluate import TemplateValues
from frazil.rules.template.values import float_text

logger = logging.getLogger(__name__)

EVALUATIONS = Counter("frazil.rules.evaluations", "Evaluated rules, by outcome.")
MISSED = Counter("frazil.rules.missed.evaluations", "Evaluations of groups that were skipped.")
DURATION = Histogram("frazil.rules.duration.ms", "Time to evaluate a group of rules.")
INTERNAL = "internal error; see the log of the node"


class SeriesSink(Protocol):
    """Stores series of rules."""

    def store(self, samples: Sequence[RuleSample], *, is_read_next: bool) -> None:
        """Return once they are durable; with `is_read_next` once queries see them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What the settings of the node say for every group."""

    interval_ms: int
    query_offset_ms: int
    values: TemplateValues
    """External labels and address, for templates."""


@dataclass(slots=True)
class _RuleRun:
    """One rule and its state."""

    rule: Rule
    series: SeriesState = field(default_factory=SeriesState)
    alerts: AlertState | None = None
    is_restored: bool = False
    health: RuleHealth = "unknown"
    error: str | None = None
    evaluated_ms: int | None = None
    took_ms: float = 0.0


class GroupRunner:
    """One group. Owned by the thread that evaluates."""

    def __init__(
        self,
        group: RuleGroup,
        settings: GroupSettings,
        evaluator: RuleEvaluator,
        sink: SeriesSink,
        stored: Callable[[AlertRule], StoredFor],
        clock: Clock,
    ) -> None:
        self.group = group
        self.interval_ms = group.interval_ms or settings.interval_ms
        offset_ms = group.query_offset_ms
        self.query_offset_ms = settings.query_offset_ms if offset_ms is None else offset_ms
        self._evaluator = evaluator
        self._sink = sink
        self._stored = stored
        self._clock = clock
        self._evaluated_ms: int | None = None
        self._took_ms = 0.0
        self.missed_count = 0
        self._runs = [self._run_of(rule, settings) for rule in group.rules]
        self._removed: list[_RuleRun] = []
        """Rules that the group no longer has, whose series must be marked as ended."""

    def _run_of(self, rule: Rule, settings: GroupSettings) -> _RuleRun:
        rule = replace(rule, labels={**self.group.labels, **rule.labels})
        if isinstance(rule, RecordingRule):
            return _RuleRun(rule)
        alerts = AlertState(rule, limit=self.group.limit, values=settings.values)
        return _RuleRun(rule, alerts=alerts)

    @property
    def alerts(self) -> list[Alert]:
        return [alert for run in self._runs if run.alerts for alert in run.alerts.alerts]

    def take_over(self, other: GroupRunner) -> None:
        """Continue with the states of a group of the same name, where rules are the same."""
        left = list(other._runs)
        for run in self._runs:
            before = next((each for each in left if each.rule == run.rule), None)
            if before is not None:
                left.remove(before)
                run.series, run.is_restored = before.series, before.is_restored
                run.health, run.error = before.health, before.error
                run.evaluated_ms, run.took_ms = before.evaluated_ms, before.took_ms
                if run.alerts is not None and before.alerts is not None:
                    run.alerts.take_over(before.alerts)
        self._removed = [*other._removed, *left]
        self._evaluated_ms, self._took_ms = other._evaluated_ms, other._took_ms
        self.missed_count = other.missed_count

    def note_missed(self, count: int) -> None:
        """Count evaluations that were skipped because an earlier one took too long."""
        self.missed_count += count
        MISSED.add(count)
        logger.warning(
            "evaluations of a group of rules were missed",
            extra={"group": self.group.name, "count": count},
        )

    def step(self, at_ms: int, cancel_token: CancelToken) -> list[AlertChange]:
        """Evaluate all rules as of a time. Returns the alerts that have changed."""
        begin_ns = self._clock.monotonic_ns()
        self._end(self._removed, at_ms)
        self._removed = []
        changes: list[AlertChange] = []
        pending: list[tuple[_RuleRun, list[RuleSample]]] = []
        for index, run in enumerate(self._runs):
            samples = self._evaluate(run, at_ms, cancel_token, changes)
            if samples and self._is_read_by(run.rule, self._runs[index + 1 :]):
                self._store([(run, samples)], is_read_next=True)
            elif samples:
                pending.append((run, samples))
        self._store(pending, is_read_next=False)
        self._evaluated_ms = at_ms
        self._took_ms = (self._clock.monotonic_ns() - begin_ns) / NS_PER_MS
        DURATION.record(self._took_ms)
        return changes

    def end(self, at_ms: int) -> None:
        """Mark all series as ended: the group was removed."""
        self._end([*self._removed, *self._runs], at_ms)

    def _end(self, runs: Sequence[_RuleRun], at_ms: int) -> None:
        ended = [(run, run.series.end(at_ms - self.query_offset_ms)) for run in runs]
        self._store([each for each in ended if each[1]], is_read_next=False)

    def _evaluate(
        self, run: _RuleRun, at_ms: int, cancel_token: CancelToken, changes: list[AlertChange]
    ) -> list[RuleSample]:
        """Return the samples to store; none if the evaluation failed."""
        begin_ns = self._clock.monotonic_ns()
        before = _phases(run)
        try:
            found = self._evaluator.run(run.rule.query, at_ms - self.query_offset_ms, cancel_token)
            samples = self._samples(run, found, at_ms)
            run.health, run.error = "ok", None
        except FrazilError as error:
            samples = []
            self._fail(run, error)
        except Exception:  # top of loop: one rule must not stop the others
            samples = []
            run.health, run.error = "err", INTERNAL
            logger.exception("a rule failed", extra={"rule": run.rule.name})
        EVALUATIONS.add(outcome=run.health)
        run.evaluated_ms = at_ms
        run.took_ms = (self._clock.monotonic_ns() - begin_ns) / NS_PER_MS
        changes += self._changes(run, before, at_ms)
        return samples

    def _fail(self, run: _RuleRun, error: FrazilError) -> None:
        """Note an error of a rule. It is logged when it begins."""
        reason = str(error) or type(error).__name__
        if run.error != reason:
            logger.warning(
                "a rule could not be evaluated",
                extra={"group": self.group.name, "rule": run.rule.name, "reason": reason},
            )
        run.health, run.error = "err", reason

    def _samples(self, run: _RuleRun, found: Sequence[RuleSample], at_ms: int) -> list[RuleSample]:
        stored_ms = at_ms - self.query_offset_ms
        if run.alerts is None:
            return run.series.step(_recorded(run.rule, found, self.group.limit), stored_ms)
        rule = run.alerts.rule
        stored = None if run.is_restored else self._stored(rule)

        def active_since(labels: LabelPairs, now_ms: int) -> int | None:
            return None if stored is None else stored.active_since(labels, rule.for_ms, now_ms)

        active = run.alerts.step(found, at_ms, active_since)
        run.is_restored = True
        return run.series.step(alert_series(active, stored_ms), stored_ms)

    def _store(
        self, pending: Sequence[tuple[_RuleRun, list[RuleSample]]], *, is_read_next: bool
    ) -> None:
        """Store samples. If that fails, the rules are in error, and their states go on."""
        samples = [sample for _, each in pending for sample in each]
        if not samples:
            return
        try:
            self._sink.store(samples, is_read_next=is_read_next)
        except FrazilError as error:
            for run, _ in pending:
                run.health, run.error = "err", f"storing its series: {error}"
            logger.warning(
                "series of rules could not be stored",
                extra={"group": self.group.name, "reason": str(error)},
            )

    def _is_read_by(self, rule: Rule, later: Sequence[_RuleRun]) -> bool:
        if not isinstance(rule, RecordingRule):
            return False
        word = re.compile(rf"(?<![\w:]){re.escape(rule.name)}(?![\w:])")
        return any(word.search(run.rule.query.text) for run in later)

    def _changes(
        self, run: _RuleRun, before: dict[LabelPairs, Alert], at_ms: int
    ) -> list[AlertChange]:
        if run.alerts is None:
            return []
        changes = []
        after = {alert.labels: alert for alert in run.alerts.alerts}
        for labels, alert in after.items():
            known = before.pop(labels, None)
            if known is None or (known.phase, known.active_ms) != (alert.phase, alert.active_ms):
                changes.append(self._change(run, alert, at_ms))
        for alert in before.values():
            if alert.phase == "pending":
                changes.append(self._change(run, alert, at_ms, is_dropped=True))
        return changes

    def _change(
        self, run: _RuleRun, alert: Alert, at_ms: int, *, is_dropped: bool = False
    ) -> AlertChange:
        return AlertChange(
            at_ms=at_ms,
            group=self.group.name,
            rule=run.rule.name,
            labels=dict(alert.labels),
            state="dropped" if is_dropped else _report_state(alert),
            value=float_text(alert.value),
        )

    def report(self) -> RuleGroupReport:
        return RuleGroupReport(
            name=self.group.name,
            file=self.group.file,
            interval_ms=self.interval_ms,
            query_offset_ms=self.query_offset_ms,
            limit=self.group.limit,
            evaluated_at_ms=self._evaluated_ms,
            evaluation_ms=self._took_ms,
            missed_count=self.missed_count,
            rules=[_rule_report(run) for run in self._runs],
        )


def _recorded(rule: Rule, found: Sequence[RuleSample], limit: int) -> list[RuleSample]:
    """Return rows as the series that a recording rule names."""
    if limit and len(found) > limit:
        raise TooLarge(f"{len(found)} series exceed the limit of {limit}")
    samples = []
    seen: set[LabelPairs] = set()
    for sample in found:
        labels = label_pairs({**dict(sample.labels), METRIC_NAME: rule.name, **rule.labels})
        if labels in seen:
            raise Malformed(
                f"two rows give {rule.name} the same labels; aggregate, or keep a label"
            )
        seen.add(labels)
        samples.append(replace(sample, labels=labels))
    return samples


def _phases(run: _RuleRun) -> dict[LabelPairs, Alert]:
    if run.alerts is None:
        return {}
    return {alert.labels: replace(alert) for alert in run.alerts.alerts}


def _rule_report(run: _RuleRun) -> RuleReport:
    rule = run.rule
    is_alert = isinstance(rule, AlertRule)
    alerts = [] if run.alerts is None else run.alerts.alerts
    phases = {alert.phase for alert in alerts}
    return RuleReport(
        name=rule.name,
        kind="alerting" if is_alert else "recording",
        language=rule.query.language,
        query=rule.query.text,
        labels=dict(rule.labels),
        annotations=dict(rule.annotations) if isinstance(rule, AlertRule) else {},
        for_ms=rule.for_ms if isinstance(rule, AlertRule) else 0,
        keep_firing_for_ms=rule.keep_firing_for_ms if isinstance(rule, AlertRule) else 0,
        state="firing" if "firing" in phases else "pending" if "pending" in phases else "inactive",
        health=run.health,
        last_error=run.error,
        evaluated_at_ms=run.evaluated_ms,
        evaluation_ms=run.took_ms,
        alerts=[alert_report(alert) for alert in alerts],
    )


def alert_report(alert: Alert) -> AlertReport:
    return AlertReport(
        labels=dict(alert.labels),
        annotations=dict(alert.annotations),
        state=_report_state(alert),
        value=float_text(alert.value),
        active_at_ms=alert.active_ms,
        fired_at_ms=alert.fired_ms,
        resolved_at_ms=alert.resolved_ms,
        keep_firing_since_ms=alert.keep_firing_since_ms,
    )


def _report_state(alert: Alert) -> Literal["pending", "firing", "resolved"]:
    return "resolved" if alert.phase == "inactive" else alert.phase
