"""Topics: a name, an id, settings, partitions.

`log/<topic>/topic.ckpt` has the id and the settings. It is written after the partitions' folders,
so a topic either has all of them or does not exist. A topic is deleted by one rename of its folder;
the files are removed afterwards, if need be at the next start. A topic created again under the
same name has another id.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import msgspec

from frazil.disk import Disk, is_full, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt, Malformed, Unknown
from frazil.log.partition import Partition
from frazil.log.segment import HEADER_BYTES, base_offsets, segment_name
from frazil.model import Rand
from frazil.settings import TopicConfig

FOLDER = "log"
SUBSCRIBERS_FOLDER = "log/subscribers"
CONFIG_NAME = "topic.ckpt"
CONFIG_KIND = b"TOPC"
CONFIG_VERSION = 2
CONFIG_VERSION_MIN = 1
"""Version 1 had the settings only."""
DELETED_PREFIX = ".deleted-"
"""Of folders of deleted topics; their id follows. No topic's name begins with a dot."""
HINT = "Restore the file from a copy; it holds the topic's settings and its number of partitions."

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""Kafka's grammar without a leading dot: a name is a folder and never leaves its parent."""
LENGTH_MAX = {"topic": 249, "subscriber": 240}
"""Kafka's limit for a topic. A subscriber's file name has a suffix, and at most 255 bytes."""
RESERVED = frozenset({"subscribers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """An open topic."""

    name: str
    topic_id: UUID
    config: TopicConfig
    partitions: tuple[Partition, ...]


class StoredTopic(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `topic.ckpt`."""

    topic_id: UUID | None
    """None if an earlier release wrote the file."""
    config: TopicConfig


def new_topic_id(rand: Rand) -> UUID:
    return UUID(bytes=rand.randbytes(16), version=4)


def check_name(name: str, what: str) -> None:
    """Raise `Malformed` unless the name is a plain file name."""
    if not NAME.fullmatch(name) or len(name) > LENGTH_MAX[what] or name in RESERVED:
        raise Malformed(
            f"{name!r} cannot name a {what}: use 1 to {LENGTH_MAX[what]} letters, digits, '.', "
            "'_' or '-', not starting with '.', and not 'subscribers'"
        )


def check_partition(topic: str, count: int, index: int) -> None:
    """Raise `Unknown` unless a topic with so many partitions has this one."""
    if not 0 <= index < count:
        raise Unknown(f"topic {topic} has {count} partitions, there is no partition {index}")


def topic_names(disk: Disk) -> list[str]:
    """Return the topics on disk. A folder without settings is an unfinished, empty topic."""
    return [
        name
        for name in disk.list(FOLDER)
        if NAME.fullmatch(name) and name not in RESERVED and _is_finished(disk, f"{FOLDER}/{name}")
    ]


def _is_finished(disk: Disk, folder: str) -> bool:
    try:
        names = disk.list(folder)
    except NotADirectoryError:
        return False  # not a file of ours
    if CONFIG_NAME in names:
        return True
    for name in filter(str.isdigit, names):
        if _holds_data(disk, f"{folder}/{name}"):
            raise Corrupt(
                path=f"{folder}/{CONFIG_NAME}",
                position=0,
                expected="the settings of a topic that holds data",
                found="no file",
                hint=HINT,
            )
    return False


def _holds_data(disk: Disk, folder: str) -> bool:
    """Return whether there is more than the empty first segment of a new partition."""
    bases = base_offsets(disk.list(folder), ".log")
    if any(bases):
        return True
    for base in bases:
        file = disk.open(f"{folder}/{segment_name(base)}")
        try:
            return file.size() > HEADER_BYTES
        finally:
            file.close()
    return False


def load_topic(disk: Disk, name: str) -> StoredTopic:
    """Return the settings of a topic that `topic_names` lists, durable ones."""
    disk.sync_directory(f"{FOLDER}/{name}")  # a killed process may not have synced the name
    stored = read_topic(disk, name)
    assert stored is not None, "topic_names() lists only topics with settings"
    return stored


def read_topic(disk: Disk, name: str) -> StoredTopic | None:
    """Return id and settings of a topic; None if there is none."""
    path = f"{FOLDER}/{name}/{CONFIG_NAME}"
    body = read_checkpoint(
        disk, path, CONFIG_KIND, CONFIG_VERSION, HINT, version_min=CONFIG_VERSION_MIN
    )
    if body is None:
        return None
    if b'"topic_id"' not in body:
        return StoredTopic(topic_id=None, config=msgspec.json.decode(body, type=TopicConfig))
    return msgspec.json.decode(body, type=StoredTopic)


def save_topic(disk: Disk, name: str, stored: StoredTopic) -> None:
    """Replace id and settings. If the disk is full they may be the new ones, not durable."""
    path = f"{FOLDER}/{name}/{CONFIG_NAME}"
    write_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, msgspec.json.encode(stored))


def change_topic(disk: Disk, name: str, stored: StoredTopic) -> None:
    """Replace id and settings of a topic in use. If the disk is full, nothing has changed."""
    try:
        save_topic(disk, name, stored)
    except OSError as error:
        if is_full(error) and read_topic(disk, name) == stored:
            raise OSError(errno.EIO, f"{name} is changed, but not durably") from error
        raise


def changed_config(config: TopicConfig, changes: Mapping[str, object]) -> TopicConfig:
    """Return the settings with changes. Raises `Malformed` if one is unknown or invalid."""
    unknown = sorted(set(changes) - set(config.__struct_fields__))
    if unknown:
        raise Malformed(f"a topic has no setting {unknown[0]}")
    try:
        return msgspec.convert({**msgspec.to_builtins(config), **changes}, TopicConfig)
    except msgspec.ValidationError as error:
        raise Malformed(f"invalid setting of a topic: {error}") from None


def bury(disk: Disk, name: str, topic_id: UUID) -> str:
    """Make a topic invisible, durably. Returns its new folder, for `remove_buried`. If the disk is
    full, nothing has changed."""
    buried = f"{FOLDER}/{DELETED_PREFIX}{topic_id.hex}"
    disk.rename(f"{FOLDER}/{name}", buried)
    try:
        disk.sync_directory(FOLDER)
    except OSError as error:
        raise OSError(errno.EIO, f"{buried} is renamed, but not durable") from error
    return buried


def buried_topics(disk: Disk) -> dict[UUID, str]:
    """Return the folders of deleted topics whose files are not removed yet, by topic id."""
    disk.sync_directory(FOLDER)  # a killed process may not have synced the rename
    return {
        UUID(hex=name.removeprefix(DELETED_PREFIX)): f"{FOLDER}/{name}"
        for name in disk.list(FOLDER)
        if name.startswith(DELETED_PREFIX)
    }


def remove_buried(disk: Disk, buried: str) -> None:
    """Remove the folder of a deleted topic."""
    for name in disk.list(buried):
        path = f"{buried}/{name}"
        if not name.isdigit():
            disk.unlink(path)
            continue
        for file in disk.list(path):
            disk.unlink(f"{path}/{file}")
        disk.remove_directory(path)
    disk.remove_directory(buried)
    disk.sync_directory(FOLDER)


def partition_folder(topic: str, partition: int) -> str:
    return f"{FOLDER}/{topic}/{partition}"


def make_folders(disk: Disk, name: str, count: int) -> None:
    """Create the folders of this many partitions. Durable on return."""
    folder = f"{FOLDER}/{name}"
    make_directories(disk, folder)
    for partition in range(count):
        disk.make_directory(f"{folder}/{partition}")
    disk.sync_directory(folder)
