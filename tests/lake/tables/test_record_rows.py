"""Topics become tables: one row per record, one table per topic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.lake.append.log_source import LogSource, source_of
from frazil.lake.append.slice import RECORDS as RECORDS_SIGNAL
from frazil.lake.tables.record_rows import NAME_LENGTH_MAX, TIME_MS_MAX, rows_of, table_of
from frazil.log import DEAD_LETTERS, Record
from frazil.model.arrow import RECORDS
from frazil.settings import TopicConfig
from frazil.settings.lake import NAME
from tests.lake.read.topic_tables import LAKE, TABLE, TOPIC, TopicWorld

LETTERS = "ab_.-AB09é"
"""Few characters, so that names are often similar."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TopicWorld]:
    opened = TopicWorld.open(tmp_path / "data")
    yield opened
    opened.close()


def topic_of(table: str) -> str:
    """Invert `table_of` for names that were not shortened."""
    text = table.removeprefix("topic_")
    name, at = b"", 0
    while at < len(text):
        if escape := re.compile("__([0-9a-f]{2})").match(text, at):
            name += bytes.fromhex(escape[1])
            at = escape.end()
        else:
            name += text[at].encode()
            at += 1
    return name.decode()


@given(st.text(LETTERS, min_size=1, max_size=30))
def test_table_names_are_unique_and_need_no_quotes(topic: str) -> None:
    table = table_of(topic)
    assert topic_of(table) == topic
    assert re.fullmatch("[a-z][a-z0-9_]*", table)


@given(st.text(LETTERS, min_size=201, max_size=249), st.text(LETTERS, min_size=201, max_size=249))
def test_shortened_names_are_unique(one: str, other: str) -> None:
    assert len(table_of(one)) <= NAME_LENGTH_MAX
    assert (table_of(one) == table_of(other)) == (one == other)


def test_table_names_are_as_documented() -> None:
    assert table_of("orders") == "topic_orders"
    assert table_of("web_clicks") == "topic_web_clicks"
    assert table_of("Orders.eu-west") == "topic___4frders__2eeu__2dwest"
    assert NAME.fullmatch(table_of("orders"))


def test_which_topics_become_tables() -> None:
    """Telemetry always, internal topics never, others if configured."""
    assert [
        None if source is None else (source.table, source.signal)
        for topic in ("otlp_logs", DEAD_LETTERS, "__offsets", "orders", "orders.eu", "clicks")
        for source in [source_of(topic, 0, ["orders*"])]
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
def test_rows_hold_every_field_of_a_record(
    values: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
) -> None:
    records = [
        Record(offset=n, timestamp_ms=at, key=key, value=value, headers=tuple(headers))
        for n, (at, key, value, headers) in enumerate(values)
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
    """So does a topic that is created later."""
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


def test_records_that_the_log_has_deleted_are_skipped(tmp_path: Path) -> None:
    """A topic that does not wait for the lake continues with the records that are left."""
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


def test_topics_that_are_not_configured_have_no_sources(world: TopicWorld) -> None:
    assert LogSource(world.log, world.folder, ["other"]).sources() == []
    assert [source.topic for source in LogSource(world.log, world.folder).sources()] == [TOPIC]
