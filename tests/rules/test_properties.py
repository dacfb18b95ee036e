"""Any history of rows, failures and restarts leaves an alert in the state that the rows alone say.

The model looks at the whole history at once; the state machine only ever sees the next evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from frazil.results import CancelToken
from frazil.rules.group_runner import GroupRunner
from frazil.rules.samples import ALERT_STATE, ALERTS, METRIC_NAME
from tests.rules.evaluating import (
    BEGIN_MS,
    STEP_MS,
    Rows,
    StoredSeries,
    alert_rule,
    group_of,
    phases,
    row,
    runner_of,
)

Step = bool | None
"""Is the row there; None: the query fails."""


@dataclass
class Expected:
    """What the rows say, by plain counting of evaluations that did not fail."""

    wait: int
    keep: int
    phase: str = "absent"
    active: int = 0
    gone: int | None = None
    changes: list[str] = field(default_factory=list)

    def see(self, step: int, is_there: Step) -> None:
        if is_there is None:
            return
        if is_there:
            self.gone = None
            if self.phase in ("absent", "inactive"):
                self.phase, self.active = "pending", step
            if self.phase == "pending" and step - self.active >= self.wait:
                self.phase = "firing"
        elif self.phase == "pending":
            self.phase = "absent"
        elif self.phase == "firing":
            self.gone = step if self.gone is None else self.gone
            if step - self.gone >= self.keep:
                self.phase = "inactive"


def runner_for(wait: int, keep: int, rows: Rows, series: StoredSeries) -> GroupRunner:
    rule = alert_rule(for_ms=wait * STEP_MS, keep_firing_for_ms=keep * STEP_MS)
    return runner_of(group_of(rule), rows, series, series.stored_for)


def step(runner: GroupRunner, rows: Rows, number: int, is_there: Step) -> None:
    rows.now = None if is_there is None else [row(a="x")] if is_there else []
    runner.step(BEGIN_MS + number * STEP_MS, CancelToken())


STEPS = st.lists(st.sampled_from([True, True, False, None]), max_size=14)


@given(STEPS, st.integers(0, 4), st.integers(0, 3))
def test_states_follow_the_rows(steps: list[Step], wait: int, keep: int) -> None:
    rows, series, expected = Rows(), StoredSeries(), Expected(wait, keep)
    runner = runner_for(wait, keep, rows, series)
    for number, is_there in enumerate(steps):
        step(runner, rows, number, is_there)
        expected.see(number, is_there)
        assert phases(runner).get("x", "absent") == expected.phase
        (report,) = runner.report().rules
        assert report.health == ("err" if is_there is None else "ok")
        if is_there is not None:
            live = {
                dict(labels)[ALERT_STATE]
                for labels, each in series.last(ALERTS).items()
                if each.value is not None
            }
            shown = {expected.phase} & {"pending", "firing"}
            assert live == shown
    names = {dict(each.labels)[METRIC_NAME] for each in series.samples}
    assert names <= {"ALERTS", "ALERTS_FOR_STATE"}


@given(
    st.lists(st.sampled_from([True, None]), min_size=1, max_size=8),
    st.integers(0, 3),
    st.integers(1, 6),
    st.integers(0, 8),
)
def test_a_restart_adds_only_the_time_without_evaluations(
    before: list[Step], down: int, wait: int, after: int
) -> None:
    """An alert that waits fires after `for`, not counting the time between its last evaluation and
    the first after the restart. One that fired fires at once."""
    rows, series = Rows(), StoredSeries()
    runner = runner_for(wait, 0, rows, series)
    for number, is_there in enumerate(before):
        step(runner, rows, number, is_there)
    seen = [number for number, is_there in enumerate(before) if is_there]
    runner = runner_for(wait, 0, rows, series)
    begin = len(before) + down
    waited = seen[-1] - seen[0] if seen else 0
    for number in range(begin, begin + after + 1):
        step(runner, rows, number, True)
        is_ripe = waited >= wait or waited + number - begin >= wait
        assert phases(runner)["x"] == ("firing" if is_ripe else "pending")
