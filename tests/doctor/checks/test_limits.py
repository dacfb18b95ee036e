"""Open files and memory: what the kernel gives, beside what the settings want."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.doctor.checks.limits import check_memory, check_open_files, memory_bytes
from frazil.model import GiB
from tests.doctor.patient import Patient, is_well, trouble


@pytest.fixture
def few_files() -> Iterator[None]:
    """As many open files as a login has on most machines."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
def test_too_few_open_files(tmp_path: Path) -> None:
    """The limit is raised where it may be; the line is one for the shell that starts the node."""
    patient = Patient(tmp_path, "ingest.connections_max = 200", "serve.connections_max = 100")
    found = trouble(patient.look(check_open_files))
    assert found.level == "note"
    assert found.fix and found.fix.text == "ulimit -n 1524"
    patient.run(found.fix)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1524, hard))
    assert is_well(patient.look(check_open_files))


@pytest.mark.usefixtures("few_files")
def test_a_limit_that_cannot_be_raised(tmp_path: Path) -> None:
    """Then there can be fewer connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard > 2048, "the limits of this process are below what the test needs"
    patient = Patient(tmp_path, f"ingest.connections_max = {hard}")
    found = trouble(patient.look(check_open_files))
    assert found.fix and found.fix.text.startswith("ingest.connections_max = ")
    patient.mend(found)
    again = trouble(patient.look(check_open_files))
    assert again.fix and again.fix.text.startswith("ulimit -n ")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert is_well(patient.look(check_open_files))


def test_hardly_any_files(tmp_path: Path) -> None:
    """Below what a node needs for itself it is more than a note."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        found = trouble(Patient(tmp_path).look(check_open_files))
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
    """Spark gets less, or is left out, or the hot tier holds less."""
    memory = memory_bytes()
    numbers = {"memory": memory, "most": memory - GiB - GiB // 2}
    patient = Patient(tmp_path, *(each.format(**numbers) for each in settings))
    found = trouble(patient.look(check_memory))
    assert found.level == "warning"
    assert found.fix and found.fix.text.startswith(line)
    patient.mend(found)
    assert is_well(patient.look(check_memory))


def group(root: Path, lines: str, **limits: str) -> int:
    """What a process may use whose groups are these; `limits` by path, with `_` for `/`."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal:       8388608 kB\nMemFree: 1 kB\n")
    (root / "proc/self/cgroup").write_text(lines)
    for name, text in limits.items():
        path = root / "groups" / name.replace("_", "/")
        path.mkdir(parents=True, exist_ok=True)
        for file in ("memory.max", "memory.limit_in_bytes"):
            (path / file).write_text(f"{text}\n")
    return memory_bytes(root / "proc", root / "groups")


def test_the_least_of_all_limits_counts(tmp_path: Path) -> None:
    """That of the machine, of the group, of a group above it; in both versions of cgroups."""
    v2, v1 = "0::/a/b\n", "4:cpu,memory:/a\n3:cpuset:/\n"
    assert group(tmp_path / "none", v2) == 8 * GiB
    assert group(tmp_path / "max", v2, a_b="max", a="max") == 8 * GiB
    assert group(tmp_path / "own", v2, a_b=str(GiB), a=str(4 * GiB)) == GiB
    assert group(tmp_path / "above", v2, a_b="max", a=str(2 * GiB)) == 2 * GiB
    assert group(tmp_path / "v1", v1, memory_a=str(3 * GiB)) == 3 * GiB
    assert group(tmp_path / "v1none", v1, memory_a="9223372036854771712") == 8 * GiB
