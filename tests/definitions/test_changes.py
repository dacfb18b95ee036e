"""Keyed tables in `frazil apply`: created if they are missing, never changed or dropped."""

from __future__ import annotations

import pytest

from frazil.definitions import DefinitionKey, changes_to, wanted_definitions
from frazil.errors import Malformed

TABLE = "CREATE TABLE IF NOT EXISTS t (a BIGINT NOT NULL, b TEXT NOT NULL, PRIMARY KEY (a))"
SHOWN = "CREATE TABLE t (a BIGINT, b VARCHAR NOT NULL, PRIMARY KEY (a))"
FILES = {"a.sql": "CREATE VIEW v AS SELECT * FROM t;", "b.sql": f"{TABLE};"}


def test_tables_come_before_views() -> None:
    changes = changes_to(wanted_definitions(FILES), {}, prune=True)
    assert [change.title for change in changes] == ["create table t", "create view v"]
    assert changes[0].statement == TABLE


def test_a_table_that_exists_stays() -> None:
    existing: dict[DefinitionKey, str] = {("table", "t"): SHOWN, ("table", "other"): SHOWN}
    changes = changes_to(wanted_definitions(FILES), existing, prune=True)
    assert [change.title for change in changes] == ["create view v"]
    with pytest.raises(Malformed, match="send ALTER TABLE"):
        changes_to(
            wanted_definitions(FILES), {("table", "t"): SHOWN.replace("BIGINT", "INT")}, prune=False
        )
