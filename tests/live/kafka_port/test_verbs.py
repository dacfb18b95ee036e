"""`frazil topics`, `groups`, `produce` and `consume` with a real node."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from confluent_kafka import Consumer, TopicPartition

import frazil
from frazil import cli
from frazil.cli.kafka import broker_admin, receiving, sending
from tests.clients.node import COMMAND, Node

WAIT_S = 60


class Run(Protocol):
    def __call__(self, *words: str, text: bytes = b"", code: int = 0) -> str: ...


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node") / "data"
    settings = ("lake.enabled=false", "kafka.groups.initial_rebalance_delay_ms=0")
    options = [word for setting in settings for word in ("--set", setting)]
    with Node(folder, *options) as running:
        yield running


@pytest.fixture
def run(
    node: Node, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Run a command; returns its output if that is not empty, else its errors."""
    monkeypatch.setenv("FRAZIL_URL", node.url)

    def call(*words: str, text: bytes = b"", code: int = 0) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        found = cli.main(words)
        out, errors = capsysbinary.readouterr()
        assert found == code, errors.decode()
        return (out or errors).decode()

    return call


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def by_name(facts: list[dict[str, Any]], name: str) -> dict[str, dict[str, Any]]:
    return {fact[name]: fact for fact in facts}


def committed(node: Node, group: str, topic: str, partition: int = 0) -> int:
    """Return what a client that others wrote sees."""
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{node.kafka_port}", "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, partition)], WAIT_S)
    consumer.close()
    return int(found.offset)


def test_a_topic_is_created_altered_and_deleted(run: Run) -> None:
    run("topics", "create", "t", "--partitions", "2", "--retention", "7d")
    assert "exists" in run("topics", "create", "t", code=1)
    listed = by_name(objects(run("topics", "--json")), "topic")["t"]
    assert (listed["partitions"], listed["retention_ms"]) == (2, 7 * 86_400_000)
    words = ("--partitions", "3", "--setting", "cleanup.policy=compact", "--unset", "retention.ms")
    run("topics", "alter", "t", *words)
    described = json.loads(run("topics", "describe", "t", "--json"))
    assert len(described["partitions"]) == 3
    assert described["settings"]["cleanup.policy"] == "compact"
    assert "compacted" in run("topics")
    assert "not more" in run("topics", "alter", "t", "--partitions", "1", code=2)
    assert "--yes" in run("topics", "delete", "t", code=2)
    run("topics", "delete", "t", "--yes")
    assert "no topic t" in run("topics", "describe", "t", code=1)
    assert "belong to the node" in run("topics", "delete", "otlp_logs", "--yes", code=1)


def test_the_same_verbs_work_with_any_brokers(run: Run, node: Node) -> None:
    brokers = ("--brokers", f"127.0.0.1:{node.kafka_port}")
    run("topics", "create", "anywhere", "--partitions", "2", *brokers)
    run("produce", "anywhere", *brokers, "--partition", "1", text=b"a\nb\n")
    listed = by_name(objects(run("topics", *brokers, "--json")), "topic")["anywhere"]
    assert (listed["partitions"], listed["records"]) == (2, 2)
    described = json.loads(run("topics", *brokers, "describe", "anywhere", "--json"))
    assert [part["end_offset"] for part in described["partitions"]] == [0, 2]
    assert run("consume", "anywhere", *brokers) == "a\nb\n"


def test_records_go_in_and_come_out_as_they_were(run: Run) -> None:
    lines = [
        {"key": "k", "value": "text", "headers": {"a": "1"}},
        {"key_hex": "ff00", "value_hex": "fe", "headers": [{"name": "b", "value_hex": "ff"}] * 2},
        {"key": None, "value": {"nested": [1, "é"]}, "time": "2026-01-02T03:04:05.678Z"},
        {"key": "gone", "value": None},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    found = run("produce", "whole", "--format", "json", "--json", text=text + b"\n")
    assert json.loads(found) == {"acknowledged": 4, "failed": 0}
    first = run("consume", "whole", "--format", "json")
    shown = objects(first)
    assert shown[0]["headers"] == [{"name": "a", "value": "1"}]
    assert (shown[1]["key_hex"], shown[1]["value_hex"]) == ("ff00", "fe")
    assert shown[1]["headers"] == [{"name": "b", "value_hex": "ff"}] * 2
    assert (shown[2]["value"], shown[2]["time"]) == (
        '{"nested": [1, "é"]}',
        "2026-01-02T03:04:05.678Z",
    )
    assert (shown[3]["key"], shown[3]["value"]) == ("gone", None)
    run("produce", "copy", "--format", "json", text=first.encode())
    copied = run("consume", "copy", "--format", "json")
    assert copied.replace('"copy"', '"whole"') == first
    assert run("consume", "whole", "--format", "hex", "--count", "1") == b"text".hex() + "\n"


def test_lines_that_fail_are_named_and_the_rest_is_sent(run: Run) -> None:
    words = ("produce", "lines", "--key-separator", "=", "--compression", "lz4")
    assert "2 records acknowledged" in run(*words, text=b"a=1\nno key\nb=2=3", code=1)
    assert run("consume", "lines", "--key-separator", ":") == "a:1\nb:2=3\n"
    for line, why in (
        (b"[]", "not a JSON object"),
        (b'{"key": "k"}', "no value"),
        (b'{"value": "v", "valeu": 1}', "unknown field"),
        (b'{"value_hex": "xy"}', "hexadecimal"),
    ):
        run("produce", "lines", "--format", "json", text=line, code=1)
        report = run("produce", "lines", "--format", "json", "--json", text=line, code=1)
        assert json.loads(report) == {"acknowledged": 0, "failed": 1}, why
    assert run("produce", "otlp_logs", "--json", text=b"x", code=1)


def test_consume_begins_and_stops_where_it_should(run: Run) -> None:
    lines = "".join(
        json.dumps({"value": str(n), "time": f"2026-01-01T00:00:0{n}Z"}) + "\n" for n in range(6)
    )
    run("produce", "six", "--format", "json", text=lines.encode())
    assert run("consume", "six", "--from", "4") == "4\n5\n"
    assert run("consume", "six", "--from", "2026-01-01T00:00:03Z", "--count", "2") == "3\n4\n"
    assert "not in six/0" in run("consume", "six", "--from", "99", code=1)
    assert "no topic" in run("consume", "sixth", code=1)
    assert "partitions 0 to 0" in run("consume", "six", "--partition", "1", code=1)
    assert "groups reset" in run("consume", "six", "--group", "g", "--from", "3", code=2)


def test_a_group_goes_on_where_it_was_and_shows_its_lag(run: Run, node: Node) -> None:
    run("produce", "work", text=b"".join(b"%d\n" % number for number in range(10)))
    assert run("consume", "work", "--group", "team", "--count", "4") == "0\n1\n2\n3\n"
    assert committed(node, "team", "work") == 4
    listed = by_name(objects(run("groups", "--json")), "group")["team"]
    assert (listed["state"], listed["members"], listed["lag"]) == ("empty", 0, 6)
    status = frazil.connect(node.url).get("/api/v1/status")["kafka"]
    assert by_name(status["groups"], "group")["team"]["lag_offsets"] == 6
    assert "team lags by 6 (empty)" in run("status")
    with urllib.request.urlopen(f"{node.url}/metrics", timeout=WAIT_S) as response:
        metrics = response.read().decode()
    labels = 'group="team",partition="0",topic="work"'
    assert f"frazil_kafka_group_lag_offsets{{{labels}}} 6" in metrics
    assert run("consume", "work", "--group", "team") == "4\n5\n6\n7\n8\n9\n"
    assert committed(node, "team", "work") == 10


def test_offsets_are_reset_only_when_told_and_nobody_reads(run: Run, node: Node) -> None:
    run("produce", "again", text=b"a\nb\nc\n")
    run("consume", "again", "--group", "readers")
    assert "nothing was changed" in run("groups", "reset", "readers", "--to", "earliest")
    assert committed(node, "readers", "again") == 3
    run("groups", "reset", "readers", "--to", "1h", "--apply")
    assert committed(node, "readers", "again") == 0
    run("groups", "reset", "readers", "--to", "latest", "--topic", "again", "--apply")
    assert committed(node, "readers", "again") == 3
    with Reading(node, "again", "readers") as reading:
        run("produce", "again", text=b"d\n")
        assert reading.line() == b"d\n"
        described = json.loads(run("groups", "describe", "readers", "--json"))
        assert len(described["members"]) == 1
        assert described["offsets"][0]["member"] == described["members"][0]["member"]
        refused = run("groups", "reset", "readers", "--to", "latest", "--apply", code=1)
        assert "1 members" in refused
        assert "has members" in run("groups", "delete", "readers", "--yes", code=1)
    assert committed(node, "readers", "again") == 4
    run("groups", "delete", "readers", "--yes")
    assert "no group readers" in run("groups", "describe", "readers", code=1)


class Reading:
    """`frazil consume --follow` in a process of its own, until Ctrl-C."""

    def __init__(self, node: Node, topic: str, group: str) -> None:
        words = ["consume", topic, "--follow", "--group", group, "--url", node.url]
        self.process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE)

    def line(self) -> bytes:
        """Return the next line, once it is printed."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=WAIT_S)
        assert self.process.returncode == 0


def test_without_the_client_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for words in (("produce", "t"), ("consume", "t"), ("groups",), ("topics", "create", "t")):
        assert "pip install 'frazil[kafka]'" in run(*words, code=1)
    assert "otlp_logs" in run("topics")


def test_brokers_that_do_not_respond_are_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (broker_admin, sending, receiving):
        for name in ("REQUEST_S", "CONNECT_S"):
            monkeypatch.setattr(module, name, 0.5, raising=False)
    for words in (("produce", "t"), ("consume", "t"), ("groups",), ("topics",)):
        message = run(*words, "--brokers", "127.0.0.1:9", code=1)
        assert "Kafka at 127.0.0.1:9 does not respond" in message
