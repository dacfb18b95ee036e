"""CommitWatch: fetches that wait for the next commit of a partition."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from frazil.kafka.loop_inbox import LoopInbox
from frazil.log import Isolation, Log, Partition


class CommitWatch:
    """Owned by the event loop. The log's writer wakes it once per group commit, or less often."""

    def __init__(self, log: Log, inbox: LoopInbox) -> None:
        self._log = log
        self._inbox = inbox
        self._waiting: dict[Partition, set[_Waiter]] = {}
        self._is_notified = False
        self._is_stopping = False
        log.writer.listen(self._notify)

    def _notify(self) -> None:
        """Called by the writer thread."""
        if self._waiting and not self._is_notified:
            self._is_notified = True
            self._inbox.put(self._wake)

    def _wake(self) -> None:
        self._is_notified = False
        for partition, waiters in list(self._waiting.items()):
            for waiter in list(waiters):
                if readable_end(partition, waiter.isolation) > waiter.ends[partition]:
                    waiter.wake()

    async def wait(
        self, ends: Mapping[Partition, int], isolation: Isolation, timeout_s: float
    ) -> bool:
        """Wait until more than `ends` can be read of one partition. Returns False on timeout."""
        waiter = _Waiter(ends, isolation)
        for partition in ends:
            self._waiting.setdefault(partition, set()).add(waiter)
        try:
            if self._is_stopping:
                return False
            if any(readable_end(each, isolation) > end for each, end in ends.items()):
                return True  # committed before we were listed
            async with asyncio.timeout(timeout_s):
                await waiter.woken
        except TimeoutError:
            return False
        finally:
            for partition in ends:
                waiters = self._waiting[partition]
                waiters.discard(waiter)
                if not waiters:
                    del self._waiting[partition]
        return not self._is_stopping

    def stop(self) -> None:
        """End all waiting: the port closes."""
        self._is_stopping = True
        for waiters in list(self._waiting.values()):
            for waiter in list(waiters):
                waiter.wake()

    def close(self) -> None:
        self._log.writer.unlisten(self._notify)


class _Waiter:
    """One waiting fetch."""

    def __init__(self, ends: Mapping[Partition, int], isolation: Isolation) -> None:
        self.ends = ends
        self.isolation = isolation
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


def readable_end(partition: Partition, isolation: Isolation) -> int:
    """Return the first offset that cannot be read."""
    view = partition.view
    return view.durable_watermark if isolation == "uncommitted" else view.last_stable_offset
