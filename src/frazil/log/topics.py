"""TopicList: the open topics of a log; create, change and delete them.

Every change runs on the writer thread, one at a time, and is durable before it is visible. A sync
that fails is fatal; a full disk changes nothing. Lookups may be made from any thread.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from uuid import UUID

from frazil.disk import Disk, is_full
from frazil.errors import Corrupt, Malformed, Overloaded, Unknown
from frazil.log.partition import Partition
from frazil.log.topic import (
    StoredTopic,
    Topic,
    bury,
    change_topic,
    changed_config,
    check_partition,
    load_topic,
    make_folders,
    new_topic_id,
    partition_folder,
    save_topic,
    topic_names,
)
from frazil.log.topic_changes import TopicChanges
from frazil.model import Rand, Signal, TopicPartition
from frazil.settings import TopicConfig

PARTITIONS_TOTAL_MAX = 4096
"""Of all topics together: each that has records keeps two files open."""
DEAD_LETTERS = "dead_letters"
"""Topic of batches that subscribers could not process."""
OWN_TOPICS = frozenset({DEAD_LETTERS, *(signal.topic for signal in Signal)})
"""Other parts of a node write to these: they are not deleted."""

OpenPartition = Callable[[str, int], Partition]
"""Opens a partition of a topic, by its index."""
Floors = Mapping[TopicPartition, int]
"""The highest offset acknowledged outside the log, such as by the lake."""


class TopicList:
    """`create`, `alter`, `add_partitions` and `remove` belong to the writer thread."""

    def __init__(self, disk: Disk, rand: Rand, open_partition: OpenPartition) -> None:
        self._disk = disk
        self._rand = rand
        self._open_partition = open_partition
        self._changes: TopicChanges | None = None
        self._by_name: Mapping[str, Topic] = {}
        """Replaced as a whole."""
        self._by_id: Mapping[UUID, Topic] = {}

    def open(self) -> None:
        """Open all topics on disk. One of an earlier release gets its id."""
        with ExitStack() as undo:
            undo.callback(self.release)
            for name in topic_names(self._disk):
                stored = load_topic(self._disk, name)
                if stored.topic_id is None:
                    stored = StoredTopic(topic_id=new_topic_id(self._rand), config=stored.config)
                    save_topic(self._disk, name, stored)
                self._put(self._opened(name, stored))
            self._changes = TopicChanges(self._disk)
            undo.pop_all()

    def _opened(self, name: str, stored: StoredTopic) -> Topic:
        assert stored.topic_id is not None
        partitions = self._open_partitions(name, range(stored.config.partitions))
        return Topic(
            name=name, topic_id=stored.topic_id, config=stored.config, partitions=partitions
        )

    def _open_partitions(self, name: str, indexes: Sequence[int]) -> tuple[Partition, ...]:
        opened: list[Partition] = []
        with ExitStack() as undo:
            for index in indexes:
                opened.append(self._open_partition(name, index))
                undo.callback(opened[-1].release)
            undo.pop_all()
        return tuple(opened)

    def check_all_there(self, floors: Floors) -> None:
        """Raise `Corrupt` if a partition with acknowledged offsets is missing."""
        for (name, index), floor in floors.items():
            topic = self.find(name)
            if topic is None or index >= len(topic.partitions):
                raise Corrupt(
                    path=partition_folder(name, index),
                    position=0,
                    expected=f"a partition with acknowledged offsets below {floor}",
                    found="no such partition",
                    hint="Restore the topic's folder from a copy; if the topic is gone for good, "
                    "remove the progress files of its subscribers, too.",
                )

    def all(self) -> list[Topic]:
        return sorted(self._by_name.values(), key=attrgetter("name"))

    def find(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def named(self, name: str) -> Topic:
        topic = self._by_name.get(name)
        if topic is None:
            raise Unknown(f"there is no topic {name}; create it first")
        return topic

    def by_id(self, topic_id: UUID) -> Topic:
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise Unknown(f"there is no topic with id {topic_id}")
        return topic

    def partition(self, topic: str, index: int) -> Partition:
        partitions = self.named(topic).partitions
        check_partition(topic, len(partitions), index)
        return partitions[index]

    def partitions(self) -> Iterator[Partition]:
        for topic in self.all():
            yield from topic.partitions

    def create(self, name: str, config: TopicConfig) -> Topic:
        """Create a topic, unless there is one with this name."""
        if name in self._by_name:
            return self._by_name[name]
        self._check_count(name, config.partitions)
        make_folders(self._disk, name, config.partitions)
        stored = StoredTopic(topic_id=new_topic_id(self._rand), config=config)
        topic = self._opened(name, stored)
        with ExitStack() as undo:
            for partition in topic.partitions:
                undo.callback(partition.release)
            save_topic(self._disk, name, stored)
            self._note_change()
            undo.pop_all()
        self._put(topic)
        return topic

    def _check_count(self, name: str, added: int) -> None:
        count = added + sum(len(topic.partitions) for topic in self._by_name.values())
        if count > PARTITIONS_TOTAL_MAX:
            raise Malformed(
                f"topic {name} would make {count} partitions; a log has at most "
                f"{PARTITIONS_TOTAL_MAX}"
            )

    def alter(self, name: str, changes: Mapping[str, object]) -> Topic:
        """Change settings."""
        topic = self.named(name)
        config = changed_config(topic.config, changes)
        if config.partitions != topic.config.partitions:
            raise Malformed(f"to change the number of partitions of {name}, add partitions")
        if config == topic.config:
            return topic
        if config.awaits_lake and not topic.config.awaits_lake:
            for partition in topic.partitions:
                partition.exempt(partition.view.start_offset)
        change_topic(self._disk, name, StoredTopic(topic_id=topic.topic_id, config=config))
        return self._swap(topic, config, topic.partitions)

    def add_partitions(
        self, name: str, count: int, attach: Callable[[str, Sequence[Partition]], None]
    ) -> Topic:
        """Grow a topic to `count` partitions. `attach` is called before they can be seen."""
        topic = self.named(name)
        before = len(topic.partitions)
        if name == DEAD_LETTERS:
            raise Malformed(f"topic {name} is one of Frazil's own: it has one partition")
        if count <= before:
            raise Malformed(f"topic {name} has {before} partitions already; {count} is not more")
        config = changed_config(topic.config, {"partitions": count})
        self._check_count(name, count - before)
        make_folders(self._disk, name, count)
        added = self._open_partitions(name, range(before, count))
        with ExitStack() as undo:
            for partition in added:
                undo.callback(partition.release)
            change_topic(self._disk, name, StoredTopic(topic_id=topic.topic_id, config=config))
            undo.pop_all()
        attach(name, added)
        return self._swap(topic, config, (*topic.partitions, *added))

    def remove(self, name: str) -> tuple[Topic, str]:
        """Delete a topic. Returns it, and the folder of its files, which are nobody's now."""
        topic = self.named(name)
        if name in OWN_TOPICS:
            raise Malformed(f"topic {name} is one of Frazil's own and cannot be deleted")
        with ExitStack() as undo:
            for partition in topic.partitions:
                partition.set_deleted(True)
                undo.callback(partition.set_deleted, False)
            buried = bury(self._disk, name, topic.topic_id)
            undo.pop_all()
        self._by_name = {other: each for other, each in self._by_name.items() if other != name}
        self._by_id = {each.topic_id: each for each in self._by_name.values()}
        self._must_note_change()
        return topic, buried

    def _swap(self, topic: Topic, config: TopicConfig, partitions: tuple[Partition, ...]) -> Topic:
        changed = Topic(
            name=topic.name, topic_id=topic.topic_id, config=config, partitions=partitions
        )
        self._put(changed)
        self._must_note_change()
        return changed

    def _put(self, topic: Topic) -> None:
        self._by_name = {**self._by_name, topic.name: topic}
        self._by_id = {**self._by_id, topic.topic_id: topic}

    def _note_change(self) -> None:
        if self._changes is not None:
            self._changes.note()

    def _must_note_change(self) -> None:
        """Tell of a change that cannot be undone."""
        try:
            self._note_change()
        except OSError as error:
            raise OSError(errno.EIO, "other processes cannot be told of a change") from error

    def release(self) -> None:
        """Close all files."""
        for partition in self.partitions():
            partition.release()
        if self._changes is not None:
            self._changes.close()
            self._changes = None


@contextmanager
def full_means_overloaded(consequence: str) -> Iterator[None]:
    """Turn a full disk into `Overloaded`, so that the call can be retried."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise Overloaded(f"the disk is full: {consequence}; free disk space, then retry") from error


SCHEMAS = "_schemas"
"""Topic of the schema registry, under the name that other registries use."""
