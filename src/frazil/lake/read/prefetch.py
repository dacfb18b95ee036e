"""Reading ahead: a few windows are read while the caller works on the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from frazil.lake.read.window_reader import SizedWindow, WindowRows
from frazil.model import MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How much a reader holds, and does at once."""

    window_bytes: int = 64 * MiB
    """About, of rows that are given together. A single offset may have more."""
    ahead_bytes: int = 128 * MiB
    """About, of rows read and not asked for yet, besides those asked for next."""
    ahead_files: int = 64
    """Of files that these rows are in."""
    reads: int = 2
    """Windows read at the same time."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            assert getattr(self, name) >= 1, f"{name} must be at least 1"


def read_ahead(
    windows: Iterator[tuple[SizedWindow, int]],
    read: Callable[[SizedWindow], WindowRows],
    limits: ReadLimits,
) -> Generator[WindowRows]:
    """The rows of windows, in their order. Each comes with about how many bytes it will take.

    An error comes where its rows would have been. Closed early, it waits for reads under way.
    """
    waiting: deque[tuple[Future[WindowRows], int, int]] = deque()
    next_one = next(windows, None)
    with ThreadPoolExecutor(limits.reads, "frazil-read") as pool:
        try:
            while waiting or next_one is not None:
                while next_one is not None and _has_room(waiting, next_one, limits):
                    weighed, size_bytes = next_one
                    waiting.append((pool.submit(read, weighed), size_bytes, len(weighed.groups)))
                    next_one = next(windows, None)
                yield waiting.popleft()[0].result()
        finally:
            for future, _, _ in waiting:
                future.cancel()


def _has_room(
    waiting: deque[tuple[Future[WindowRows], int, int]],
    each: tuple[SizedWindow, int],
    limits: ReadLimits,
) -> bool:
    weighed, size_bytes = each
    return not waiting or (
        size_bytes + sum(size for _, size, _ in waiting) <= limits.ahead_bytes
        and len(weighed.groups) + sum(files for _, _, files in waiting) <= limits.ahead_files
    )
