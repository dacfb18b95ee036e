"""`frazil doctor`: its lines, colors and exit codes, and invalid settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from frazil import cli
from frazil.config import load
from frazil.doctor import CheckContext, Finding, examine
from tests.doctor.patient import Patient, all_ok, problem

PORTS = (
    *("ingest.grpc_port = 0", "ingest.http_port = 0", "serve.http_port = 0", "kafka.port = 0"),
    "flight.port = 0",
)


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """Settings without a lake, so that few checks run."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Patient(tmp_path, *PORTS, "lake.enabled = false")


def test_ok_findings_are_aligned_lines_and_a_total(
    quiet: Patient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without colors if not on a terminal."""
    assert cli.main(["doctor", "--config", str(quiet.file)]) == 0
    *lines, empty, total = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok       settings         all are valid"
    assert lines[1].startswith("ok       python           3.")
    assert empty == "" and " ok" in total and "failure" not in total
    assert "\x1b" not in "".join(lines)


def test_a_failure_exits_with_1_and_prints_a_fix(
    quiet: Patient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In color on a terminal."""
    token = quiet.folder / "tokens"
    quiet.set(f"ingest.token_file = '{token}'")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(["doctor", "--config", str(quiet.file)]) == 1
    shown = capsys.readouterr().out
    assert f"\x1b[31mfailure\x1b[0m  access           ingest.token_file is {token}" in shown
    assert f"\n{' ' * 9}\x1b[1m{' ' * 12}run\x1b[0m  mkdir -p" in shown
    assert shown.endswith("1 failure\n")
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["doctor", "--config", str(quiet.file)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_the_flags_of_a_node_are_checked(
    quiet: Patient, capsys: pytest.CaptureFixture[str]
) -> None:
    token = str(quiet.folder / "absent")
    flags = ["--config", str(quiet.file), "--token-file", token, "--json"]
    assert cli.main(["doctor", *flags]) == 1
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (failed,) = [each for each in findings if each["level"] == "failure"]
    assert failed["check"] == "access" and token in failed["found"]
    assert failed["fix"]["kind"] == "run" and token in failed["fix"]["text"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ingest.grpc_port = 4318\ningest.http_port = 4318", "are both 4318"),
        ("log.disk_bytes_max = 1", "log.disk_bytes_max"),
        ("log.no_such_thing = 1", "no_such_thing"),
        ("ingest.host = '0.0.0.0'", "TLS is off"),
        ("[[[", "is not TOML"),
    ],
)
def test_invalid_settings_are_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    """Checks that do not need settings still run."""
    file = tmp_path / "frazil.toml"
    file.write_text(line)
    assert cli.main(["doctor", "--config", str(file), "--json"]) == 1
    findings = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert findings[0]["check"] == "settings" and words in findings[0]["found"]
    assert findings[0]["fix"]["text"].startswith(("correct ", "remove "))
    assert {"python", "libraries"} <= {each["check"] for each in findings}
    Patient(tmp_path, *PORTS, "lake.enabled = false")
    assert cli.main(["doctor", "--config", str(file)]) == 0


def test_a_missing_settings_file_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "frazil.toml"
    assert cli.main(["doctor", "--config", str(file)]) == 1
    shown = capsys.readouterr().out
    assert f"do  make {file} readable" in shown
    Patient(tmp_path, *PORTS, "lake.enabled = false")
    assert cli.main(["doctor", "--config", str(file)]) == 0


def settings_of(patient: Patient) -> list[Finding]:
    """Return the findings on the settings of the file and the variables."""
    found = examine(
        lambda: load(str(patient.file), {}, environ=patient.environment),
        clock=patient.clock,
        environment=patient.environment,
    )
    return [finding for finding in islice(found, 3) if finding.check == "settings"]


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("log.disk_byte_max = 1000000000", "rename log.disk_byte_max to log.disk_bytes_max in"),
        ("log.cors_origins = []", "rename log.cors_origins to ingest.cors_origins in"),
        ("nothing = 1", "remove nothing from"),
    ],
)
def test_an_unknown_setting_is_renamed_or_removed(tmp_path: Path, line: str, fix: str) -> None:
    patient = Patient(tmp_path, line)
    found = problem(settings_of(patient))
    assert found.level == "failure" and "is not a setting" in found.found
    assert found.fix and found.fix.text == f"{fix} {patient.file}"


def test_each_problem_is_a_finding_of_its_own(tmp_path: Path) -> None:
    """In the file as in the environment."""
    patient = Patient(tmp_path, "log.nothing_at_all = 1", "hot.nothing_at_all = 1")
    patient.environment["FRAZIL_LOG__DISK_BYTE_MAX"] = "1"
    found = settings_of(patient)
    assert [each.level for each in found] == ["failure"] * 3
    assert found[2].fix and found[2].fix.text == "unset FRAZIL_LOG__DISK_BYTE_MAX"


@pytest.mark.parametrize(
    ("variable", "text"), [("FRAZIL_HOT__ENABLED", "perhaps"), ("FRAZIL_LOG__QUEUE_COUNT_MAX", "0")]
)
def test_a_variable_with_an_invalid_value_is_unset(
    tmp_path: Path, variable: str, text: str
) -> None:
    patient = Patient(tmp_path)
    patient.environment[variable] = text
    found = problem(settings_of(patient))
    assert found.fix and found.fix.text == f"unset {variable}"
    patient.mend(found)
    assert all_ok(settings_of(patient))


def test_an_invalid_value_in_the_file_is_named(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "hot.enabled = 'perhaps'")
    found = problem(settings_of(patient))
    assert found.fix and found.fix.text == f"correct hot.enabled in {patient.file}"
    patient.set("hot.enabled = true")
    assert all_ok(settings_of(patient))


def test_a_settings_fix_also_works_as_a_flag(
    quiet: Patient, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet.set("ingest.host = '203.0.113.7'")
    quiet.set("ingest.insecure = true")
    quiet.set(f"hot.memory_bytes_max = {10**15}")
    command = ["doctor", "--config", str(quiet.file), "--json"]
    assert cli.main(command) == 1
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    flags = {each["fix"]["flag"] for each in findings if each["fix"] and each["fix"]["flag"]}
    assert flags == {"--host 127.0.0.1", "--set hot.memory_bytes_max=67108864"}
    assert cli.main([*command, *(word for flag in flags for word in flag.split())]) == 0
    levels = [json.loads(line)["level"] for line in capsys.readouterr().out.splitlines()]
    assert "warning" not in levels


def check_that_breaks(case: CheckContext) -> Iterator[Finding]:
    """Meets something that nobody has thought of."""
    yield Finding(check="first", level="ok", found=str(case.data))
    raise ZeroDivisionError("by\nzero")


def test_a_check_that_breaks(tmp_path: Path) -> None:
    """What it had found is said, and that it broke; the others go on."""
    first, broken = Patient(tmp_path).check(check_that_breaks)
    assert first.level == "ok"
    assert (broken.check, broken.level) == ("that breaks", "warning")
    assert broken.found == "check failed: ZeroDivisionError: by zero"
