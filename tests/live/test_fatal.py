"""A disk fails under a real process: the process ends and acknowledges nothing more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.log import EXIT_CODE, Log
from frazil.model import Rand, SystemClock
from tests.log.build import TOPIC, values

WRITE = """
import errno
import os
import sys
import threading
from frazil.disk import RealDisk
from frazil.errors import FrazilError
from frazil.log import Log, Record, append_of_records
from frazil.model import Rand, SystemClock

folder, call, fail_at, way = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
log = Log.open(RealDisk(folder), clock=SystemClock(), rand=Rand())
log.create_topic("t")
calls = 0
real = getattr(os, call)

def failing(*arguments):
    global calls
    calls += 1
    if calls == fail_at:
        os.write(1, b"failed\\n")
        raise OSError(errno.EIO, "Input/output error")
    return real(*arguments)

setattr(os, call, failing)

def produce(name):
    for number in range(1000):
        record = Record(offset=0, timestamp_ms=1, key=None, value=b"%d %d" % (name, number))
        try:
            append = append_of_records([record])
            if way == "queue":
                appended = log.append("t", append).result()
            else:
                appended = log.append_durably("t", append)
        except FrazilError:
            return
        os.write(1, b"%d %d %d\\n" % (appended.base_offset, name, number))

threads = [threading.Thread(target=produce, args=(name,)) for name in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
log.close()
sys.exit("the process outlived its disk")
"""


@pytest.mark.parametrize("way", ["queue", "own step"])
@pytest.mark.parametrize("fail_at", [1, 20])
@pytest.mark.parametrize("call", ["fdatasync", "pwritev"])
def test_a_process_exits_when_its_disk_fails(
    call: str, fail_at: int, way: str, tmp_path: Path
) -> None:
    """Acknowledged appends are stored, and nothing is acknowledged after the failure."""
    process = subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path), call, str(fail_at), way],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == EXIT_CODE, process.stderr
    lines = process.stdout.splitlines()
    # Other threads may still be reporting earlier acknowledgements.
    acknowledged = [line for line in lines if line != "failed"]
    assert "failed" in lines
    with Log.open(RealDisk(tmp_path), clock=SystemClock(), rand=Rand()) as log:
        found = values(log)
        assert log.partition(TOPIC, 0).durable_watermark == len(found)
    for line in acknowledged:
        offset, _, value = line.partition(" ")
        assert found[int(offset)] == value.encode()
    assert len(acknowledged) <= len(found) <= len(acknowledged) + 3
    assert len(acknowledged) < 100
