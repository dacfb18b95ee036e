"""RecordReceiver: reads records of a topic, alone or as a member of a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from frazil.cli.kafka.brokers import Brokers, LastError
from frazil.errors import Malformed, OutOfRange, Unavailable, Unknown
from frazil.model import NS_PER_MS, Clock

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

CONNECT_S = 10.0
POLL_S = 0.2
SILENCE_MS_MAX = 30_000
"""How long a broker may be silent, unless new records are awaited."""
MESSAGES_MAX = 1000
BOUNDS = {
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.wait.max.ms": 100,
    "auto.commit.interval.ms": 1000,
}
END_OF_PARTITION = "_PARTITION_EOF"
OUT_OF_RANGE = "_AUTO_OFFSET_RESET"
UNNAMED_GROUP = "frazil-consume"
"""The client wants a group, even if it never joins one."""
NO_TIME = 0
"""Kind of a timestamp that a record does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPosition:
    """Where to begin: at `number`, an offset or a time in milliseconds, or at an end."""

    kind: Literal["start", "end", "offset", "time"]
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRecord:
    """A record of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class RecordReceiver:
    """Owned by one thread; a signal handler may call `stop`."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        start: StartPosition,
        *,
        group: str | None,
        partition: int | None,
        follows: bool,
        clock: Clock,
    ) -> None:
        """Connect. Raises `Unavailable` if no broker responds, `Unknown` without such a topic."""
        from confluent_kafka import Consumer

        self._brokers = brokers
        self._topic = topic
        self._start = start
        self._group = group
        self._follows = follows
        self._clock = clock
        self._last = LastError()
        self._is_stopped = False
        self._assigned: set[int] | None = None
        """None until the group has decided."""
        self._ended: set[int] = set()
        settings: dict[str, Any] = {
            **BOUNDS,
            **brokers.settings,
            "group.id": UNNAMED_GROUP if group is None else group,
            "enable.auto.commit": group is not None,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": {"start": "earliest", "time": "earliest", "end": "latest"}.get(
                start.kind, "error"
            ),
            "error_cb": self._last,
        }
        self._consumer = Consumer(settings)
        with ExitStack() as undo:
            undo.callback(self._consumer.close)
            self._begin(partition)
            undo.pop_all()

    def _begin(self, partition: int | None) -> None:
        from confluent_kafka import KafkaException

        try:
            found = self._consumer.list_topics(timeout=CONNECT_S).topics.get(self._topic)
            if found is None:
                raise Unknown(f"there is no topic {self._topic}; `frazil topics` lists them")
            if self._group is not None:
                self._consumer.subscribe(
                    [self._topic],
                    on_assign=self._on_assign,
                    on_revoke=self._on_revoke,
                    on_lost=self._on_revoke,
                )
                return
            indexes = sorted(found.partitions)
            if partition is not None:
                if partition not in indexes:
                    raise Unknown(f"topic {self._topic} has partitions 0 to {len(indexes) - 1}")
                indexes = [partition]
            if self._start.kind == "offset" and len(indexes) > 1:
                raise Malformed("offsets count per partition; add --partition N")
            self._assigned = set(indexes)
            self._consumer.assign(self._positions(indexes))
        except KafkaException as error:
            self._consumer.poll(0)  # calls `_last`
            raise self._brokers.failed(error.args[0], self._last.text) from None

    def _positions(self, indexes: list[int]) -> list[Any]:
        from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

        if self._start.kind == "time":
            asked = [TopicPartition(self._topic, each, self._start.number) for each in indexes]
            return list(self._consumer.offsets_for_times(asked, timeout=CONNECT_S))
        offset = {"start": OFFSET_BEGINNING, "end": OFFSET_END}.get(
            self._start.kind, self._start.number
        )
        return [TopicPartition(self._topic, each, offset) for each in indexes]

    def _on_assign(self, _: object, partitions: list[Any]) -> None:
        new = {each.partition for each in partitions}
        self._assigned = (self._assigned or set()) | new
        self._ended -= new

    def _on_revoke(self, _: object, partitions: list[Any]) -> None:
        gone = {each.partition for each in partitions}
        self._assigned = (self._assigned or set()) - gone
        self._ended -= gone

    def stop(self) -> None:
        """End `records` soon."""
        self._is_stopped = True

    def records(self) -> Iterator[ReceivedRecord]:
        """Yield records until the end of all partitions, or if it follows them, until `stop`."""
        heard_ns = self._clock.monotonic_ns()
        while not self._is_stopped:
            messages = self._poll()
            if messages:
                heard_ns = self._clock.monotonic_ns()
            for message in messages:
                error = message.error()
                if error is not None:
                    self._note(message, error)
                    continue
                self._ended.discard(message.partition() or 0)
                yield _record(message)
                if self._is_stopped:
                    return
            if self._follows:
                continue
            if self._assigned is not None and self._assigned <= self._ended:
                return
            silence_ms = (self._clock.monotonic_ns() - heard_ns) // NS_PER_MS
            if silence_ms > SILENCE_MS_MAX:
                reason = self._last.text or "no response"
                raise Unavailable(
                    f"Kafka at {self._brokers.address} was silent for "
                    f"{silence_ms // 1000} s: {reason}"
                )

    def _poll(self) -> list[Message]:
        first = self._consumer.poll(POLL_S)
        if self._last.fatal is not None:
            raise self._brokers.failed(self._last.fatal)
        return [] if first is None else [first, *self._consumer.consume(MESSAGES_MAX, 0)]

    def _note(self, message: Message, error: KafkaError) -> None:
        """Take an event that is no record."""
        if error.name() == END_OF_PARTITION:
            self._ended.add(message.partition() or 0)
        elif error.name() == OUT_OF_RANGE:
            raise OutOfRange(
                f"offset {self._start.number} is not in {self._topic}/{message.partition()}; "
                "`frazil topics describe` shows its first and last offset"
            )
        elif not error.retriable():
            raise self._brokers.failed(error)

    def done(self, record: ReceivedRecord) -> None:
        """Note that a record was processed: the group does not get it again."""
        from confluent_kafka import KafkaException, TopicPartition

        if self._group is None:
            return
        position = TopicPartition(record.topic, record.partition, record.offset + 1)
        try:
            self._consumer.store_offsets(offsets=[position])
        except KafkaException as error:
            if error.args[0].name() != "_STATE":
                raise self._brokers.failed(error.args[0]) from None
            # Another member has the partition now, and reads the record again.

    def close(self) -> None:
        """Commit what was processed, and leave the group."""
        from confluent_kafka import KafkaException

        try:
            if self._group is not None:
                self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() != "_NO_OFFSET":
                raise self._brokers.failed(error.args[0], self._last.text) from None
        finally:
            self._consumer.close()


def _record(message: Message) -> ReceivedRecord:
    kind, timestamp_ms = message.timestamp()
    return ReceivedRecord(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        timestamp_ms=None if kind == NO_TIME else timestamp_ms,
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((header[0], _bytes(header[1])) for header in message.headers() or ()),
    )


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
