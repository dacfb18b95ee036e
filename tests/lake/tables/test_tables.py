"""Tables are created with our ids, brought up to date, and checked for compatibility."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import multiprocessing.pool
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    DoubleType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from frazil.errors import Conflict, Unavailable
from frazil.lake.catalog.catalog import ensure_namespace, open_catalog
from frazil.lake.tables import tables
from frazil.lake.tables.field_ids import FIELD_IDS
from frazil.lake.tables.properties import BLOOM_COLUMNS, BOUNDS, SORT_COLUMNS, properties_of
from frazil.lake.tables.schema import schema_of
from frazil.lake.tables.tables import ensure_table
from frazil.model.arrow import TABLES
from tests.lake.table_builder import CONFIG, ensure_all, make, without

FIRST_LATER_ID = 1001
RESERVED = {
    *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id"),
    *("_last_updated_sequence_number", "_change_type", "_change_ordinal", "_commit_snapshot_id"),
}
"""Iceberg's metadata columns."""
FIRST_RELEASE = {
    "logs": "aee2dbe7a4709b7f",
    "spans": "30b53554f3f882ca",
    "metrics": "b6858c21077c768b",
    "dead_letters": "b3f09f8af784fa5c",
}
"""Digests of the ids of the first release."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = open_catalog(CONFIG, tmp_path)
    ensure_namespace(catalog, CONFIG)
    yield catalog
    catalog.close()


def replaced(column: str, /, **changes: object) -> Schema:
    """Return the schema of `logs` with one field changed."""
    return Schema(
        *(
            field.model_copy(update=changes) if field.name == column else field
            for field in schema_of("logs").columns
        )
    )


@pytest.mark.parametrize("name", TABLES)
def test_field_ids_never_change(name: str) -> None:
    first = sorted(item for item in FIELD_IDS[name].items() if item[1] < FIRST_LATER_ID)
    digest = hashlib.sha256(json.dumps(first).encode()).hexdigest()[:16]
    assert digest == FIRST_RELEASE[name]


@pytest.mark.parametrize("name", TABLES)
def test_every_field_has_a_unique_id(name: str) -> None:
    ids = FIELD_IDS[name]
    assert len(set(ids.values())) == len(ids)
    schema = schema_of(name)
    assert {schema.find_column_name(number): number for number in schema.field_ids}.items() <= (
        ids.items()
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_iceberg_schema_equals_the_arrow_schema(name: str) -> None:
    """Names, types, nullability and comments are equal, column by column."""
    found = schema_to_pyarrow(schema_of(name), include_field_ids=False)
    assert found.names == TABLES[name].names
    for field, expected in zip(found, TABLES[name], strict=True):
        assert field.nullable == expected.nullable
        assert (field.metadata or {})[b"doc"] == expected.metadata[b"comment"]
        assert plain(field.type) == plain(expected.type)


def plain(kind: pa.DataType) -> object:
    """Return a type without irrelevant differences: large strings, names of list elements."""
    if pa.types.is_map(kind):
        return ("map", plain(kind.key_type), plain(kind.item_type), kind.item_field.nullable)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ("list", plain(kind.value_type), kind.value_field.nullable)
    if pa.types.is_struct(kind):
        return [(field.name, plain(field.type), field.nullable) for field in kind]
    return str(kind).removeprefix("large_")


@pytest.mark.parametrize("name", TABLES)
def test_the_layout_refers_to_existing_columns(name: str) -> None:
    """Sort columns are also required."""
    schema = TABLES[name]
    assert not [column for column in SORT_COLUMNS[name] if schema.field(column).nullable]
    assert {*BLOOM_COLUMNS[name], *BOUNDS[name]} <= set(schema.names)


def test_the_documentation_has_sort_columns_and_bloom_filters() -> None:
    page = (Path(__file__).parents[3] / "docs" / "lake-tables.md").read_text()
    for name in TABLES:
        order = ", ".join(f"`{column}`" for column in SORT_COLUMNS[name])
        bloom = ", ".join(f"`{column}`" for column in BLOOM_COLUMNS[name]) or "none"
        assert f"| `{name}` | {order} | {bloom} |" in page


@pytest.mark.parametrize("name", TABLES)
def test_a_new_table_has_our_ids_spec_and_order(catalog: Catalog, name: str) -> None:
    """A second call changes nothing."""
    table = ensure_table(catalog, CONFIG, name)
    assert table.schema() == schema_of(name)
    assert [field.field_id for field in table.schema().columns] == [
        FIELD_IDS[name][column] for column in TABLES[name].names
    ]
    assert table.format_version == 2
    assert str(table.spec().fields[0].transform) == "day"
    sources = [FIELD_IDS[name][column] for column in SORT_COLUMNS[name]]
    assert [field.source_id for field in table.sort_order().fields] == sources
    assert table.properties == properties_of(name)
    assert ensure_table(catalog, CONFIG, name).metadata_location == table.metadata_location


@pytest.mark.parametrize("name", TABLES)
def test_missing_columns_of_an_older_release_are_added(catalog: Catalog, name: str) -> None:
    """They have our ids and are optional; existing columns stay."""
    missing = [
        column for column in TABLES[name].names if column not in (*SORT_COLUMNS[name], "time")
    ]
    old = make(catalog, name, without(schema_of(name), *missing))
    new = ensure_table(catalog, CONFIG, name)
    assert new.metadata.table_uuid == old.metadata.table_uuid
    expected = {field.name: field for field in schema_of(name).columns}
    for field in new.schema().columns:
        optional = field.name in missing or not expected[field.name].required
        assert field == expected[field.name].model_copy(update={"required": not optional})
    assert {field.name for field in new.schema().columns} == set(expected)
    assert new.properties == properties_of(name)


def test_a_missing_field_of_a_struct_is_added(catalog: Catalog) -> None:
    schema = schema_of("spans")
    events = schema.find_field("events").field_type
    assert isinstance(events, ListType)
    assert isinstance(events.element_type, StructType)
    fewer = StructType(*(f for f in events.element_type.fields if f.name != "attributes"))
    older = Schema(
        *(
            field.model_copy(update={"field_type": ListType(events.element_id, fewer, True)})
            if field.name == "events"
            else field
            for field in schema.columns
        )
    )
    make(catalog, "spans", older)
    found = ensure_table(catalog, CONFIG, "spans").schema().find_field("events.attributes")
    assert found.field_id == FIELD_IDS["spans"]["events.element.attributes"]
    assert isinstance(found.field_type, MapType)
    assert found.field_type.key_id == FIELD_IDS["spans"]["events.element.attributes.key"]
    assert not found.required


def test_a_dropped_column_comes_back(catalog: Catalog) -> None:
    """It has the same id, so the values in existing files are back too."""
    table = ensure_table(catalog, CONFIG, "logs")
    with table.update_schema() as update:
        update.delete_column("body")
    found = ensure_table(catalog, CONFIG, "logs").schema().find_field("body")
    assert found == schema_of("logs").find_field("body")


def test_changes_of_users_stay(catalog: Catalog) -> None:
    """Columns, comments and properties stay. Only required properties are restored."""
    table = ensure_table(catalog, CONFIG, "logs")
    with table.update_schema() as update:
        update.add_column("team", StringType(), doc="whose it is")
        update.update_column("body", doc="what it says")
        update.make_column_optional("flags")
    with table.transaction() as transaction:
        transaction.set_properties(
            {"write.target-file-size-bytes": "1", "theirs": "x", "commit.retry.num-retries": "4"}
        )
    found = ensure_table(catalog, CONFIG, "logs")
    assert found.schema().find_field("team").doc == "whose it is"
    assert found.schema().find_field("team").field_id < FIRST_LATER_ID
    assert found.schema().find_field("body").doc == "what it says"
    assert not found.schema().find_field("flags").required
    assert found.properties == properties_of("logs") | {
        "write.target-file-size-bytes": "1",
        "theirs": "x",
    }


BODY = FIELD_IDS["logs"]["body"]
FOREIGN = NestedField(500, "theirs", StringType(), required=True)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (replaced("body", name="message"), f"field {BODY} is named message, expected body (ALTER"),
        (replaced("body", field_id=500), f"column body has id 500, expected {BODY}"),
        (replaced("body", name="Body", field_id=500), "RENAME COLUMN Body TO Body_other"),
        (
            Schema(
                *without(schema_of("logs"), "attributes").columns,
                NestedField(39, "theirs", StringType()),
            ),
            "column theirs has id 39, which belongs to attributes.key (ALTER",
        ),
        (
            replaced("body", required=True),
            "column body is required, expected optional (ALTER TABLE",
        ),
        (replaced("flags", field_type=LongType()), "column flags is long, expected int"),
        (replaced("flags", field_type=StructType()), "column flags is struct<>, expected int"),
        (
            replaced("attributes", field_type=MapType(500, StringType(), 40, DoubleType(), True)),
            "field attributes.key has id 500, expected 39; column attributes.value is double",
        ),
        (
            Schema(*schema_of("logs").columns, FOREIGN),
            "theirs is required, but our rows have no",
        ),
    ],
)
def test_an_incompatible_schema_is_an_error(catalog: Catalog, schema: Schema, words: str) -> None:
    """The message names table, field and repair. Nothing is changed."""
    table = make(catalog, "logs", schema)
    with pytest.raises(Unavailable) as caught:
        ensure_table(catalog, CONFIG, "logs")
    assert words in str(caught.value)
    assert "frazil.frazil.logs does not fit our rows" in str(caught.value)
    assert "RENAME TO ..." in str(caught.value)
    assert table.refresh().metadata_location == table.metadata_location


def by_service(table: Table) -> None:
    with table.update_spec() as update:
        update.add_identity("service_name")


def by_nothing(table: Table) -> None:
    with table.update_spec() as update:
        update.remove_field("time_day")


@pytest.mark.parametrize(
    ("change", "words"),
    [(by_service, "day(time), identity(service_name)"), (by_nothing, "partitioned by nothing")],
)
def test_another_partition_spec_is_an_error(
    catalog: Catalog, change: Callable[[Table], None], words: str
) -> None:
    """Our data files hold one day each, so they cannot be added to such a table."""
    change(ensure_table(catalog, CONFIG, "logs"))
    with pytest.raises(Unavailable, match=r"expected days\(time\) alone") as caught:
        ensure_table(catalog, CONFIG, "logs")
    assert words in str(caught.value)


def test_a_view_with_the_name_of_a_table_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.db")) as connection:
        connection.execute(
            "INSERT INTO iceberg_tables VALUES ('frazil', 'frazil', 'logs', 'x', NULL, 'VIEW')"
        )
        connection.commit()
    with pytest.raises(Conflict, match=r"its name is taken by a view"):
        ensure_table(catalog, CONFIG, "logs")


@pytest.fixture(scope="module")
def processes() -> Iterator[multiprocessing.pool.Pool]:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        yield pool


def test_several_processes_create_the_tables_at_once(
    tmp_path: Path, processes: multiprocessing.pool.Pool
) -> None:
    """One process creates each table, and all use it."""
    for attempt in range(3):
        first, *others = processes.map(ensure_all, [tmp_path / str(attempt)] * 3, chunksize=1)
        assert others == [first] * 2
        assert [count for _, count in first] == [1] * len(TABLES)


def test_several_processes_update_the_tables_at_once(
    tmp_path: Path, processes: multiprocessing.pool.Pool
) -> None:
    """Each missing column is added once."""
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        catalog = open_catalog(CONFIG, folder)
        ensure_namespace(catalog, CONFIG)
        for name in TABLES:
            make(catalog, name, without(schema_of(name), "_offset", "payload", "attributes"))
        catalog.close()
        first, *others = processes.map(ensure_all, [folder] * 3, chunksize=1)
        assert others == [first] * 2
        assert [count for _, count in first] == [2] * len(TABLES)


def test_a_late_create_or_update_changes_nothing(catalog: Catalog) -> None:
    """A table is created once, and an update based on old metadata is not applied."""
    table = make(catalog, "logs", without(schema_of("logs"), "body"))
    again = make(catalog, "logs", schema_of("logs"))
    assert again.metadata_location == table.metadata_location
    stale = catalog.load_table((CONFIG.namespace, "logs"))
    changed = ensure_table(catalog, CONFIG, "logs")
    tables.commit_updates(catalog, stale, tables._updates(stale, "logs", "logs"))
    assert table.refresh().metadata_location == changed.metadata_location


def test_no_column_has_a_reserved_name() -> None:
    """Spark can neither read nor compact a table with such a column."""
    assert not [
        (name, column) for name in TABLES for column in TABLES[name].names if column in RESERVED
    ]
