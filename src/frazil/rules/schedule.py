"""EvaluationTimes: when a group is evaluated.

Groups are spread over their interval, by their name, so that they do not run all at once, and at
the same times after a restart.
"""

from __future__ import annotations

import hashlib


class EvaluationTimes:
    """Times of one group. Owned by the thread that evaluates."""

    def __init__(self, file: str, name: str, interval_ms: int, now_ms: int) -> None:
        digest = hashlib.sha256(f"{file};{name}".encode()).digest()
        self._phase_ms = int.from_bytes(digest[:8], "big") % interval_ms
        self._interval_ms = interval_ms
        self._last_ms = self._slot(now_ms)

    def _slot(self, now_ms: int) -> int:
        return (now_ms - self._phase_ms) // self._interval_ms * self._interval_ms + self._phase_ms

    @property
    def next_ms(self) -> int:
        return self._last_ms + self._interval_ms

    def take(self, now_ms: int) -> tuple[int, int] | None:
        """Return the time of the evaluation that is due, and how many before it were missed; None
        if none is due. After the wall clock was set back, times begin anew."""
        slot_ms = self._slot(now_ms)
        if slot_ms < self._last_ms:
            self._last_ms = slot_ms
        if slot_ms == self._last_ms:
            return None
        missed = (slot_ms - self._last_ms) // self._interval_ms - 1
        self._last_ms = slot_ms
        return slot_ms, missed
