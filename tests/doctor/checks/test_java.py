"""Java: missing, old, of another machine, or where JAVA_HOME says it is and is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from frazil.doctor.checks.java import check_java, install
from frazil.doctor.finding import Fix
from tests.doctor.patient import Patient, is_well, trouble

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
    """On this machine, the command is one that exists."""
    assert fix is not None
    if fix.kind == "run":
        manager = fix.text.removeprefix("sudo ").split()[0]
        assert shutil.which(manager), fix.text


def test_a_home_that_leads_nowhere(tmp_path: Path) -> None:
    """There is a good one on the path, so the variable goes."""
    patient = Patient(tmp_path)
    patient.environment["JAVA_HOME"] = str(tmp_path)
    found = trouble(patient.look(check_java))
    assert found.level == "failure" and "there is no bin/java" in found.found
    assert found.fix and found.fix.text == "unset JAVA_HOME"
    patient.mend(found)
    assert is_well(patient.look(check_java))


def test_no_java_at_all(tmp_path: Path) -> None:
    """The command is that of this distribution; where it puts a Java, all is well."""
    patient = Patient(tmp_path)
    path = patient.environment["PATH"]
    patient.environment["PATH"] = str(tmp_path)
    found = trouble(patient.look(check_java))
    assert found.level == "failure" and "there is none" in found.found
    check_installs(found.fix)
    patient.environment["PATH"] = path
    assert is_well(patient.look(check_java))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (says("11.0.2"), "is version 11; Spark needs 17"),
        (says("1.8.0_402"), "is version 8; Spark needs 17"),
        (b"#!/bin/sh\necho no such option\n", "does not say its version, but: no such option"),
        (OTHER_MACHINE, "Exec format error; this machine is"),
    ],
)
@pytest.mark.parametrize("is_home", [True, False])
def test_a_java_that_is_of_no_use(
    tmp_path: Path, content: bytes, words: str, is_home: bool
) -> None:
    """Where JAVA_HOME names it, another may be on the path; else one is to be installed."""
    patient = Patient(tmp_path)
    put_java(tmp_path / "old", content)
    if is_home:
        patient.environment["JAVA_HOME"] = str(tmp_path / "old")
    else:
        patient.environment["PATH"] = f"{tmp_path / 'old/bin'}:{patient.environment['PATH']}"
    found = trouble(patient.look(check_java))
    assert found.level == "failure" and words in found.found
    if is_home:
        patient.mend(found)
    else:
        check_installs(found.fix)
        (tmp_path / "old/bin/java").unlink()
        (tmp_path / "old/bin/java").symlink_to(JAVA)
    assert is_well(patient.look(check_java))


def test_a_home_and_a_path_without_java(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    patient.environment |= {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    check_installs(trouble(patient.look(check_java)).fix)


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
        ("ID=unheard-of", "install a Java of version 17 or newer, so that `java` is on the path"),
    ],
)
def test_each_distribution_has_its_command(tmp_path: Path, release: str, command: str) -> None:
    (tmp_path / "os-release").write_text(f'NAME="x"\n{release}\n')
    assert install(tmp_path / "os-release").text.removeprefix("sudo ") == command


def test_a_java_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for without end."""
    monkeypatch.setattr("frazil.doctor.checks.java.ANSWER_S", 0.2)
    patient = Patient(tmp_path)
    program = put_java(tmp_path / "stuck", b"#!/bin/sh\nexec sleep 60\n")
    patient.environment["JAVA_HOME"] = str(tmp_path / "stuck")
    found = trouble(patient.look(check_java))
    assert found.level == "failure" and "did not say its version" in found.found
    program.unlink()
    program.symlink_to(JAVA)
    monkeypatch.undo()
    assert is_well(patient.look(check_java))


def test_without_a_lake_nobody_asks_for_java(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "lake.enabled = false")
    patient.environment["PATH"] = str(tmp_path)
    assert patient.look(check_java) == []
