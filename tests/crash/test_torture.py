"""Short runs of every torture; `make torture` runs the long ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.__main__ import kill_mutant, run_rot, run_sim
from tests.torture.log import kill9, powercut, syscall
from tests.torture.log.mutants import MUTANTS, mutated
from tests.torture.processes import run as processes
from tests.torture.report import Report
from tests.torture.serving import lost_answer, overload, rows
from tests.torture.sql import run as sql

FIRST_SEEDS = {"merge_removes_first": 1900, "unsynced_refusal": 800}
"""Where to begin with mutants that few seeds detect; `make torture KIND=mutants` begins with 1."""


def assert_valid(report: Report) -> None:
    assert report.is_valid, report.as_json()


def test_sim() -> None:
    """No seeded mix of faults loses, duplicates or moves an acknowledged batch."""
    assert_valid(run_sim(800, 1))


def test_rot() -> None:
    """Every damage is detected or harmless, including a cut or flip at every position."""
    assert_valid(run_rot(400, 1))


def test_kill9() -> None:
    """Batches acknowledged by a killed process are stored once, in order."""
    assert_valid(kill9.run(15, 1))


def test_powercut() -> None:
    """Batches acknowledged before a power cut are stored once, in order."""
    report = powercut.run(12, 1)
    if report.skipped:
        pytest.skip(report.skipped)
    assert_valid(report)


def test_powercut_detects_an_early_acknowledgement() -> None:
    """The cut is real: a log that acknowledges before the sync loses records here."""
    with mutated("ack_before_sync"):
        report = powercut.run(6, 1)
    if report.skipped:
        pytest.skip(report.skipped)
    assert report.verdict.counts["lost"] + report.verdict.counts["untrue"] > 0


def test_syscall() -> None:
    """A kill, an error or a full disk at any storage call loses no acknowledged batch."""
    assert_valid(syscall.run(120, 1))


def test_lost_answer() -> None:
    """A request whose response was lost is stored once, even if the node was killed."""
    assert_valid(lost_answer.run(50, 4))  # of few groups, one is killed amid


def test_lost_answer_detects_missing_deduplication(tmp_path: Path) -> None:
    """Responses are really lost: a node without deduplication stores some twice."""
    settings = tmp_path / "frazil.toml"
    settings.write_text("[ingest]\ndeduplicate = false\n")
    report = lost_answer.run(25, 1, "--config", str(settings))
    assert report.verdict.counts["duplicate"] > 20


def test_overload() -> None:
    """At ten times the load refusals are retryable, accepted data is stored, memory is bounded."""
    assert_valid(overload.run(8, 1))


def test_rows() -> None:
    """After kills during seals and damaged files SQL returns every acknowledged row once."""
    assert_valid(rows.run(3, 1))


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str) -> None:
    """The torture detects a log with this bug."""
    assert kill_mutant((name, FIRST_SEEDS.get(name, 1), 4000))[1] > 0


def test_sql() -> None:
    """Hostile SQL fails by itself: no acknowledgement is missed, no process ends."""
    report = sql.run(40, 1, is_timed=False)
    assert report.is_valid, report.as_json()


def test_processes() -> None:
    """What reads is killed under load: no request fails, and every row is there once, in order."""
    acts = ("worker_segv", "reader_segv", "server_kill")
    assert_valid(processes.run(0, 1, acts=acts, is_timed=False))
