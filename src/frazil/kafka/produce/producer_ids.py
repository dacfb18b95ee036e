"""ProducerIds: InitProducerId. Ids come from a counter that never repeats, even after a crash."""

from __future__ import annotations

import threading

from frazil.disk import Disk, DurableCounter
from frazil.errors import FrazilError
from frazil.httpd import WorkerThreads
from frazil.kafka.broker import FOLDER
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.log import Log

INIT_PRODUCER_ID = 22
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

    def register(self, router: ApiRouter) -> None:
        router.add(INIT_PRODUCER_ID, "0-5", self.init_producer_id)

    async def init_producer_id(
        self, request: InitProducerIdRequest, context: RequestContext
    ) -> InitProducerIdResponse:
        """Return a new id. Every one begins with epoch 0."""
        if request.transactional_id is not None:
            # Final for clients; a code that can be retried would have them ask forever.
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return InitProducerIdResponse(error_code=code)
        try:
            return InitProducerIdResponse(producer_id=await self.next())
        except FrazilError as error:
            return InitProducerIdResponse(error_code=error_code(error))

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
