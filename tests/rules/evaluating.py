"""A rule runner over rows that a test chooses: its clock stands still, its log is a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from frazil.errors import FrazilError, Unavailable
from frazil.results import CancelToken
from frazil.rules.files.model import AlertRule, RuleGroup, RuleQuery
from frazil.rules.group_runner import GroupRunner, GroupSettings
from frazil.rules.samples import METRIC_NAME, LabelPairs, RuleSample, label_pairs
from frazil.rules.state.restore import LastState, StoredFor
from frazil.rules.template.evaluate import TemplateValues
from tests.sim.clock import SimClock

BEGIN_MS = 1_700_000_000_000
STEP_MS = 60_000


@dataclass
class Rows:
    """Answers every query with what the test has set; None fails."""

    now: Sequence[RuleSample] | None = ()
    asked_ms: list[int] = field(default_factory=list)

    def run(self, query: RuleQuery, at_ms: int, cancel_token: CancelToken) -> Sequence[RuleSample]:
        self.asked_ms.append(at_ms)
        if self.now is None:
            raise Unavailable("the engine is gone")
        return self.now

    def over_time(
        self,
        query: RuleQuery,
        times_ms: Sequence[int],
        step_ms: int,
        cancel_token: CancelToken,
    ) -> Iterator[RuleSample]:
        for at_ms in times_ms:
            yield from self.run(query, at_ms, cancel_token)


@dataclass
class StoredSeries:
    """The samples that were stored, and what a restart would read of them."""

    samples: list[RuleSample] = field(default_factory=list)
    error: FrazilError | None = None

    def store(self, samples: Sequence[RuleSample], *, is_read_next: bool) -> None:
        if self.error is not None:
            raise self.error
        self.samples += samples

    def last(self, name: str) -> dict[LabelPairs, RuleSample]:
        """Return the last sample of each series of a name, without that."""
        return {
            label_pairs({k: v for k, v in each.labels if k != METRIC_NAME}): each
            for each in self.samples
            if dict(each.labels)[METRIC_NAME] == name
        }

    def stored_for(self, grace_ms: int = 0) -> StoredFor:
        states = {
            labels: LastState(int(each.value) * 1000, each.time_ms)
            for labels, each in self.last("ALERTS_FOR_STATE").items()
            if each.value is not None
        }
        return StoredFor(states, grace_ms)


def row(value: float = 1.0, **labels: str) -> RuleSample:
    return RuleSample(labels=label_pairs(labels), value=value, time_ms=0)


def alert_rule(**fields: object) -> AlertRule:
    given = {"name": "Slow", "query": RuleQuery(language="sql", text="SELECT 1 AS value")}
    return AlertRule(**{**given, **fields})  # type: ignore[arg-type]


def group_of(*rules: AlertRule, **fields: object) -> RuleGroup:
    return RuleGroup(file="f.yml", name="g", rules=rules, **fields)  # type: ignore[arg-type]


def runner_of(
    group: RuleGroup,
    rows: Rows,
    series: StoredSeries,
    stored: Callable[[], StoredFor] = lambda: StoredFor({}, 0),
) -> GroupRunner:
    settings = GroupSettings(
        interval_ms=STEP_MS,
        query_offset_ms=0,
        values=TemplateValues(labels={}, value=0.0, external_url="http://page"),
    )
    return GroupRunner(group, settings, rows, series, lambda _: stored(), SimClock())


def phases(runner: GroupRunner) -> dict[str, str]:
    """Return the phase of each alert, by its label `a`."""
    return {dict(alert.labels).get("a", ""): alert.phase for alert in runner.alerts}
