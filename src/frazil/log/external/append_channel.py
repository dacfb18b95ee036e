"""AppendChannel: appends of a process that observes the log, many in flight.

    observer                                             owner
    AppendChannel.append ──── AppendRequest, numbered ──> serve_appends ──> Log.append
                         <─── AppendReplies ─────────────               <── group commit

Requests do not wait for each other, so that writers of the observer share group commits with all
others. Both ends bound what is in flight. A request whose reply is lost has an unknown outcome.
"""

from __future__ import annotations

import itertools
import logging
import select
import socket
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import closing, suppress
from uuid import UUID

import msgspec

from frazil import errors
from frazil.errors import (
    FrazilError,
    Malformed,
    Overloaded,
    PositionMismatch,
    TooLarge,
    Unavailable,
    Unresolved,
)
from frazil.log.append import Append, AppendResult
from frazil.log.dedup.source_positions import SourceStep
from frazil.log.format.batch import parse_header
from frazil.log.log import Log
from frazil.model import MiB
from frazil.processes import Channel

logger = logging.getLogger(__name__)

COUNT_MAX = 4096
"""Requests in flight."""
BYTES_MAX = 64 * MiB
"""Of them, together."""
REQUEST_BYTES_MAX = 32 * MiB
"""Of one; half of a frame of a channel."""
REPLIES_MAX = 256
"""Of one message."""
RETRY_AFTER_MS = 100
OWNER_ENDED = "the process that owns the log has ended; retry in a moment"
REPEAT = "it may be stored or not: repeat the same write"


class AppendRequest(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Append a batch."""

    number: int
    topic: str
    topic_id: UUID | None
    partition: int
    payload: bytes
    digest: bytes | None
    expects_offset: int | None
    step: SourceStep | None = None
    """The step of a copy that the batch carries in its first record, too."""


class AppendReply(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of one request: its offsets, or an error."""

    number: int
    base_offset: int = 0
    end_offset: int = 0
    is_duplicate: bool = False
    kind: str = ""
    """Name of the error; empty after success."""
    message: str = ""
    retry_after_ms: int = RETRY_AFTER_MS
    current: bytes | None = None
    """The position that the log remembers, after a `PositionMismatch`."""


class AppendReplies(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Several at once: a group commit completes many requests."""

    replies: list[AppendReply]


class AppendChannel:
    """The observer's end, with a thread that receives. Any thread may append."""

    def __init__(self, peer: socket.socket) -> None:
        self._channel: Channel[AppendReplies] = Channel(peer, AppendReplies)
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[Future[AppendResult], int]] = {}
        self._bytes = 0
        self._numbers = itertools.count()
        self._is_over = False
        self._thread = threading.Thread(target=self._receive, name="frazil-appends", daemon=True)
        self._thread.start()

    def append(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> Future[AppendResult]:
        """Send a batch. The future resolves when it is durable, and has the owner's error if it was
        refused, or `Unresolved` if there was no reply. Raises `Overloaded` if too much is in
        flight, `Unavailable` if the owner has ended; then nothing was sent."""
        size = append.size_bytes
        if size > REQUEST_BYTES_MAX:
            raise TooLarge(f"a batch of {size} bytes is above {REQUEST_BYTES_MAX}; write less")
        future: Future[AppendResult] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._is_over:
                raise Unavailable(OWNER_ENDED)
            if len(self._waiting) >= COUNT_MAX or self._bytes + size > BYTES_MAX:
                raise Overloaded(
                    f"{len(self._waiting)} writes of {self._bytes} bytes wait for the log; retry "
                    "later",
                    retry_after_ms=RETRY_AFTER_MS,
                )
            number = next(self._numbers)
            self._waiting[number] = future, size
            self._bytes += size
        request = AppendRequest(
            number=number,
            topic=topic,
            topic_id=topic_id,
            partition=partition,
            payload=append.payload,
            digest=append.digest,
            expects_offset=append.expects_offset,
            step=append.step,
        )
        with suppress(OSError):  # the receiving thread ends the future
            self._channel.send(request)
        return future

    @property
    def in_flight(self) -> int:
        """Requests without a reply yet."""
        return len(self._waiting)

    def _receive(self) -> None:
        try:
            while True:
                for reply in self._channel.receive().replies:
                    with self._lock:
                        future, size = self._waiting.pop(reply.number)
                        self._bytes -= size
                    _resolve(future, reply)
        except EOFError:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            lost, self._waiting, self._bytes = list(self._waiting.values()), {}, 0
        for future, _ in lost:
            future.set_exception(
                Unresolved(f"the process that owns the log ended before it replied; {REPEAT}")
            )

    def close(self) -> None:
        self._channel.close()
        self._thread.join()


def _resolve(future: Future[AppendResult], reply: AppendReply) -> None:
    if not reply.kind:
        result = AppendResult(reply.base_offset, reply.end_offset, reply.is_duplicate)
        future.set_result(result)
        return
    kind: type[FrazilError] = getattr(errors, reply.kind, Unavailable)
    if kind is Overloaded:
        future.set_exception(Overloaded(reply.message, retry_after_ms=reply.retry_after_ms))
    elif kind is PositionMismatch:
        future.set_exception(PositionMismatch(reply.message, current=reply.current))
    else:
        future.set_exception(kind(reply.message))


class _Replies:
    """Replies to send. The log's writer thread adds them, and never waits for the observer."""

    def __init__(self, channel: Channel[AppendRequest]) -> None:
        self._channel = channel
        self._changed = threading.Condition()
        self._ready: deque[AppendReply] = deque()
        self._in_flight = 0
        self._is_over = False
        self._thread = threading.Thread(
            target=self._send, name="frazil-append-replies", daemon=True
        )
        self._thread.start()

    @property
    def in_flight(self) -> int:
        """Requests that were not replied to yet."""
        return self._in_flight

    def expect(self) -> None:
        """Count a request. Waits while there are too many."""
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight < COUNT_MAX or self._is_over)
            self._in_flight += 1

    def add(self, reply: AppendReply) -> None:
        with self._changed:
            self._ready.append(reply)
            self._changed.notify_all()

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._is_over)
                if not self._ready:
                    return
                count = min(len(self._ready), REPLIES_MAX)
                replies = [self._ready.popleft() for _ in range(count)]
            with suppress(OSError):  # the observer has ended: nobody waits
                self._channel.send(AppendReplies(replies))
            with self._changed:
                self._in_flight -= count
                self._changed.notify_all()

    def close(self) -> None:
        """Stop sending. Replies of appends that are not durable yet are dropped."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()


def serve_appends(log: Log, peer: socket.socket) -> None:
    """Carry out the appends of one observer until it ends. Runs in a thread of its own."""
    channel: Channel[AppendRequest] = Channel(peer, AppendRequest)
    poll = select.poll()
    poll.register(peer, select.POLLIN)
    with suppress(EOFError), closing(channel), closing(_Replies(channel)) as replies:
        while True:
            request = channel.receive()
            replies.expect()
            # A lone request is committed by this thread, which saves two thread switches. Those
            # that arrive meanwhile are submitted together afterwards.
            is_lone = replies.in_flight == 1 and not poll.poll(0)
            _serve(log, request, replies, is_lone=is_lone)


def _serve(log: Log, request: AppendRequest, replies: _Replies, *, is_lone: bool) -> None:
    try:
        append = _append_of(request)
        topic, index, topic_id = request.topic, request.partition, request.topic_id
        if is_lone and append.step is None:
            result = log.append_durably(topic, append, partition=index, topic_id=topic_id)
            replies.add(_reply(request.number, result))
            return
        if append.step is not None:
            log.budget.admit_copy()
        future = log.append(topic, append, partition=index, topic_id=topic_id)
    except FrazilError as error:
        replies.add(_refusal(request.number, error))
        return
    future.add_done_callback(lambda done: replies.add(_outcome(request.number, done)))


def _append_of(request: AppendRequest) -> Append:
    header = parse_header(request.payload)
    if header.size_bytes != len(request.payload):
        raise Malformed(f"a batch of {header.size_bytes} bytes has {len(request.payload)}")
    return Append(
        parts=(request.payload,),
        header=header,
        digest=request.digest,
        step=request.step,
        expects_offset=request.expects_offset,
    )


def _outcome(number: int, done: Future[AppendResult]) -> AppendReply:
    error = done.exception()
    if error is None:
        return _reply(number, done.result())
    if isinstance(error, FrazilError):
        return _refusal(number, error)
    return _refusal(number, Unresolved(f"the log failed: {error}; {REPEAT}"))


def _reply(number: int, result: AppendResult) -> AppendReply:
    return AppendReply(number, result.base_offset, result.end_offset, result.is_duplicate)


def _refusal(number: int, error: FrazilError) -> AppendReply:
    wait_ms = error.retry_after_ms if isinstance(error, Overloaded) else RETRY_AFTER_MS
    current = error.current if isinstance(error, PositionMismatch) else None
    return AppendReply(
        number,
        kind=type(error).__name__,
        message=str(error),
        retry_after_ms=wait_ms,
        current=current,
    )
