"""RuleRunner: the thread that reads rule files, evaluates groups when they are due, and gives
alerts to the notifiers.

One thread does everything, so that rules never take more of the node than one query at a time. A
group that is due while another is evaluated is late; what it misses is counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa

from frazil.errors import FrazilError, Unavailable, Unknown
from frazil.metrics import Counter, Gauge
from frazil.model import Clock
from frazil.results import CancelToken
from frazil.rules.charts import RuleChart, rule_chart
from frazil.rules.evaluate import RuleEvaluator
from frazil.rules.files.model import AlertRule, RuleGroup, RuleQuery
from frazil.rules.files.sources import RuleFiles
from frazil.rules.group_runner import GroupRunner, GroupSettings, SeriesSink
from frazil.rules.notify.notification import Notification
from frazil.rules.notify.notifier import Notifier
from frazil.rules.report import AlertChange, RulesReport
from frazil.rules.schedule import EvaluationTimes
from frazil.rules.state.alert import Alert
from frazil.rules.state.restore import StoredFor
from frazil.rules.template.evaluate import TemplateValues
from frazil.rules.watchdog import WATCHDOG
from frazil.settings import RulesConfig

logger = logging.getLogger(__name__)

WAIT_MAX_S = 1.0
"""The wall clock may be set meanwhile."""
CHANGES_MAX = 1000
"""Changes of alerts that are kept for the page."""
VALID_DELAYS = 4
"""An alert counts as resolved if it was not sent again for so many times the delay."""
CLOSE_S = 5.0

RELOADS = Counter("frazil.rules.reloads", "Rule files read after a change, by outcome.")
FIRING = Gauge("frazil.rules.firing.alerts", "Alerts that fire.")


@dataclass(slots=True)
class _Scheduled:
    runner: GroupRunner
    times: EvaluationTimes


class RuleRunner:
    """`report` may be called by any thread."""

    def __init__(
        self,
        config: RulesConfig,
        files: RuleFiles,
        evaluator: RuleEvaluator,
        sink: SeriesSink,
        read_stored: Callable[[int], StoredFor],
        notifiers: Sequence[Notifier],
        clock: Clock,
    ) -> None:
        """`read_stored` returns what ALERTS_FOR_STATE says at a time; it may fail."""
        self._config = config
        self._files = files
        self._evaluator = evaluator
        self._sink = sink
        self._read_stored = read_stored
        self._stored: StoredFor | None = None
        self._is_restored = False
        """The files were read once: rules that come later begin anew."""
        self._notifiers = notifiers
        self._clock = clock
        self._groups: list[_Scheduled] = []
        self._file_error: str | None = None
        self._read_ms: int | None = None
        self._history: deque[AlertChange] = deque(maxlen=CHANGES_MAX)
        self._report = RulesReport(groups=[], file_error=None, notifiers=[], changes=[])
        self._cancel_token = CancelToken()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="frazil-rules", daemon=True)
        values = TemplateValues(
            labels={},
            value=0.0,
            external_labels=config.external_labels,
            external_url=config.external_url,
        )
        self._settings = GroupSettings(
            interval_ms=config.interval_ms,
            query_offset_ms=config.query_offset_ms,
            values=values,
        )

    def start(self) -> None:
        for notifier in self._notifiers:
            notifier.start()
        self._thread.start()

    def close(self) -> None:
        """Stop evaluating, and cancel the query that runs."""
        self._closed.set()
        self._cancel_token.cancel(Unavailable("the node is stopping"))
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)
        for notifier in self._notifiers:
            notifier.close()

    def report(self) -> RulesReport:
        """Return rules, alerts and receivers as of the last evaluation."""
        report = self._report
        return RulesReport(
            groups=report.groups,
            file_error=report.file_error,
            notifiers=[notifier.report() for notifier in self._notifiers],
            changes=report.changes,
        )

    def chart(
        self,
        ask: Callable[[str], pa.Table],
        group: str,
        rule: str,
        begin_ms: int,
        end_ms: int,
        cancel_token: CancelToken,
    ) -> RuleChart:
        """Return the query of a rule over time. Any thread may call it. `Unknown` if there is no
        such rule."""
        for each in self._report.groups:
            for found in each.rules:
                if (each.name, found.name) == (group, rule):
                    query = RuleQuery(language=found.language, text=found.query)
                    return rule_chart(
                        self._evaluator, ask, rule, query, begin_ms, end_ms, cancel_token
                    )
        raise Unknown(f"there is no rule {rule} in a group {group}")

    def _loop(self) -> None:
        while not self._closed.is_set():
            try:
                wait_s = self.step()
            except Exception:  # top of loop: rules must go on
                logger.exception("the rules failed")
                wait_s = WAIT_MAX_S
            self._closed.wait(wait_s)

    def step(self) -> float:
        """Do what is due. Returns seconds until the next time."""
        now_ms = self._clock.wall_ms()
        self._read_files(now_ms)
        for scheduled in sorted(self._groups, key=lambda each: each.times.next_ms):
            due = scheduled.times.take(self._clock.wall_ms())
            if due is None:
                continue
            if self._closed.is_set():
                break
            at_ms, missed = due
            if missed:
                scheduled.runner.note_missed(missed)
            self._evaluate(scheduled.runner, at_ms)
        next_ms = min((each.times.next_ms for each in self._groups), default=None)
        if next_ms is None:
            return WAIT_MAX_S
        left_s = (next_ms - self._clock.wall_ms()) / 1000
        return min(max(left_s, 0.0), WAIT_MAX_S)

    def _evaluate(self, runner: GroupRunner, at_ms: int) -> None:
        changes = runner.step(at_ms, self._cancel_token)
        self._history.extendleft(changes)
        self._notify(runner, at_ms)
        self._publish()

    def _read_files(self, now_ms: int) -> None:
        """Read the files if that is due. If they are broken, the rules before go on."""
        interval_ms = self._config.reload_interval_ms
        if self._read_ms is not None and 0 <= now_ms - self._read_ms < interval_ms:
            return
        is_first = self._read_ms is None
        self._read_ms = now_ms
        try:
            groups = self._files.read_if_changed()
        except FrazilError as error:
            if str(error) != self._file_error:
                RELOADS.add(outcome="failed")
                logger.error("rule files cannot be used", extra={"reason": str(error)})
            self._file_error = str(error)
            groups = () if is_first else None
        else:
            if groups is not None:
                self._file_error = None
                RELOADS.add(outcome="ok")
        if groups is not None:
            stored_for = _begin_anew if self._is_restored else self._stored_for
            self._replace_groups(groups, now_ms, stored_for)
            self._is_restored = self._file_error is None
        self._publish()

    def _replace_groups(
        self,
        groups: Sequence[RuleGroup],
        now_ms: int,
        stored_for: Callable[[AlertRule], StoredFor],
    ) -> None:
        """Use other groups; rules that stay the same keep their states."""
        if self._config.watchdog and self._config.has_receivers:
            groups = [*groups, WATCHDOG]
        before = {(each.runner.group.file, each.runner.group.name): each for each in self._groups}
        self._groups = []
        for group in groups:
            runner = GroupRunner(
                group, self._settings, self._evaluator, self._sink, stored_for, self._clock
            )
            times = EvaluationTimes(group.file, group.name, runner.interval_ms, now_ms)
            known = before.pop((group.file, group.name), None)
            if known is not None:
                runner.take_over(known.runner)
                if known.runner.interval_ms == runner.interval_ms:
                    times = known.times
            self._groups.append(_Scheduled(runner, times))
        for removed in before.values():
            removed.runner.end(now_ms)
        logger.info("rules were read", extra={"groups": len(self._groups)})

    def _stored_for(self, _: AlertRule) -> StoredFor:
        if self._stored is None:
            self._stored = self._read_stored(self._clock.wall_ms())
        return self._stored

    def _notify(self, runner: GroupRunner, at_ms: int) -> None:
        delay_ms = self._config.resend_delay_ms
        sent = []
        for alert in runner.alerts:
            if alert.needs_sending(at_ms, delay_ms):
                valid_ms = at_ms + VALID_DELAYS * max(delay_ms, runner.interval_ms)
                sent.append(self._notification(alert, valid_ms))
                alert.sent_ms = at_ms
        for notifier in self._notifiers:
            notifier.add(sent)

    def _notification(self, alert: Alert, valid_ms: int) -> Notification:
        is_resolved = alert.resolved_ms is not None
        sent_ms, since_ms = alert.sent_ms, alert.resolved_ms or alert.fired_ms or 0
        name = dict(alert.labels)["alertname"]
        return Notification(
            labels={**self._config.external_labels, **dict(alert.labels)},
            annotations=alert.annotations,
            value=alert.value,
            starts_ms=alert.fired_ms or alert.active_ms,
            ends_ms=alert.resolved_ms if alert.resolved_ms is not None else valid_ms,
            is_resolved=is_resolved,
            is_change=sent_ms is None or since_ms > sent_ms,
            url=f"{self._config.external_url.rstrip('/')}/alerts?rule={quote(name)}",
        )

    def _publish(self) -> None:
        groups = [each.runner.report() for each in self._groups]
        firing = sum(
            alert.state == "firing"
            for group in groups
            for rule in group.rules
            for alert in rule.alerts
        )
        FIRING.set(firing)
        self._report = RulesReport(
            groups=groups,
            file_error=self._file_error,
            notifiers=[],
            changes=list(self._history),
        )


def _begin_anew(_: AlertRule) -> StoredFor:
    return StoredFor({}, 0)
