"""A topic is a table: each record is a row, each topic has a table of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.lake.append.log_source import LogSource, source_of
from frazil.lake.append.slice import RECORDS as RECORDS_SIGNAL
from frazil.lake.config import NAME
from frazil.lake.tables.record_rows import NAME_LENGTH_MAX, TIME_MS_MAX, rows_of, table_of
from frazil.log import DEAD_LETTERS, Record, TopicConfig
from frazil.model.arrow import RECORDS
from tests.lake.read.topic_tables import LAKE, TABLE, TOPIC, TopicWorld

LETTERS = "ab_.-AB09é"
"""Few, so that names are often nearly the same."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TopicWorld]:
    opened = TopicWorld.open(tmp_path / "data")
    yield opened
    opened.close()


def topic_of(table: str) -> str:
    """The way back, for names that were not too long."""
    text = table.removeprefix("topic_")
    found, at = b"", 0
    while at < len(text):
        if escape := re.compile("__([0-9a-f]{2})").match(text, at):
            found += bytes.fromhex(escape[1])
            at = escape.end()
        else:
            found += text[at].encode()
            at += 1
    return found.decode()


@given(st.text(LETTERS, min_size=1, max_size=30))
def test_a_name_leads_back_to_its_topic(topic: str) -> None:
    """So that no two topics have the same table, in a form that needs no quotes."""
    table = table_of(topic)
    assert topic_of(table) == topic
    assert re.fullmatch("[a-z][a-z0-9_]*", table)


@given(st.text(LETTERS, min_size=201, max_size=249), st.text(LETTERS, min_size=201, max_size=249))
def test_long_names_are_cut_and_still_differ(one: str, other: str) -> None:
    assert len(table_of(one)) <= NAME_LENGTH_MAX
    assert (table_of(one) == table_of(other)) == (one == other)


def test_names_as_the_page_has_them() -> None:
    assert table_of("orders") == "topic_orders"
    assert table_of("web_clicks") == "topic_web_clicks"
    assert table_of("Orders.eu-west") == "topic___4frders__2eeu__2dwest"
    assert NAME.fullmatch(table_of("orders"))


def test_which_topics_become_tables() -> None:
    """Telemetry always, what is internal never, others as the settings say."""
    assert [
        None if found is None else (found.table, found.signal)
        for topic in ("otlp_logs", DEAD_LETTERS, "__offsets", "orders", "orders.eu", "clicks")
        for found in [source_of(topic, 0, ["orders*"])]
    ] == [
        ("logs", "logs"),
        None,
        None,
        ("topic_orders", RECORDS_SIGNAL),
        ("topic_orders__2eeu", RECORDS_SIGNAL),
        None,
    ]
    assert source_of("orders", 0, []) is None


@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63) + 1, 2**63 - 1),
            st.none() | st.binary(max_size=4),
            st.none() | st.binary(max_size=4),
            st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3),
        )
    )
)
def test_rows_hold_all_of_a_record(
    given: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
) -> None:
    records = [
        Record(offset=n, timestamp_ms=at, key=key, value=value, headers=tuple(headers))
        for n, (at, key, value, headers) in enumerate(given)
    ]
    batch = rows_of(records, 3)
    batch.validate(full=True)
    assert batch.schema.equals(RECORDS)
    times = batch.column("time").cast("int64").to_pylist()
    back = [
        Record(
            offset=row["_offset"],
            timestamp_ms=row["timestamp_ms"],
            key=row["key"],
            value=row["value"],
            headers=tuple((header["key"], header["value"]) for header in row["headers"]),
        )
        for row in batch.drop_columns(["time"]).to_pylist()
    ]
    assert back == records
    for time_us, record in zip(times, records, strict=True):
        if abs(record.timestamp_ms) <= TIME_MS_MAX:
            assert time_us == record.timestamp_ms * 1000


def test_a_topic_becomes_a_table(world: TopicWorld) -> None:
    """Also one that is made later, by records in every day they are of."""
    world.add(30)
    (done,) = world.flush()
    assert (done.table, done.row_count, done.dead_count) == (TABLE, 30, 0)
    world.log.create_topic("later", TopicConfig())
    assert world.flush() == []
    rows = world.table().scan().to_arrow().sort_by("_offset").to_pylist()
    assert [row["value"] for row in rows] == [b"0/%d" % number for number in range(30)]
    assert rows[1]["headers"] == [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    assert {row["key"] for row in rows} == {b"key"}
    assert world.catalog.table_exists(f"{LAKE.namespace}.topic_later")


def test_what_the_log_let_go_of_is_left_out(tmp_path: Path) -> None:
    """A topic that does not await the lake goes on with what is there."""
    world = TopicWorld.open(tmp_path / "data", awaits_lake=False)
    world.add(5)
    world.flush()
    world.add(300)
    start = world.trim()
    assert start > 5
    world.add(5)
    world.flush()
    offsets = world.table().scan().to_arrow()["_offset"].to_pylist()
    assert sorted(offsets) == [*range(5), *range(start, 310)]
    world.close()


def test_topics_that_are_not_wanted_have_no_sources(world: TopicWorld) -> None:
    assert LogSource(world.log, world.folder, ["other"]).sources() == []
    assert [source.topic for source in LogSource(world.log, world.folder).sources()] == [TOPIC]
