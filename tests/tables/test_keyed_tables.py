"""All tables of a folder: create, write, wait, fail, drop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from random import SystemRandom

import pyarrow as pa
import pytest

from frazil.disk import RealDisk
from frazil.errors import Conflict, Malformed, Overloaded, Unavailable, Unknown
from frazil.log import Log
from frazil.model import Rand, SystemClock
from frazil.settings import TablesConfig
from frazil.tables import (
    KeyedTables,
    Operation,
    TableDefinition,
    keyed_tables,
    new_definition,
    partitions_with,
)
from frazil.tables.keys.key_index import bytes_for
from frazil.tables.times import ChangeOrigin
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk
from tests.tables.build import SMALL, open_log, rows_of

COLUMNS = (("id", "int64"), ("name", "string"))
WAIT_S = 30.0


def definition(name: str = "t", partitions: int = 1) -> TableDefinition:
    return new_definition(name, COLUMNS, ["id"], rand=Rand(3), partitions=partitions)


def rows(*ids: int, name: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids)})


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[KeyedTables]:
    """With threads, over real files."""
    disk = RealDisk(tmp_path)
    with Log.open(disk, clock=SystemClock(), rand=SystemRandom()) as log:
        opened = KeyedTables(disk, log, clock=SystemClock())
        opened.start()
        yield opened
        opened.close()


def test_a_write_is_seen_by_who_waits_for_its_token(tables: KeyedTables) -> None:
    tables.create(definition(partitions=3))
    token = tables.write("t", Operation.UPSERT, rows(*range(100)))
    assert set(token) == {0, 1, 2}
    view = tables.wait("t", token, WAIT_S)
    assert view.live_count == 100
    assert view.get(7) == {"id": 7, "name": "a"}
    later = tables.write("t", Operation.DELETE, rows(7))
    assert tables.wait("t", later, WAIT_S).get(7) is None
    status = tables.status("t")
    assert (status.state, status.keys, status.lag_offsets) == ("ok", 99, 0)


def test_a_token_from_the_future_is_waited_for_in_vain(tables: KeyedTables) -> None:
    tables.create(definition())
    with pytest.raises(Unavailable, match="not all below"):
        tables.wait("t", {0: 1}, 0.05)
    with pytest.raises(Malformed, match="1 partitions"):
        tables.wait("t", {1: 0}, WAIT_S)


def test_tables_are_created_altered_and_dropped_while_others_are_written(
    tables: KeyedTables,
) -> None:
    tables.create(definition("busy"))
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            tables.write("busy", Operation.UPSERT, rows(number))
            number += 1

    writing = threading.Thread(target=write)
    writing.start()
    try:
        for round_ in range(3):
            tables.create(definition())
            with pytest.raises(Conflict, match="exists"):
                tables.create(definition())
            tables.write("t", Operation.UPSERT, rows(round_))
            wider = tables.definition("t").add_column("more", "int32")
            tables.alter(wider)
            with pytest.raises(Conflict, match="changed meanwhile"):
                tables.alter(wider)
            more = rows(9).append_column("more", pa.array([5], pa.int32()))
            token = tables.write("t", Operation.UPSERT, more)
            view = tables.wait("t", token, WAIT_S)
            assert rows_of(view) == [
                {"id": round_, "name": "a", "more": None},
                {"id": 9, "name": "a", "more": 5},
            ]
            tables.drop("t")
            assert tables.names() == ["busy"]
            with pytest.raises(Unknown, match="no table t"):
                tables.write("t", Operation.UPSERT, rows(1))
            assert view.get(9) == {"id": 9, "name": "a", "more": 5}  # its files are mapped
    finally:
        stop.set()
        writing.join()
    assert tables.status("busy").state == "ok"


def test_one_of_two_writers_that_expect_the_same_end_wins(tables: KeyedTables) -> None:
    tables.create(definition())
    tables.write("t", Operation.UPSERT, rows(1))
    tables.write("t", Operation.UPSERT, rows(2), expects={0: 1})
    with pytest.raises(Conflict, match="another write came first"):
        tables.write("t", Operation.UPSERT, rows(3), expects={0: 1})
    assert rows_of(tables.wait("t", {0: 2}, WAIT_S)) == rows(1, 2).to_pylist()


def test_an_expected_end_is_checked_for_each_partition_alone(tables: KeyedTables) -> None:
    """What was written, and that the rest was not, is in the error; a repetition completes it."""
    tables.create(definition(partitions=2))
    both = rows(*range(20))
    token = tables.write("t", Operation.UPSERT, both)
    assert token == {0: 1, 1: 1}
    digest = bytes(16)
    with pytest.raises(Conflict, match="Rows of partition 0 were written"):
        tables.write("t", Operation.UPSERT, both, expects={0: 1, 1: 0}, digest=digest)
    again = tables.write_rows("t", Operation.UPSERT, both, expects={0: 1, 1: 1}, digest=digest)
    assert (again.token, again.is_duplicate) == ({0: 2, 1: 2}, False)


def test_a_repetition_is_answered_and_not_stored(tables: KeyedTables) -> None:
    tables.create(definition())
    digest = b"%016d" % 1
    wide = pa.table({"id": range(60_000), "name": ["x" * 100] * 60_000})  # several portions
    first = tables.write_rows("t", Operation.UPSERT, wide, digest=digest)
    again = tables.write_rows("t", Operation.UPSERT, wide, digest=digest)
    assert (first.is_duplicate, again.is_duplicate) == (False, True)
    assert again.token == first.token
    assert tables.status("t").partitions[0].written == first.token[0]


def test_new_keys_above_the_memory_of_all_tables_are_refused(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    config = TablesConfig(key_bytes_max=3 * bytes_for(1))
    with Log.open(disk, clock=SystemClock(), rand=SystemRandom()) as log:
        tables = KeyedTables(disk, log, config, clock=SystemClock())
        for name in ("a", "b"):
            tables.create(definition(name))
            tables.write(name, Operation.UPSERT, rows(1))
            tables.catch_up()
        tables.create(definition("c"))
        with pytest.raises(Overloaded, match="new keys of table c"):
            tables.write("c", Operation.UPSERT, rows(*range(100_000)))
        tables.write("a", Operation.UPSERT, rows(1, name="b"))  # a key that exists
        tables.close()


def test_a_table_that_fails_is_reported_and_does_not_stop_the_others() -> None:
    disk = SimDisk()
    log, clock = open_log(disk), SimClock()
    tables = KeyedTables(disk, log, SMALL, clock=clock)
    for name in ("good", "bad"):
        tables.create(definition(name))
        sent = tables.begin_write(name, Operation.UPSERT, rows(1))
        log.writer.step()
        assert sent.result(0).token == {0: 1}
    path = "log/__table_bad/0/00000000000000000000.log"
    whole = disk.data(path)
    with closing(disk.open(path, "edit")) as file:
        file.write_at(len(whole) // 2, bytes(len(whole) // 2))
    tables.catch_up()
    assert tables.view("good").live_count == 1
    assert tables.status("bad").state == "failed"
    assert "damaged" in (tables.status("bad").trouble or "")
    with pytest.raises(Unavailable, match="cannot be used"):
        tables.view("bad")
    with closing(disk.open(path, "edit")) as file:
        file.write_at(0, whole)
    clock.advance(10_000)
    tables.catch_up()
    assert tables.view("bad").live_count == 1
    assert tables.status("bad").state == "ok"
    tables.close()


def test_files_that_cannot_be_written_are_written_later() -> None:
    disk = SimDisk()
    log, clock = open_log(disk), SimClock()
    tables = KeyedTables(disk, log, TablesConfig(seal_bytes=1), clock=clock)
    tables.create(definition())
    tables.begin_write("t", Operation.UPSERT, rows(1))
    log.writer.step()
    disk.faults.capacity_bytes = 0
    tables.catch_up()
    status = tables.status("t")
    assert (status.state, status.keys) == ("degraded", 1)
    assert status.partitions[0].sealed == 0
    disk.faults.capacity_bytes = None
    tables.begin_write("t", Operation.UPSERT, rows(2))
    log.writer.step()
    with pytest.raises(Unavailable, match="applies no changes: its files cannot be written"):
        tables.latest("t")
    clock.advance(10_000)
    tables.step()
    status = tables.status("t")
    assert (status.state, status.partitions[0].sealed) == ("ok", 1)
    assert tables.latest("t").live_count == 2
    tables.close()


def test_a_start_goes_on_and_the_log_keeps_what_is_in_no_file() -> None:
    disk = SimDisk()
    log, clock = open_log(disk), SimClock()
    tables = KeyedTables(disk, log, SMALL, clock=clock)
    tables.create(definition())
    tables.begin_write("t", Operation.UPSERT, rows(1))
    log.writer.step()
    tables.catch_up()
    assert log.subscriber("tables_t").saved_watermark(0) == 0
    tables.close()
    assert log.subscriber("tables_t").saved_watermark(0) == 1
    again = KeyedTables(disk, log, SMALL, clock=clock)
    assert again.view("t").live_count == 1
    assert again.status("t").partitions[0].sealed == 1
    again.close()
    log.close()


def test_what_the_lake_has_is_sealed_so_that_the_log_can_go() -> None:
    disk = SimDisk()
    log, clock = open_log(disk), SimClock()
    tables = KeyedTables(disk, log, SMALL, clock=clock)
    tables.create(definition())
    tables.begin_write("t", Operation.UPSERT, rows(1))
    log.writer.step()
    tables.catch_up()
    clock.advance(61_000)
    tables.step()
    assert tables.status("t").partitions[0].sealed == 0
    log.publish("__table_t", 0, 1)
    clock.advance(61_000)
    tables.step()
    assert tables.status("t").partitions[0].sealed == 1
    assert log.subscriber("tables_t").saved_watermark(0) == 1
    tables.close()


def test_a_look_up_has_what_was_durable_when_it_began(
    tables: KeyedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for nothing else, and never for ever."""
    tables.create(definition(partitions=3))
    for number in range(50):
        tables.write("t", Operation.UPSERT, rows(number))
        assert tables.latest("t").get(number) is not None
        (partition,) = partitions_with(tables.definition("t"), [number])
        assert tables.latest("t", [partition]).partition_of(number) == partition
    monkeypatch.setattr(keyed_tables, "LATEST_WAIT_S", 0.1)
    with tables._exclusively():  # as a step that hangs
        assert tables.latest("t").live_count == 50
        tables.write("t", Operation.UPSERT, rows(50))
        (partition,) = partitions_with(tables.definition("t"), [50])
        with pytest.raises(Unavailable, match="not all below"):
            tables.latest("t")
        others = [number for number in range(3) if number != partition]
        assert tables.latest("t", others).live_count == 50
        assert tables.wait("t", {partition: 0}, WAIT_S).live_count == 50
    assert tables.latest("t").live_count == 51


def test_changes_have_the_time_and_the_sender_of_their_write() -> None:
    """Also those far apart. What the log does not have has none; nor has a
    write of an earlier release a sender."""
    disk = SimDisk()
    log, clock = open_log(disk), SimClock()
    tables = KeyedTables(disk, log, SMALL, clock=clock)
    tables.create(definition())
    written: dict[int, ChangeOrigin] = {}
    for number in range(300):
        clock.advance(1000)
        by = None if number % 3 == 0 else f"http:token {number}"
        some = rows(number, number + 1000, name="x" * 500)
        sent = tables.begin_write(
            "t", Operation.UPSERT, some, by=by, digest=b"%016d" % number if number % 2 else None
        )
        log.writer.step()
        end = sent.result(0).token[0]
        written |= dict.fromkeys(range(len(written), end), ChangeOrigin(clock.wall_ms(), by))
    offsets = sorted(written)
    assert tables.origins_at("t", 0, offsets) == list(written.values())
    some_offsets = [offsets[0], offsets[0], offsets[150], offsets[-1], offsets[-1] + 1]
    found = tables.origins_at("t", 0, some_offsets)
    assert found == [written.get(each) for each in some_offsets]
    log.delete_records("__table_t", 0, offsets[200])
    assert tables.origins_at("t", 0, [offsets[150], offsets[250]])[0] is None
    assert tables.origins_at("t", 0, [offsets[250]]) == [written[offsets[250]]]
    tables.close()


def test_integers_are_put_into_decimal_columns_if_they_fit(tables: KeyedTables) -> None:
    columns = (("id", "int64"), ("paid", "decimal(5,2)"))
    tables.create(new_definition("d", columns, ["id"], rand=Rand(3)))
    token = tables.write("d", Operation.UPSERT, pa.table({"id": [1], "paid": [999]}))
    assert tables.wait("d", token, WAIT_S).get(1) == {"id": 1, "paid": Decimal("999.00")}
    with pytest.raises(Malformed, match="paid does not fit"):
        tables.write("d", Operation.UPSERT, pa.table({"id": [1], "paid": [1000]}))
