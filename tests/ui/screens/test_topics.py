"""Topics, messages and consumer groups, written and read by librdkafka."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, expect

from tests.clients.node import Node
from tests.serve.kafka_node import (
    GROUP,
    PARTITIONS,
    TOPIC,
    WAIT_S,
    billing,
    brokers,
    create,
    kafka_node,
    produce_orders,
)
from tests.ui.helpers.page import IS_IDLE, THEMES, Theme, accessibility_violations, open_page

COUNT, READ = 130, 20
BIG = 9_007_199_254_740_993
"""An integer that JavaScript's numbers do not hold."""
OVERFLOW = """() => Math.max(...[document.documentElement, document.getElementById("screen")]
    .map((box) => box.scrollWidth - box.clientWidth))"""
ADDRESSES = (
    "/topics",
    "/topics?show=groups&internal=1",
    f"/topic/{TOPIC}",
    f"/topic/{TOPIC}?partition=1&start=offset&offset=3&open=1:5",
    f"/topic/{TOPIC}?tab=partitions",
    f"/topic/{TOPIC}?tab=groups",
    f"/topic/{TOPIC}?tab=configuration",
    "/topic/empty",
    "/group?name=billing%2Feu",
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with a topic, and a consumer group that is behind."""
    with kafka_node(tmp_path_factory.mktemp("ui_topics") / "data") as started:
        create(started, TOPIC, PARTITIONS, retention_ms="86400000")
        create(started, "empty")
        produce_orders(started, 0, COUNT)
        with billing(started, READ):
            yield started


@pytest.fixture
def page(browser: Browser, kafka: Node) -> Iterator[Page]:
    with open_page(browser, kafka.url) as opened:
        yield opened


def messages(page: Page) -> list[str]:
    """Keys in the list of messages."""
    return page.get_by_role("table", name="Messages").locator("tbody td.key").all_inner_texts()


def test_topics_are_listed_and_searched(page: Page) -> None:
    page.goto("/topics")
    table = page.get_by_role("table", name="Topics")
    row = table.get_by_role("row").filter(has_text=TOPIC)
    expect(row).to_contain_text(re.compile(rf"{TOPIC}\s*{PARTITIONS}\s*{COUNT}"))
    expect(row).to_contain_text("1 d")
    expect(table).to_contain_text("otlp_logs")
    expect(table).not_to_contain_text("__consumer_offsets")
    page.get_by_label("Internal topics").check()
    expect(table).to_contain_text("__consumer_offsets")
    page.locator("#screen").focus()
    page.keyboard.press("/")
    page.keyboard.type("ORD")
    expect(page).to_have_url(re.compile("search=ORD"))
    expect(table.get_by_role("row")).to_have_count(2)
    table.get_by_role("link", name=TOPIC).click()
    expect(page).to_have_url(re.compile(f"/topic/{TOPIC}$"))


def test_a_node_without_topics_tells_how_to_produce(browser: Browser, node: Node) -> None:
    """Also to a topic without messages."""
    with open_page(browser, node.url) as page:
        page.goto("/topics")
        guide = page.get_by_role("region", name="Produce")
        expect(guide).to_contain_text("frazil produce orders")
        expect(guide).to_contain_text(f"127.0.0.1:{node.kafka_port}")


def test_a_topic_without_messages_tells_how_to_produce(page: Page, kafka: Node) -> None:
    page.goto("/topic/empty")
    expect(page.get_by_role("heading", name="No messages yet")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text(f"127.0.0.1:{kafka.kafka_port}")
    page.goto("/topic/empty?tab=groups")
    expect(page.get_by_role("tabpanel")).to_contain_text("No group has committed offsets")


def test_messages_appear_as_they_come_and_can_be_paused(page: Page, kafka: Node) -> None:
    create(kafka, "live", PARTITIONS)
    producer = Producer(brokers(kafka))

    def write(*keys: str) -> None:
        for number, key in enumerate(keys):
            producer.produce("live", key=key, value=f"text {key}", partition=number % PARTITIONS)
        assert producer.flush(WAIT_S) == 0

    write("first")
    page.goto("/topic/live")
    table = page.get_by_role("table", name="Messages")
    expect(table).to_contain_text("text first")
    expect(page.get_by_role("status")).to_contain_text("Waiting for new messages")
    write("second", "third")
    expect(table).to_contain_text("text third")
    assert sorted(messages(page)) == ["first", "second", "third"]
    assert messages(page)[-1] == "first"
    page.locator("#screen").focus()
    page.keyboard.press("p")
    expect(page.get_by_role("status")).to_contain_text("Paused")
    write("fourth")
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    expect(table).not_to_contain_text("text fourth")
    page.keyboard.press("p")
    expect(table).to_contain_text("text fourth")
    page.get_by_label("Find in key or value").fill("second")
    expect(page).to_have_url(re.compile("search=second"))
    expect(table.get_by_role("row")).to_have_count(2)
    assert messages(page) == ["second"]


def test_older_messages_are_loaded_without_gaps(page: Page) -> None:
    page.goto(f"/topic/{TOPIC}?live=0")
    rows = page.get_by_role("table", name="Messages").locator("tbody tr")
    expect(rows).to_have_count(100)
    page.get_by_role("button", name="Load older").click()
    expect(rows).to_have_count(COUNT)
    assert messages(page) == [f"order-{number}" for number in reversed(range(COUNT))]
    expect(page.get_by_role("button", name="Load older")).to_be_hidden()


def test_messages_from_an_offset_and_from_a_time(page: Page) -> None:
    page.goto(f"/topic/{TOPIC}")
    page.get_by_label("Show").select_option("From offset")
    page.get_by_label("Partition").select_option("2")
    page.get_by_label("Offset", exact=True).fill("40")
    expect(page).to_have_url(re.compile("partition=2&start=offset&offset=40"))
    rows = page.get_by_role("table", name="Messages").locator("tbody tr")
    expect(rows).to_have_count(3)
    assert messages(page) == ["order-122", "order-125", "order-128"]
    page.go_back()
    page.goto(f"/topic/{TOPIC}?start=time&time=2023-11-14T22:15:26Z")
    expect(rows).to_have_count(4)
    assert messages(page) == [f"order-{number}" for number in range(126, 130)]


def test_an_opened_message_shows_json_key_and_headers(page: Page, kafka: Node) -> None:
    create(kafka, "details")
    producer = Producer(brokers(kafka))
    value = json.dumps({"id": BIG, "items": [{"sku": "A-1"}], "text": "<img src=x>"})
    headers: list[tuple[str, str | bytes | None]] = [("source", b"shop"), ("raw", b"\x00\xff")]
    producer.produce("details", key="one", value=value, headers=headers)
    producer.produce("details", key=b"\x00\x01", value="x" * 3000)
    producer.produce("details", key="three", value=None)
    assert producer.flush(WAIT_S) == 0
    page.goto("/topic/details?start=oldest")
    page.get_by_role("link", name="0", exact=True).click()
    message = page.get_by_role("complementary", name="Message")
    content = message.get_by_role("region", name="Value")
    expect(content).to_contain_text(str(BIG))
    expect(content).to_contain_text("<img src=x>")
    assert page.evaluate("document.querySelectorAll('#screen img').length") == 0
    content.locator("summary").filter(has_text="items").click()
    expect(content.get_by_text("A-1")).to_be_hidden()
    content.get_by_role("button", name="Raw").click()
    expect(content.locator("pre")).to_have_text(value)
    content.get_by_role("button", name="Copy").click()
    expect(content.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == value
    expect(message.get_by_role("region", name="Key")).to_contain_text("one")
    expect(message.get_by_role("region", name="Headers")).to_contain_text("0x00ff")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("open=0%3A1"))
    expect(message.get_by_role("region", name="Key")).to_contain_text("00 01")
    expect(content).to_contain_text("x" * 3000)
    page.keyboard.press("j")
    expect(content).to_contain_text("tombstone")
    page.keyboard.press("k")
    message.get_by_role("button", name="Copy link to message").click()
    expect(message.get_by_role("button", name="Copied")).to_be_visible()
    link = page.evaluate("() => navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    expect(message).to_be_hidden()
    page.goto(link)
    expect(content).to_contain_text("x" * 3000)
    page.goto("/topic/details?open=0:99")
    expect(message).to_contain_text("not committed yet")


def test_partitions_groups_and_configuration_have_their_tabs(page: Page) -> None:
    """Digits select a tab, the address keeps it."""
    page.goto(f"/topic/{TOPIC}")
    expect(page.get_by_role("tab", name="Messages")).to_be_visible()
    page.keyboard.press("2")
    row = page.get_by_role("table", name="Partitions").get_by_role("row").nth(1)
    expect(row).to_contain_text(re.compile(r"0\s*0\s*44\s*44"))
    page.keyboard.press("4")
    expect(page).to_have_url(re.compile("tab=configuration"))
    config = page.get_by_role("table", name="Configuration").get_by_role("row")
    expect(config.filter(has_text="retention.ms").first).to_contain_text("86400000")
    expect(config.filter(has_text="86400000").filter(has_text="topic")).not_to_have_count(0)
    page.keyboard.press("3")
    groups = page.get_by_role("table", name="Consumer groups")
    expect(groups).to_contain_text("Stable")
    groups.get_by_role("link", name=GROUP).click()
    expect(page).to_have_url(re.compile("/group\\?name=billing%2Feu"))


def test_a_group_shows_lag_by_partition_and_members(page: Page, kafka: Node) -> None:
    page.goto("/topics")
    page.get_by_role("link", name="Consumer groups").click()
    page.get_by_role("table", name="Consumer groups").get_by_role("link", name=GROUP).click()
    offsets = page.get_by_role("table", name="Offsets")
    expect(offsets.get_by_role("row")).to_have_count(1 + PARTITIONS)
    expect(offsets).to_contain_text("till-1")
    members = page.get_by_role("table", name="Members")
    expect(members).to_contain_text(f"{TOPIC} 0, 1, 2")
    page.goto("/pipeline?show=groups")
    shown = page.get_by_role("region", name="Consumer groups, details")
    expect(shown.get_by_role("row").filter(has_text=GROUP)).to_contain_text("Stable")
    expect(page.get_by_role("region", name="Subscribers", exact=True)).to_contain_text(GROUP)


def test_a_topic_links_to_sql_over_its_records(page: Page) -> None:
    page.goto(f"/topic/{TOPIC}")
    page.get_by_role("link", name="Query with SQL").click()
    expect(page.get_by_label("SQL", exact=True)).to_have_value(re.compile(f"FROM topic_{TOPIC}"))
    expect(page.get_by_role("grid")).to_contain_text("order-129")


def test_the_palette_finds_topics_and_groups(page: Page) -> None:
    page.goto("/topics")
    expect(page.get_by_role("heading", name="Topics", level=1)).to_be_visible()
    for typed, title in (("topic orders", "Topic"), ("consumer group billing", "Consumer group")):
        page.keyboard.press("Control+k")
        find = page.get_by_role("combobox", name="Find")
        find.fill(typed)
        results = page.get_by_role("listbox", name="Results")
        expect(results.get_by_role("option").first).to_contain_text(title)
        find.press("Enter")
        expect(page.get_by_role("heading", name=title, level=1, exact=True)).to_be_visible()


def test_a_missing_topic_or_group_is_an_error(browser: Browser, kafka: Node) -> None:
    with open_page(browser, kafka.url, allowed=("404",)) as page:
        page.goto("/topic/nothing")
        expect(page.get_by_role("alert")).to_contain_text("there is no topic nothing")
        page.goto("/group?name=nobody")
        expect(page.get_by_role("alert")).to_contain_text("there is no consumer group nobody")


@pytest.mark.parametrize("width", [1024, 390])
def test_nothing_is_wider_than_the_window(browser: Browser, kafka: Node, width: int) -> None:
    with open_page(browser, kafka.url, width=width) as page:
        for path in ADDRESSES:
            page.goto(path)
            expect(page.get_by_text("Loading…")).to_have_count(0)
            page.wait_for_function(IS_IDLE)
            assert page.evaluate(OVERFLOW) <= 0, path


@pytest.mark.parametrize("theme", THEMES)
def test_the_screens_are_accessible(browser: Browser, kafka: Node, theme: Theme) -> None:
    with open_page(browser, kafka.url, theme=theme) as page:
        for path in (*ADDRESSES, "/pipeline?show=groups"):
            page.goto(path)
            expect(page.get_by_text("Loading…")).to_have_count(0)
            assert accessibility_violations(page) == [], path
