"""KafkaRange: a task reads an offset range of a Kafka partition.

Offsets have gaps: transaction markers, aborted records, compacted records. The last record of the
range may not exist, so a task must not wait for it. One of these always happens at the end:

    a record at or after the end          producers continue
    the client's position reaches it      a marker was skipped silently
    end of partition at or after it       no producer is active

End of partition means the last stable offset, as does the planned end, so no record in between can
be missing. A range that begins below the first offset of the broker is an error; it never skips.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        from confluent_kafka import Consumer, TopicPartition

        errors = ClientErrors()
        own = {"bootstrap.servers": self.brokers, "group.id": self.group, "error_cb": errors.record}
        with closing(Consumer({**QUIET, **BOUNDS, **self.client, **own, **REQUIRED})) as consumer:
            consumer.assign([TopicPartition(self.topic, self.partition, self.begin)])
            next_offset, idle_count = self.begin, 0
            while next_offset < self.end:
                messages = _poll(consumer)
                records = [_record(message) for message in messages if message.error() is None]
                records = [record for record in records if record.offset < self.end]
                if records:
                    yield records
                reached = max(next_offset, self._reached(consumer, messages))
                idle_count = idle_count + 1 if reached == next_offset else 0
                if idle_count > QUIET_POLLS_MAX:
                    raise Unavailable(
                        f"Kafka at {self.brokers} sent nothing of {self.topic}/{self.partition} "
                        f"from offset {next_offset} on for {idle_count * POLL_S:g} s, although "
                        f"offsets up to {self.end} are committed; {errors.last}"
                    )
                next_offset = reached

    def _reached(self, consumer: Consumer, messages: list[Message]) -> int:
        """Return the offset below which every record has arrived or does not exist."""
        from confluent_kafka import TopicPartition

        (position,) = consumer.position([TopicPartition(self.topic, self.partition)])
        offsets = [position.offset]  # negative before the first message
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None and offset is not None:
                offsets.append(offset + 1)
            elif error is not None and error.name() == END_OF_PARTITION:
                offsets.append(offset or 0)
            elif error is not None:
                self._raise_if_final(error)
        return max(offsets)

    def _raise_if_final(self, error: KafkaError) -> None:
        """Raise errors that waiting does not cure."""
        if error.name() in GONE:
            raise OutOfRange(
                f"Kafka at {self.brokers} removed some of the offsets from {self.begin} up to "
                f"{self.end} of {self.topic}/{self.partition} after they were planned: "
                f"{error.str()}"
            )
        if not error.retriable():
            raise Unavailable(
                f"Kafka at {self.brokers} refused to send {self.topic}/{self.partition}: "
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
