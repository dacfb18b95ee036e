"""The data folder: each way in which it is of no use, and the way out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from frazil.doctor.checks.data_folder import check_folder, check_space, check_sync
from frazil.doctor.checks.mounts import Mount, mount_of
from frazil.model import MiB, SystemClock
from tests.doctor.patient import (
    NOBODY,
    Patient,
    all_ok,
    as_nobody,
    mounted,
    problem,
    public_folder,
)
from tests.sim.clock import SimClock


def test_a_missing_folder_is_ok_and_not_created(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    assert "created at the first start" in patient.check(check_folder)[0].found
    assert patient.check(check_sync) == []
    assert not patient.data.exists()


def test_a_file_instead_of_the_folder_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    patient = Patient(tmp_path, f"data = '{tmp_path / 'file'}'")
    (tmp_path / "file").write_text("")
    found = problem(patient.check(check_folder))
    assert found.level == "failure"
    patient.mend(found)
    assert patient.check(check_folder)[0].level == "ok"


def test_a_folder_of_another_user_is_fixed_by_chown() -> None:
    """With the lock file in it."""
    with public_folder() as folder:
        patient = Patient(folder)
        patient.data.mkdir(mode=0o700)
        (patient.data / "frazil.lock").write_text("{}")
        with as_nobody():
            found = problem(patient.check(check_folder))
            assert patient.check(check_sync) == []
        assert found.level == "failure" and "cannot write" in found.found
        patient.mend(found)
        with as_nobody():
            assert all_ok(patient.check(check_folder))
            assert patient.check(check_sync)
        assert (patient.data / "frazil.lock").stat().st_uid == NOBODY


def test_a_lock_of_another_user_is_a_failure() -> None:
    """As after a node was run as root."""
    with public_folder() as folder:
        patient = Patient(folder)
        patient.data.mkdir()
        (patient.data / "frazil.lock").write_text("{}")
        (patient.data / "frazil.lock").chmod(0o640)
        if os.geteuid() == 0:
            os.chown(patient.data, NOBODY, NOBODY)
        with as_nobody():
            found = problem(patient.check(check_folder))
        assert "frazil.lock" in found.found
        patient.mend(found)
        with as_nobody():
            assert all_ok(patient.check(check_folder))


def test_a_folder_that_cannot_be_created_is_created_as_root() -> None:
    """For the user who runs the node."""
    with public_folder() as folder:
        patient = Patient(folder)
        with as_nobody():
            found = problem(patient.check(check_folder))
        patient.mend(found)
        with as_nobody():
            assert all_ok(patient.check(check_folder))


def test_a_read_only_mount_is_a_failure(tmp_path: Path) -> None:
    """The kernel remounts a disk with errors so."""
    patient = Patient(tmp_path)
    with mounted(patient.data, "tmpfs", "ro"):
        found = problem(patient.check(check_folder))
        assert (found.level, found.found) == ("failure", f"{patient.data} is mounted read-only")
        patient.mend(found)
        assert patient.check(check_folder)[0].level == "ok"


def test_a_file_system_in_memory_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suggested folder is on a persistent one."""
    monkeypatch.chdir(tmp_path)
    patient = Patient(tmp_path, f"data = '{tmp_path / 'memory'}'")
    with mounted(tmp_path / "memory", "tmpfs", "size=1m"):
        found = problem(patient.check(check_folder))
        assert found.level == "warning" and "in memory" in found.found
        promise = problem(patient.check(check_sync))
        assert promise.level == "note" and "not durable" in promise.found
        patient.mend(found)
    assert all_ok(patient.check(check_folder))


def test_a_container_layer_is_a_warning(tmp_path: Path) -> None:
    layers = [tmp_path / name for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    patient = Patient(tmp_path, f"data = '{tmp_path / 'merged'}'")
    lower, upper, work = layers
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    with mounted(tmp_path / "merged", "overlay", options):
        found = problem(patient.check(check_folder))
        assert found.level == "warning" and "a container layer" in found.found
        patient.mend(found)
    assert all_ok(patient.check(check_folder))


def test_the_deepest_mount_counts(tmp_path: Path) -> None:
    """Also one whose name has a space."""
    with mounted(tmp_path / "a b", "tmpfs", "size=1m") as folder:
        (folder / "inner").mkdir()
        assert mount_of(folder / "inner") == Mount(
            point=str(folder), kind="tmpfs", is_read_only=False
        )
    assert mount_of(tmp_path).point != str(tmp_path)
    assert not Mount(point="/", kind="nfs4", is_read_only=False).is_persistent


def test_a_full_disk_is_a_failure(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "log.disk_bytes_max = 201326592", "hot.disk_bytes_max = 67108864")
    with mounted(patient.data, "tmpfs", "size=400m"):
        with (patient.data / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 400 * MiB)
        found = problem(patient.check(check_space))
        assert found.level == "failure"
        assert found.fix and found.fix.text == f"free at least 192.0 MiB on {patient.data}"
        probe = problem(patient.check(check_sync))
        assert probe.level == "failure" and "No space left" in probe.found
        (patient.data / "ballast").unlink()
        assert all_ok(patient.check(check_space))
        assert problem(patient.check(check_sync)).level == "note"
        assert [path.name for path in patient.data.iterdir()] == []


def test_a_disk_smaller_than_the_limits_is_a_warning(tmp_path: Path) -> None:
    """The fixes lower each limit, and then both fit."""
    patient = Patient(tmp_path)
    with mounted(patient.data, "tmpfs", "size=1g"):
        found = patient.check(check_space)
        assert [each.level for each in found] == ["warning", "warning"]
        for each in found:
            patient.mend(each)
        assert all_ok(patient.check(check_space))


def test_a_disk_without_inodes_is_a_failure(tmp_path: Path) -> None:
    patient = Patient(tmp_path, "log.disk_bytes_max = 201326592", "hot.disk_bytes_max = 67108864")
    with mounted(patient.data, "tmpfs", "size=1g,nr_inodes=100"):
        found = problem(patient.check(check_space))
        assert found.level == "failure" and "inodes free" in found.found
        remount = ["mount", "-o", "remount,nr_inodes=20000", str(patient.data)]
        subprocess.run(remount, check=True)
        assert all_ok(patient.check(check_space))


class SlowClock(SimClock):
    """A clock on which every measurement takes 0.1 s."""

    def monotonic_ns(self) -> int:
        self.advance(100)
        return super().monotonic_ns()


def test_a_slow_disk_is_a_warning(tmp_path: Path) -> None:
    patient = Patient(tmp_path, clock=SlowClock())
    patient.data.mkdir()
    found = problem(patient.check(check_sync))
    assert found.level == "warning" and found.found.startswith("100.00 ms")
    patient.clock = SystemClock()
    assert [each.check for each in patient.check(check_sync)] == ["sync"]
    assert list(patient.data.iterdir()) == []


def test_a_probe_left_by_a_killed_doctor_is_replaced(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    (patient.data).mkdir()
    (patient.data / "frazil-doctor.probe").write_text("")
    assert [each.check for each in patient.check(check_sync)] == ["sync"]
    assert list(patient.data.iterdir()) == []
