"""Read the next windows while the caller processes the current one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from frazil.lake.read.window_reader import SizedWindow, WindowRows
from frazil.model import MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Limits of memory and concurrency of a reader."""

    window_bytes: int = 64 * MiB
    """Approximate size of rows returned together. A single offset may have more."""
    ahead_bytes: int = 128 * MiB
    """Approximate size of rows read ahead, besides those returned next."""
    ahead_files: int = 64
    """Files whose rows are read ahead."""
    reads: int = 2
    """Windows read concurrently."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            assert getattr(self, name) >= 1, f"{name} must be at least 1"


def prefetch(
    windows: Iterator[tuple[SizedWindow, int]],
    read: Callable[[SizedWindow], WindowRows],
    limits: ReadLimits,
) -> Generator[WindowRows]:
    """Yield the rows of windows in order. Each window comes with its estimated bytes.

    A read error is raised in place of its rows. Closing early waits for running reads.
    """
    pending: deque[tuple[Future[WindowRows], int, int]] = deque()
    following = next(windows, None)
    with ThreadPoolExecutor(limits.reads, "frazil-read") as pool:
        try:
            while pending or following is not None:
                while following is not None and _has_room(pending, following, limits):
                    sized, size_bytes = following
                    pending.append((pool.submit(read, sized), size_bytes, len(sized.groups)))
                    following = next(windows, None)
                yield pending.popleft()[0].result()
        finally:
            for future, _, _ in pending:
                future.cancel()


def _has_room(
    pending: deque[tuple[Future[WindowRows], int, int]],
    window: tuple[SizedWindow, int],
    limits: ReadLimits,
) -> bool:
    sized, size_bytes = window
    return not pending or (
        size_bytes + sum(size for _, size, _ in pending) <= limits.ahead_bytes
        and len(sized.groups) + sum(files for _, _, files in pending) <= limits.ahead_files
    )
