"""The command: its lines, its colours, its exit codes; and settings that are refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil import cli
from frazil.doctor import Case, Finding
from frazil.doctor.settings import mend
from tests.doctor.patient import Patient

PORTS = ("ingest.grpc_port = 0", "ingest.http_port = 0", "serve.http_port = 0")


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Patient:
    """Settings without a lake, so that little is looked at."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Patient(tmp_path, *PORTS, "lake.enabled = false")


def test_all_is_well(quiet: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each thing, aligned, and a sum; no colours where nobody sees them."""
    assert cli.main(["doctor", "--config", str(quiet.file)]) == 0
    *lines, empty, total = capsys.readouterr().out.splitlines()
    assert lines[0] == "ok       settings         all are known, and fit together"
    assert lines[1].startswith("ok       python           3.")
    assert empty == "" and " ok" in total and "failure" not in total
    assert "\x1b" not in "".join(lines)


def test_something_fails(
    quiet: Patient, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code says so, and the line to copy stands below, red and bold on a terminal."""
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


def test_flags_are_those_of_a_node(quiet: Patient, capsys: pytest.CaptureFixture[str]) -> None:
    """What would be the settings of a node is what is looked at."""
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
        ("ingest.host = '0.0.0.0'", "there is no TLS"),
        ("[[[", "is not TOML"),
    ],
)
def test_settings_that_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: str
) -> None:
    """What does not need them is looked at all the same; corrected, they are fine."""
    file = tmp_path / "frazil.toml"
    file.write_text(line)
    assert cli.main(["doctor", "--config", str(file), "--json"]) == 1
    findings = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert findings[0]["check"] == "settings" and words in findings[0]["found"]
    assert "correct" in findings[0]["fix"]["text"] or findings[0]["fix"]["kind"] == "run"
    assert {"python", "libraries"} <= {each["check"] for each in findings}
    Patient(tmp_path, *PORTS, "lake.enabled = false")
    assert cli.main(["doctor", "--config", str(file)]) == 0


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "frazil.toml"
    assert cli.main(["doctor", "--config", str(file)]) == 1
    shown = capsys.readouterr().out
    assert f"do  put {file} where it can be read" in shown
    Patient(tmp_path, *PORTS, "lake.enabled = false")
    assert cli.main(["doctor", "--config", str(file)]) == 0


@pytest.mark.parametrize(
    ("refusal", "before", "after"),
    [
        (
            "{file}, line 2: log.disk_byte_max is not a setting; did you mean log.disk_bytes_max?",
            "[log]\ndisk_byte_max = 1\n",
            "[log]\ndisk_bytes_max = 1\n",
        ),
        (
            "{file}, line 2: log.host is not a setting; did you mean ingest.host?",
            "[log]\nhost = 1\n",
            "[log]\n",
        ),
        ("{file}, line 1: nothing is not a setting", "nothing = 1\ndata = 'x'\n", "data = 'x'\n"),
    ],
)
def test_a_line_with_a_slip(tmp_path: Path, refusal: str, before: str, after: str) -> None:
    """The name is put right in its place, or the line goes."""
    patient = Patient(tmp_path)
    file = tmp_path / "my settings.toml"
    file.write_text(before)
    patient.run(mend(refusal.format(file=file)))
    assert file.read_text() == after


def test_a_variable_with_a_slip(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    patient.environment["FRAZIL_LOG__X"] = "1"
    patient.run(mend("environment variable FRAZIL_LOG__X is not a setting"))
    assert "FRAZIL_LOG__X" not in patient.environment
    assert mend("frazil.toml, line 7: log.x is 'a'; it must be a number").text == (
        "correct line 7 of frazil.toml"
    )


def check_that_breaks(case: Case) -> Iterator[Finding]:
    """Meets something that nobody has thought of."""
    yield Finding(check="first", level="ok", found=str(case.data))
    raise ZeroDivisionError("by\nzero")


def test_a_check_that_breaks(tmp_path: Path) -> None:
    """What it had found is said, and that it broke; the others go on."""
    first, broken = Patient(tmp_path).look(check_that_breaks)
    assert first.level == "ok"
    assert (broken.check, broken.level) == ("that breaks", "warning")
    assert broken.found == "could not be looked at: ZeroDivisionError: by zero"
