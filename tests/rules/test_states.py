"""States of alerts, one evaluation after the other."""

from __future__ import annotations

import pytest

from frazil.errors import Unavailable
from frazil.results import CancelToken
from frazil.rules.group_runner import GroupRunner
from frazil.rules.samples import ALERT_STATE, ALERTS, LabelPairs, RuleSample
from frazil.rules.state.alert_state import RESOLVED_KEPT_MS
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

FOR_MS = 3 * STEP_MS


def step(runner: GroupRunner, number: int) -> list[str]:
    changes = runner.step(BEGIN_MS + number * STEP_MS, CancelToken())
    return [change.state for change in changes]


def test_an_alert_is_pending_then_fires_then_is_resolved_and_forgotten() -> None:
    rows, series = Rows([row(2.5, a="x")]), StoredSeries()
    rule = alert_rule(
        for_ms=FOR_MS,
        labels={"severity": "page", "what": "{{ $labels.a }}!"},
        annotations={"summary": "{{ $labels.a }} is {{ $value }}"},
    )
    runner = runner_of(group_of(rule), rows, series)
    assert [step(runner, number) for number in range(4)] == [["pending"], [], [], ["firing"]]
    (alert,) = runner.alerts
    assert dict(alert.labels) == {"a": "x", "alertname": "Slow", "severity": "page", "what": "x!"}
    assert alert.annotations == {"summary": "x is 2.5"}
    assert (alert.active_ms, alert.fired_ms) == (BEGIN_MS, BEGIN_MS + FOR_MS)
    ended = {dict(k)[ALERT_STATE]: each.value for k, each in series.last(ALERTS).items()}
    assert ended == {"pending": None, "firing": 1.0}
    rows.now = []
    assert step(runner, 4) == ["resolved"]
    assert alert.resolved_ms == BEGIN_MS + 4 * STEP_MS
    assert all(each.value is None for each in series.last(ALERTS).values())
    kept = RESOLVED_KEPT_MS // STEP_MS
    step(runner, 4 + kept)
    assert runner.alerts
    step(runner, 5 + kept)
    assert not runner.alerts


def test_a_row_that_goes_before_its_time_never_fires() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    runner = runner_of(group_of(alert_rule(for_ms=FOR_MS)), rows, series)
    step(runner, 0)
    rows.now = []
    assert step(runner, 1) == ["dropped"]
    rows.now = [row(a="x")]
    assert [step(runner, number) for number in (2, 3, 4)] == [["pending"], [], []]


def test_a_failing_query_changes_nothing_and_is_an_error() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    runner = runner_of(group_of(alert_rule()), rows, series)
    step(runner, 0)
    stored = len(series.samples)
    rows.now = None
    assert step(runner, 1) == []
    (rule,) = runner.report().rules
    assert (rule.health, rule.state, rule.last_error) == ("err", "firing", "the engine is gone")
    assert len(series.samples) == stored
    rows.now = [row(a="x")]
    assert step(runner, 2) == []
    (rule,) = runner.report().rules
    assert (rule.health, rule.last_error) == ("ok", None)


def test_an_alert_fires_on_for_a_while() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    rule = alert_rule(keep_firing_for_ms=2 * STEP_MS)
    runner = runner_of(group_of(rule), rows, series)
    assert step(runner, 0) == ["firing"]
    rows.now = []
    assert [step(runner, number) for number in (1, 2, 3)] == [[], [], ["resolved"]]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([row(a="x", b="1"), row(a="y", b="1")], "exceed the limit of 1"),
        ([row(a="x", b="1"), row(a="x", b="2")], "the same labels: a='x', alertname='Slow'"),
    ],
)
def test_rows_that_cannot_be_alerts_count_as_a_failed_query(found: list[object], why: str) -> None:
    rule = alert_rule(labels={"b": ""})
    runner = runner_of(group_of(rule, limit=1), Rows(found), StoredSeries())  # type: ignore[arg-type]
    step(runner, 0)
    (report,) = runner.report().rules
    assert why in str(report.last_error)
    assert not runner.alerts


def test_series_that_cannot_be_stored_are_an_error_and_states_go_on() -> None:
    series = StoredSeries(error=Unavailable("the log is full"))
    runner = runner_of(group_of(alert_rule()), Rows([row(a="x")]), series)
    assert step(runner, 0) == ["firing"]
    (report,) = runner.report().rules
    assert "the log is full" in str(report.last_error)


def test_queries_look_back_by_the_offset() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    runner = runner_of(group_of(alert_rule(), query_offset_ms=30_000), rows, series)
    step(runner, 1)
    assert rows.asked_ms == [BEGIN_MS + STEP_MS - 30_000]
    assert {each.time_ms for each in series.samples} == set(rows.asked_ms)
    assert runner.alerts[0].active_ms == BEGIN_MS + STEP_MS


def restarted(series: StoredSeries, rows: Rows, *, grace_ms: int = 0) -> GroupRunner:
    rule = alert_rule(for_ms=FOR_MS)
    return runner_of(group_of(rule), rows, series, lambda: series.stored_for(grace_ms))


def test_a_restart_in_the_middle_of_for_goes_on() -> None:
    rows, series = Rows([row(a="x"), row(a="y")]), StoredSeries()
    runner = restarted(series, rows)
    step(runner, 0)
    rows.now = [row(a="x")]
    step(runner, 1)
    runner = restarted(series, Rows([row(a="x"), row(a="y")]))
    assert step(runner, 2) == ["pending", "pending"]
    active = {dict(alert.labels)["a"]: alert.active_ms - BEGIN_MS for alert in runner.alerts}
    # One evaluation passed without x being looked at; y had ended, and begins anew.
    assert active == {"x": STEP_MS, "y": 2 * STEP_MS}
    assert [step(runner, number) for number in (3, 4, 5)] == [[], ["firing"], ["firing"]]


def test_what_fired_before_a_restart_fires_after_it() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    runner = restarted(series, rows)
    for number in range(4):
        step(runner, number)
    runner = restarted(series, rows)
    assert step(runner, 30) == ["firing"]
    assert runner.alerts[0].active_ms == BEGIN_MS


def test_a_restart_gives_a_grace_period() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    runner = restarted(series, rows)
    step(runner, 0)
    step(runner, 2)
    runner = restarted(series, rows, grace_ms=2 * STEP_MS)
    assert [step(runner, number) for number in (3, 4, 5)] == [["pending"], [], ["firing"]]


def test_a_restart_whose_first_query_fails_still_knows() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    runner = restarted(series, rows)
    for number in range(4):
        step(runner, number)
    runner = restarted(series, rows)
    rows.now = None
    assert step(runner, 4) == []
    rows.now = [row(a="x")]
    assert step(runner, 5) == ["firing"]


def ended_alerts(series: StoredSeries) -> list[tuple[LabelPairs, RuleSample]]:
    return [item for item in series.last(ALERTS).items() if item[1].value is None]


def test_a_changed_file_keeps_the_states_of_rules_that_stay() -> None:
    rows, series = Rows([row(a="x")]), StoredSeries()
    stays, goes = alert_rule(for_ms=STEP_MS), alert_rule(name="Other", for_ms=STEP_MS)
    before = runner_of(group_of(stays, goes), rows, series)
    step(before, 0)
    after = runner_of(group_of(alert_rule(name="New", for_ms=STEP_MS), stays), rows, series)
    after.take_over(before)
    assert step(after, 1) == ["pending", "firing"]
    assert phases(after) == {"x": "firing"}
    ended = {dict(labels)["alertname"] for labels, each in ended_alerts(series)}
    assert ended == {"Other", "Slow"}, "of Slow, what said that it was pending"
