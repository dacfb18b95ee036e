"""Short versions of every kind of torture; `make torture` runs the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture import kill9, lost_answer, overload, powercut, rows, syscall
from tests.torture.__main__ import kill_mutant, run_rot, run_sim
from tests.torture.mutants import MUTANTS, mutated
from tests.torture.report import Report


def assert_valid(report: Report) -> None:
    assert report.is_valid, report.as_json()


def test_sim() -> None:
    """Nothing acknowledged is lost, doubled or moved by any seeded mixture of faults."""
    assert_valid(run_sim(1200, 1))


def test_rot() -> None:
    """Every damage is noticed or harmless, also a cut or a flip at every place."""
    assert_valid(run_rot(400, 1))


def test_kill9() -> None:
    """What a killed process has acknowledged is there, once, in order."""
    assert_valid(kill9.run(15, 1))


def test_powercut() -> None:
    """What was acknowledged before the power went is there, once, in order."""
    report = powercut.run(12, 1)
    if report.skipped:
        pytest.skip(report.skipped)
    assert_valid(report)


def test_powercut_would_notice() -> None:
    """The power is really cut: a log that acknowledges before the sync loses records here."""
    with mutated("ack_before_sync"):
        report = powercut.run(6, 1)
    if report.skipped:
        pytest.skip(report.skipped)
    assert report.verdict.counts["lost"] + report.verdict.counts["untrue"] > 0


def test_syscall() -> None:
    """Killed, failed or without room at a storage call: nothing acknowledged is harmed."""
    assert_valid(syscall.run(120, 1))


def test_lost_answer() -> None:
    """A request whose answer was lost is stored once, also when the node was killed between."""
    assert_valid(lost_answer.run(100, 1))


def test_lost_answer_would_notice(tmp_path: Path) -> None:
    """The answers are really lost: a node that recognises no repetition stores some twice."""
    settings = tmp_path / "frazil.toml"
    settings.write_text("[ingest]\ndeduplicate = false\n")
    report = lost_answer.run(25, 1, "--config", str(settings))
    assert report.verdict.counts["duplicate"] > 20


def test_overload() -> None:
    """Ten times too much: all refusals are polite, what was accepted is there, memory bounded."""
    assert_valid(overload.run(8, 1))


def test_rows() -> None:
    """Killed amid sealing, with spoilt files: SQL shows every acknowledged row once, in order."""
    assert_valid(rows.run(4, 1))


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str) -> None:
    """A log that is wrong in this way does not get past the torturer."""
    assert kill_mutant((name, 1, 4000))[1] > 0
