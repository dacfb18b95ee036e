"""The log and the clock, with a real log in the folder."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.doctor.checks.clock import check_clock, is_synchronised
from frazil.doctor.checks.log import check_log
from frazil.log import Log, Record, append_of_records
from frazil.model import SystemClock
from tests.doctor.patient import Patient, is_well, trouble
from tests.sim.clock import SimClock

DAY_MS = 86_400_000


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A folder with some records, closed again."""
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


def test_a_log_that_is_whole(patient: Patient) -> None:
    """Looking is all that is done: every file is as it was."""
    before = {path: path.stat().st_mtime_ns for path in patient.data.rglob("*")}
    assert is_well(patient.look(check_log))
    assert {path: path.stat().st_mtime_ns for path in patient.data.rglob("*")} == before


def test_there_is_no_log_yet(tmp_path: Path) -> None:
    assert Patient(tmp_path).look(check_log) == []


@pytest.mark.parametrize("position", [8, 1000])
def test_damaged_bytes(patient: Patient, position: int) -> None:
    """A header or a batch: the line repairs it; what was set aside is told of, and goes by the
    next line."""
    segment = segment_of(patient)
    content = bytearray(segment.read_bytes())
    content[position] ^= 0xFF
    segment.write_bytes(content)
    found = trouble(patient.look(check_log))
    assert found.level == "failure" and str(segment.name) in found.found
    patient.mend(found)
    aside = trouble(patient.look(check_log))
    assert aside.level == "note" and "has set" in aside.found
    patient.mend(aside)
    assert is_well(patient.look(check_log))
    assert not list(patient.data.rglob("*.damaged"))


def test_a_segment_that_is_gone(patient: Patient) -> None:
    segment_of(patient).unlink()
    found = trouble(patient.look(check_log))
    assert found.level == "failure" and "no file that holds them" in found.found
    patient.mend(found)
    assert is_well(patient.look(check_log))


def test_damaged_settings_of_a_topic(patient: Patient, tmp_path: Path) -> None:
    """Nothing can repair them; a copy can be restored."""
    settings = patient.data / "log/t/topic.ckpt"
    copy = Path(shutil.copy(settings, tmp_path))
    settings.write_bytes(settings.read_bytes()[:-1])
    found = trouble(patient.look(check_log))
    assert found.level == "failure"
    assert found.fix and found.fix.text == f"restore {settings} from a copy"
    shutil.copy(copy, settings)
    assert is_well(patient.look(check_log))


def test_who_has_the_log_has_read_it(patient: Patient) -> None:
    """Files that change while they are looked at are not looked at."""
    disk, rand = RealDisk(patient.data), random.SystemRandom()
    with Log.open(disk, clock=SystemClock(), rand=rand, holder="a test"):
        (found,) = patient.look(check_log)
    assert found.level == "ok" and "(a test) at its start" in found.found


def test_a_clock_that_went_back(patient: Patient) -> None:
    """It is earlier than the log's newest file says it was."""
    now_ms = SystemClock().wall_ms()
    patient.clock = SimClock(wall_ms=now_ms - DAY_MS)
    found = trouble(patient.look(check_clock))
    assert found.level == "failure" and "it went back" in found.found
    check_mends_clock(patient)


def test_a_clock_without_a_battery(tmp_path: Path) -> None:
    """It is 1970."""
    patient = Patient(tmp_path, clock=SimClock(wall_ms=DAY_MS))
    found = trouble(patient.look(check_clock))
    assert found.level == "failure" and "before Frazil was made" in found.found
    check_mends_clock(patient)


def check_mends_clock(patient: Patient) -> None:
    """The line names a program that is there, or says what to do; a clock that is right is well,
    or nobody but itself says so."""
    found = trouble(patient.look(check_clock))
    assert found.fix is not None
    if found.fix.kind == "run":
        assert found.fix.text.endswith("timedatectl set-ntp true")
        assert shutil.which("timedatectl")
    patient.clock = SystemClock()
    (again,) = patient.look(check_clock)
    assert again.level == ("note" if is_synchronised() is False else "ok")
