"""Journal: writes records to `__consumer_offsets`, or another topic of a coordinator, and says when
they are durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from frazil.errors import FrazilError
from frazil.kafka.lone_client import LoneClient
from frazil.log import (
    Append,
    AppendResult,
    Log,
    Marker,
    Partition,
    Record,
    append_of_marker,
    append_of_records,
    encode_batch,
    parse_header,
)
from frazil.model import SteadyTime, TopicPartition
from frazil.settings import TopicConfig

TOPIC = "__consumer_offsets"
TOPIC_CONFIG = TopicConfig(cleanup="compact")
"""One partition: there is one coordinator."""

KeyValue = tuple[bytes, bytes | None]
"""A record; None as value deletes the key."""

Done = Callable[[AppendResult | Exception], None]
"""Called once: the records are durable, or they were not stored."""

Post = Callable[[Callable[[], None]], None]
"""Runs a function soon, on the thread that owns the coordinators. Keeps the order."""


class Journal:
    """Calls `done` of each append in the order of the appends. Without the topic, nothing is
    stored: `create_topic` first."""

    def __init__(
        self,
        log: Log,
        time: SteadyTime,
        post: Post,
        *,
        topic: str = TOPIC,
        config: TopicConfig = TOPIC_CONFIG,
    ) -> None:
        self._log = log
        self._time = time
        self._post = post
        self._target = TopicPartition(topic, 0)
        self._config = config

    @property
    def has_topic(self) -> bool:
        return self._log.has_topic(self._target.topic)

    def create_topic(self) -> None:
        """Create the topic unless it is there. Waits for the disk; any thread may call it. Raises
        `Overloaded` if the disk is full."""
        if not self.has_topic:
            self._log.create_topic(self._target.topic, self._config)

    @property
    def partition(self) -> Partition:
        """Where the records are. Raises `Unknown` without the topic."""
        return self._log.partition(*self._target)

    def append(
        self,
        records: Sequence[KeyValue],
        done: Done,
        *,
        frees_space: bool = False,
        lone: LoneClient | None = None,
    ) -> None:
        """Write records, all or none. With `frees_space` also if the log is full: they let other
        data be removed. For a `lone` client they are written by this thread."""
        append = append_of_records(self._records(records))
        submit(
            self._log,
            self._target,
            append,
            self._post,
            done,
            frees_space=frees_space,
            lone=lone,
        )

    def append_transactional(
        self, records: Sequence[KeyValue], producer_id: int, producer_epoch: int, done: Done
    ) -> None:
        """Write records of a producer's open transaction. They count once its marker says so."""
        payload = encode_batch(
            self._records(records),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=True,
        )
        append = Append(parts=(payload,), header=parse_header(payload))
        submit(self._log, self._target, append, self._post, done)

    def append_marker(
        self,
        marker: Marker,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        done: Done,
    ) -> None:
        """End a producer's transaction in this topic."""
        append = append_of_marker(
            marker,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=self._time.now_ms(),
        )
        submit(self._log, self._target, append, self._post, done, frees_space=True)

    def _records(self, records: Sequence[KeyValue]) -> list[Record]:
        now_ms = self._time.now_ms()
        return [
            Record(offset=number, timestamp_ms=now_ms, key=key, value=value)
            for number, (key, value) in enumerate(records)
        ]


def submit(
    log: Log,
    target: TopicPartition,
    append: Append,
    post: Post,
    done: Done,
    *,
    frees_space: bool = False,
    lone: LoneClient | None = None,
) -> None:
    """Append a batch. `done` is posted once it is durable, or was not stored."""
    try:
        partition = log.partition(*target)
        future = None
        if lone is not None:
            future = log.writer.commit_if_idle(partition, append, frees_space=frees_space)
        if future is not None and lone is not None:
            lone.written()
            post(log.writer.wake_readers)
        elif frees_space:
            future = log.writer.submit(partition, append, frees_space=True)
        else:
            future = log.append(target.topic, append, partition=target.partition)
    except FrazilError as error:
        post(partial(done, error))
        return
    future.add_done_callback(partial(_finish, post, done))


def _finish(post: Post, done: Done, future: Future[AppendResult]) -> None:
    error = future.exception()
    if error is None:
        post(partial(done, future.result()))
    elif isinstance(error, Exception):
        post(partial(done, error))
    else:
        raise error
