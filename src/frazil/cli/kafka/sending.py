"""RecordSender: sends records to a topic and counts those that were acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from frazil.cli.kafka.brokers import Brokers, LastError, text_of
from frazil.cli.kafka.record_input import InputRecord

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

CONNECT_S = 10.0
DELIVERY_MS = 60_000
"""A record that is not acknowledged by then has failed."""
BUFFER_KIB = 64 * 1024
POLL_S = 0.1
ANY_PARTITION = -1
"""The client chooses by key."""

Failed = Callable[[str, str], None]
"""Called with the location of a record that was not acknowledged, and the reason."""


class RecordSender:
    """Owned by one thread. Records are sent once, in order (an idempotent producer)."""

    def __init__(self, brokers: Brokers, topic: str, compression: str, failed: Failed) -> None:
        """Connect. Raises `Unavailable` if no broker responds."""
        from confluent_kafka import KafkaException, Producer

        self.acknowledged = 0
        self.failed = 0
        self._brokers = brokers
        self._topic = topic
        self._failed = failed
        self._last = LastError()
        settings: dict[str, Any] = {
            "enable.idempotence": True,
            "compression.type": compression,
            "message.timeout.ms": DELIVERY_MS,
            "queue.buffering.max.kbytes": BUFFER_KIB,
            **brokers.settings,
            "error_cb": self._last,
        }
        self._producer = Producer(settings)
        try:
            self._producer.list_topics(timeout=CONNECT_S)
        except KafkaException as error:
            self._producer.poll(0)  # calls `_last`
            raise brokers.failed(error.args[0], self._last.text) from None

    def send(self, record: InputRecord, location: str) -> None:
        """Queue a record. Waits while the queue is full."""
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(
                    self._topic,
                    record.value,
                    record.key,
                    partition=ANY_PARTITION if record.partition is None else record.partition,
                    timestamp=record.timestamp_ms or 0,
                    headers=list(record.headers),
                    on_delivery=partial(self._delivered, location),
                )
                break
            except BufferError:
                self._producer.poll(POLL_S)
            except KafkaException as error:
                self.reject(location, _reason(error.args[0]))
                break
        self._producer.poll(0)

    def reject(self, location: str, reason: str) -> None:
        """Count a record that cannot be sent."""
        self.failed += 1
        self._failed(location, reason)

    def flush(self) -> None:
        """Wait until every record is acknowledged or has failed."""
        while self._producer.flush(POLL_S):
            if self._last.fatal is not None:
                raise self._brokers.failed(self._last.fatal)

    def _delivered(self, location: str, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acknowledged += 1
            return
        reason = _reason(error)
        if error.name() == "_MSG_TIMED_OUT" and self._last.text is not None:
            reason = f"{reason} ({self._last.text})"
        self.reject(location, reason)


def _reason(error: KafkaError) -> str:
    return f"{error.name()}: {text_of(error)}"
