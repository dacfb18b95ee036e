"""ProducerIds: ids of producers, from a counter that never repeats, even after a crash."""

from __future__ import annotations

import threading

from frazil.disk import Disk, DurableCounter
from frazil.httpd import WorkerThreads
from frazil.kafka.broker import FOLDER
from frazil.log import Log

PATH = f"{FOLDER}/producer_ids.ckpt"
RESERVED = 1000
"""Ids reserved with one write. A crash costs at most so many."""


class ProducerIds:
    """Owned by the event loop."""

    def __init__(self, counter: DurableCounter, threads: WorkerThreads) -> None:
        self._counter = counter
        self._threads = threads
        self._turn = threading.Lock()

    @classmethod
    def open(cls, disk: Disk, log: Log, threads: WorkerThreads) -> ProducerIds:
        """Continue above every id in the file, and above every producer that the log knows."""
        floor = 1 + max(
            (p.producers.id_max for topic in log.topics() for p in topic.partitions), default=-1
        )
        counter = DurableCounter.open(disk, PATH, floor=floor, reserve_count=RESERVED)
        return cls(counter, threads)

    async def next(self) -> int:
        """Return an id that was never returned before."""
        return await self._threads.run(self._next)

    def _next(self) -> int:
        # The thread of a client that has gone may still be at it.
        with self._turn:
            return self._counter.next()

    def close(self) -> None:
        with self._turn:
            self._counter.close()
