"""SimLoop: an asyncio event loop whose time is simulated. Nothing waits, and a seed repeats."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from frazil.model import Rand
from tests.sim.clock import NS_PER_SECOND, SimClock

P = ParamSpec("P")
T = TypeVar("T")

LIFE: ContextVar[int] = ContextVar("life", default=0)
"""Which life of the node runs; 0 is outside of it. Callbacks inherit it from what scheduled
them."""


TURNS_MAX = 200_000
"""Of one seed: a usual one has some thousands."""


class Deadlock(Exception):
    """Everybody waits, and nothing will ever happen; or much happens, and nothing ever ends."""


class SimLoop(asyncio.BaseEventLoop):
    """Runs callbacks until none is ready; then `work` is done, and if there is none, time passes.

    `work` returns whether it did something; it is also where lives end: nothing runs meanwhile.
    """

    def __init__(self, clock: SimClock, work: Callable[[bool], bool]) -> None:
        super().__init__()
        self._clock = clock
        self._work = work
        self._selector = self
        self._turns = 0
        self.accept: Callable[[], asyncio.BaseProtocol] | None = None
        """Makes the server's side of a connection; None while nobody listens."""

    def time(self) -> float:
        return self._clock.monotonic_ns() / NS_PER_SECOND

    def select(self, timeout: float | None) -> list[Any]:
        """Called by the loop before it runs what is ready; `timeout` is 0 if something is."""
        self._turns += 1
        if self._turns > TURNS_MAX:
            raise Deadlock(f"{TURNS_MAX} turns, at {self.time():.3f} s")
        if self._work(timeout == 0):
            return []
        if timeout is None:
            raise Deadlock
        if timeout > 0:
            self._clock.sleep(timeout)
        return []

    def _check_closed(self) -> None:
        """What a dead node leaves behind may still call a loop that is over."""

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no events: nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nobody needs to be woken: there is one thread."""

    def end_life(self, life: int) -> None:
        """Forget everything that a life of the node has scheduled. Call it in `work`."""

        def is_over(handle: Any) -> bool:
            return bool(handle._context.get(LIFE) == life)

        self._ready: deque[Any] = deque(each for each in self._ready if not is_over(each))
        kept = [each for each in self._scheduled if not is_over(each)]
        heapq.heapify(kept)
        self._scheduled: list[Any] = kept
        self._timer_cancelled_count = sum(each._cancelled for each in kept)

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        self.accept = protocol_factory
        return _Listening()


class _Listening:
    """Stands for the port's socket."""

    def __init__(self) -> None:
        self.sockets = [self]

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 9092

    def close(self) -> None:
        """There is no socket."""


class SimThreads:
    """Stands for `WorkerThreads`: work is done by the loop, now or a little later."""

    rand: Rand
    """Set by the simulation."""

    def __init__(self, name: str, count: int) -> None:
        pass

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(self.rand.choice((0, 0, 0.0005, 0.02)))
        return work(*args, **kwargs)

    def close(self) -> None:
        """There are no threads."""


async def listening(_: object) -> _Listening:
    """Stands for `bind`."""
    return _Listening()
