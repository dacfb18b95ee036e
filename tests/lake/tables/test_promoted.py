"""A table gets promoted columns with ids that are used once, and keeps what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.types import StringType

from frazil.errors import Unavailable
from frazil.lake.catalog.catalog import ensure_namespace, open_catalog
from frazil.lake.tables import tables
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.promoted import promoted_fields
from frazil.lake.tables.tables import ensure_table
from frazil.model import PromotedColumn
from tests.lake.table_builder import CONFIG

ROUTE = PromotedColumn(name="route", of="record", key="http.route", kind="VARCHAR")
SIZE = PromotedColumn(name="size", of="record", key="size", kind="BIGINT")
NEXT_ID = max(FIELD_IDS["logs"].values()) + 1


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = open_catalog(CONFIG, tmp_path)
    ensure_namespace(catalog, CONFIG)
    yield catalog
    catalog.close()


def ids_of(table: Table) -> dict[str, int]:
    return {each.column.name: each.field_id for each in promoted_fields(table)}


def test_columns_come_with_the_rules_and_stay(catalog: Catalog) -> None:
    """Old rules gone, new ones come: a column keeps its id, and the next one is another."""
    first = ensure_table(catalog, CONFIG, "logs", [ROUTE])
    assert ids_of(first) == {"route": NEXT_ID}
    again = ensure_table(catalog, CONFIG, "logs", [ROUTE])
    assert again.metadata_location == first.metadata_location
    later = ensure_table(catalog, CONFIG, "logs", [SIZE])
    assert ids_of(later) == {"route": NEXT_ID, "size": NEXT_ID + 1}
    assert later.properties["write.metadata.metrics.column.size"] == "full"
    last = ensure_table(catalog, CONFIG, "logs")
    assert last.metadata_location == later.metadata_location


def test_an_update_by_another_node_comes_first(catalog: Catalog) -> None:
    """Both would take the same id: the later one is not committed, and takes the next."""
    stale = ensure_table(catalog, CONFIG, "logs")
    changed = ensure_table(catalog, CONFIG, "logs", [ROUTE])
    tables.commit_updates(catalog, stale, tables._updates(stale, "logs", "logs", [SIZE]))
    found = catalog.load_table(changed.name())
    assert found.metadata_location == changed.metadata_location
    assert ids_of(ensure_table(catalog, CONFIG, "logs", [SIZE]))["size"] == NEXT_ID + 1


def test_a_dropped_column_comes_back_with_its_id(catalog: Catalog) -> None:
    """Not without the rule, and not for another attribute."""
    drop(ensure_table(catalog, CONFIG, "logs", [ROUTE]))
    assert ids_of(ensure_table(catalog, CONFIG, "logs", [SIZE])) == {"size": NEXT_ID + 1}
    other = PromotedColumn(name="route", of="resource", key="http.route", kind="VARCHAR")
    with pytest.raises(Unavailable, match=r"is the record attribute.*set column to another name"):
        ensure_table(catalog, CONFIG, "logs", [other])
    found = ensure_table(catalog, CONFIG, "logs", [ROUTE])
    assert ids_of(found) == {"route": NEXT_ID, "size": NEXT_ID + 1}


def drop(table: Table) -> None:
    table.update_schema().delete_column("route").commit()


def rename(table: Table) -> None:
    table.update_schema().rename_column("route", "path").commit()


def drop_and_add(table: Table) -> None:
    drop(table)
    table.update_schema().add_column("route", StringType()).commit()


@pytest.mark.parametrize(
    ("change", "message"),
    [(rename, "was renamed"), (drop_and_add, "not promoted")],
)
def test_a_column_that_users_changed_does_not_come_back(
    catalog: Catalog, change: Callable[[Table], None], message: str
) -> None:
    """The rule is refused. Without it, nothing is written there; another name gets another id."""
    change(ensure_table(catalog, CONFIG, "logs", [ROUTE]))
    with pytest.raises(Unavailable, match=f"{message}.*set column to another name"):
        ensure_table(catalog, CONFIG, "logs", [ROUTE])
    assert ids_of(ensure_table(catalog, CONFIG, "logs")) == {}
    other = PromotedColumn(name="route_2", of="record", key="http.route", kind="VARCHAR")
    (number,) = ids_of(ensure_table(catalog, CONFIG, "logs", [other])).values()
    assert number > NEXT_ID
