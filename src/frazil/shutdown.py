"""Shutdown: a process of a node stops within ten seconds and reports what it did.

Components close one after another, each with a share of the remaining time. If one hangs, the
process exits. Acknowledged data is safe either way, as after a kill.
"""

from __future__ import annotations

import logging
import os
import threading

from frazil.model import NS_PER_MS, Clock

logger = logging.getLogger(__name__)

STOP_S = 10.0
"""From the signal to the end of the process, in any case. Kubernetes waits 30 s."""
RESERVE_S = 2.0
"""Kept for what comes last: stopping Spark, or closing the log."""
CUT_CODE = 1
"""Exit code of a stop that took too long."""


class Shutdown:
    """The stop of a process. Owned by the event loop."""

    def __init__(self, clock: Clock, *, reserve_s: float = RESERVE_S) -> None:
        self._clock = clock
        self._reserve_s = reserve_s
        self._within_s = STOP_S
        self._begun_ns: int | None = None
        self._is_done = threading.Event()
        self._facts: dict[str, object] = {}

    def begin(self, within_s: float = STOP_S) -> None:
        """Start the timeout."""
        self._within_s = within_s
        self._begun_ns = self._clock.monotonic_ns()
        threading.Thread(target=self._guard, name="frazil-stop", daemon=True).start()

    def _guard(self) -> None:
        if self._is_done.wait(self._within_s):
            return
        logger.error("shutdown took too long, exiting now", extra=self.facts())
        logging.shutdown()
        os._exit(CUT_CODE)

    def left_s(self, share_s: float = STOP_S) -> float:
        """Return `share_s`, or the remaining time if that is less."""
        return max(0.0, min(share_s, self._within_s - self._reserve_s - self._seconds))

    def note(self, **facts: object) -> None:
        """Record facts for the log."""
        self._facts.update(facts)

    def done(self) -> None:
        """Stop the timeout: everything is closed."""
        self._is_done.set()

    def facts(self) -> dict[str, object]:
        """Return the recorded facts and the elapsed seconds."""
        return {**self._facts, "seconds": round(self._seconds, 2)}

    @property
    def _seconds(self) -> float:
        """0 without a stop request, as when the start failed or a worker died."""
        if self._begun_ns is None:
            return 0.0
        return (self._clock.monotonic_ns() - self._begun_ns) / (1000 * NS_PER_MS)
