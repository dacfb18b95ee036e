"""SourceRun: appends what the process of a source sends, and tells it what is durable.

    FetchedBatch ─> append, as a step that continues the one before ─> durable ─> StreamDurable

Several batches of a stream are in flight. If the log refuses one because it is full, those behind
it do not continue what the log remembers: all of them are sent again, in order, after a pause.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

import msgspec

from frazil.connectors.contract import POSITION_BYTES_MAX, STREAM_BYTES_MAX
from frazil.connectors.messages import FetchedBatch, StreamDurable, StreamPosition
from frazil.connectors.runtime.connector_log import ConnectorLog
from frazil.connectors.step_names import step_name
from frazil.errors import (
    Conflict,
    Malformed,
    Overloaded,
    TooLarge,
    Unknown,
)
from frazil.log import (
    DEAD_LETTERS,
    Append,
    AppendResult,
    ReadableTopic,
    SourceStep,
    check_batch,
    check_name,
)
from frazil.model import NS_PER_MS, Clock
from frazil.settings import TopicConfig

IN_FLIGHT_MAX = 256
"""Batches of one source."""
RETRY_MS_MIN = 100
"""Pause before the log is asked again for what it had no room for."""
TOPICS_MAX = 1000
"""That one source may write to."""
INTERNAL = ("__", "otlp_")
"""Topics that other parts of a node write to."""
PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
FILLED = r"[A-Za-z0-9._-]+"
SOURCE_TOPIC = TopicConfig(retention_ms=7 * 86_400_000)
"""Of a topic that a source creates."""

StreamKey = tuple[str, int, str]
"""Topic, partition, stream."""


@dataclass(slots=True)
class _Waiting:
    """A batch that is not durable yet."""

    append: Append | None
    """None if the stream only ends."""
    position: bytes
    size_bytes: int
    is_last: bool
    future: Future[AppendResult] | None = None


@dataclass(slots=True)
class _Stream:
    key: StreamKey
    expected: bytes | None
    waiting: deque[_Waiting] = field(default_factory=deque)
    is_stalled: bool = False
    """The log has refused a batch: nothing is sent until all of `waiting` is sent again."""


def topic_pattern(topic: str) -> re.Pattern[str] | None:
    """Return which topics `shop.{table}` stands for; None if it is one topic."""
    if PLACEHOLDER.search(topic) is None:
        return None
    return re.compile(FILLED.join(map(re.escape, PLACEHOLDER.split(topic))))


def check_source_topic(topic: str) -> None:
    """`Malformed` if a source may not write to a topic, or to one of a pattern."""
    name = PLACEHOLDER.sub("x", topic)
    check_name(name, "topic")
    if topic.startswith("{"):
        raise Malformed(f"{topic} could be any topic; begin it with a name, as in 'shop.{{table}}'")
    if name == DEAD_LETTERS or name.startswith(INTERNAL):
        raise Malformed(f"{topic} is a topic of the node; sources write to topics of their own")


class SourceRun:
    """One life of a source. Owned by the thread of its supervisor."""

    def __init__(
        self,
        name: str,
        topic: str,
        epoch: int,
        known: Iterable[StreamPosition],
        log: ConnectorLog,
        clock: Clock,
        *,
        in_flight_bytes_max: int,
        wake: Callable[[], None],
        on_durable: Callable[[int, int], None],
    ) -> None:
        """`wake` is called in other threads when `step` has something to do; `on_durable` with the
        records and bytes that have become durable."""
        self._name = name
        self._topic = topic
        self._pattern = topic_pattern(topic)
        self._epoch = epoch
        self._log = log
        self._clock = clock
        self._in_flight_bytes_max = in_flight_bytes_max
        self._wake = wake
        self._on_durable = on_durable
        self._streams = {
            (each.topic, each.partition, each.stream): _Stream(
                (each.topic, each.partition, each.stream), each.position
            )
            for each in known
        }
        self._partitions: dict[str, int] = {}
        """Partitions of topics that exist."""
        self._busy: dict[StreamKey, _Stream] = {}
        """Streams with batches that are not durable yet."""
        self._bytes = 0
        self._count = 0
        self._retry_ns: int | None = None
        """When refused batches are sent again."""

    @property
    def takes_more(self) -> bool:
        is_full = self._bytes >= self._in_flight_bytes_max or self._count >= IN_FLIGHT_MAX
        return not is_full and self._retry_ns is None

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    @property
    def is_settled(self) -> bool:
        """Whether the log has answered everything."""
        return all(
            each.future is None or each.future.done()
            for stream in self._busy.values()
            for each in stream.waiting
        )

    @property
    def is_waiting_for_log(self) -> bool:
        """Whether the log is full, so that nothing is read."""
        return self._retry_ns is not None

    def take(self, batch: msgspec.Struct) -> None:
        """Append a batch. Raises what makes it invalid."""
        assert isinstance(batch, FetchedBatch)
        stream = self._stream_of(batch)
        append = None
        if batch.payload:
            step = SourceStep(
                step_name(self._name, batch.stream), self._epoch, stream.expected, batch.position
            )
            if batch.position == stream.expected:
                raise Malformed(f"stream {batch.stream!r} has the same position after more records")
            append = Append(parts=(batch.payload,), header=check_batch(batch.payload), step=step)
            stream.expected = batch.position
        elif not batch.is_last:
            raise Malformed("a batch has no records")
        waiting = _Waiting(append, batch.position, len(batch.payload), batch.is_last)
        stream.waiting.append(waiting)
        self._busy[stream.key] = stream
        self._bytes += waiting.size_bytes
        self._count += 1
        if not stream.is_stalled:
            self._send(stream, waiting)

    def _stream_of(self, batch: FetchedBatch) -> _Stream:
        key = (batch.topic, batch.partition, batch.stream)
        stream = self._streams.get(key)
        if stream is None:
            if len(batch.position) > POSITION_BYTES_MAX:
                raise TooLarge(f"a position has {len(batch.position)} bytes")
            if len(batch.stream.encode()) > STREAM_BYTES_MAX:
                raise TooLarge("the name of a stream is too long")
            stream = self._streams[key] = _Stream(key, None)
        self._check_partition(batch.topic, batch.partition)
        return stream

    def _check_partition(self, topic: str, partition: int) -> None:
        """Create a topic that does not exist. `Malformed` if the source may not write there."""
        if topic not in self._partitions:
            is_ours = (
                topic == self._topic
                if self._pattern is None
                else self._pattern.fullmatch(topic) is not None
            )
            if not is_ours:
                raise Malformed(f"the source writes to {topic}, which is not {self._topic}")
            check_source_topic(topic)
            if len(self._partitions) >= TOPICS_MAX:
                raise TooLarge(f"a source writes to {TOPICS_MAX} topics, and no more")
            self._partitions[topic] = len(_existing(self._log, topic).partitions)
        if not 0 <= partition < self._partitions[topic]:
            raise Malformed(
                f"the source writes to partition {partition} of {topic}, which has "
                f"{self._partitions[topic]}"
            )

    def _send(self, stream: _Stream, waiting: _Waiting) -> None:
        if waiting.append is None:
            return
        topic, partition, _ = stream.key
        try:
            waiting.future = self._log.append(topic, waiting.append, partition=partition)
        except Overloaded as error:
            waiting.future = Future()
            waiting.future.set_exception(error)
        waiting.future.add_done_callback(lambda _: self._wake())

    def step(self) -> list[StreamDurable]:
        """Take what the log has answered. Returns what is durable since; raises what ends this
        life."""
        told: list[StreamDurable] = []
        for stream in list(self._busy.values()):
            durable, size_bytes = self._settle(stream)
            if durable is not None or size_bytes:
                told.append(StreamDurable(stream.key[2], durable or b"", size_bytes))
        if self._retry_ns is not None and self._clock.monotonic_ns() >= self._retry_ns:
            self._send_again()
        return told

    def _settle(self, stream: _Stream) -> tuple[bytes | None, int]:
        """Take what is durable from the front of a stream."""
        position, total = None, 0
        while stream.waiting:
            first = stream.waiting[0]
            if first.append is not None:
                if first.future is None or not first.future.done():
                    break
                error = first.future.exception()
                if error is not None:
                    self._refused(stream, error)
                    break
                self._on_durable(first.append.header.record_count, first.size_bytes)
                position = first.position
            stream.waiting.popleft()
            self._bytes -= first.size_bytes
            self._count -= 1
            total += first.size_bytes
            if first.is_last:
                self._forget(stream)
                position = first.position
        if not stream.waiting:
            self._busy.pop(stream.key, None)
        return position, total

    def _forget(self, stream: _Stream) -> None:
        topic, partition, name = stream.key
        if stream.waiting:
            raise Malformed(f"stream {name!r} goes on after its end")
        self._log.sources.forget_one(topic, step_name(self._name, name), partition=partition)
        self._streams.pop(stream.key, None)

    def _refused(self, stream: _Stream, error: BaseException) -> None:
        """Send again what the log could not take; raise any other error."""
        if not isinstance(error, Overloaded):
            raise error
        stream.is_stalled = True
        if self._retry_ns is None:
            pause_ms = max(error.retry_after_ms, RETRY_MS_MIN)
            self._retry_ns = self._clock.monotonic_ns() + pause_ms * NS_PER_MS

    def _send_again(self) -> None:
        """Send everything of stalled streams again, once the log has answered all of it."""
        stalled = [stream for stream in self._busy.values() if stream.is_stalled]
        for stream in stalled:
            if any(each.future is not None and not each.future.done() for each in stream.waiting):
                return
        self._retry_ns = None
        for stream in stalled:
            stream.is_stalled = False
            for waiting in stream.waiting:
                self._send(stream, waiting)


def _existing(log: ConnectorLog, topic: str) -> ReadableTopic:
    """Return a topic, created if there is none."""
    try:
        return log.topic(topic)
    except Unknown:
        pass
    try:
        return log.create_topic(topic, SOURCE_TOPIC)
    except Conflict:  # created meanwhile, with other settings
        return log.topic(topic)
