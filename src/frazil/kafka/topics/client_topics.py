"""ClientTopics: the log's topics as Kafka clients see them.

A topic that is declared as OTLP is a name for some partitions of its signal's topic:

    client                          log
    otlp_logs   0                   otlp_logs   0        what the OTLP ports write, too
    shop_logs   0, 1       ──>      otlp_logs   1, 2

Its records are in the log once, and its rows are rows of the signal's table, identified by
partition and offset as all others. Partitions are never shared, and none that has records is used
again: if the topic is deleted, its rows stay.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from uuid import UUID

import msgspec

from frazil.disk import (
    Budget,
    Disk,
    is_full,
    make_directories,
    read_checkpoint,
    write_checkpoint,
)
from frazil.errors import Conflict, Corrupt, Malformed, Overloaded, Unknown
from frazil.kafka.broker import FOLDER
from frazil.log import Append, AppendResult, Log, Partition, Topic, Writer
from frazil.model import Rand, Signal, TopicPartition
from frazil.settings import LogConfig, TopicConfig

PATH = f"{FOLDER}/otlp_topics.ckpt"
KIND = b"KOTL"
VERSION = 1
HINT = (
    "Restore the file from a copy, or remove it: topics declared as OTLP are gone, not their rows."
)

TELEMETRY = {signal.topic: signal for signal in Signal}
"""Topics whose records are OTLP requests."""
OWN_COUNT = 1
"""Partitions of such a topic that clients see under its own name."""


class OtlpTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that was declared as OTLP."""

    topic_id: UUID
    signal: Signal
    partitions: tuple[int, ...]
    """Partitions of the signal's topic."""


class ClientTopics:
    """Lookups may be made from any thread; changes take turns."""

    def __init__(self, log: Log, disk: Disk, rand: Rand) -> None:
        """Read what was declared. Raises `Corrupt` if the file is damaged."""
        self._log = log
        self._disk = disk
        self._rand = rand
        self._turn = threading.Lock()
        self._declared: Mapping[str, OtlpTopic] = {}
        """Replaced as a whole."""
        self._names: Mapping[TopicPartition, TopicPartition] = {}
        """Partition of the log -> what clients call it."""
        self._given: set[TopicPartition] = set()
        """Partitions that a topic had since the start: batches for it may be on their way."""
        self._put(_read(disk))
        for each in self._declared.values():  # a backup may have read the log's topics earlier
            self._grow(each.signal, max(each.partitions) + 1)

    @property
    def config(self) -> LogConfig:
        return self._log.config

    @property
    def writer(self) -> Writer:
        return self._log.writer

    @property
    def budget(self) -> Budget:
        return self._log.budget

    def signal_of(self, name: str) -> Signal | None:
        """Return the signal of a topic of telemetry; None for others."""
        declared = self._declared.get(name)
        return TELEMETRY.get(name) if declared is None else declared.signal

    def is_declared(self, name: str) -> bool:
        """Return whether a topic was declared as OTLP."""
        return name in self._declared

    def topics(self) -> list[Topic]:
        """Return all topics, sorted by name."""
        stored = {topic.name: self._shown(topic) for topic in self._log.topics()}
        declared = {name: self._named(name, each) for name, each in self._declared.items()}
        return [topic for _, topic in sorted({**stored, **declared}.items())]

    def has_topic(self, name: str) -> bool:
        return name in self._declared or self._log.has_topic(name)

    def topic(self, name: str) -> Topic:
        declared = self._declared.get(name)
        if declared is not None:
            return self._named(name, declared)
        return self._shown(self._log.topic(name))

    def topic_by_id(self, topic_id: UUID) -> Topic:
        """Return a topic. Raises `Unknown` if there is none with this id, or not any more."""
        for name, declared in self._declared.items():
            if declared.topic_id == topic_id:
                return self._named(name, declared)
        return self._shown(self._log.topic_by_id(topic_id))

    def _shown(self, topic: Topic) -> Topic:
        """Return a topic of the log without the partitions that have other names."""
        if topic.name not in TELEMETRY or len(topic.partitions) == OWN_COUNT:
            return topic
        return _topic(topic.name, topic.topic_id, topic, topic.partitions[:OWN_COUNT])

    def _named(self, name: str, declared: OtlpTopic) -> Topic:
        stored = self._log.topic(declared.signal.topic)
        partitions = tuple(stored.partitions[index] for index in declared.partitions)
        return _topic(name, declared.topic_id, stored, partitions)

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition of the log by the name that clients have for it."""
        declared = self._declared.get(topic)
        if declared is not None:
            _check_partition(topic, len(declared.partitions), index)
            return self._log.partition(declared.signal.topic, declared.partitions[index])
        if topic in TELEMETRY:
            _check_partition(topic, OWN_COUNT, index)
        return self._log.partition(topic, index)

    def stored(self, target: TopicPartition) -> TopicPartition:
        """Return where the records of a partition are in the log."""
        partition = self.partition(*target)
        return TopicPartition(partition.topic, partition.index)

    def name_of(self, stored: TopicPartition) -> TopicPartition:
        """Return what clients call a partition of the log."""
        return self._names.get(stored, stored)

    def append(self, topic: str, append: Append, *, partition: int = 0) -> Future[AppendResult]:
        """Queue a batch. The future resolves when it is durable; a refused batch is not stored."""
        stored = self.stored(TopicPartition(topic, partition))
        return self._log.append(stored.topic, append, partition=stored.partition)

    def append_if_idle(self, topic: str, append: Append, index: int) -> Future[AppendResult] | None:
        """Append a batch on this thread if none is queued. Call `writer.wake_readers` then."""
        stored = self.stored(TopicPartition(topic, index))
        return self._log.append_if_idle(stored.topic, append, stored.partition)

    def declare(self, name: str, signal: Signal, count: int) -> Topic:
        """Create a topic of OTLP requests with `count` partitions. Durable on return.

        Raises `Conflict` if there is a topic of this name, `Malformed` if there would be too many
        partitions, `Overloaded` if the disk is full: nothing was created.
        """
        with self._turn:
            if self.has_topic(name):
                raise Conflict(f"topic {name} exists")
            partitions = self._unused(signal, count)
            topic_id = UUID(bytes=self._rand.randbytes(16), version=4)
            declared = OtlpTopic(topic_id=topic_id, signal=signal, partitions=partitions)
            self._save({**self._declared, name: declared})
        return self.topic(name)

    def _unused(self, signal: Signal, count: int) -> tuple[int, ...]:
        """Return partitions that nobody has used, new ones if need be."""
        used = {each.partition for each in self._given if each.topic == signal.topic}
        stored = self._log.topic(signal.topic).partitions
        used.update(each.index for each in stored if each.view.durable_watermark)
        first = max(used, default=0) + 1
        self._grow(signal, first + count)
        return tuple(range(first, first + count))

    def _grow(self, signal: Signal, count: int) -> None:
        if len(self._log.topic(signal.topic).partitions) < count:
            self._log.add_partitions(signal.topic, count)

    def create_topic(self, name: str, config: TopicConfig) -> Topic:
        """Create a topic in the log."""
        with self._turn:
            if name in self._declared:
                raise Conflict(f"topic {name} exists, and is declared as OTLP")
            return self._log.create_topic(name, config)

    def alter_topic(self, name: str, changes: Mapping[str, object]) -> Topic:
        """Change settings of a topic in the log."""
        return self._log.alter_topic(name, changes)

    def add_partitions(self, name: str, count: int) -> Topic:
        """Grow a topic to `count` partitions."""
        with self._turn:
            declared = self._declared.get(name)
            if declared is None:
                return self._log.add_partitions(name, count)
            added = self._unused(declared.signal, count - len(declared.partitions))
            grown = msgspec.structs.replace(declared, partitions=(*declared.partitions, *added))
            self._save({**self._declared, name: grown})
        return self.topic(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic. The rows of one that is declared as OTLP stay."""
        with self._turn:
            if name not in self._declared:
                self._log.delete_topic(name)
                return
            self._save({other: each for other, each in self._declared.items() if other != name})

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        """Delete the records below offset `before`. Returns the new start of the log."""
        if self.signal_of(topic) is not None:
            raise Malformed(f"records of topic {topic} are rows: remove them there")
        return self._log.delete_records(topic, partition, before)

    def _save(self, declared: Mapping[str, OtlpTopic]) -> None:
        try:
            make_directories(self._disk, FOLDER)
            write_checkpoint(self._disk, PATH, KIND, VERSION, msgspec.json.encode(declared))
        except OSError as error:
            if not is_full(error):
                raise
            raise Overloaded("the disk is full: no topic was changed; free disk space") from error
        self._put(declared)

    def _put(self, declared: Mapping[str, OtlpTopic]) -> None:
        self._declared = declared
        self._names = {
            TopicPartition(each.signal.topic, stored): TopicPartition(name, index)
            for name, each in declared.items()
            for index, stored in enumerate(each.partitions)
        }
        self._given.update(self._names)


def _topic(name: str, topic_id: UUID, stored: Topic, partitions: tuple[Partition, ...]) -> Topic:
    """Return some partitions of a topic as a topic."""
    config = msgspec.structs.replace(stored.config, partitions=len(partitions))
    return Topic(name=name, topic_id=topic_id, config=config, partitions=partitions)


def _check_partition(topic: str, count: int, index: int) -> None:
    """Raise `Unknown` unless a topic with so many partitions has this one."""
    if not 0 <= index < count:
        raise Unknown(f"topic {topic} has {count} partitions, there is no partition {index}")


def _read(disk: Disk) -> dict[str, OtlpTopic]:
    body = read_checkpoint(disk, PATH, KIND, VERSION, HINT)
    if body is None:
        return {}
    try:
        return msgspec.json.decode(body, type=dict[str, OtlpTopic])
    except msgspec.MsgspecError as error:
        raise Corrupt(
            path=PATH, position=0, expected="topics as JSON", found=str(error), hint=HINT
        ) from None
