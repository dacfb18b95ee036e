"""Topics: a name, settings, partitions.

`log/<topic>/topic.ckpt` has the settings. It is written after the partitions' folders, so a topic
either has all of them or does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from frazil.disk import Disk, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt, Malformed, Unknown
from frazil.log.partition import Partition
from frazil.log.segment import HEADER_BYTES, base_offsets, segment_name
from frazil.settings import TopicConfig

FOLDER = "log"
SUBSCRIBERS_FOLDER = "log/subscribers"
CONFIG_NAME = "topic.ckpt"
CONFIG_KIND = b"TOPC"
CONFIG_VERSION = 1
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
    config: TopicConfig
    partitions: tuple[Partition, ...]


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
        if name not in RESERVED and _is_finished(disk, f"{FOLDER}/{name}")
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


def load_config(disk: Disk, name: str) -> TopicConfig:
    disk.sync_directory(f"{FOLDER}/{name}")  # a killed process may not have synced the name
    config = read_config(disk, name)
    assert config is not None, "topic_names() lists only topics with settings"
    return config


def read_config(disk: Disk, name: str) -> TopicConfig | None:
    """Return the settings of a topic; None if there is none."""
    path = f"{FOLDER}/{name}/{CONFIG_NAME}"
    body = read_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, HINT)
    return None if body is None else msgspec.json.decode(body, type=TopicConfig)


def save_config(disk: Disk, name: str, config: TopicConfig) -> None:
    path = f"{FOLDER}/{name}/{CONFIG_NAME}"
    write_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, msgspec.json.encode(config))


def partition_folder(topic: str, partition: int) -> str:
    return f"{FOLDER}/{topic}/{partition}"


def make_folders(disk: Disk, name: str, config: TopicConfig) -> None:
    for partition in range(config.partitions):
        make_directories(disk, partition_folder(name, partition))
