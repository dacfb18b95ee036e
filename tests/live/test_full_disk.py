"""A real disk fills up: appends are refused, and succeed again when there is room."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.errors import Overloaded
from frazil.log import Log, Record, append_of_records
from frazil.model import MiB, SystemClock
from frazil.settings import LogConfig

CONFIG = LogConfig(segment_bytes_max=MiB, disk_bytes_max=64 * MiB)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB, half of it taken."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    mount = tmp_path / "small"
    mount.mkdir()
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(8 * MiB)
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small file system cannot be mounted here: {error}")
    (mount / "ballast").write_bytes(os.urandom(4 * MiB))
    yield mount
    subprocess.run(["umount", mount], check=True)


def open_log(folder: Path) -> Log:
    log = Log.open(RealDisk(folder), CONFIG, clock=SystemClock(), rand=random.SystemRandom())
    log.create_topic("t")
    return log


def add(log: Log, number: int) -> None:
    value = number.to_bytes(8, "big") + os.urandom(40_000)
    record = Record(offset=0, timestamp_ms=1, key=None, value=value)
    answer = log.append("t", append_of_records([record]))
    answer.result(timeout=30)


def numbers(log: Log) -> list[int]:
    reader = log.reader("t", "earliest")
    found = []
    while batches := reader.read():
        for batch in batches:
            found += [int.from_bytes((r.value or b"")[:8], "big") for r in batch.records()]
    reader.close()
    return found


def test_a_full_disk_refuses_appends_until_there_is_room(small_disk: Path) -> None:
    """Refused appends are not written; acknowledged ones are stored."""
    acknowledged = []
    with open_log(small_disk / "data") as log:
        log.subscribe("slow", "t", "earliest")  # keeps segments from being trimmed
        with pytest.raises(Overloaded, match="disk is full"):
            for number in range(1000):
                add(log, number)
                acknowledged.append(number)
        assert len(acknowledged) > 10
        for number in range(2000, 2010):
            with pytest.raises(Overloaded):
                add(log, number)
        (small_disk / "ballast").unlink()
        for number in range(3000, 3010):
            add(log, number)
            acknowledged.append(number)
        assert numbers(log) == acknowledged
    with open_log(small_disk / "data") as log:
        assert numbers(log) == acknowledged
