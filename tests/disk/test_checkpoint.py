"""Checkpoints: old or new, never empty, never mixed.

`tests/disk/test_disk_contract.py` tests damaged ones.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from frazil.disk import read_checkpoint, write_checkpoint
from frazil.disk.checkpoint import BODY_BYTES_MAX, HEADER
from frazil.errors import Corrupt
from frazil.model import Rand
from tests.sim.disk import Faults, Model, PowerCut, SimDisk

OLD, NEW = b"old" * 300, b"new" * 500
CALLS = 6
"""Storage calls of one write: list, create, append, sync, rename, sync the folder."""


def read(disk: SimDisk) -> bytes | None:
    return read_checkpoint(disk, "state", b"TEST", 1, "Look.")


def write(disk: SimDisk, body: bytes) -> None:
    write_checkpoint(disk, "state", b"TEST", 1, body)


def disk_with_old(model: Model = "ext4") -> SimDisk:
    disk = SimDisk(model=model)
    write(disk, OLD)
    return disk


@given(st.binary(max_size=2000), st.integers(0, 2**16 - 1))
def test_round_trip(body: bytes, version: int) -> None:
    disk = SimDisk()
    write_checkpoint(disk, "state", b"TEST", version, body)
    assert read_checkpoint(disk, "state", b"TEST", version, "Look.") == body


@pytest.mark.parametrize("model", ["ext4", "weak"])
@pytest.mark.parametrize("call", range(1, CALLS + 1))
def test_a_power_cut_at_any_call_leaves_old_or_new(call: int, model: Model) -> None:
    """The next write succeeds."""
    outcomes = set()
    for seed in range(40):
        disk = disk_with_old(model)
        disk.faults = Faults(crash_at=disk.calls + call)
        disk.rand = Rand(seed)
        with pytest.raises(PowerCut):
            write(disk, NEW)
        after = disk.crash(Rand(seed))
        outcomes.add(read(after))
        write(after, b"next")
        assert after.files() == ["state"]
        assert read(after.crash(Rand(seed))) == b"next"
    assert outcomes <= {OLD, NEW}


def test_the_sweep_covers_every_call_of_a_write() -> None:
    disk = disk_with_old()
    before = disk.calls
    write(disk, NEW)
    assert disk.calls - before == CALLS


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_a_written_checkpoint_survives_a_power_cut(model: Model) -> None:
    for seed in range(40):
        disk = disk_with_old(model)
        write(disk, NEW)
        assert read(disk.crash(Rand(seed))) == NEW


@pytest.mark.parametrize("call", range(1, CALLS + 1))
def test_a_failed_write_raises_and_leaves_old_or_new(call: int) -> None:
    disk = disk_with_old()
    disk.faults = Faults(fail_at=(disk.calls + call, errno.EIO))
    with pytest.raises(OSError):
        write(disk, NEW)
    assert read(disk) in (OLD, NEW)


@pytest.mark.parametrize("sync", [1, 2])
def test_a_failed_sync_is_not_retried(sync: int) -> None:
    disk = disk_with_old()
    before = disk.syncs
    disk.faults = Faults(fail_sync_at=before + sync)
    with pytest.raises(OSError):
        write(disk, NEW)
    assert disk.syncs == before + sync


def test_a_full_disk_keeps_the_old_state_and_no_scratch_file() -> None:
    """Once there is space again, the write succeeds."""
    disk = disk_with_old()
    used_bytes = len(disk.data("state"))
    disk.faults = Faults(capacity_bytes=used_bytes + 100)
    for _ in range(3):
        with pytest.raises(OSError) as caught:
            write(disk, NEW)
        assert caught.value.errno == errno.ENOSPC
        assert disk.list("") == ["state"]
    assert read(disk) == OLD
    disk.faults = Faults(capacity_bytes=used_bytes + len(NEW) + 100)
    write(disk, NEW)
    assert read(disk) == NEW


def with_length(length: int) -> Callable[[bytes], bytes]:
    def forge(data: bytes) -> bytes:
        forged = data[:12] + struct.pack("<I", length) + data[16:-4]
        return forged + struct.pack("<I", crc32c(forged))

    return forge


@pytest.mark.parametrize(
    ("forge", "position", "expected"),
    [
        (lambda data: b"", 0, "at least 20 bytes"),
        (lambda data: data[: HEADER.size], 0, "at least 20 bytes"),
        (lambda data: b"FRZX" + data[4:], 0, "FRZCTEST"),
        (lambda data: data[:4] + b"ELSE" + data[8:], 0, "FRZCTEST"),
        (with_length(len(OLD) + 1), 16, f"{len(OLD) + 1} bytes of state"),
        (with_length(2**32 - 1), 16, f"{2**32 - 1} bytes of state"),
        (lambda data: data[:30] + b"x" + data[31:], 16 + len(OLD), "CRC32C"),
    ],
)
def test_an_error_names_file_position_and_expectation(
    forge: Callable[[bytes], bytes], position: int, expected: str
) -> None:
    disk = disk_with_old()
    disk.rot("state", Rand(0), "replace", data=forge(disk.data("state")))
    with pytest.raises(Corrupt) as caught:
        read(disk)
    error = caught.value
    assert (error.path, error.position, error.hint) == ("state", position, "Look.")
    assert expected in error.expected
    assert str(error).endswith("Look.")


def test_another_version_is_refused() -> None:
    disk = SimDisk()
    write_checkpoint(disk, "state", b"TEST", 2, OLD)
    with pytest.raises(Corrupt, match="expected version 1, found version 2"):
        read(disk)


def test_a_checkpoint_has_a_maximum_size() -> None:
    """The writer refuses what the reader would take for damage."""

    class Huge(bytes):
        def __len__(self) -> int:
            return BODY_BYTES_MAX + 1

    with pytest.raises(AssertionError):
        write(SimDisk(), Huge())
