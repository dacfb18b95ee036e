"""Python, libraries, compiled code and jars: wrong ones in front of the right ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from numba.core.caching import _CacheLocator

from frazil.doctor.checks.python import check_libraries, check_python, problem_of
from frazil.doctor.checks.spark import check_jars
from frazil.doctor.finding import Finding, Fix
from frazil.lake.spark.jars import JARS, default_folder
from tests.doctor.patient import Patient, all_ok, problem

ROOT = Path(__file__).parents[3]
TORN = JARS[1].file_name
COLD = "value_types.build_present-"
"""Takes half a second to compile."""


def install(folder: Path, name: str, version: str, *lines: str) -> Path:
    """Write the metadata of an installed distribution, without its files."""
    place = folder / f"{name}-{version}.dist-info"
    place.mkdir(parents=True)
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (place / "METADATA").write_text("\n".join([*head, *lines]))
    return place


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the metadata of Frazil, as its project file says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [f"Requires-Dist: {line}" for line in project["dependencies"]]
    for extra, wanted in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"]
        lines += [f"Requires-Dist: {line}; extra == '{extra}'" for line in wanted]
    install(tmp_path / "site", "frazil", "0.1.0", *lines)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


def check_pip(fix: Fix | None, library: str) -> None:
    """Assert that what the fix installs requires this library."""
    assert fix is not None and fix.kind == "run"
    pip, verb, *_, what = fix.text.split()
    assert (pip, verb) == ("pip", "install")
    lines = metadata.requires("frazil") or []
    extra = "lake" if "[lake]" in what else ""
    assert any(
        line.startswith(library) and (f"'{extra}'" in line if extra else "extra" not in line)
        for line in lines
    )


def test_compatible_libraries_are_ok(tmp_path: Path, installed: Path) -> None:
    findings = Patient(tmp_path).check(check_libraries)
    assert all_ok(findings) and len(findings) == 2
    assert "pyspark 4.1" in findings[1].found


@pytest.mark.parametrize(
    ("name", "version", "level"),
    [
        ("numpy", "1.26.4", "failure"),
        ("grpcio", "1.84.0", "failure"),
        ("pyspark", "3.5.1", "failure"),
    ],
)
def test_an_incompatible_library_is_a_failure(
    tmp_path: Path, installed: Path, name: str, version: str, level: str
) -> None:
    """The wrong version is found first on the path."""
    patient = Patient(tmp_path)
    wrong = install(installed, name, version)
    found = problem(patient.check(check_libraries))
    assert found.level == level and f"{name} is {version}" in found.found
    check_pip(found.fix, name)
    shutil.rmtree(wrong)
    assert all_ok(patient.check(check_libraries))


def test_missing_libraries(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note for those of the lake, a failure for the others."""
    patient = Patient(tmp_path)
    with monkeypatch.context() as alone:
        alone.setattr(sys, "path", [str(installed)])
        base, lake = patient.check(check_libraries)
    assert base.level == "failure" and "numpy is not installed" in base.found
    assert lake.level == "note" and ": no lake;" in lake.found
    check_pip(base.fix, "numpy")
    check_pip(lake.fix, "pyspark")
    assert all_ok(patient.check(check_libraries))


def test_versions_are_compared_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "thing", "1.10.0rc1")
    for wanted in ("thing", "thing>=1.9", "thing>=1.10,<2", "thing==1.10", "thing (!=1.9)"):
        assert problem_of(wanted) is None, wanted
    for wanted in ("thing>=1.11", "thing<1.10", "thing>1.10", "thing<=1.9.9", "thing[x]==1.1"):
        assert problem_of(wanted), wanted
    assert problem_of("absent>=1; extra == 'x'") == "absent is not installed"


def test_versions_are_unknown_when_run_from_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = problem(Patient(tmp_path).check(check_libraries))
    assert found.level == "note"
    assert found.fix and found.fix.text == "pip install -e ."
    assert (ROOT / "pyproject.toml").is_file(), "the line works where the sources are"


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("sys.version_info", (3, 10, 1), "failure"),
        ("platform.system", lambda: "Windows", "failure"),
        ("platform.system", lambda: "Darwin", "warning"),
    ],
)
def test_another_python_or_system_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, level: str
) -> None:
    patient = Patient(tmp_path)
    assert all_ok(patient.check(check_python))
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(name, value)
        assert problem(patient.check(check_python)).level == level
    assert all_ok(patient.check(check_python))


@pytest.mark.parametrize("content", [None, b"short", b"changed"])
def test_missing_jars_are_copied_to_a_configured_folder(
    tmp_path: Path, content: bytes | None
) -> None:
    """From the user's cache, which has them already."""
    patient = Patient(tmp_path, f"lake.jars = '{tmp_path / 'my jars'}'")
    place = tmp_path / "my jars" / "jars"
    if content is not None:
        shutil.copytree(default_folder() / "jars", place)
        length = JARS[1].length_bytes if content == b"changed" else len(content)
        (place / TORN).write_bytes(content.ljust(length, b"\0"))
    found = [each for each in patient.check(check_jars) if each.level != "ok"]
    assert [each.level for each in found] == ["failure"] * (2 if content is None else 1)
    assert found[0].fix and "frazil warm" in found[0].fix.text
    # That `frazil warm` does its part is seen below; here it has nothing to do.
    (tmp_path / "programs/frazil").write_text("#!/bin/sh\n")
    patient.mend(found[0])
    assert all_ok(patient.check(check_jars))


def copy_compiled_code(folder: Path) -> None:
    """Copy all compiled code to where numba looks for it below a folder."""
    subfolder_of: Callable[[str], str] = _CacheLocator.get_suitable_cache_subpath
    for compiled in (ROOT / "src" / "frazil").rglob("__pycache__/*.nb?"):
        target = folder / subfolder_of(str(compiled.parents[1] / "module.py"))
        target.mkdir(exist_ok=True)
        shutil.copy2(compiled, target)


def doctor(patient: Patient) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the real command. Returns its exit code and its findings by check."""
    command = [sys.executable, "-m", "frazil", "doctor", "--spark", "--json"]
    command += ["--config", str(patient.file)]
    done = subprocess.run(command, env=patient.environment, capture_output=True, timeout=60)
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {finding["check"]: finding for finding in findings}


def test_an_interrupted_set_up_is_fixed_by_warm(tmp_path: Path) -> None:
    """A torn jar and a function that is not compiled; afterwards Spark runs a job. The resolver has
    the jar in its own cache, so no network is needed."""
    if not (default_folder() / "cache").is_dir():
        pytest.skip("the cache of resolution is not there; only a network could help")
    ports = (
        "ingest.grpc_port = 0",
        "ingest.http_port = 0",
        "serve.http_port = 0",
        "kafka.port = 0",
        "flight.port = 0",
    )
    patient = Patient(tmp_path, *ports, "lake.driver_memory_bytes = 536870912")
    shutil.copytree(default_folder(), tmp_path / ".cache/frazil/spark")
    jar = tmp_path / ".cache/frazil/spark/jars" / TORN
    os.truncate(jar, 1000)
    cache = tmp_path / "compiled"
    cache.mkdir()
    copy_compiled_code(cache)
    (cold,) = cache.rglob(f"{COLD}*.nbi")
    cold.unlink()
    patient.environment |= {"HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(cache)}
    code, found = doctor(patient)
    assert code == 1
    assert found["jars"]["level"] == "failure" and "has 1000 of" in found["jars"]["found"]
    assert found["spark"]["level"] == "failure" and TORN in found["spark"]["found"]
    assert found["spark"]["fix"]["text"].startswith("fix Java and the jars")
    assert found["compiled code"]["level"] == "note"
    assert found["compiled code"]["found"].startswith("1 of ")
    assert found["jars"]["fix"] == found["compiled code"]["fix"]
    assert found["jars"]["fix"] == {"kind": "run", "text": "frazil warm", "flag": ""}
    patient.mend(Finding(check="", level="failure", found="", fix=Fix(**found["jars"]["fix"])))
    code, found = doctor(patient)
    assert code == 0, found
    assert {found[name]["level"] for name in ("jars", "compiled code", "spark")} == {"ok"}
