"""`frazil topics`, `groups`, `produce` and `consume` with Apache Kafka itself."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from frazil import cli
from tests.live.kafka.broker import KafkaBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path_factory.mktemp("kafka") / "broker") as made:
        yield made


def test_the_verbs_work_with_apache_kafka(
    broker: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    def run(*words: str, text: bytes = b"", code: int = 0) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        found = cli.main([words[0], "--brokers", broker.address, *words[1:]])
        out, errors = capsysbinary.readouterr()
        assert found == code, errors.decode()
        return (out or errors).decode()

    def facts(*words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run(*words, "--json").splitlines()]

    run("topics", "create", "t", "--partitions", "2", "--retention", "7d")
    run("topics", "alter", "t", "--partitions", "3", "--setting", "max.message.bytes=2000000")
    assert "exists" in run("topics", "create", "t", code=1)
    words = ("produce", "t", "--partition", "1", "--key-separator", ":", "--header", "h=1")
    assert run(*words, text=b"a:1\nb:2\nc:3\n") == "3 records acknowledged.\n"
    (listed,) = [fact for fact in facts("topics") if fact["topic"] == "t"]
    assert (listed["partitions"], listed["records"]) == (3, 3)
    assert listed["retention_ms"] == 7 * 86_400_000
    (described,) = facts("topics", "describe", "t")
    assert described["settings"]["max.message.bytes"] == "2000000"
    assert [part["end_offset"] for part in described["partitions"]] == [0, 3, 0]
    assert "max.message.bytes = 2000000" in run("topics", "describe", "t")
    shown = [json.loads(line) for line in run("consume", "t", "--format", "json").splitlines()]
    assert [(each["key"], each["value"]) for each in shown] == [("a", "1"), ("b", "2"), ("c", "3")]
    assert run("consume", "t", "--group", "g", "--count", "2") == "1\n2\n"
    (group,) = facts("groups")
    assert (group["group"], group["state"], group["lag"]) == ("g", "empty", 1)
    run("groups", "reset", "g", "--to", "earliest")
    assert run("consume", "t", "--group", "g") == "3\n"
    run("groups", "reset", "g", "--to", "1h", "--apply")
    assert run("consume", "t", "--group", "g") == "1\n2\n3\n"
    run("groups", "delete", "g", "--yes")
    assert "no group g" in run("groups", "describe", "g", code=1)
    run("topics", "delete", "t", "--yes")
    assert "no topic t" in run("consume", "t", code=1)
