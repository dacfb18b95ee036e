"""Shutdown: a node ends within ten seconds, and tells what it did.

Rooms are closed one after the other; each gets its share of what is left. Whatever hangs all the
same is cut off with the process. Nothing that was acknowledged depends on any of this: a kill
loses nothing either.
"""

from __future__ import annotations

import logging
import os
import threading

from frazil.model import NS_PER_MS, Clock

logger = logging.getLogger(__name__)

STOP_S = 10.0
"""From the signal to the end of the process, whatever happens. Kubernetes waits for 30."""
REST_S = 2.0
"""Never shared out: for Spark's end, and the log's."""
CUT_CODE = 1
"""What a process ends with whose stop took too long."""


class Shutdown:
    """One stop of one node. Belongs to the event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun_ns: int | None = None
        self._is_done = threading.Event()
        self._facts: dict[str, object] = {}

    def begin(self) -> None:
        """From now on there are ten seconds."""
        self._begun_ns = self._clock.monotonic_ns()
        threading.Thread(target=self._guard, name="frazil-stop", daemon=True).start()

    def _guard(self) -> None:
        if self._is_done.wait(STOP_S):
            return
        logger.error("the stop took too long, the process ends as by a kill", extra=self.facts())
        logging.shutdown()
        os._exit(CUT_CODE)

    def left_s(self, share_s: float) -> float:
        """The share of a room, or what is left of it."""
        return max(0.0, min(share_s, STOP_S - REST_S - self._seconds))

    def note(self, **facts: object) -> None:
        """Something that was done."""
        self._facts.update(facts)

    def done(self) -> None:
        """Everything is closed."""
        self._is_done.set()

    def facts(self) -> dict[str, object]:
        """What was done up to now, and in how many seconds."""
        return {**self._facts, "seconds": round(self._seconds, 2)}

    @property
    def _seconds(self) -> float:
        """None have passed where nobody has asked for a stop: a start failed, or a worker died."""
        if self._begun_ns is None:
            return 0.0
        return (self._clock.monotonic_ns() - self._begun_ns) / (1000 * NS_PER_MS)
