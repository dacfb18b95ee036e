"""A stop is shared out among the rooms, and ends, whatever hangs."""

from __future__ import annotations

import subprocess
import sys

from frazil.shutdown import CUT_CODE, RESERVE_S, STOP_S, Shutdown
from tests.sim.clock import SimClock

HANGING = """
import logging, threading
from frazil import shutdown
from frazil.model import SystemClock
logging.basicConfig()
shutdown.STOP_S = 0.2
stop = shutdown.Shutdown(SystemClock())
stop.begin()
stop.note(requests_cut=1)
threading.Event().wait()
"""


def test_shares_are_limited_by_the_remaining_time() -> None:
    """The reserve is not given to any component."""
    clock = SimClock()
    stop = Shutdown(clock)
    assert stop.left_s(1.0) == 1.0
    assert stop.left_s(100.0) == STOP_S - RESERVE_S
    stop.begin()
    clock.advance(5000)
    assert stop.left_s(1.0) == 1.0
    assert stop.left_s(100.0) == STOP_S - RESERVE_S - 5
    clock.advance(60_000)
    assert stop.left_s(1.0) == 0.0
    stop.note(requests_answered=3)
    assert stop.facts() == {"requests_answered": 3, "seconds": 65.0}
    stop.done()


def test_a_hanging_stop_exits() -> None:
    """The process ends by itself, and says how far it had come."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == CUT_CODE
    assert "shutdown took too long" in done.stderr
