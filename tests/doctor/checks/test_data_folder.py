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
    as_nobody,
    is_well,
    mounted,
    public_folder,
    trouble,
)
from tests.sim.clock import SimClock


def test_a_new_folder_is_fine(tmp_path: Path) -> None:
    """Nothing is there yet, and looking makes nothing."""
    patient = Patient(tmp_path)
    assert "made at the first start" in patient.look(check_folder)[0].found
    assert patient.look(check_sync) == []
    assert not patient.data.exists()


def test_a_file_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    patient = Patient(tmp_path, f"data = '{tmp_path / 'file'}'")
    (tmp_path / "file").write_text("")
    found = trouble(patient.look(check_folder))
    assert found.level == "failure"
    patient.mend(found)
    assert patient.look(check_folder)[0].level == "ok"


def test_a_folder_of_somebody_else() -> None:
    """It is given to the user who will run the node; so is the lock in it."""
    with public_folder() as folder:
        patient = Patient(folder)
        patient.data.mkdir(mode=0o700)
        (patient.data / "frazil.lock").write_text("{}")
        with as_nobody():
            found = trouble(patient.look(check_folder))
            assert patient.look(check_sync) == []
        assert found.level == "failure" and "cannot be written" in found.found
        patient.mend(found)
        with as_nobody():
            assert is_well(patient.look(check_folder))
            assert patient.look(check_sync)
        assert (patient.data / "frazil.lock").stat().st_uid == NOBODY


def test_a_lock_of_somebody_else() -> None:
    """Somebody has run a node here as root, once."""
    with public_folder() as folder:
        patient = Patient(folder)
        patient.data.mkdir()
        (patient.data / "frazil.lock").write_text("{}")
        (patient.data / "frazil.lock").chmod(0o640)
        if os.geteuid() == 0:
            os.chown(patient.data, NOBODY, NOBODY)
        with as_nobody():
            found = trouble(patient.look(check_folder))
        assert "frazil.lock" in found.found
        patient.mend(found)
        with as_nobody():
            assert is_well(patient.look(check_folder))


def test_a_folder_that_cannot_be_made() -> None:
    """It is made, by who may, for who runs the node."""
    with public_folder() as folder:
        patient = Patient(folder)
        with as_nobody():
            found = trouble(patient.look(check_folder))
        patient.mend(found)
        with as_nobody():
            assert is_well(patient.look(check_folder))


def test_a_disk_that_is_mounted_read_only(tmp_path: Path) -> None:
    """As the kernel does with a disk that has errors."""
    patient = Patient(tmp_path)
    with mounted(patient.data, "tmpfs", "ro"):
        found = trouble(patient.look(check_folder))
        assert (found.level, found.found) == ("failure", f"{patient.data} is mounted read-only")
        patient.mend(found)
        assert patient.look(check_folder)[0].level == "ok"


def test_a_disk_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Durable is not what is gone with the power; the folder that is proposed instead is."""
    monkeypatch.chdir(tmp_path)
    patient = Patient(tmp_path, f"data = '{tmp_path / 'memory'}'")
    with mounted(tmp_path / "memory", "tmpfs", "size=1m"):
        found = trouble(patient.look(check_folder))
        assert found.level == "warning" and "in memory" in found.found
        promise = trouble(patient.look(check_sync))
        assert promise.level == "note" and "promises nothing" in promise.found
        patient.mend(found)
    assert is_well(patient.look(check_folder))


def test_a_layer_of_a_container(tmp_path: Path) -> None:
    """What is written there goes with the container."""
    layers = [tmp_path / name for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    patient = Patient(tmp_path, f"data = '{tmp_path / 'merged'}'")
    lower, upper, work = layers
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    with mounted(tmp_path / "merged", "overlay", options):
        found = trouble(patient.look(check_folder))
        assert found.level == "warning" and "a layer of a container" in found.found
        patient.mend(found)
    assert is_well(patient.look(check_folder))


def test_where_a_path_is_mounted(tmp_path: Path) -> None:
    """The deepest mount counts, also one whose name has a space."""
    with mounted(tmp_path / "a b", "tmpfs", "size=1m") as folder:
        (folder / "inner").mkdir()
        assert mount_of(folder / "inner") == Mount(
            point=str(folder), kind="tmpfs", is_read_only=False
        )
    assert mount_of(tmp_path).point != str(tmp_path)
    assert not Mount(point="/", kind="nfs4", is_read_only=False).is_lasting


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Room for the log is made by who knows what else is on the disk."""
    patient = Patient(tmp_path, "log.disk_bytes_max = 201326592", "hot.disk_bytes_max = 67108864")
    with mounted(patient.data, "tmpfs", "size=400m"):
        with (patient.data / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 400 * MiB)
        found = trouble(patient.look(check_space))
        assert found.level == "failure"
        assert found.fix and found.fix.text == f"free at least 192.0 MiB on {patient.data}"
        probe = trouble(patient.look(check_sync))
        assert probe.level == "failure" and "No space left" in probe.found
        (patient.data / "ballast").unlink()
        assert is_well(patient.look(check_space))
        assert trouble(patient.look(check_sync)).level == "note"
        assert [path.name for path in patient.data.iterdir()] == []


def test_a_disk_that_is_smaller_than_the_caps(tmp_path: Path) -> None:
    """Each cap is lowered by a line of its own, and then both fit."""
    patient = Patient(tmp_path)
    with mounted(patient.data, "tmpfs", "size=1g"):
        found = patient.look(check_space)
        assert [each.level for each in found] == ["warning", "warning"]
        for each in found:
            patient.mend(each)
        assert is_well(patient.look(check_space))


def test_a_disk_without_names(tmp_path: Path) -> None:
    """Bytes are free, but no file can be made."""
    patient = Patient(tmp_path, "log.disk_bytes_max = 201326592", "hot.disk_bytes_max = 67108864")
    with mounted(patient.data, "tmpfs", "size=1g,nr_inodes=100"):
        found = trouble(patient.look(check_space))
        assert found.level == "failure" and "more files can be made" in found.found
        remount = ["mount", "-o", "remount,nr_inodes=20000", str(patient.data)]
        subprocess.run(remount, check=True)
        assert is_well(patient.look(check_space))


class SlowClock(SimClock):
    """Whatever is measured took a tenth of a second."""

    def monotonic_ns(self) -> int:
        self.advance(100)
        return super().monotonic_ns()


def test_a_slow_disk(tmp_path: Path) -> None:
    """Who waits for each sync is told how long; another disk is another time."""
    patient = Patient(tmp_path, clock=SlowClock())
    patient.data.mkdir()
    found = trouble(patient.look(check_sync))
    assert found.level == "warning" and found.found.startswith("100.00 ms")
    patient.clock = SystemClock()
    assert [each.check for each in patient.look(check_sync)] == ["sync"]
    assert list(patient.data.iterdir()) == []


def test_a_probe_that_was_left_behind(tmp_path: Path) -> None:
    """A doctor that was killed does not trouble the next one."""
    patient = Patient(tmp_path)
    (patient.data).mkdir()
    (patient.data / "frazil-doctor.probe").write_text("")
    assert [each.check for each in patient.look(check_sync)] == ["sync"]
    assert list(patient.data.iterdir()) == []
