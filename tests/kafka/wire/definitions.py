"""Kafka's definitions of messages: JSON files inside its jars."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live.kafka.jars import JARS

KAFKA = "4.2.1"
NO_JARS = "Kafka's jars are not there: run `make setup` with a network connection"
CLIENTS, GROUPS, TRANSACTIONS = "clients", "group-coordinator", "transaction-coordinator"

API_KEYS = frozenset(
    [
        *(0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28),
        *(29, 30, 31, 32, 33, 35, 36, 37, 42, 44, 47, 48, 49, 50, 51, 60, 61, 65, 66, 68, 69, 71),
        *(72, 75),
    ]
)
"""The APIs of the port. All versions of Kafka are generated; the port says which it offers."""

OTHERS = {
    "consumer_protocol": (CLIENTS, r"ConsumerProtocol(Subscription|Assignment)"),
    "control_records": (CLIENTS, r"EndTxnMarker"),
    "group_records": (
        GROUPS,
        r"(OffsetCommit|GroupMetadata|ConsumerGroup(?!PartitionMetadata)\w+)(Key|Value)",
    ),
    "transaction_records": (TRANSACTIONS, r"TransactionLog(Key|Value)"),
}
"""Messages that are no requests: module, jar, and names. Left out: records of share and streams
groups, which the port does not have, and records that Kafka itself no longer writes."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One message: Kafka's JSON, and the notes on versions in its comments."""

    module: str
    json: dict[str, Any]
    notes: list[str]

    @property
    def name(self) -> str:
        return str(self.json["name"])


def missing_jars() -> list[str]:
    """Return the names of jars that are not there; `make setup` gets them."""
    return [path.name for path in map(jar, (CLIENTS, GROUPS, TRANSACTIONS)) if not path.is_file()]


def jar(name: str) -> Path:
    return JARS.folder / "jars" / f"org.apache.kafka_kafka-{name}-{KAFKA}.jar"


def definitions() -> list[Definition]:
    """Return requests and responses by key, then the other messages, by module."""
    found = [_definition(text) for text in _texts(CLIENTS, r"\w+Re(quest|sponse)")]
    found = [each for each in found if each.json["apiKey"] in API_KEYS]
    found.sort(key=lambda each: (each.json["apiKey"], each.name))
    for module, (name, pattern) in OTHERS.items():
        found += [_definition(text, module) for text in _texts(name, pattern)]
    return found


def headers() -> dict[str, Definition]:
    """Return the headers, which our codecs have no classes for, by name."""
    found = [_definition(text, "headers") for text in _texts(CLIENTS, r"Re(quest|sponse)Header")]
    return {each.name: each for each in found}


def notice() -> str:
    """Return the NOTICE of Kafka, which Apache's licence wants to be passed on."""
    with zipfile.ZipFile(jar(CLIENTS)) as file:
        return file.read("NOTICE").decode()


def snake(name: str) -> str:
    """`TopicId` is `topic_id`; `KRaftVersion` is `kraft_version`."""
    name = re.sub(r"^KRaft", "Kraft", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _texts(name: str, pattern: str) -> list[str]:
    with zipfile.ZipFile(jar(name)) as file:
        entries = [
            entry
            for entry in sorted(file.namelist())
            if re.fullmatch(rf"common/message/({pattern})\.json", entry)
        ]
        return [file.read(entry).decode() for entry in entries]


def _definition(text: str, module: str = "") -> Definition:
    body = text[text.index("{") :]
    head = body[: body.index('"validVersions"')]
    notes = re.findall(r"^\s*//[ ]?(.*)$", head, re.MULTILINE)
    plain = re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)
    found = json.loads(plain)
    return Definition(
        module or snake(re.sub(r"Re(quest|sponse)$", "", found["name"])), found, notes
    )
