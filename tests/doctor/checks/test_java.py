"""Java: missing, old, of another machine, or where JAVA_HOME says it is and is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from frazil.doctor.checks.java import check_java, install
from frazil.doctor.finding import Fix
from tests.doctor.patient import Patient, all_ok, problem

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here")

JAVA = shutil.which("java") or ""
OTHER_MACHINE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\xf7" + bytes(44)
"""The header of a program for a processor that does not exist."""


def put_java(home: Path, content: bytes) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_bytes(content)
    program.chmod(0o755)
    return program


def says(version: str) -> bytes:
    return f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n".encode()


def check_installs(fix: Fix | None) -> None:
    """Assert that the install command exists on this machine."""
    assert fix is not None
    if fix.kind == "run":
        manager = fix.text.removeprefix("sudo ").split()[0]
        assert shutil.which(manager), fix.text


def test_a_wrong_java_home_is_unset_if_path_has_java(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    patient.environment["JAVA_HOME"] = str(tmp_path)
    found = problem(patient.check(check_java))
    assert found.level == "failure" and "has no bin/java" in found.found
    assert found.fix and found.fix.text == "unset JAVA_HOME"
    patient.mend(found)
    assert all_ok(patient.check(check_java))


def test_missing_java_is_installed_by_the_distribution(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    path = patient.environment["PATH"]
    patient.environment["PATH"] = str(tmp_path)
    found = problem(patient.check(check_java))
    assert found.level == "failure" and "not installed" in found.found
    check_installs(found.fix)
    patient.environment["PATH"] = path
    assert all_ok(patient.check(check_java))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (says("11.0.2"), "is version 11; Spark needs 17"),
        (says("1.8.0_402"), "is version 8; Spark needs 17"),
        (b"#!/bin/sh\necho no such option\n", "printed no version: no such option"),
        (OTHER_MACHINE, "Exec format error; this machine is"),
    ],
)
@pytest.mark.parametrize("is_home", [True, False])
def test_an_unusable_java_is_a_failure(
    tmp_path: Path, content: bytes, words: str, is_home: bool
) -> None:
    """Fixed by unsetting JAVA_HOME if PATH has another, else by installing one."""
    patient = Patient(tmp_path)
    put_java(tmp_path / "old", content)
    if is_home:
        patient.environment["JAVA_HOME"] = str(tmp_path / "old")
    else:
        patient.environment["PATH"] = f"{tmp_path / 'old/bin'}:{patient.environment['PATH']}"
    found = problem(patient.check(check_java))
    assert found.level == "failure" and words in found.found
    if is_home:
        patient.mend(found)
    else:
        check_installs(found.fix)
        (tmp_path / "old/bin/java").unlink()
        (tmp_path / "old/bin/java").symlink_to(JAVA)
    assert all_ok(patient.check(check_java))


def test_java_is_installed_if_neither_home_nor_path_has_one(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    patient.environment |= {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    check_installs(problem(patient.check(check_java)).fix)


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ('ID=debian\nVERSION_ID="12"', "apt-get install -y openjdk-17-jre-headless"),
        ('ID=debian\nVERSION_ID="13"', "apt-get install -y openjdk-21-jre-headless"),
        ("ID=debian", "apt-get install -y openjdk-21-jre-headless"),
        ("ID=ubuntu\nID_LIKE=debian", "apt-get install -y openjdk-21-jre-headless"),
        (
            'ID=linuxmint\nID_LIKE="ubuntu debian"',
            "apt-get install -y openjdk-21-jre-headless",
        ),
        ("ID=fedora", "dnf install -y java-21-openjdk-headless"),
        (
            'ID="rocky"\nID_LIKE="rhel centos fedora"',
            "dnf install -y java-21-openjdk-headless",
        ),
        ('ID="amzn"\nID_LIKE="fedora"', "dnf install -y java-21-amazon-corretto-headless"),
        ("ID=alpine", "apk add openjdk21-jre-headless"),
        ("ID=unheard-of", "install Java 17 or newer, with `java` on the PATH"),
    ],
)
def test_each_distribution_has_its_command(tmp_path: Path, release: str, command: str) -> None:
    (tmp_path / "os-release").write_text(f'NAME="x"\n{release}\n')
    assert install(tmp_path / "os-release").text.removeprefix("sudo ") == command


def test_a_java_that_never_exits_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.doctor.checks.java.TIMEOUT_S", 0.2)
    patient = Patient(tmp_path)
    program = put_java(tmp_path / "stuck", b"#!/bin/sh\nexec sleep 60\n")
    patient.environment["JAVA_HOME"] = str(tmp_path / "stuck")
    found = problem(patient.check(check_java))
    assert found.level == "failure" and "did not finish" in found.found
    program.unlink()
    program.symlink_to(JAVA)
    monkeypatch.undo()
    assert all_ok(patient.check(check_java))


def test_without_a_lake_java_is_not_checked(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "lake.enabled = false")
    patient.environment["PATH"] = str(tmp_path)
    assert patient.check(check_java) == []
