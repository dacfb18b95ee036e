"""KafkaCursor: reads a Kafka partition in order. KafkaRange: a range of offsets, for a task.

Offsets have gaps: transaction markers, aborted records, compacted records. The last record of the
range may not exist, so a task must not wait for it. One of these always happens at the end:

    a record at or after the end          producers continue
    the client's position reaches it      a marker was skipped silently
    end of partition at or after it       no producer is active

End of partition means the last stable offset, as does the planned end, so no record in between can
be missing. A range that begins below the first offset of the broker is an error; it never skips.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from frazil.errors import OutOfRange, Unavailable
from frazil.log import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

POLL_S = 1.0
QUIET_POLLS_MAX = 60
"""Consecutive polls without progress; a restarted broker is back by then."""
END_OF_PARTITION = "_PARTITION_EOF"
GONE = ("_AUTO_OFFSET_RESET", "_LOG_TRUNCATION")
MESSAGES_MAX = 1000
"""Messages taken from the client per call; its queue bounds them, too."""

BOUNDS = {
    # Prefetch queue of one task's client. A larger record still arrives, alone.
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    # Retry a full queue soon; the default is a second.
    "fetch.queue.backoff.ms": 10,
    # Delay of the end-of-partition event.
    "fetch.wait.max.ms": 100,
}
"""Defaults that lake.kafka.client may override."""
QUIET = {"log_level": 2}
"""Errors are reported by callback and logged by us."""
REQUIRED = {
    "auto.offset.reset": "error",
    "check.crcs": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRange:
    """The offsets [begin, end) of a partition. `end` is at most the last stable offset."""

    brokers: str
    group: str
    client: dict[str, str] = field(repr=False)
    """Contains passwords."""
    topic: str
    partition: int
    begin: int
    end: int

    def read(self) -> Iterator[list[Record]]:
        """Yield all committed records, in lists. Raises `OutOfRange` when the broker no longer has
        `begin`, and `Unavailable` when it does not respond."""
        if self.begin >= self.end:
            return
        cursor = KafkaCursor(
            self.brokers, self.group, self.client, self.topic, self.partition, self.begin
        )
        with closing(cursor):
            while cursor.offset < self.end:
                records = [each for each in cursor.read(self.end) if each.offset < self.end]
                if records:
                    yield records


class KafkaCursor:
    """Reads the committed records of a partition in order. Owned by one thread."""

    def __init__(
        self,
        brokers: str,
        group: str,
        client: Mapping[str, str],
        topic: str,
        partition: int,
        begin: int,
    ) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._errors = ClientErrors()
        self._brokers = brokers
        self._topic = topic
        self._partition = partition
        self.offset = begin
        """Every committed record below it was returned, or does not exist."""
        self._idle_count = 0
        own = {"bootstrap.servers": brokers, "group.id": group, "error_cb": self._errors.record}
        self._consumer = Consumer({**QUIET, **BOUNDS, **client, **own, **REQUIRED})
        self._consumer.assign([TopicPartition(topic, partition, begin)])

    def read(self, end: int) -> list[Record]:
        """Wait a moment for the next records, and return them; some may be above `end`, up to which
        the broker has said that offsets are committed."""
        messages = _poll(self._consumer)
        records = [_record(message) for message in messages if message.error() is None]
        reached = max(self.offset, self._reached(messages, end))
        self._idle_count = self._idle_count + 1 if reached == self.offset else 0
        if self._idle_count > QUIET_POLLS_MAX:
            raise Unavailable(
                f"Kafka at {self._brokers} sent nothing of {self._topic}/{self._partition} "
                f"from offset {self.offset} on for {self._idle_count * POLL_S:g} s, although "
                f"offsets up to {end} are committed; {self._errors.last}"
            )
        self.offset = reached
        return records

    def close(self) -> None:
        self._consumer.close()

    def _reached(self, messages: list[Message], end: int) -> int:
        """Return the offset below which every record has arrived or does not exist."""
        from confluent_kafka import TopicPartition

        (position,) = self._consumer.position([TopicPartition(self._topic, self._partition)])
        offsets = [position.offset]  # negative before the first message
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None and offset is not None:
                offsets.append(offset + 1)
            elif error is not None and error.name() == END_OF_PARTITION:
                offsets.append(offset or 0)
            elif error is not None:
                self._raise_if_final(error, end)
        return max(offsets)

    def _raise_if_final(self, error: KafkaError, end: int) -> None:
        """Raise errors that waiting does not cure."""
        if error.name() in GONE:
            raise OutOfRange(
                f"Kafka at {self._brokers} removed some of the offsets from {self.offset} up to "
                f"{end} of {self._topic}/{self._partition} after they were planned: "
                f"{error.str()}"
            )
        if not error.retriable():
            raise Unavailable(
                f"Kafka at {self._brokers} refused to send {self._topic}/{self._partition}: "
                f"{error.str()}"
            )


class ClientErrors:
    """The last error that a Kafka client reported, for error messages of ours."""

    def __init__(self) -> None:
        self.last = "the client reported no reason"

    def record(self, error: KafkaError) -> None:
        self.last = f"last error of the client: {error.str()}"


def _poll(consumer: Consumer) -> list[Message]:
    """Wait for one message, and return it with all others already in the queue."""
    first = consumer.poll(POLL_S)
    return [] if first is None else [first, *consumer.consume(MESSAGES_MAX, 0)]


def _record(message: Message) -> Record:
    offset, stamp = message.offset(), message.timestamp()
    assert offset is not None, "every message from a broker has an offset"
    return Record(
        offset=offset,
        timestamp_ms=max(0, stamp[1]),  # negative if the record has none
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((header[0], _bytes(header[1])) for header in message.headers() or ()),
    )


def _bytes(value: Any) -> bytes | None:
    """Narrow the type: a broker's keys, values and headers are always bytes."""
    assert value is None or isinstance(value, bytes)
    return value
