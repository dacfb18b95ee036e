"""Fetch: batches as they are stored, of many partitions, waiting for new ones if there are none.

Files are read in worker threads: the event loop never waits for the disk. What a fetch has read it
keeps while it waits for more, and goes on from there.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from frazil.errors import Corrupt, FrazilError, Unknown
from frazil.httpd import WorkerThreads
from frazil.kafka.allowance import ByteAllowance
from frazil.kafka.context import ConnectionState, RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.fetch.commit_watch import CommitWatch, readable_end
from frazil.kafka.fetch.reader_pool import ReaderKey, ReaderPool
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.log import (
    LEADER_EPOCH,
    AbortedTransaction,
    Isolation,
    Partition,
    StoredBatch,
)
from frazil.metrics import Counter
from frazil.settings import KafkaPortConfig

logger = logging.getLogger(__name__)

FETCH = 1
READ_COMMITTED = 1
WAIT_S_MAX = 60.0
"""Longest wait of a fetch, whatever the client asks for."""
FETCH_SESSION_ID_NOT_FOUND = 70
"""There are no fetch sessions: every response says so with session id 0."""
FULL_PAUSE_S = 0.02
KEPT = "fetch"

FETCHED_BYTES = Counter("frazil.kafka.fetched.bytes", "Bytes of batches sent to clients.")


@dataclass(slots=True, kw_only=True)
class _Cursor:
    """One partition of a fetch, and what was read of it."""

    asked: FetchRequest.FetchPartition
    partition: Partition | None
    code: int
    offset: int
    """Where to go on reading."""
    payloads: list[bytes] = field(default_factory=list)
    aborted: set[AbortedTransaction] = field(default_factory=set)
    """Of which a batch was read. A client skips what its producer wrote from there on up to the
    marker, which the log may have dropped once it has no such batch any more."""
    size: int = 0
    is_full: bool = False
    """Whether the next batch does not fit, neither here nor into the response."""

    @property
    def open_partition(self) -> Partition | None:
        """The partition, if more may be read of it."""
        return None if self.code or self.is_full else self.partition

    def has_more(self, isolation: Isolation) -> bool:
        """Whether there is more to be read now."""
        partition = self.open_partition
        return partition is not None and readable_end(partition, isolation) > self.offset


class _Owner:
    """The readers of one connection."""

    def __init__(self, number: int, pool: ReaderPool) -> None:
        self.number = number
        self._pool = pool
        pool.add_owner(number)

    def close(self) -> None:
        self._pool.drop_owner(self.number)


class Fetch:
    """Owned by the event loop."""

    def __init__(
        self,
        log: ClientTopics,
        watch: CommitWatch,
        responses: ByteAllowance,
        config: KafkaPortConfig,
        threads: WorkerThreads,
    ) -> None:
        self._log = log
        self._watch = watch
        self._responses = responses
        self._config = config
        self._threads = threads
        self._pool = ReaderPool()
        self._numbers = itertools.count()

    def register(self, router: ApiRouter) -> None:
        router.add(FETCH, "4-12", self.fetch)

    async def fetch(self, request: FetchRequest, context: RequestContext) -> FetchResponse:
        """Return what there is, or what comes within the time the client waits."""
        if request.session_id != 0:
            return FetchResponse(error_code=FETCH_SESSION_ID_NOT_FOUND)
        is_committed = request.isolation_level == READ_COMMITTED
        isolation: Isolation = "stable" if is_committed else "uncommitted"
        cursors = [
            [self._cursor(topic.topic, asked) for asked in topic.partitions]
            for topic in request.topics
        ]
        await self._fill(request, [c for each in cursors for c in each], isolation, context)
        return FetchResponse(
            responses=[
                FetchResponse.FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[_result(cursor, is_committed=is_committed) for cursor in found],
                )
                for topic, found in zip(request.topics, cursors, strict=True)
            ]
        )

    def _cursor(self, topic: str, asked: FetchRequest.FetchPartition) -> _Cursor:
        """Check where a client wants to read."""
        partition: Partition | None = None
        code = ErrorCode.NONE
        try:
            partition = self._log.partition(topic, asked.partition)
        except Unknown as error:
            code = error_code(error)
        if partition is not None:
            view = partition.view
            if asked.current_leader_epoch > LEADER_EPOCH:
                code = ErrorCode.UNKNOWN_LEADER_EPOCH
            elif not view.start_offset <= asked.fetch_offset <= view.durable_watermark:
                code = ErrorCode.OFFSET_OUT_OF_RANGE
        return _Cursor(asked=asked, partition=partition, code=code, offset=asked.fetch_offset)

    async def _fill(
        self,
        request: FetchRequest,
        cursors: list[_Cursor],
        isolation: Isolation,
        context: RequestContext,
    ) -> None:
        """Read until there is enough, a partition has an error, or the time is over."""
        loop = asyncio.get_running_loop()
        wait_s = min(max(0, request.max_wait_ms) / 1000, WAIT_S_MAX)
        deadline_s = loop.time() + wait_s
        bytes_max = max(0, min(request.max_bytes, self._config.fetch_bytes_max))
        owner = self._owner(context.connection)
        while True:
            ready = [cursor for cursor in cursors if cursor.has_more(isolation)]
            is_room = self._responses.has_room
            if ready and is_room:
                left = bytes_max - sum(cursor.size for cursor in cursors)
                is_first = left == bytes_max
                await self._threads.run(
                    self._read, ready, isolation, left, owner.number, is_first=is_first
                )
            size = sum(cursor.size for cursor in cursors)
            left_s = deadline_s - loop.time()
            if any(cursor.code or cursor.is_full for cursor in cursors):
                break
            if size >= min(request.min_bytes, bytes_max):
                break
            if left_s <= 0:
                break
            if not is_room:
                await asyncio.sleep(min(left_s, FULL_PAUSE_S))
                continue
            ends = {
                partition: cursor.offset
                for cursor in cursors
                if (partition := cursor.open_partition) is not None
            }
            if not ends or not await self._watch.wait(ends, isolation, left_s):
                break
        FETCHED_BYTES.add(size)

    def _owner(self, connection: ConnectionState) -> _Owner:
        owner = connection.kept.get(KEPT)
        if owner is None:
            owner = connection.kept[KEPT] = _Owner(next(self._numbers), self._pool)
        assert isinstance(owner, _Owner)
        return owner

    def _read(
        self,
        cursors: list[_Cursor],
        isolation: Isolation,
        bytes_left: int,
        owner: int,
        *,
        is_first: bool,
    ) -> None:
        """Read the next batches of each partition, as many as fit. Runs in a thread.

        The first batch of a response may be larger than all that the client asks for: it could not
        go on otherwise. Others must fit: a client may refuse what is larger.
        """
        for cursor in cursors:
            try:
                size = self._read_one(cursor, isolation, bytes_left, owner, is_first=is_first)
            except FrazilError as error:
                cursor.code = error_code(error)
                if isinstance(error, Corrupt):
                    logger.error("a fetch found damage", extra={"reason": str(error)})
            else:
                bytes_left -= size
                is_first = is_first and size == 0
            if bytes_left <= 0 and not is_first:
                return

    def _read_one(
        self, cursor: _Cursor, isolation: Isolation, bytes_left: int, owner: int, *, is_first: bool
    ) -> int:
        """Read batches of a partition. Returns the bytes."""
        assert cursor.partition is not None
        key = ReaderKey(owner, cursor.partition, isolation)
        reader = self._pool.take(key, cursor.offset)
        try:
            limit = min(cursor.asked.partition_max_bytes - cursor.size, bytes_left)
            batches = reader.read(limit, excess="only" if is_first else "none")
            cursor.offset = reader.offset
        finally:
            self._pool.give(key, reader)
        if isolation == "stable":
            cursor.aborted.update(_aborted_in(batches, cursor.partition))
        payloads = [batch.payload for batch in batches]
        size = sum(map(len, payloads))
        cursor.payloads += payloads
        cursor.size += size
        cursor.is_full = size >= limit or (not payloads and cursor.has_more(isolation))
        return size


def _aborted_in(batches: list[StoredBatch], partition: Partition) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions that batches are part of."""
    aborted = partition.view.aborted
    if not aborted:
        return
    for batch in batches:
        header = batch.header
        if header.is_transactional and not header.is_control:
            found = aborted.of_batch(header.producer_id, batch.base_offset)
            if found is not None:
                yield found


def _result(cursor: _Cursor, *, is_committed: bool) -> FetchResponse.PartitionData:
    index = cursor.asked.partition
    if cursor.partition is None:
        return FetchResponse.PartitionData(index, cursor.code, -1)
    view = cursor.partition.view
    aborted = None
    if is_committed and cursor.payloads:
        aborted = [
            FetchResponse.AbortedTransaction(each.producer_id, each.first_offset)
            for each in sorted(cursor.aborted, key=attrgetter("first_offset"))
        ]
    payloads = cursor.payloads
    return FetchResponse.PartitionData(
        partition_index=index,
        error_code=cursor.code,
        high_watermark=view.durable_watermark,
        last_stable_offset=view.last_stable_offset,
        log_start_offset=view.start_offset,
        aborted_transactions=aborted,
        records=payloads[0] if len(payloads) == 1 else b"".join(payloads),
    )
