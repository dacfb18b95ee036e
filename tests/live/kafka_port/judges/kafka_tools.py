"""Programs of Kafka's own system tests: VerifiableProducer, VerifiableConsumer and
TransactionalMessageCopier, of the releases in tests/live/kafka_port/jars.py."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.wire.java import QUICK
from tests.live.kafka_port.jars import RELEASES, class_path
from tests.live.kafka_port.judges.outcomes import JudgeTest, Outcome, Result

TOOLS = "org.apache.kafka.tools"
COUNT = 2000
"""Records: about a hundred transactions."""
PER_TRANSACTION = 20
TOOL_SECONDS_MAX = 300
WAIT_S = 60


class ToolFailed(Exception):
    """A tool exited with an error, or said something that is not true."""


def tests() -> list[JudgeTest]:
    """Return one test per program and release."""
    checks: dict[str, Callable[[str, str], None]] = {
        "VerifiableClients": verifiable_clients,
        "TransactionalMessageCopier": copier,
        "TransactionalMessageCopier-group": partial(copier, words=("--group-mode",)),
    }
    return [
        JudgeTest(name=f"{name}-{release}", run=partial(_run, f"{name}-{release}", check, release))
        for name, check in checks.items()
        for release in RELEASES
    ]


def _run(
    name: str, check: Callable[[str, str], None], release: str, address: str
) -> dict[str, Result]:
    try:
        check(release, address)
    except ToolFailed as error:
        return {name: Result.of(Outcome.FAILED, str(error))}
    return {name: Result(outcome=Outcome.PASSED)}


def _events(release: str, tool: str, *words: str) -> list[dict[str, Any]]:
    """Run a tool that prints a JSON object for each thing it has done."""
    try:
        done = subprocess.run(
            ["java", *QUICK, "-cp", class_path(release), f"{TOOLS}.{tool}", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TOOL_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"{tool} is not done in {TOOL_SECONDS_MAX} s") from None
    if done.returncode != 0:
        raise ToolFailed(done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _require(is_true: bool, what: str) -> None:
    if not is_true:
        raise ToolFailed(what)


def _create(address: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for created in admin.create_topics([NewTopic(topic, 1) for topic in topics]).values():
        created.result(WAIT_S)


def _produce(release: str, address: str, topic: str) -> None:
    """Produce the numbers from 0 on; each must be acknowledged at its offset."""
    sent = _events(
        *(release, "VerifiableProducer", "--bootstrap-server", address, "--topic", topic),
        *("--max-messages", str(COUNT), "--acks", "-1"),
    )
    offsets = [each["offset"] for each in sent if each["name"] == "producer_send_success"]
    _require(offsets == list(range(COUNT)), f"acknowledged: {offsets}")


def verifiable_clients(release: str, address: str, words: tuple[str, ...] = ()) -> None:
    """What was acknowledged is what a member of a group reads and commits."""
    topic = f"verifiable-{uuid.uuid4()}"
    _create(address, topic)
    _produce(release, address, topic)
    read = _events(
        *(release, "VerifiableConsumer", "--bootstrap-server", address, "--topic", topic),
        *("--group-id", topic, "--max-messages", str(COUNT), "--reset-policy", "earliest"),
        *words,
    )
    count = sum(each["count"] for each in read if each["name"] == "records_consumed")
    _require(count == COUNT, f"{count} of {COUNT} records were read")
    commits = [each for each in read if each["name"] == "offsets_committed"]
    _require(all(each["success"] for each in commits), f"commits: {commits}")
    last = commits[-1]["offsets"]
    _require(last == [{"topic": topic, "partition": 0, "offset": COUNT}], f"committed: {last}")


def copier(release: str, address: str, words: tuple[str, ...] = ()) -> None:
    """With transactions that are aborted at random, the copy has each record once, in order."""
    topic, copy = f"original-{uuid.uuid4()}", f"copy-{uuid.uuid4()}"
    _create(address, topic, copy)
    _produce(release, address, topic)
    for max_messages in (COUNT // 2, COUNT // 2):  # the second goes on where the first was
        _events(
            *(release, "TransactionalMessageCopier", "--broker-list", address),
            *("--transactional-id", copy, "--consumer-group", copy),
            *("--input-topic", topic, "--input-partition", "0", "--output-topic", copy),
            *("--max-messages", str(max_messages)),
            *("--transaction-size", str(PER_TRANSACTION), "--enable-random-aborts", *words),
        )
    values = _committed(address, copy)
    _require(values == [b"%d" % number for number in range(COUNT)], f"the copy has {values}")


def _committed(address: str, topic: str) -> list[bytes]:
    """Return the committed values of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        values.append(message.value() or b"")
    consumer.close()
    return values
