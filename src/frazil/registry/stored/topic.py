"""SchemasTopic: `_schemas`, whose fold is the state of the registry.

read     new records are folded, whoever has written them
append   only if the partition still ends where the fold has read to: what was decided over the
         state is true when it is written, however many registries there are
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from frazil.errors import Conflict, OutOfRange, Unavailable, Unknown
from frazil.log import (
    SCHEMAS,
    Append,
    AppendResult,
    ReadableLog,
    ReadableTopic,
    Reader,
    Record,
    append_of_records,
)
from frazil.metrics import Counter
from frazil.model import Clock
from frazil.registry.stored.records import KeyValue
from frazil.registry.stored.state import RegistryState
from frazil.settings import TopicConfig

logger = logging.getLogger(__name__)

TOPIC_CONFIG = TopicConfig(cleanup="compact")
"""One partition: there is one order of changes."""
SKIPPED = Counter(
    "frazil.registry.skipped.records", "Records of `_schemas` that are no records of a registry."
)


class RegistryLog(ReadableLog, Protocol):
    """A log to which a registry writes. Any thread may use it."""

    def append_durably(
        self, topic: str, append: Append, *, partition: int = 0, topic_id: UUID | None = None
    ) -> AppendResult: ...

    def create_topic(self, name: str, config: TopicConfig) -> ReadableTopic: ...


class SchemasTopic:
    """Owned by one thread at a time."""

    def __init__(self, log: RegistryLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._topic_id: UUID | None = None
        self._reader: Reader | None = None
        self.state = RegistryState()

    def follow(self) -> RegistryState:
        """Fold what is new and return the state."""
        try:
            topic = self._log.topic(SCHEMAS)
        except Unknown:
            self._begin_anew()
            return self.state
        if self._reader is None or topic.topic_id != self._topic_id:
            self._begin_anew()
            if len(topic.partitions) != 1 or not topic.config.is_compacted:
                raise Unavailable(
                    f"the topic {SCHEMAS} has {len(topic.partitions)} partitions and "
                    f"cleanup {topic.config.cleanup}; the registry needs one partition and "
                    "compact. Delete the topic if it holds no schemas"
                )
            self._topic_id = topic.topic_id
            self._reader = Reader.open(topic.partitions[0], "earliest")
        try:
            self._read(self._reader)
        except (OutOfRange, Unknown):  # deleted, or its start was removed: read what is there
            self._begin_anew()
            raise Unavailable(f"the topic {SCHEMAS} was deleted meanwhile; retry") from None
        return self.state

    def _begin_anew(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader, self._topic_id = None, None
        self.state = RegistryState()

    def _read(self, reader: Reader) -> None:
        while batches := reader.read():
            for batch in batches:
                if batch.header.is_control:
                    continue
                for record in batch.records():
                    self._fold(record)

    def _fold(self, record: Record) -> None:
        try:
            if record.key is None:
                raise ValueError("it has no key")
            self.state.apply(record.key, record.value)
        except (
            ValueError,
            msgspec.DecodeError,
        ) as error:  # anyone may write to the topic with a Kafka client
            SKIPPED.add()
            logger.warning(
                "a record of _schemas was skipped",
                extra={"offset": record.offset, "reason": str(error)},
            )

    def append(self, records: Sequence[KeyValue]) -> None:
        """Write records, all or none, and fold them. `Conflict` if someone has written since
        `follow`."""
        if self._reader is None:
            try:
                self._log.create_topic(SCHEMAS, TOPIC_CONFIG)
            except Conflict:  # exists by now, with other settings: `follow` says which
                raise Conflict(f"the topic {SCHEMAS} was created meanwhile") from None
            self.follow()
        assert self._reader is not None
        now_ms = self._clock.wall_ms()
        append = append_of_records(
            [Record(offset=0, timestamp_ms=now_ms, key=key, value=value) for key, value in records],
            expects_offset=self._reader.offset,
        )
        self._log.append_durably(SCHEMAS, append, topic_id=self._topic_id)
        self.follow()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
