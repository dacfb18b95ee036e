"""HotWorker: the threads of the hot tier. One reads and publishes rows, the other seals.

They are separate because a seal waits for the disk, and new rows must become visible meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from frazil.hot.tier import HotTier
from frazil.metrics import Histogram
from frazil.model import NS_PER_MS, Clock

IDLE_S = 0.1
"""How often to check, without new records, for segments that are old and for the stop."""
RELEASE_MS = 60_000
"""How often memory of mapped files that queries have read is given back."""

STEP_MS = Histogram("frazil.hot.step.ms", "Time one step of the hot tier takes.")


class HotWorker:
    """Started once, closed once. A thread that dies sets `tier.died` and calls `fatal`: from then
    on queries would see old rows as if they were recent."""

    def __init__(
        self, tier: HotTier, *, clock: Clock, fatal: Callable[[BaseException], None]
    ) -> None:
        self._tier = tier
        self._clock = clock
        self._fatal = fatal
        self._stop = threading.Event()
        self._work = threading.Event()
        """Set if there is something to seal."""
        self._threads = [
            threading.Thread(target=self._guard, args=(loop,), name=name, daemon=True)
            for name, loop in (("frazil-hot-read", self._read), ("frazil-hot-seal", self._seal))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Finish the current steps and stop. The tier stays open."""
        self._stop.set()
        self._work.set()
        for thread in self._threads:
            thread.join()

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException as error:  # noqa: BLE001 # top of loop: reported as fatal
            self._tier.died = error
            self._fatal(error)

    def _read(self) -> None:
        while not self._stop.is_set():
            begin_ns = self._clock.monotonic_ns()
            count = self._tier.step()
            STEP_MS.record((self._clock.monotonic_ns() - begin_ns) / NS_PER_MS)
            if self._tier.has_frozen:
                self._work.set()
            if self._tier.is_behind:
                continue
            if count or self._tier.lag:
                # Let requests accumulate: many are decoded together as fast as one.
                self._stop.wait(self._tier.config.refresh_ms / 1000)
            else:
                self._tier.wait(IDLE_S)

    def _seal(self) -> None:
        released_ns = self._clock.monotonic_ns()
        while not self._stop.is_set():
            self._work.wait(IDLE_S)
            self._work.clear()
            self._tier.seal()
            now_ns = self._clock.monotonic_ns()
            if now_ns - released_ns >= RELEASE_MS * NS_PER_MS:
                self._tier.release_memory()
                released_ns = now_ns
