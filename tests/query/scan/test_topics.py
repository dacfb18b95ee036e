"""Topics other than telemetry as tables: each record appears once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import TooLarge, Unavailable, Unknown
from frazil.lake import LakeView, TopicTables
from frazil.lake.read import topic_tails as tails
from frazil.lake.read.log_tail import LogTail
from frazil.lake.read.window_reader import WindowRows
from frazil.log import Compression, Record, append_of_records
from frazil.model import MiB
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import QueryConfig, TopicConfig
from tests.lake.maintain.tables import compact, expire
from tests.lake.read.topic_tables import CLOCK, LAKE, TOPIC, TopicWorld

COUNT = "SELECT count(*), count(DISTINCT _offset), min(_offset), max(_offset) + 1 FROM topic_orders"


@dataclass(slots=True)
class Asked:
    """A topic, its table, and an engine over both."""

    topic: TopicWorld
    view: LakeView
    tables: TopicTables
    engine: Engine

    def flush(self) -> None:
        self.topic.flush()
        self.view.refresh()

    def compact(self, name: str) -> None:
        """Other files for the same rows, and nothing left of those of before."""
        compact(self.topic.table(), name)
        expire(self.topic.table())

    def put(self, topic: str, *values: bytes, compression: Compression = Compression.NONE) -> None:
        records = [Record(offset=0, timestamp_ms=1, key=None, value=value) for value in values]
        self.topic.log.append_durably(topic, append_of_records(records, compression=compression))

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        return self.engine.sql(text).fetchall()

    def beside(self, stack: ExitStack, tables: TopicTables, view: LakeView | None) -> Engine:
        """Another engine, over other tables."""
        opened = Engine.open(dict, TABLES, QueryConfig(), CLOCK, view, tables)
        return stack.enter_context(opened)


def asked_of(topic: TopicWorld, stack: ExitStack) -> Asked:
    stack.callback(topic.close)
    view = LakeView(LAKE, topic.folder)
    stack.callback(view.close)
    tables = TopicTables(topic.log, LAKE.topics, view, bytes_max=MiB)
    engine = Engine.open(dict, TABLES, QueryConfig(), CLOCK, view, tables)
    return Asked(topic, view, tables, stack.enter_context(engine))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def world(tmp_path: Path, stack: ExitStack) -> Asked:
    return asked_of(TopicWorld.open(tmp_path / "data"), stack)


def whole(offsets: int) -> list[tuple[int, int, int, int]]:
    return [(offsets, offsets, 0, offsets)]


def test_every_record_appears_once_on_its_way_to_the_lake(world: Asked) -> None:
    """In the log, then committed, trimmed from the log, and compacted."""
    world.topic.add(60)
    assert world.ask(COUNT) == whole(60)
    world.topic.add(60)
    assert world.ask(COUNT) == whole(120)
    world.flush()
    assert world.ask(COUNT) == whole(120)
    world.topic.add(50)
    assert world.ask(COUNT) == whole(170)
    world.topic.flush()
    assert world.ask(COUNT) == whole(170), "with the view of before"
    assert world.topic.trim() > 120
    assert world.ask(COUNT) == whole(170), "what that view lacks is not in the log any more"
    world.compact("all")
    world.view.refresh()
    world.topic.add(1)
    assert world.ask(COUNT) == whole(171)


@pytest.mark.parametrize("when", ["before the view", "behind the view", "while the log is read"])
def test_a_commit_during_the_start_of_a_query(
    world: Asked, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """And the log drops its rows at once."""
    world.topic.add(50)
    world.flush()
    world.topic.add(100)
    done: list[int] = []

    def all_at_once() -> None:
        if not done:
            world.topic.flush()
            done.append(world.topic.trim())

    pinned = TopicTables._pinned

    def pin(tables: TopicTables, table: str) -> Any:
        if when == "before the view":
            all_at_once()
        found = pinned(tables, table)
        if when == "behind the view":
            all_at_once()
        return found

    read = LogTail.read

    def read_some(tail: LogTail, partition: int, offset: int) -> WindowRows | None:
        rows = read(tail, partition, offset)
        if when == "while the log is read":
            all_at_once()
        return rows

    monkeypatch.setattr("frazil.lake.read.log_tail.READ_BYTES", 500)
    monkeypatch.setattr(TopicTables, "_pinned", pin)
    monkeypatch.setattr(LogTail, "read", read_some)
    assert world.ask(COUNT) == whole(150)
    assert done and done[0] > 100


def test_counts_are_correct_during_commits_and_retention(tmp_path: Path, stack: ExitStack) -> None:
    """Several ask all the time, while records of two partitions come, are committed, trimmed and
    compacted."""
    world = asked_of(TopicWorld.open(tmp_path / "data", partitions=2), stack)
    text = (
        "SELECT _log_partition, count(*), count(DISTINCT _offset), min(_offset), max(_offset) + 1 "
        "FROM topic_orders GROUP BY 1 ORDER BY 1"
    )
    known = [0, 0]
    done = threading.Event()

    def ask() -> int:
        asked = 0
        while not done.is_set():
            least = list(known)
            for partition, rows, offsets, first, end in world.ask(text):
                assert (rows, offsets, first) == (end, end, 0)
                assert end >= least[partition]
            asked += 1
        return asked

    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        try:
            for turn in range(10):
                for partition in range(2):
                    world.topic.add(40 + turn, partition)
                    known[partition] = world.topic.counts[partition]
                world.topic.flush()
                world.topic.trim()
                if turn % 4 == 3:
                    compact(world.topic.table(), f"turn-{turn}")
                if turn % 2:
                    world.view.refresh()
        finally:
            done.set()
        assert min(future.result() for future in asking) > 2
    assert world.topic.log.partition(TOPIC, 1).view.start_offset > 200


def test_a_new_topic_is_a_table_at_once(world: Asked) -> None:
    """However similar the names of other topics are."""
    with pytest.raises(Unknown, match=r"no table topic_late"):
        world.ask("SELECT * FROM topic_late")
    for topic in ("late", "late_", "Late.eu-west"):
        world.topic.log.create_topic(topic, TopicConfig(awaits_lake=True))
        world.put(topic, topic.encode())
    text = " UNION ALL ".join(
        f"SELECT CAST(value AS VARCHAR) AS said FROM {table}"
        for table in ("topic_late", "topic_late_", "topic___4cate__2eeu__2dwest")
    )
    expected = [("Late.eu-west",), ("late",), ("late_",)]
    assert sorted(world.ask(text)) == expected
    world.flush()
    assert sorted(world.ask(text)) == expected
    world.put("late", b"more")
    assert sorted(world.ask(text)) == sorted([*expected, ("more",)])


def test_an_unknown_table_lists_topics(world: Asked) -> None:
    """With a suggestion; SHOW TABLES lists them as well."""
    world.topic.add(1)
    with pytest.raises(Unknown, match=r"no table orders at line 1.*did you mean topic_orders"):
        world.ask("SELECT * FROM orders")
    with pytest.raises(
        Unknown, match=r"the tables are copy_history, dead_letters, .*, topic_orders"
    ):
        world.ask("SELECT * FROM zzz")
    with pytest.raises(Unknown, match=r"zzz cannot be read AS OF.*topic_orders"):
        world.ask("SELECT * FROM zzz FOR SYSTEM_VERSION AS OF 1")
    with pytest.raises(Unknown, match=r"no column valu in topic_orders.*did you mean value"):
        world.ask("SELECT valu FROM topic_orders")
    listed = world.ask("SELECT table_name FROM information_schema.tables")
    assert ("topic_orders",) in listed and ("logs",) in listed
    assert any("topic_orders" in row for row in world.ask("SHOW TABLES"))
    assert [row[0] for row in world.ask("DESCRIBE topic_orders")][:2] == [
        "_log_partition",
        "_offset",
    ]


def test_a_table_that_only_the_lake_has_can_be_read(world: Asked, stack: ExitStack) -> None:
    """Such as that of a topic that lake.topics no longer includes."""
    world.topic.add(20)
    world.flush()
    world.topic.add(5)
    tables = TopicTables(world.topic.log, [], world.view, bytes_max=MiB)
    engine = world.beside(stack, tables, world.view)
    assert engine.sql(COUNT).fetchall() == whole(20)
    assert tables.known() == ["topic_orders"], "asked for once is known"


def test_topics_can_be_read_as_of(world: Asked) -> None:
    """By version and by time; all snapshots are listed."""
    world.topic.add(10)
    world.flush()
    world.topic.add(10)
    world.flush()
    world.topic.add(10)
    text = "SELECT snapshot_id FROM snapshots WHERE table_name = 'topic_orders' ORDER BY 1"
    assert len(world.ask(text)) == 2
    facts = world.view.pin(["topic_orders"]).tables["topic_orders"].snapshots
    count = "SELECT count(*), max(_offset) + 1 FROM topic_orders FOR"
    first = facts[0].snapshot_id
    assert world.ask(f"{count} SYSTEM_VERSION AS OF {first}") == [(10, 10)]
    then = datetime.fromtimestamp(facts[0].committed_ms / 1000, UTC)
    # Records say themselves of when they are: all of these are older.
    assert world.ask(f"{count} SYSTEM_TIME AS OF '{then:%Y-%m-%d %H:%M:%S.%f}'") == [(30, 30)]
    assert world.ask(f"{count} SYSTEM_TIME AS OF '1999-01-01'") == [(0, None)]
    assert world.ask(
        f"SELECT (SELECT count(*) FROM topic_orders FOR SYSTEM_VERSION AS OF {first}) AS a, "
        "(SELECT count(*) FROM topic_orders) AS b"
    ) == [(10, 30)]
    with pytest.raises(Unknown, match=r"topic_orders has no snapshot 7"):
        world.ask(f"{count} SYSTEM_VERSION AS OF 7")


def test_log_and_lake_have_the_same_columns_and_values(world: Asked) -> None:
    world.topic.add(9)
    text = "SELECT * FROM topic_orders ORDER BY _offset"
    hot = world.engine.sql(text).arrow()
    world.flush()
    cold = world.engine.sql(text).arrow()
    assert cold.schema.names == hot.schema.names
    assert cold.schema.types == hot.schema.types
    assert cold.to_pylist() == hot.to_pylist()


def test_queries_over_log_and_lake(world: Asked) -> None:
    """Keys, values, headers, top n, counts, joins in a worker."""
    world.topic.add(10)
    world.flush()
    world.topic.add(10)
    assert world.ask("SELECT count(*) FROM topic_orders WHERE key = 'key'") == [(20,)]
    assert world.ask("SELECT _offset FROM topic_orders WHERE value = '0/13'") == [(13,)]
    newest = "SELECT _offset FROM topic_orders ORDER BY time DESC LIMIT 2"
    assert world.ask(newest) == [(19,), (17,)]
    assert world.ask("SELECT _log_partition, count(*) FROM topic_orders GROUP BY 1") == [(0, 20)]
    headers = (
        "SELECT h['key'], count(*), count(h['value']) "
        "FROM (SELECT unnest(headers) AS h FROM topic_orders) GROUP BY 1"
    )
    assert world.ask(headers) == [("a", 20, 10)]
    join = "SELECT count(*) FROM topic_orders a JOIN topic_orders b ON a._offset = b._offset + 1"
    assert world.ask(join) == [(19,)]
    told = "\n".join(row[1] for row in world.ask(f"EXPLAIN {COUNT}"))
    assert "topic_orders: reads 1 of 1 pieces and 2 of 2 files, 20 of 20 rows" in told


def test_too_many_bytes_only_in_the_log_are_rejected(world: Asked, stack: ExitStack) -> None:
    """The error says what to do; after a commit the query works."""
    tables = TopicTables(world.topic.log, LAKE.topics, world.view, bytes_max=4000)
    engine = world.beside(stack, tables, world.view)
    world.topic.add(10)
    world.flush()
    first = world.view.pin(["topic_orders"]).tables["topic_orders"].snapshot_id
    world.topic.add(200)
    with pytest.raises(TooLarge, match=r"more than 4000 bytes of orders.*query.topic_bytes_max"):
        engine.sql(COUNT)
    world.topic.log.create_topic("tight", TopicConfig(awaits_lake=True))
    world.put("tight", *[b"0" * 200] * 50, compression=Compression.ZSTD)
    with pytest.raises(TooLarge, match=r"more than 4000 bytes of tight"):
        engine.sql("SELECT * FROM topic_tight")
    version = "SELECT count(*) FROM topic_orders FOR SYSTEM_VERSION AS OF"
    assert engine.sql(f"{version} {first}").fetchall() == [(10,)]
    world.flush()
    assert engine.sql(COUNT).fetchall() == whole(210)


def test_without_a_lake_the_rows_are_those_of_the_log(world: Asked, stack: ExitStack) -> None:
    """Records trimmed from the log are an error."""
    world.topic.add(120)
    engine = world.beside(
        stack, TopicTables(world.topic.log, LAKE.topics, None, bytes_max=MiB), None
    )
    assert engine.sql(COUNT).fetchall() == whole(120)
    with pytest.raises(Unavailable, match=r"there are no snapshots without a lake"):
        engine.sql("SELECT * FROM topic_orders FOR SYSTEM_VERSION AS OF 1")
    world.flush()
    assert world.topic.trim() > 0
    with pytest.raises(Unavailable, match=r"first records of orders are no longer in the log"):
        engine.sql(COUNT)


def test_records_lost_to_retention_are_in_no_result(tmp_path: Path, stack: ExitStack) -> None:
    """Such a topic does not await the lake."""
    world = asked_of(TopicWorld.open(tmp_path / "data", awaits_lake=False), stack)
    world.topic.add(5)
    world.flush()
    assert world.ask(COUNT) == whole(5)
    world.topic.add(200)
    assert world.ask(COUNT) == whole(205)
    start = world.topic.trim()
    assert start > 5
    world.topic.add(10)
    left = 5 + 215 - start
    assert world.ask(COUNT) == [(left, left, 0, 215)]
    world.flush()
    assert world.ask(COUNT) == [(left, left, 0, 215)]


def test_records_of_the_log_are_decoded_once(world: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often they are queried; rows that the lake has are dropped."""
    made: list[int] = []
    read = LogTail.read

    def counting(tail: LogTail, partition: int, offset: int) -> WindowRows | None:
        rows = read(tail, partition, offset)
        made.append(0 if rows is None else rows.batch.num_rows)
        return rows

    monkeypatch.setattr(LogTail, "read", counting)
    for _ in range(3):
        world.topic.add(20)
        for _ in range(3):
            world.ask(COUNT)
    assert sum(made) == 60
    kept = world.tables._tails._cache[TOPIC]
    assert sum(rows.batch.num_rows for each in kept.rows.values() for rows in each) == 60
    world.flush()
    assert world.ask(COUNT) == whole(60)
    assert kept.size_bytes == 0


def test_a_cancelled_query_leaves_the_rows_it_has_read(
    world: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next query continues there, so that a long tail is read in the end."""
    monkeypatch.setattr("frazil.lake.read.log_tail.READ_BYTES", 500)
    world.topic.add(60)
    seen: list[int] = []

    def check() -> None:
        seen.append(1)
        if len(seen) == 3:
            raise TooLarge("it took too long")

    with pytest.raises(TooLarge, match="too long"):
        world.tables.rows("topic_orders", check)
    (kept,) = world.tables._tails._cache[TOPIC].rows.values()
    assert 0 < kept[-1].end < 60
    begin = kept[-1].end
    asked: list[int] = []
    read = LogTail.read

    def noting(tail: LogTail, partition: int, offset: int) -> WindowRows | None:
        asked.append(offset)
        return read(tail, partition, offset)

    monkeypatch.setattr(LogTail, "read", noting)
    assert world.ask(COUNT) == whole(60)
    assert asked[0] == begin


def test_the_cache_of_log_rows_is_limited(world: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used rows are dropped first."""
    monkeypatch.setattr(tails, "CACHE_BYTES_MAX", 1000)
    world.topic.log.create_topic("other", TopicConfig())
    world.put("other", b"x" * 400)
    world.topic.add(4)
    for table in ("topic_orders", "topic_other", "topic_orders", "topic_other"):
        world.ask(f"SELECT * FROM {table}")
        assert list(world.tables._tails._cache)[-1] == table.removeprefix("topic_")
    world.topic.add(20)
    assert world.ask(COUNT) == whole(24)
    assert "other" not in world.tables._tails._cache


def test_a_topic_created_again_has_a_table_of_its_own(world: Asked) -> None:
    """The rows of the deleted topic stay in theirs, which is renamed; a query never mixes them."""
    topic = world.topic
    topic.add(20)
    world.flush()
    topic.add(5)
    assert world.ask(COUNT) == [(25, 25, 0, 25)]
    topic.log.delete_topic(TOPIC)
    assert world.ask(COUNT) == [(20, 20, 0, 20)], "what the lake has of it stays"
    topic.log.create_topic(TOPIC, TopicConfig(awaits_lake=True))
    topic.counts[0] = 0
    topic.add(3)
    assert world.ask(COUNT) == [(3, 3, 0, 3)]
    world.flush()
    assert world.ask(COUNT) == [(3, 3, 0, 3)]
    (kept,) = (name for name in world.tables.names() if "__deleted_" in name)
    assert world.ask(f"SELECT count(*) FROM {kept}") == [(20,)]
    locations = {
        topic.catalog.load_table(f"{LAKE.namespace}.{name}").location()
        for name in (kept, "topic_orders")
    }
    assert len(locations) == 2, "their files must not be taken for orphans of each other"


def test_deleted_records_are_skipped_by_the_lake(world: Asked) -> None:
    """Although the topic awaits the lake; what the lake has already, it keeps."""
    topic = world.topic
    topic.add(10)
    world.flush()
    topic.add(10)
    topic.log.delete_records(TOPIC, 0, 15)
    assert world.ask(COUNT) == [(15, 15, 0, 20)]
    world.flush()
    assert world.ask(COUNT) == [(15, 15, 0, 20)]
