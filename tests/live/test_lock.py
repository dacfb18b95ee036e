"""One process per data folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.errors import Held
from frazil.log import Log
from frazil.model import Rand, SystemClock

HOLD = """
import sys
from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import Rand, SystemClock

log = Log.open(RealDisk(sys.argv[1]), clock=SystemClock(), rand=Rand(), holder="the first node")
print("holding", flush=True)
sys.stdin.read()
log.close()
"""
TAKE = """
import sys
from frazil.disk import RealDisk
from frazil.errors import Held
from frazil.log import Log
from frazil.model import Rand, SystemClock

try:
    Log.open(RealDisk(sys.argv[1]), clock=SystemClock(), rand=Rand(), holder="the second node")
except Held as held:
    sys.exit(str(held))
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the folder; ended by closing its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def take(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TAKE, str(folder)], capture_output=True, text=True, timeout=60
    )


def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        second = take(tmp_path)
        assert second.returncode == 1
        assert second.stderr == (
            f"{tmp_path} is in use by process {first.pid} (the first node); "
            "stop that process or use another data folder\n"
        )
        with pytest.raises(Held, match=f"process {first.pid} "):
            Log.open(RealDisk(tmp_path), clock=SystemClock(), rand=Rand())
        first.communicate("")
        assert first.returncode == 0
    assert take(tmp_path).returncode == 0


def test_kill_9_leaves_no_stale_lock(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        first.kill()
        first.wait()
        assert take(tmp_path).returncode == 0
