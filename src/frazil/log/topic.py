"""Topics: a name, its settings, its partitions.

`log/<topic>/topic.ckpt` holds the settings. It is written after the partitions' folders exist,
so a topic either has all of them or was never made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from frazil.disk import Disk, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt, Malformed
from frazil.log.config import TopicConfig
from frazil.log.partition import Partition

FOLDER = "log"
SUBSCRIBERS_FOLDER = "log/subscribers"
CONFIG_NAME = "topic.ckpt"
CONFIG_KIND = b"TOPC"
CONFIG_VERSION = 1
HINT = "Restore the file from a copy; it holds the topic's settings and its number of partitions."

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}")
"""Kafka's grammar, less a leading dot: a name is a folder, and never leaves its parent."""
RESERVED = frozenset({"subscribers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """An open topic."""

    name: str
    config: TopicConfig
    partitions: tuple[Partition, ...]


def check_name(name: str, what: str) -> None:
    """Refuse a name that is no plain file name."""
    if not NAME.fullmatch(name) or name in RESERVED:
        raise Malformed(
            f"{name!r} cannot name a {what}: use 1 to 249 letters, digits, '.', '_' or '-', "
            "not beginning with '.', and not 'subscribers'"
        )


def topic_names(disk: Disk) -> list[str]:
    """The topics on disk. A folder without settings was never finished and holds nothing."""
    return [
        name
        for name in disk.list(FOLDER)
        if name not in RESERVED and _is_finished(disk, f"{FOLDER}/{name}")
    ]


def _is_finished(disk: Disk, folder: str) -> bool:
    names = disk.list(folder)
    if CONFIG_NAME in names:
        return True
    for name in filter(str.isdigit, names):
        logs = [n for n in disk.list(f"{folder}/{name}") if n.endswith(".log")]
        if len(logs) > 1 or any(int(n[:20]) > 0 for n in logs):
            raise Corrupt(
                path=f"{folder}/{CONFIG_NAME}",
                position=0,
                expected="the settings of a topic that holds data",
                found="no file",
                hint=HINT,
            )
    return False


def load_config(disk: Disk, name: str) -> TopicConfig:
    disk.sync_directory(f"{FOLDER}/{name}")  # its name may stem from a process that was killed
    path = f"{FOLDER}/{name}/{CONFIG_NAME}"
    body = read_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, HINT)
    assert body is not None, "topic_names() lists only topics with settings"
    return msgspec.json.decode(body, type=TopicConfig)


def save_config(disk: Disk, name: str, config: TopicConfig) -> None:
    path = f"{FOLDER}/{name}/{CONFIG_NAME}"
    write_checkpoint(disk, path, CONFIG_KIND, CONFIG_VERSION, msgspec.json.encode(config))


def partition_folder(topic: str, partition: int) -> str:
    return f"{FOLDER}/{topic}/{partition}"


def make_folders(disk: Disk, name: str, config: TopicConfig) -> None:
    for partition in range(config.partitions):
        make_directories(disk, partition_folder(name, partition))
