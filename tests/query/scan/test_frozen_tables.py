"""Snapshots of keyed tables in the lake, read by SQL: exactly the rows at their offsets."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from frazil.errors import Conflict, OutOfRange, Unavailable
from frazil.lake import LakeView
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.settings import QueryConfig
from frazil.tables import KeyedView
from tests.lake.keyed.world import CONFIG, NAME, KeyedWorld, OneTable, keyed_world

READ = f"SELECT id, name, amount, big FROM {NAME}"


class Compacted(OneTable):
    """A table whose files no longer know any offset but the last."""

    def view(self, name: str) -> KeyedView:
        view = super().view(name)
        for partition in view.partitions:
            partition._deaths.horizon = partition.end_offset
        return view


def expected(world: KeyedWorld, rows: dict[int, dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = world.keyed.definition.schema.names
    return [tuple(rows[key][name] for name in names) for key in sorted(rows)]


def test_snapshots_are_read_without_their_dead_rows(tmp_path: Path) -> None:
    rand = Random(3)
    with keyed_world(tmp_path) as world:
        past = []
        for _ in range(3):
            world.change(rand, 200, 80)
            world.freeze()
            world.keyed.catch_up()
            past.append((world.keyed.view().offsets, dict(world.rows)))
        view = LakeView(CONFIG, tmp_path)
        tables = Compacted(world.keyed)
        with Engine.open(dict, TABLES, QueryConfig(), SystemClock(), view, keyed=tables) as engine:

            def sql(text: str) -> list[tuple[Any, ...]]:
                return engine.sql(text).fetchall()

            ids = sql(f"SELECT snapshot_id FROM snapshots WHERE table_name = '{NAME}'")
            for (snapshot,), (offsets, rows) in zip(ids, past, strict=True):
                as_of = f"FOR SYSTEM_VERSION AS OF {snapshot} ORDER BY id"
                assert sql(f"{READ} {as_of}") == expected(world, rows)
                # Offsets that local files forgot: the snapshot that ends there has them.
                token = ", ".join(f'"{number}": {end}' for number, end in offsets.items())
                as_of = f"FOR SYSTEM_VERSION AS OF OFFSET '{{{token}}}' ORDER BY id"
                assert sql(f"{READ} {as_of}") == expected(world, rows)
            now = "FOR SYSTEM_TIME AS OF TIMESTAMP '2200-01-01' x WHERE amount > 0"
            positive = [row for row in past[-1][1].values() if (row["amount"] or 0) > 0]
            assert sql(f"SELECT count(*) FROM {NAME} {now}") == [(len(positive),)]
            with pytest.raises(OutOfRange, match="no snapshot of orders ends at these offsets"):
                sql(f'{READ} FOR SYSTEM_VERSION AS OF OFFSET \'{{"0": 1, "1": 0}}\'')
            with pytest.raises(OutOfRange, match="snapshot"):
                sql(f"{READ} FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01'")
            # What is left of a dropped table is read in the same way, under its name.
            tables.table = None
            assert sql(f"{READ} ORDER BY id") == expected(world, world.rows)
            assert sql(f"SELECT count(*), count(_row) FROM {NAME}") == [(len(world.rows),) * 2]
            engine.check_keyed_name(NAME)
            tables.table = world.keyed
            with pytest.raises(Conflict):
                engine.check_keyed_name(NAME)
        # A table that took the name has no such snapshots.
        world.drop_and_create()
        with (
            Engine.open(
                dict, TABLES, QueryConfig(), SystemClock(), view, keyed=Compacted(world.keyed)
            ) as engine,
            pytest.raises(Unavailable, match="no snapshot of table"),
        ):
            engine.sql(f"{READ} FOR SYSTEM_VERSION AS OF {ids[0][0]}")
        view.close()
