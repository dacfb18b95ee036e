"""The runner: files that change or break, missed evaluations, what is sent again."""

from __future__ import annotations

from pathlib import Path

from frazil.rules.files.sources import RuleFiles
from frazil.rules.report import RuleReport
from frazil.rules.runner import RuleRunner
from frazil.rules.state.restore import StoredFor
from frazil.settings import RulesConfig
from tests.rules.evaluating import Rows, StoredSeries, row
from tests.sim.clock import SimClock

FILE = """
groups:
- name: g
  interval: 10s
  rules:
  - alert: {name}
    sql: SELECT 1 AS value
    for: 1h
"""


class Running:
    """A runner whose steps and time are the test's."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "rules.yml"
        self.clock = SimClock()
        self.rows, self.series = Rows([row(a="x")]), StoredSeries()
        self.restores = 0
        config = RulesConfig(files=[str(self.path)], reload_interval_ms=1000)
        files = RuleFiles(config.files, lambda _: None)
        self.runner = RuleRunner(config, files, self.rows, self.series, self.stored, [], self.clock)

    def stored(self, _: int) -> StoredFor:
        self.restores += 1
        return self.series.stored_for()

    def write(self, name: str) -> None:
        self.path.write_text(FILE.format(name=name))

    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds * 1000)
        self.runner.step()

    def rule(self) -> RuleReport:
        (group,) = self.runner.report().groups
        (rule,) = group.rules
        return rule


def test_a_broken_change_leaves_the_rules_before(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.write("One")
    running.advance(1)
    running.advance(10)
    (alert,) = running.rule().alerts
    running.path.write_text("groups: 5")
    running.advance(10)
    assert "must be a list" in str(running.runner.report().file_error)
    assert running.rule().alerts[0].active_at_ms == alert.active_at_ms
    running.write("Two")
    running.advance(10)
    assert running.runner.report().file_error is None
    assert running.rule().name == "Two"


def test_only_what_is_read_first_goes_on_from_before_the_start(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.path.write_text("groups: 5")
    running.advance(1)
    assert running.restores == 0
    running.write("One")
    running.advance(10)
    running.advance(10)
    assert running.restores == 1
    running.write("Two")
    running.advance(10)
    running.advance(10)
    assert running.restores == 1
    (alert,) = running.rule().alerts
    assert alert.active_at_ms > running.clock.wall_ms() - 25_000


def test_missed_evaluations_are_counted(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.write("One")
    running.advance(1)
    running.advance(10)
    evaluations = len(running.rows.asked_ms)
    running.advance(50)
    assert len(running.rows.asked_ms) == evaluations + 1
    (group,) = running.runner.report().groups
    assert group.missed_count == 4


def test_files_that_are_removed_end_their_series(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.write("One")
    running.advance(1)
    running.advance(10)
    assert any(each.value for each in running.series.last("ALERTS").values())
    running.path.write_text("groups: []")
    running.advance(10)
    assert running.runner.report().groups == []
    assert all(each.value is None for each in running.series.last("ALERTS").values())
