"""Open files and memory: the limits of the system against the settings."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.doctor.checks.limits import check_memory, check_open_files, memory_bytes
from frazil.model import GiB
from tests.doctor.patient import Patient, all_ok, problem


@pytest.fixture
def few_files() -> Iterator[None]:
    """The limit of open files of a login shell on most machines."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
def test_a_low_limit_of_open_files_is_raised_by_the_fix(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "ingest.connections_max = 200", "serve.connections_max = 100")
    found = problem(patient.check(check_open_files))
    assert found.level == "note"
    assert found.fix and found.fix.text == "ulimit -n 1524"
    patient.run(found.fix)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1524, hard))
    assert all_ok(patient.check(check_open_files))


@pytest.mark.usefixtures("few_files")
def test_a_hard_limit_lowers_the_connections(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard > 2048, "the limits of this process are below what the test needs"
    patient = Patient(tmp_path, f"ingest.connections_max = {hard}")
    found = problem(patient.check(check_open_files))
    assert found.fix and found.fix.text.startswith("ingest.connections_max = ")
    patient.mend(found)
    again = problem(patient.check(check_open_files))
    assert again.fix and again.fix.text.startswith("ulimit -n ")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert all_ok(patient.check(check_open_files))


def test_fewer_files_than_a_node_needs_are_a_warning(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        found = problem(Patient(tmp_path).check(check_open_files))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found.level == "warning"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (["lake.driver_memory_bytes = {memory}"], "lake.driver_memory_bytes = "),
        (["hot.memory_bytes_max = {most}"], "lake.enabled = false"),
        (["hot.memory_bytes_max = {memory}"], "hot.memory_bytes_max = 67108864"),
        (["hot.memory_bytes_max = {memory}", "lake.enabled = false"], "hot.memory_bytes_max = "),
    ],
)
def test_too_little_memory(tmp_path: Path, settings: list[str], line: str) -> None:
    """The fix lowers the Spark heap, turns the lake off, or lowers the hot memory."""
    memory = memory_bytes()
    numbers = {"memory": memory, "most": memory - GiB - GiB // 2}
    patient = Patient(tmp_path, *(each.format(**numbers) for each in settings))
    found = problem(patient.check(check_memory))
    assert found.level == "warning"
    assert found.fix and found.fix.text.startswith(line)
    patient.mend(found)
    assert all_ok(patient.check(check_memory))


def group(root: Path, lines: str, **limits: str) -> int:
    """Return the memory of a process in these groups; `limits` by path, with `_` for `/`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal:       8388608 kB\nMemFree: 1 kB\n")
    (root / "proc/self/cgroup").write_text(lines)
    for name, text in limits.items():
        path = root / "groups" / name.replace("_", "/")
        path.mkdir(parents=True, exist_ok=True)
        for file in ("memory.max", "memory.limit_in_bytes"):
            (path / file).write_text(f"{text}\n")
    return memory_bytes(root / "proc", root / "groups")


def test_the_lowest_memory_limit_counts(tmp_path: Path) -> None:
    """Of the machine, the group and its parents; in cgroups v1 and v2."""
    v2, v1 = "0::/a/b\n", "4:cpu,memory:/a\n3:cpuset:/\n"
    assert group(tmp_path / "none", v2) == 8 * GiB
    assert group(tmp_path / "max", v2, a_b="max", a="max") == 8 * GiB
    assert group(tmp_path / "own", v2, a_b=str(GiB), a=str(4 * GiB)) == GiB
    assert group(tmp_path / "above", v2, a_b="max", a=str(2 * GiB)) == 2 * GiB
    assert group(tmp_path / "v1", v1, memory_a=str(3 * GiB)) == 3 * GiB
    assert group(tmp_path / "v1none", v1, memory_a="9223372036854771712") == 8 * GiB
