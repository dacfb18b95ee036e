"""The log and the clock, with a real log in the folder."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.doctor.checks.clock import check_clock, is_synchronized
from frazil.doctor.checks.log import check_log
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from tests.doctor.patient import Patient, all_ok, problem
from tests.sim.clock import SimClock

DAY_MS = 86_400_000


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A data folder with some records, closed."""
    made = Patient(tmp_path)
    disk, rand = RealDisk(made.data), random.SystemRandom()
    with Log.open(disk, clock=SystemClock(), rand=rand) as log:
        log.create_topic("t")
        for number in range(20):
            record = Record(offset=0, timestamp_ms=1, key=None, value=bytes([number]) * 100)
            log.append("t", append_of_records([record])).result(30)
    return made


def segment_of(patient: Patient) -> Path:
    (found,) = (patient.data / "log/t/0").glob("*.log")
    return found


def test_an_intact_log_is_ok_and_unchanged(patient: Patient) -> None:
    before = {path: path.stat().st_mtime_ns for path in patient.data.rglob("*")}
    assert all_ok(patient.check(check_log))
    assert {path: path.stat().st_mtime_ns for path in patient.data.rglob("*")} == before


def test_a_folder_without_a_log_is_skipped(tmp_path: Path) -> None:
    assert Patient(tmp_path).check(check_log) == []


@pytest.mark.parametrize("position", [8, 1000])
def test_damage_is_fixed_by_repair(patient: Patient, position: int) -> None:
    """In a header or a batch. The bytes set aside are a note, and its fix removes them."""
    segment = segment_of(patient)
    content = bytearray(segment.read_bytes())
    content[position] ^= 0xFF
    segment.write_bytes(content)
    found = problem(patient.check(check_log))
    assert found.level == "failure" and str(segment.name) in found.found
    patient.mend(found)
    aside = problem(patient.check(check_log))
    assert aside.level == "note" and "has set" in aside.found
    patient.mend(aside)
    assert all_ok(patient.check(check_log))
    assert not list(patient.data.rglob("*.damaged"))


def test_a_missing_segment_is_a_failure(patient: Patient) -> None:
    segment_of(patient).unlink()
    found = problem(patient.check(check_log))
    assert found.level == "failure" and "no file that holds them" in found.found
    patient.mend(found)
    assert all_ok(patient.check(check_log))


def test_damaged_topic_settings_need_a_backup(patient: Patient, tmp_path: Path) -> None:
    settings = patient.data / "log/t/topic.ckpt"
    copy = Path(shutil.copy(settings, tmp_path))
    settings.write_bytes(settings.read_bytes()[:-1])
    found = problem(patient.check(check_log))
    assert found.level == "failure"
    assert found.fix and found.fix.text == f"restore {settings} from a backup"
    shutil.copy(copy, settings)
    assert all_ok(patient.check(check_log))


def test_the_log_of_a_running_node_is_not_read(patient: Patient) -> None:
    disk, rand = RealDisk(patient.data), random.SystemRandom()
    with Log.open(disk, clock=SystemClock(), rand=rand, holder="a test"):
        (found,) = patient.check(check_log)
    assert found.level == "ok" and "(a test) at its start" in found.found


def test_a_clock_before_the_newest_file_is_a_failure(patient: Patient) -> None:
    now_ms = SystemClock().wall_ms()
    patient.clock = SimClock(wall_ms=now_ms - DAY_MS)
    found = problem(patient.check(check_clock))
    assert found.level == "failure" and "the clock went back" in found.found
    check_clock_fix(patient)


def test_a_clock_at_1970_is_a_failure(tmp_path: Path) -> None:
    patient = Patient(tmp_path, clock=SimClock(wall_ms=DAY_MS))
    found = problem(patient.check(check_clock))
    assert found.level == "failure" and "which is in the past" in found.found
    check_clock_fix(patient)


def check_clock_fix(patient: Patient) -> None:
    """Assert that the fix names an existing program or a step, and that a right clock is ok."""
    found = problem(patient.check(check_clock))
    assert found.fix is not None
    if found.fix.kind == "run":
        assert found.fix.text.endswith("timedatectl set-ntp true")
        assert shutil.which("timedatectl")
    patient.clock = SystemClock()
    (again,) = patient.check(check_clock)
    assert again.level == ("note" if is_synchronized() is False else "ok")
