"""A promoted column answers alike for every row: in both tiers, older or newer than its rule."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from frazil.errors import Unavailable
from frazil.lake import LakeView
from frazil.lake.maintain.maintenance import Maintenance
from frazil.lake.maintain.row_condition import erasure_condition
from frazil.model import Promotions
from frazil.model.arrow import TABLES, tables_with
from frazil.query import Engine
from frazil.settings import PromoteRule, QueryConfig, promotions_of
from tests.lake.maintain.tables import data_files, local
from tests.lake.maintain.test_maintenance import do_here
from tests.query.both_tiers import CLOCK, CONFIG, World, both_tiers

RULES = (
    PromoteRule(table="logs", key="http.route"),
    PromoteRule(table="logs", key='it\'s "größe"', type="BIGINT", column="size"),
    PromoteRule(table="logs", key="order", type="DOUBLE"),
    PromoteRule(table="logs", key="k8s.cluster.name", of="resource"),
    PromoteRule(table="logs", key="beta", of="scope", type="BOOLEAN"),
)
PROMOTIONS = promotions_of(RULES)
FIRST = promotions_of(RULES[:2])
NAMES = [rule.promoted.name for rule in RULES]
QUOTED = ", ".join(f'"{name}"' for name in NAMES)
ROUTES = ("/a", "/b", "/c")


def add(world: World, begin: int) -> None:
    """Ten requests, each with its values: some are missing, some are of another type."""
    for number in range(begin, begin + 10):
        size = ("many", number, f"{number}", None)[number % 4]
        first: dict[str, Any] = {
            "http.route": ROUTES[number % 3],
            "order": number / 4,
            "resource:k8s.cluster.name": f"cluster-{number % 2}",
            "scope:beta": number % 2 == 0,
        }
        if size is not None:
            first['it\'s "größe"'] = size
        world.add_logs(first, {"order": "NaN"}, {})


def expected(count: int) -> list[tuple[Any, ...]]:
    """Offset, row and the promoted columns."""
    rows: list[tuple[Any, ...]] = []
    for number in range(count):
        size = (None, number, number, None)[number % 4]
        shared = (f"cluster-{number % 2}", number % 2 == 0)
        rows.append((number, 0, ROUTES[number % 3], size, number / 4, *shared))
        rows.append((number, 1, None, None, float("nan"), *shared))
        rows.append((number, 2, None, None, None, *shared))
    return rows


def check(world: World, count: int) -> None:
    """Queries that take each way of the engine give what the attributes say."""
    rows = expected(count)
    found = world.ask(f"SELECT _offset, _row, {QUOTED} FROM logs ORDER BY _offset, _row")
    assert repr(found) == repr(rows)
    by_route = world.ask("SELECT http_route, count(*) FROM logs GROUP BY 1 ORDER BY 1 NULLS LAST")
    routes = [row[2] for row in rows]
    assert by_route == [(route, routes.count(route)) for route in (*ROUTES, None)]
    where = "http_route = '/b' AND size >= 10"
    chosen = [row[:2] for row in rows if row[2] == "/b" and row[3] is not None and row[3] >= 10]
    assert world.ask(f"SELECT _offset, _row FROM logs WHERE {where} ORDER BY 1, 2") == chosen
    newest = world.ask("SELECT _offset, size FROM logs WHERE _row = 0 ORDER BY time DESC LIMIT 500")
    assert sorted(newest, key=lambda row: row[0]) == [
        (row[0], row[3]) for row in rows if row[1] == 0
    ]
    assert world.ask("SELECT max(size), count(beta), count(*) FROM logs") == [
        (max(row[3] for row in rows if row[3] is not None), 3 * count, 3 * count)
    ]
    assert len(world.ask("SELECT * FROM logs LIMIT 1")[0]) == len(TABLES["logs"].names) + len(NAMES)


def files_of(world: World) -> list[dict[str, list[Any]]]:
    """The promoted columns of each data file, as Parquet has them."""
    table = world.catalog.load_table("frazil.logs")
    files = []
    for file in data_files(table):
        read = pq.ParquetFile(local(file.file_path)).read().sort_by([("_offset", "ascending")])
        files.append({name: read[name].to_pylist() for name in NAMES if name in read.schema.names})
    return files


def maintenance(world: World) -> Maintenance:
    return Maintenance(
        lambda: world.catalog, CONFIG, do_here, clock=CLOCK, rand=random.SystemRandom()
    )


def fill(world: World, begin: int) -> None:
    """Rows in the lake, in a segment and in memory."""
    add(world, begin)
    world.show()
    world.flush()
    world.tier.freeze()
    world.tier.seal()
    world.tier.evict_below("otlp_logs", begin + 10)
    add(world, begin + 10)
    world.show()
    world.seal()
    add(world, begin + 20)
    world.show()


def test_rows_answer_alike_whenever_the_rule_came(tmp_path: Path) -> None:
    """Without rules, with two, then with all: each start finds files and segments of the ones
    before. Afterwards the columns are in Iceberg, and compaction fills the older rows."""
    folder = tmp_path / "data"
    steps: list[Promotions] = [{}, FIRST, PROMOTIONS]
    for step, promotions in enumerate(steps):
        with both_tiers(folder, promotions=promotions) as world:
            world.show()
            if promotions is PROMOTIONS:
                check(world, 30 * step)
            fill(world, 30 * step)
            if promotions is PROMOTIONS:
                check(world, 30 * (step + 1))
    with both_tiers(folder, promotions=PROMOTIONS) as world:
        world.show()
        check(world, 90)
        world.flush()
        check(world, 90)
        kinds = {tuple(file) for file in files_of(world)}
        assert kinds == {(), tuple(NAMES[:2]), tuple(NAMES)}
        schema = world.catalog.load_table("frazil.logs").schema()
        ids = [schema.find_field(name).field_id for name in NAMES]
        assert ids == list(range(ids[0], ids[0] + len(NAMES)))
        assert schema.find_field("size").doc == (
            'log attribute it\'s "größe" as BIGINT, null if it is none'
        )
        maintenance(world).compact("logs", is_all=True)
        (file,) = files_of(world)
        rows = expected(90)
        assert [repr(file[name]) for name in NAMES] == [
            repr([row[2 + at] for row in rows]) for at in range(len(NAMES))
        ]
        world.view.refresh()
        check(world, 90)
        found = world.catalog.load_table("frazil.logs").scan("size >= 80").to_arrow()
        assert sorted(found["size"].to_pylist()) == [81, 82, 85, 86, 89]
        condition = erasure_condition("logs", "size = 81 OR http_route = '/nope'", PROMOTIONS)
        maintenance(world).erase([condition])
        world.view.refresh()
        assert world.ask("SELECT count(*) FROM logs WHERE size >= 80") == [(4,)]


def test_the_pruned_files_have_no_matching_row(tmp_path: Path) -> None:
    """Bounds prune files that have the column, and no others."""
    folder = tmp_path / "data"
    with both_tiers(folder) as world:
        add(world, 0)
        world.flush()
    with both_tiers(folder, promotions=PROMOTIONS) as world:
        for begin in (10, 20):
            add(world, begin)
            world.flush()
        text = "SELECT count(*) FROM logs WHERE size = 21"
        assert world.ask(text) == [(1,)]
        plan = "\n".join(row[1] for row in world.ask(f"EXPLAIN {text}"))
        assert "2 of 3 files" in plan


def test_the_table_decides_what_is_written(tmp_path: Path) -> None:
    """A node without the rules fills the columns all the same, and does not show them."""
    folder = tmp_path / "data"
    with both_tiers(folder, promotions=PROMOTIONS) as world:
        add(world, 0)
        world.flush()
    with both_tiers(folder) as world:
        add(world, 10)
        world.flush()
        assert len(world.ask("SELECT * FROM logs LIMIT 1")[0]) == len(TABLES["logs"].names)
        assert [list(file) for file in files_of(world)] == [NAMES, NAMES]
    with both_tiers(folder, promotions=PROMOTIONS) as world:
        world.show()
        check(world, 20)


@pytest.mark.parametrize(
    "rule",
    [
        PromoteRule(table="logs", key="order", type="BIGINT"),
        PromoteRule(table="logs", key="other", type="DOUBLE", column="order"),
        PromoteRule(table="logs", key="order", type="DOUBLE", of="resource"),
    ],
)
def test_a_column_keeps_its_meaning(rule: PromoteRule, tmp_path: Path) -> None:
    """Another type or attribute for the same name is refused by the table; queries go on."""
    folder = tmp_path / "data"
    with both_tiers(folder, promotions=PROMOTIONS) as world:
        add(world, 0)
        world.flush()
    promotions = promotions_of([rule])
    with (
        pytest.raises(Unavailable, match="set column to another name"),
        both_tiers(folder, promotions=promotions),
    ):
        pass
    view = LakeView(CONFIG, folder, promotions)
    with Engine.open(dict, tables_with(promotions), QueryConfig(), CLOCK, view) as engine:
        found = engine.sql('SELECT "order" FROM logs WHERE _row = 0 ORDER BY _offset').fetchall()
        few = engine.sql('SELECT count(*) FROM logs WHERE "order" = 2').fetchall()
    view.close()
    values = [(each / 4).as_integer_ratio() for each in range(10)]
    whole = [(top if bottom == 1 else None,) for top, bottom in values]
    is_integer = rule.type == "BIGINT"
    assert found == (whole if is_integer else [(None,)] * 10)
    assert few == [(1 if is_integer else 0,)]


def test_merged_segments_have_the_columns(tmp_path: Path) -> None:
    """Small segments from before the rules are merged after a restart."""
    folder = tmp_path / "data"
    for promotions, begins in (({}, range(0, 100, 10)), (PROMOTIONS, range(100, 160, 10))):
        with both_tiers(folder, promotions=promotions) as world:
            for begin in begins:
                add(world, begin)
                world.show()
                world.seal()
            pieces = world.tier.visible_pieces()["logs"]
            assert len(pieces) == (1 if promotions else 10)
            assert not any(piece.unfilled for piece in pieces)
            if promotions:
                check(world, 160)
