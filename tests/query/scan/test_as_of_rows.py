"""AS OF tables: the rows of a snapshot, or those visible at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from frazil.errors import Malformed, Unavailable, Unknown
from frazil.query.sql.dialect import translate
from tests.query.both_tiers import CLOCK, ROWS, World, both_tiers
from tests.query.build import engine_over, log, piece_of

COUNT = "SELECT count(*), count(DISTINCT _offset), max(_offset) + 1 FROM"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with both_tiers(tmp_path / "data") as world:
        yield world


def whole(offsets: int) -> list[tuple[int, int, int]]:
    return [(ROWS * offsets, offsets, offsets)]


def moment() -> str:
    """This one as SQL writes it; what comes later has a later time."""
    at = CLOCK.wall_ms()
    CLOCK.sleep(0.003)
    return f"TIMESTAMP '{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S.%f}'"


def ids(world: World, table: str = "logs") -> list[int]:
    text = f"SELECT snapshot_id FROM snapshots WHERE table_name = '{table}' ORDER BY committed_at"
    return [row[0] for row in world.ask(text)]


def test_a_version_has_exactly_the_rows_of_its_snapshot(world: World) -> None:
    """By id and by tag."""
    for _ in range(3):
        world.add(4)
        world.flush()
    world.add(2)
    world.show()
    found = ids(world)
    assert len(found) == 3
    for number, snapshot_id in enumerate(found):
        told = world.ask(f"{COUNT} logs FOR SYSTEM_VERSION AS OF {snapshot_id}")
        assert told == whole(4 * (number + 1))
    table = world.catalog.load_table("frazil.logs")
    table.manage_snapshots().create_tag(found[0], "monday").commit()
    world.view.refresh()
    assert world.ask(f"{COUNT} logs FOR SYSTEM_VERSION AS OF 'monday' WHERE _row >= 0") == whole(4)
    assert world.ask("SELECT tags FROM snapshots WHERE tags = 'monday'") == [("monday",)]


def test_a_query_may_have_several_as_of_tables(world: World) -> None:
    """Each with an alias, beside the current table."""
    world.add(2)
    world.flush()
    world.add(3)
    world.flush()
    world.add(1)
    world.show()
    first, second = ids(world)
    text = (
        f"SELECT (SELECT count(*) FROM logs FOR SYSTEM_VERSION AS OF {first}) AS a, "
        f"(SELECT count(*) FROM logs FOR SYSTEM_VERSION AS OF {second} AS l WHERE _row < 9) AS b, "
        "(SELECT count(logs._row) FROM logs) AS c"
    )
    assert world.ask(text) == [(2 * ROWS, 5 * ROWS, 6 * ROWS)]


def test_a_time_has_the_rows_visible_then(world: World) -> None:
    """Wherever the rows of that time are now."""
    seen: list[tuple[str, int]] = [(moment(), 0)]
    for turn in range(6):
        world.add(2)
        world.show()
        seen.append((moment(), 2 * turn + 2))
        if turn % 2:
            world.flush()
            seen.append((moment(), 2 * turn + 2))
            world.seal()
            world.tier.evict_below("otlp_logs", world.view.held("logs", "otlp_logs", 0))
    world.add(2)
    world.show()
    for at, count in seen:
        ((rows, offsets),) = world.ask(
            f"SELECT count(*), count(DISTINCT _offset) FROM logs FOR SYSTEM_TIME AS OF {at}"
        )
        assert (rows, offsets) == (count * ROWS, count), at
    told = world.ask(f"EXPLAIN {COUNT} logs FOR SYSTEM_TIME AS OF {seen[4][0]}")
    assert any("lake: snapshot" in row[1] and "only rows with" in row[1] for row in told)


def test_dead_letters_can_be_read_as_of(world: World) -> None:
    world.add_bad()
    world.flush()
    world.add_bad()
    world.show()
    then = moment()
    world.flush()
    world.add_bad()
    world.flush()
    text = (
        f"SELECT count(*), count(DISTINCT _offset) FROM dead_letters FOR SYSTEM_TIME AS OF {then}"
    )
    assert world.ask(text) == [(2, 2)]


def test_an_unknown_version_lists_the_known_ones(world: World) -> None:
    world.add(1)
    world.flush()
    with pytest.raises(Unknown, match=r"no snapshot 7, or it has expired; it has 1 snapshots"):
        world.ask("SELECT * FROM logs FOR SYSTEM_VERSION AS OF 7")
    with pytest.raises(Unknown, match=r"tagged 'friday'"):
        world.ask("SELECT * FROM logs FOR SYSTEM_VERSION AS OF 'friday'")
    with pytest.raises(Unknown, match=r"gauges cannot be read AS OF"):
        world.ask("SELECT * FROM gauges FOR SYSTEM_VERSION AS OF 7")


def test_an_expired_time_is_an_error(world: World) -> None:
    """Not a part of the rows."""
    for _ in range(3):
        world.add(1)
        world.flush()
    then = moment()
    world.add(1)
    world.flush()
    first, second, _, last = ids(world)
    table = world.catalog.load_table("frazil.logs")
    table.maintenance.expire_snapshots().by_ids([first, second]).commit()
    world.view.refresh()
    assert world.ask(f"{COUNT} logs FOR SYSTEM_TIME AS OF {then}") == whole(3)
    assert world.ask(f"{COUNT} logs FOR SYSTEM_VERSION AS OF {last}") == whole(4)
    with pytest.raises(Unknown, match="have expired; it has 2 snapshots, the last ones"):
        world.ask("SELECT * FROM logs FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01 00:00:00'")


def test_without_a_lake_only_times_can_be_read() -> None:
    with engine_over({"logs": [piece_of("logs", [log(1, ingest_time=5), log(2)])]}) as engine:
        with pytest.raises(Unavailable, match="there are no snapshots without a lake"):
            engine.sql("SELECT * FROM logs FOR SYSTEM_VERSION AS OF 7")
        text = "SELECT _offset FROM logs FOR SYSTEM_TIME AS OF '1970-01-01 00:00:00.000001'"
        assert engine.sql(text).fetchall() == [(2,)]
        assert engine.sql("SELECT * FROM snapshots").fetchall() == []


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        (
            "SELECT 1 FROM logs FOR SYSTEM_VERSION AS OF 4",
            'SELECT 1 FROM "_as_of_1_logs" AS "logs"',
        ),
        ("FROM a.logs for system_version as of 'x' l", 'FROM "_as_of_1_logs" l'),
        ("FROM logs FOR SYSTEM_TIME AS OF '2026-01-01' AS l", 'FROM "_as_of_1_logs" AS l'),
        (
            "FROM logs FOR SYSTEM_TIME AS OF timestamp '2026-01-01' where 1",
            'FROM "_as_of_1_logs" AS "logs" where 1',
        ),
        ("SELECT 'logs FOR SYSTEM_TIME AS OF 1'", "SELECT 'logs FOR SYSTEM_TIME AS OF 1'"),
    ],
)
def test_as_of_clauses_are_rewritten(written: str, spelled: str) -> None:
    assert translate(written).text == spelled


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("SELECT * FROM logs FOR SYSTEM_TIME AS OF 'lunch'", "needs a time at line 1, column 42"),
        ("SELECT * FROM logs FOR SYSTEM_TIME AS OF", "needs a time at the end"),
        ("SELECT * FROM logs FOR SYSTEM_VERSION AS OF now()", "needs a snapshot id"),
        ("SELECT * FROM logs FOR SYSTEM_VERSION AS OF 99999999999999999999", "needs a snapshot id"),
    ],
)
def test_a_malformed_as_of_clause_is_an_error(text: str, match: str) -> None:
    """The error has the position and an example."""
    with pytest.raises(Malformed, match=match):
        translate(text)
