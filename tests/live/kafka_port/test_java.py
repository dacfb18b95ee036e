"""Kafka's own command-line tools, of two releases, with a node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.node import Node
from tests.kafka.wire.java import QUICK
from tests.live.kafka_port.jars import RELEASES, class_path, missing

MISSING = missing()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

WAIT_S = 120
COUNT = 50
TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node") / "data"
    with Node(folder, "--set", "lake.enabled=false") as running:
        yield running


class Tools:
    """The tools of one release."""

    def __init__(self, node: Node, release: str) -> None:
        self.address = f"127.0.0.1:{node.kafka_port}"
        self._command = ["java", *QUICK, "-cp", class_path(release)]

    def run(self, tool: str, *words: str, text: str = "", code: int = 0) -> str:
        """Run a tool. Returns its output and its errors."""
        done = subprocess.run(
            [*self._command, tool, "--bootstrap-server", self.address, *words],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def events(self, tool: str, *words: str) -> list[dict[str, Any]]:
        """Run a tool that prints a JSON object for each thing it has done."""
        lines = self.run(tool, *words).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.parametrize("release", RELEASES)
def test_the_verifiable_clients(node: Node, release: str) -> None:
    """What the producer was told is there is what a member of a group reads and commits."""
    tools, topic = Tools(node, release), f"verifiable-{release}"
    sent = tools.events(
        *(f"{TOOLS}.VerifiableProducer", "--topic", topic, "--max-messages", str(COUNT)),
        *("--acks", "-1"),
    )
    acks = [each["offset"] for each in sent if each["name"] == "producer_send_success"]
    assert acks == list(range(COUNT))
    read = tools.events(
        *(f"{TOOLS}.VerifiableConsumer", "--topic", topic, "--group-id", topic),
        *("--max-messages", str(COUNT), "--reset-policy", "earliest"),
    )
    assert sum(each["count"] for each in read if each["name"] == "records_consumed") == COUNT
    (committed,) = [each for each in read if each["name"] == "offsets_committed"][-1:]
    assert committed["success"]
    assert committed["offsets"] == [{"topic": topic, "partition": 0, "offset": COUNT}]
    groups = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
    described = tools.run(groups, "--describe", "--group", topic)
    (line,) = [each.split() for each in described.splitlines() if each.startswith(topic)]
    assert line[2:6] == ["0", str(COUNT), str(COUNT), "0"]


def test_a_topic_by_the_tools(node: Node) -> None:
    """It is created, grows, is configured, measured, filled, read and deleted."""
    tools = Tools(node, "4.2.1")
    topics, configs = f"{TOOLS}.TopicCommand", "kafka.admin.ConfigCommand"
    policy = ("--config", "cleanup.policy=compact,delete", "--config", "max.message.bytes=5000")
    tools.run(topics, "--create", "--topic", "made", "--partitions", "2", *policy)
    tools.run(topics, "--alter", "--topic", "made", "--partitions", "3")
    named = ("--entity-type", "topics", "--entity-name", "made")
    tools.run(configs, "--alter", *named, "--add-config", "retention.ms=3600000")
    described = tools.run(topics, "--describe", "--topic", "made")
    assert "PartitionCount: 3" in described
    assert "cleanup.policy=compact,delete" in described
    assert "max.message.bytes=5000" in described and "retention.ms=3600000" in described
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    produce = (f"{TOOLS}.ConsoleProducer", "--topic", "made", "--sync", *keyed)
    assert "Exception" not in tools.run(*produce, text="k:one\nk:two\n")
    large = f"k:{'x' * 6000}\n"
    assert "RecordTooLargeException" in tools.run(*produce, text=large, code=1)
    read = tools.run(
        *(f"{TOOLS}.consumer.ConsoleConsumer", "--topic", "made", "--from-beginning"),
        *("--max-messages", "2", "--timeout-ms", str(WAIT_S * 500)),
    )
    assert read.splitlines()[:2] == ["one", "two"]
    sizes = tools.run(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", "made")
    found = json.loads(sizes.splitlines()[-1])["brokers"][0]["logDirs"][0]["partitions"]
    assert {each["partition"] for each in found} == {"made-0", "made-1", "made-2"}
    assert sum(each["size"] > 100 for each in found) >= 1
    tools.run(topics, "--delete", "--topic", "made")
    assert "made" not in tools.run(topics, "--list").split()


def test_groups_whose_partitions_the_server_assigns(node: Node) -> None:
    """Members join, commit and leave; by names and by a regular expression."""
    tools, topic = Tools(node, "4.2.1"), "assigned"
    tools.events(
        *(f"{TOOLS}.VerifiableProducer", "--topic", topic, "--max-messages", str(COUNT)),
        *("--acks", "-1"),
    )
    read = tools.events(
        *(f"{TOOLS}.VerifiableConsumer", "--topic", topic, "--group-id", topic),
        *("--max-messages", str(COUNT), "--reset-policy", "earliest"),
        *("--group-protocol", "consumer", "--group-remote-assignor", "range"),
    )
    assert sum(each["count"] for each in read if each["name"] == "records_consumed") == COUNT
    groups = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
    described = tools.run(groups, "--describe", "--group", topic)
    (line,) = [each.split() for each in described.splitlines() if each.startswith(topic)]
    assert line[2:6] == ["0", str(COUNT), str(COUNT), "0"]
    again = tools.run(
        *(f"{TOOLS}.consumer.ConsoleConsumer", "--include", "assig.*", "--group", "console"),
        *("--from-beginning", "--max-messages", str(COUNT), "--timeout-ms", str(WAIT_S * 500)),
        *("--command-property", "group.protocol=consumer"),
    )
    assert sorted(map(int, again.split()[:COUNT])) == list(range(COUNT))


def test_the_compatibility_test_of_kafka(node: Node) -> None:
    """A program that checks what a broker offers."""
    features = "offsets-for-times cluster-id create-topics describe-configs idempotent-producer"
    words = [word for each in features.split() for word in (f"--{each}-supported", "True")]
    words += ["--describe-acls-supported", "True", "--num-cluster-nodes", "1"]
    words += ["--expect-record-too-large-exception", "False"]  # an old broker could not send it
    said = Tools(node, "4.2.1").run(f"{TOOLS}.ClientCompatibilityTest", "--topic", "compat", *words)
    assert said.splitlines()[-1] == "SUCCESS."
