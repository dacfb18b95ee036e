"""Pages of messages, compared with all messages: whatever the batches and segments are."""

from __future__ import annotations

import heapq
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import RealDisk
from frazil.log import Log, Record, append_of_records
from frazil.log.external.observed_log import ObservedPartition, ObservedTopic
from frazil.serve.http.events import parse_event_id
from frazil.serve.topics.reading import MessagesQuery, read_messages
from frazil.settings import TopicConfig
from tests.log.build import SMALL, TOPIC, open_log

PARTITIONS = 2
TIME_MAX = 50

Batch = tuple[int, list[tuple[int, bytes]]]
"""A partition, and time and value of each record."""

batches: st.SearchStrategy[list[Batch]] = st.lists(
    st.tuples(
        st.integers(0, PARTITIONS - 1),
        st.lists(
            st.tuples(st.integers(0, TIME_MAX), st.sampled_from([b"a", b"b" * 90, b"c" * 700])),
            min_size=1,
            max_size=6,
        ),
    ),
    max_size=25,
)
Order = Literal["newest", "oldest"]
Place = tuple[int, int]


def fill(log: Log, written: list[Batch]) -> dict[int, list[Record]]:
    """Append the batches. Returns what each partition has."""
    stored: dict[int, list[Record]] = {index: [] for index in range(PARTITIONS)}
    for partition, values in written:
        records = [
            Record(offset=0, timestamp_ms=time, key=None, value=value) for time, value in values
        ]
        result = log.append_durably(TOPIC, append_of_records(records), partition=partition)
        stored[partition] += [
            Record(
                offset=result.base_offset + number,
                timestamp_ms=each.timestamp_ms,
                key=None,
                value=each.value,
            )
            for number, each in enumerate(records)
        ]
    return stored


def expected(stored: dict[int, list[Record]], order: Order, search: bytes) -> list[Place]:
    """Partition and offset of all messages, merged by time without reordering a partition."""
    is_newest = order == "newest"
    lists = [
        [
            (record.timestamp_ms, index, record.offset)
            for record in records
            if search in value(record)
        ]
        for index, records in stored.items()
    ]
    merged = heapq.merge(
        *(each[::-1] if is_newest else each for each in lists),
        key=lambda each: each[0],
        reverse=is_newest,
    )
    return [(index, offset) for _, index, offset in merged]


def value(record: Record) -> bytes:
    assert record.value is not None
    return record.value


@settings(deadline=None, max_examples=25)
@given(
    batches, st.sampled_from(["newest", "oldest"]), st.integers(1, 30), st.sampled_from([b"", b"b"])
)
def test_pages_have_every_message_once_and_in_order(
    written: list[Batch], order: Order, limit: int, search: bytes
) -> None:
    with TemporaryDirectory() as folder:
        disk = RealDisk(Path(folder))
        config = TopicConfig(partitions=PARTITIONS)
        with open_log(disk, SMALL, topic=config) as log:
            stored = fill(log, written)
            partitions = tuple(ObservedPartition(disk, TOPIC, index) for index in range(PARTITIONS))
            topic = ObservedTopic(name=TOPIC, topic_id=None, config=config, partitions=partitions)
            found: list[Place] = []
            cursor: str | None = ""
            while cursor is not None:
                after = parse_event_id(cursor) if cursor else None
                query = MessagesQuery(order=order, limit=limit, search=search, after=after)
                page = read_messages(topic, query)
                assert len(page.messages) <= limit
                found += [(each.partition, each.offset) for each in page.messages]
                cursor = page.cursor
            for partition in partitions:
                partition.close()
    places = expected(stored, order, search)
    # Pages are merged one by one: each partition keeps its order, and nothing is lost or repeated.
    for index in range(PARTITIONS):
        of_partition = [each for each in found if each[0] == index]
        assert of_partition == [each for each in places if each[0] == index]
    if limit >= len(places):
        assert found == places


@settings(deadline=None, max_examples=15)
@given(batches, st.integers(0, TIME_MAX), st.integers(0, TIME_MAX))
def test_a_time_range_begins_and_ends_at_the_first_message_of_a_time(
    written: list[Batch], since: int, until: int
) -> None:
    """As Kafka finds offsets by time: timestamps need not be in order."""
    with TemporaryDirectory() as folder:
        disk = RealDisk(Path(folder))
        with open_log(disk, SMALL, topic=TopicConfig(partitions=PARTITIONS)) as log:
            stored = fill(log, written)
            query = MessagesQuery(since_ms=since, until_ms=until, order="oldest", limit=1000)
            found = {
                (m.partition, m.offset) for m in read_messages(log.topic(TOPIC), query).messages
            }
    wanted = set()
    for index, records in stored.items():
        begin, end = (
            next((r.offset for r in records if r.timestamp_ms >= time), len(records))
            for time in (since, until)
        )
        wanted |= {(index, r.offset) for r in records if begin <= r.offset < end}
    assert found == wanted
