"""Topics and consumer groups over the API: what clients of the Kafka port wrote, and only that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer

from tests.clients.node import Node
from tests.serve.events import Events
from tests.serve.kafka_node import (
    GROUP,
    PARTITIONS,
    START_MS,
    STEP_MS,
    TOPIC,
    WAIT_S,
    billing,
    brokers,
    create,
    kafka_node,
    order,
    produce_orders,
)

COUNT = 30
PATH = f"topics/{TOPIC}"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with kafka_node(tmp_path_factory.mktemp("topics") / "data") as started:
        create(started, TOPIC, PARTITIONS, retention_ms="86400000")
        produce_orders(started, 0, COUNT)
        yield started


def get(node: Node, path: str, **parameters: Any) -> Any:
    with urlopen(f"{node.url}/api/v1/{path}?{urlencode(parameters)}", timeout=WAIT_S) as response:
        return json.load(response)


def refusal(node: Node, path: str, **parameters: Any) -> tuple[int, str]:
    with pytest.raises(HTTPError) as refused:
        get(node, path, **parameters)
    return refused.value.code, json.load(refused.value)["error"]["message"]


def ids(messages: list[dict[str, Any]]) -> list[int]:
    return [json.loads(each["value"]["text"])["id"] for each in messages]


def test_topics_are_listed_with_their_kind(node: Node) -> None:
    found = get(node, "topics")
    topics = {each["name"]: each for each in found["topics"]}
    assert found["kafka_port"] == node.kafka_port
    assert found["topic_count"] == len(topics)
    kinds = {name: each["kind"] for name, each in topics.items()}
    assert kinds[TOPIC] == "topic"
    assert kinds["otlp_logs"] == "telemetry"
    assert kinds["dead_letters"] == "internal"
    orders = topics[TOPIC]
    assert (orders["partitions"], orders["records"]) == (PARTITIONS, COUNT)
    assert (orders["cleanup_policy"], orders["retention_ms"]) == ("delete", 86_400_000)
    assert orders["newest_ms"] == START_MS + (COUNT - 1) * STEP_MS
    assert orders["table"] == "topic_orders"
    assert orders["bytes"] > COUNT * len(order(0))
    searched = get(node, "topics", search="RDER")
    assert [each["name"] for each in searched["topics"]] == [TOPIC]


def test_a_topic_has_partitions_and_settings_with_their_source(node: Node) -> None:
    found = get(node, PATH)
    ends = {each["partition"]: each["end_offset"] for each in found["partitions"]}
    assert ends == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    assert all(each["last_stable_offset"] == each["end_offset"] for each in found["partitions"])
    configs = {each["name"]: (each["value"], each["source"]) for each in found["configs"]}
    assert configs["retention.ms"] == ("86400000", "topic")
    assert configs["cleanup.policy"] == ("delete", "default")
    assert refusal(node, "topics/nothing") == (404, "there is no topic nothing")


def test_the_newest_messages_come_first_and_pages_have_each_once(node: Node) -> None:
    """Timestamps order messages of different partitions."""
    found: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        page = get(node, f"{PATH}/messages", limit=7, **cursor)
        found += ids(page["messages"])
        if page["cursor"] is None:
            break
        cursor = {"after": page["cursor"]}
    assert found == list(range(COUNT))[::-1]


def test_messages_by_partition_offset_and_time(node: Node) -> None:
    path = f"{PATH}/messages"
    from_offset = get(node, path, partition=1, offset=4, order="oldest", limit=3)
    assert ids(from_offset["messages"]) == [4 * PARTITIONS + 1 + PARTITIONS * n for n in range(3)]
    assert [each["offset"] for each in from_offset["messages"]] == [4, 5, 6]
    [read] = from_offset["partitions"]
    assert (read["start_offset"], read["last_stable_offset"]) == (0, COUNT // PARTITIONS)
    since, until = (f"2023-11-14T22:13:{20 + number}Z" for number in (10, 13))
    window = get(node, path, since=since, until=until, order="oldest")
    assert ids(window["messages"]) == [10, 11, 12]
    found = get(node, path, search='"sku": "A-17"')
    assert ids(found["messages"]) == [17]
    assert found["cursor"] is None
    status, message = refusal(node, path, offset=3)
    assert status == 400 and "partition" in message
    assert refusal(node, path, partition=9)[0] == 404
    assert refusal(node, path, after="x")[0] == 400


def test_keys_values_and_headers_are_shown_as_what_they_are(node: Node) -> None:
    create(node, "formats", cleanup_policy="compact")
    values: list[tuple[bytes | None, str | None]] = [
        (b'{"a": 1}', "json"),
        (b'{"a": 1', "text"),
        ("größer".encode(), "text"),
        (b"\x00\x01", "hex"),
        (b"\xff\xfe", "hex"),
        (b"", "text"),
        (None, None),
    ]
    producer = Producer(brokers(node))
    for number, (value, _) in enumerate(values):
        producer.produce("formats", key=f"{number}", value=value, headers=[("id", b"\x80")])
    long = ("ü" * 3000).encode()
    producer.produce("formats", key="long", value=long)
    assert producer.flush(WAIT_S) == 0
    found = get(node, "topics/formats/messages", order="oldest", bytes_max=1001)["messages"]
    formats = [each["value"] and each["value"]["format"] for each in found[:-1]]
    assert formats == [kind for _, kind in values]
    assert found[3]["value"]["text"] == "0001"
    assert found[0]["headers"] == [
        {"name": "id", "value": {"format": "hex", "text": "80", "size_bytes": 1, "is_cut": False}}
    ]
    assert found[-1]["value"] == {
        "format": "text",
        "text": "ü" * 500,
        "size_bytes": len(long),
        "is_cut": True,
    }


def test_only_committed_messages_are_returned(node: Node) -> None:
    """Neither an aborted transaction, nor an open one, nor what follows it."""
    create(node, "payments")
    producer = Producer({**brokers(node), "transactional.id": "till"})
    producer.init_transactions(WAIT_S)

    def write(*texts: str) -> None:
        producer.begin_transaction()
        for text in texts:
            producer.produce("payments", value=text)
        assert producer.flush(WAIT_S) == 0

    write("one", "two")
    producer.commit_transaction(WAIT_S)
    write("aborted")
    producer.abort_transaction(WAIT_S)
    write("three")
    producer.commit_transaction(WAIT_S)
    write("open")

    def texts(order: str) -> list[str]:
        found = get(node, "topics/payments/messages", order=order)["messages"]
        return [each["value"]["text"] for each in found]

    assert texts("oldest") == ["one", "two", "three"]
    assert texts("newest") == ["three", "two", "one"]
    [partition] = get(node, "topics/payments")["partitions"]
    assert partition["last_stable_offset"] < partition["end_offset"]
    producer.commit_transaction(WAIT_S)
    assert texts("newest") == ["open", "three", "two", "one"]


def test_a_live_tail_has_each_new_message_once(node: Node) -> None:
    """Also over a lost connection, and only those that match."""
    path = f"{PATH}/tail"
    with (
        Events(node.api_port, path=path) as events,
        Events(node.api_port, path=path, search='"A-32"') as some,
    ):
        produce_orders(node, COUNT, 5)
        found = events.until(5)
        matching = some.until(1)
    assert sorted(ids([each.data for each in found])) == list(range(COUNT, COUNT + 5))
    assert ids([each.data for each in matching]) == [COUNT + 2]
    produce_orders(node, COUNT + 5, 4)
    with Events(node.api_port, last=found[-1].place, path=path) as events:
        resumed = events.until(4)
    assert sorted(ids([each.data for each in resumed])) == list(range(COUNT + 5, COUNT + 9))
    assert refusal(node, "topics/nothing/tail")[0] == 404


def test_messages_that_arrive_too_fast_are_counted(node: Node) -> None:
    """The newest are sent."""
    create(node, "fast", 2)
    count = 12_000
    producer = Producer({**brokers(node), "linger.ms": 50})
    with Events(node.api_port, path="topics/fast/tail", rate=10) as events:
        for number in range(count):
            producer.produce("fast", key=str(number), value=b"x" * 1000, partition=number % 2)
        assert producer.flush(WAIT_S) == 0
        skipped, found = 0, []
        for event in events:
            if event.kind == "skipped":
                skipped += event.data["count"]
            else:
                found.append((event.data["partition"], event.data["offset"]))
            if skipped + len(found) == count:
                break
    assert len(set(found)) == len(found)
    for partition in range(2):
        offsets = [offset for number, offset in found if number == partition]
        assert offsets == sorted(offsets)
    assert max(offset for _, offset in found) == count // 2 - 1


def test_consumer_groups_have_members_and_lag(node: Node) -> None:
    create(node, "idle")
    with billing(node, 5):
        [found] = get(node, "groups")["groups"]
        assert (found["group"], found["state"], found["type"]) == (GROUP, "Stable", "classic")
        assert (found["members"], found["protocol"]) == (1, "range")
        assert found["topics"] == [TOPIC]
        detail = get(node, "groups/describe", group=GROUP)["detail"]
        [member] = detail["members"]
        assert member["client_id"] == "till-1"
        assert member["assignment"] == [{"topic": TOPIC, "partitions": list(range(PARTITIONS))}]
        offsets = detail["offsets"]
        assert {each["partition"] for each in offsets} == set(range(PARTITIONS))
        assert {each["member_id"] for each in offsets} == {member["member_id"]}
        committed = sum(each["committed_offset"] or 0 for each in offsets)
        assert committed == 5
        lag = sum(each["lag_offsets"] or 0 for each in offsets)
        assert lag == found["lag_offsets"]
        ends = {each["partition"]: each["end_offset"] for each in get(node, PATH)["partitions"]}
        read = [each for each in offsets if each["committed_offset"] is not None]
        assert lag == sum(ends[each["partition"]] for each in read) - 5
    [left] = get(node, "groups", topic=TOPIC)["groups"]
    assert (left["state"], left["members"]) == ("Empty", 0)
    assert get(node, "groups", topic="idle")["groups"] == []
    assert get(node, "groups", search="nobody")["group_count"] == 0
    assert refusal(node, "groups/describe", group="nobody")[0] == 404
