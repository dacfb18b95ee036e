"""Offsets of a Kafka partition, read by the task that needs them.

A task knows its end as an offset, and offsets have gaps: markers of transactions, what was aborted,
what was compacted away. The record before the end may not exist, so waiting for it could last for
ever. The client tells of three things, and one of them comes in any case:

    a record at the end or behind it    somebody goes on writing
    its own position at the end         a marker was passed, though none is shown
    end of partition, at or behind it   nobody goes on writing

The last is the end of what is committed, as is the end that was planned; so records in between
cannot be missing. Whatever begins below what the broker still has is an error, never a jump.
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
"""In a row, with nothing new: a broker that is restarted has come back by then."""
END_OF_PARTITION = "_PARTITION_EOF"
GONE = ("_AUTO_OFFSET_RESET", "_LOG_TRUNCATION")
MESSAGES_MAX = 1000
"""Taken from the client at once; it has no more of them than its queue holds."""

BOUNDS = {
    # What waits in the client of one task. Larger records come one by one all the same.
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    # A queue that is full is looked at again soon, and not after a second.
    "fetch.queue.backoff.ms": 10,
    # The end of a partition is told so late.
    "fetch.wait.max.ms": 100,
}
"""An operator may choose others."""
QUIET = {"log_level": 2}
"""Whatever is wrong comes as an error, and is said once, by us."""
PROMISED = {
    "auto.offset.reset": "error",
    "check.crcs": True,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRange:
    """The offsets from `begin` up to `end` of a partition, all of which are decided: committed,
    aborted, or gone."""

    brokers: str
    group: str
    client: dict[str, str] = field(repr=False)
    """There are passwords among them."""
    topic: str
    partition: int
    begin: int
    end: int

    def read(self) -> Iterator[list[Record]]:
        """Every committed record, some at a time. `OutOfRange` when the broker does not have
        `begin`; `Unavailable` when it does not answer."""
        if self.begin >= self.end:
            return
        from confluent_kafka import Consumer, TopicPartition

        heard = ClientErrors()
        own = {"bootstrap.servers": self.brokers, "group.id": self.group, "error_cb": heard.hear}
        with closing(Consumer({**QUIET, **BOUNDS, **self.client, **own, **PROMISED})) as consumer:
            consumer.assign([TopicPartition(self.topic, self.partition, self.begin)])
            position, quiet_count = self.begin, 0
            while position < self.end:
                messages = _take(consumer)
                records = [_record(message) for message in messages if message.error() is None]
                wanted = [record for record in records if record.offset < self.end]
                if wanted:
                    yield wanted
                reached = max(position, self._reached(consumer, messages))
                quiet_count = quiet_count + 1 if reached == position else 0
                if quiet_count > QUIET_POLLS_MAX:
                    raise Unavailable(
                        f"Kafka at {self.brokers} gave nothing of {self.topic}/{self.partition} "
                        f"from offset {position} on for {quiet_count * POLL_S:g} s, and has "
                        f"committed {self.end}; {heard.last}"
                    )
                position = reached

    def _reached(self, consumer: Consumer, messages: list[Message]) -> int:
        """Everything below this has come, or does not exist."""
        from confluent_kafka import TopicPartition

        (place,) = consumer.position([TopicPartition(self.topic, self.partition)])
        found = [place.offset]  # a negative number before anything has come
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None and offset is not None:
                found.append(offset + 1)
            elif error is not None and error.name() == END_OF_PARTITION:
                found.append(offset or 0)
            elif error is not None:
                self._fail(error)
        return max(found)

    def _fail(self, error: KafkaError) -> None:
        """Raise what a task should not wait for."""
        if error.name() in GONE:
            raise OutOfRange(
                f"Kafka at {self.brokers} does not have all of the offsets from {self.begin} up to "
                f"{self.end} of {self.topic}/{self.partition} any more, which it had a moment ago: "
                f"{error.str()}"
            )
        if not error.retriable():
            raise Unavailable(
                f"Kafka at {self.brokers} does not give {self.topic}/{self.partition}: "
                f"{error.str()}"
            )


class ClientErrors:
    """What a client has complained of, for a sentence that says why nothing comes."""

    def __init__(self) -> None:
        self.last = "it did not say why"

    def hear(self, error: KafkaError) -> None:
        self.last = f"the last thing heard of it: {error.str()}"


def _take(consumer: Consumer) -> list[Message]:
    """What is there; waits for the first one only."""
    first = consumer.poll(POLL_S)
    return [] if first is None else [first, *consumer.consume(MESSAGES_MAX, 0)]


def _record(message: Message) -> Record:
    offset, stamp = message.offset(), message.timestamp()
    assert offset is not None, "a message that came from a broker"
    return Record(
        offset=offset,
        timestamp_ms=max(0, stamp[1]),  # it is negative where there is none
        key=_bytes(message.key()),
        value=_bytes(message.value()),
        headers=tuple((header[0], _bytes(header[1])) for header in message.headers() or ()),
    )


def _bytes(value: Any) -> bytes | None:
    """What a broker has is bytes, though the types allow for text."""
    assert value is None or isinstance(value, bytes)
    return value
