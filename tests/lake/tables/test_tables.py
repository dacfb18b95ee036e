"""Tables: made with our ids, brought up to date, refused when our rows no longer fit."""

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
    """The schema of `logs` with another field of that name."""
    return Schema(
        *(
            field.model_copy(update=changes) if field.name == column else field
            for field in schema_of("logs").columns
        )
    )


@pytest.mark.parametrize("name", TABLES)
def test_ids_never_change(name: str) -> None:
    """Files that are written know their columns by these numbers, for good."""
    first = sorted(item for item in FIELD_IDS[name].items() if item[1] < FIRST_LATER_ID)
    digest = hashlib.sha256(json.dumps(first).encode()).hexdigest()[:16]
    assert digest == FIRST_RELEASE[name]


@pytest.mark.parametrize("name", TABLES)
def test_every_field_has_a_number_of_its_own(name: str) -> None:
    """No two fields of a table share one, and none of the model is without."""
    ids = FIELD_IDS[name]
    assert len(set(ids.values())) == len(ids)
    schema = schema_of(name)
    assert {schema.find_column_name(number): number for number in schema.field_ids}.items() <= (
        ids.items()
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_schema_is_that_of_the_model(name: str) -> None:
    """Names, types, what can be null and comments are the same, column for column."""
    found = schema_to_pyarrow(schema_of(name), include_field_ids=False)
    assert found.names == TABLES[name].names
    for field, wanted in zip(found, TABLES[name], strict=True):
        assert field.nullable == wanted.nullable
        assert (field.metadata or {})[b"doc"] == wanted.metadata[b"comment"]
        assert plain(field.type) == plain(wanted.type)


def plain(kind: pa.DataType) -> object:
    """A type without the differences that mean nothing: large strings, names of elements."""
    if pa.types.is_map(kind):
        return ("map", plain(kind.key_type), plain(kind.item_type), kind.item_field.nullable)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ("list", plain(kind.value_type), kind.value_field.nullable)
    if pa.types.is_struct(kind):
        return [(field.name, plain(field.type), field.nullable) for field in kind]
    return str(kind).removeprefix("large_")


@pytest.mark.parametrize("name", TABLES)
def test_the_layout_names_columns_that_are_there(name: str) -> None:
    """Sorted by what cannot be null; filters and bounds of columns that the table has."""
    schema = TABLES[name]
    assert not [column for column in SORT_COLUMNS[name] if schema.field(column).nullable]
    assert {*BLOOM_COLUMNS[name], *BOUNDS[name]} <= set(schema.names)


def test_the_page_says_how_tables_lie() -> None:
    """docs/lake-tables.md has the order and the filters that the code has."""
    page = (Path(__file__).parents[3] / "docs" / "lake-tables.md").read_text()
    for name in TABLES:
        order = ", ".join(f"`{column}`" for column in SORT_COLUMNS[name])
        bloom = ", ".join(f"`{column}`" for column in BLOOM_COLUMNS[name]) or "none"
        assert f"| `{name}` | {order} | {bloom} |" in page


@pytest.mark.parametrize("name", TABLES)
def test_a_new_table(catalog: Catalog, name: str) -> None:
    """It has our ids, is sorted, lies by day, and is not touched when all is well."""
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
def test_a_table_of_an_older_release(catalog: Catalog, name: str) -> None:
    """Each column that it lacks is added with our id, and can be null; the others stay."""
    missing = [
        column for column in TABLES[name].names if column not in (*SORT_COLUMNS[name], "time")
    ]
    old = make(catalog, name, without(schema_of(name), *missing))
    new = ensure_table(catalog, CONFIG, name)
    assert new.metadata.table_uuid == old.metadata.table_uuid
    wanted = {field.name: field for field in schema_of(name).columns}
    for field in new.schema().columns:
        optional = field.name in missing or not wanted[field.name].required
        assert field == wanted[field.name].model_copy(update={"required": not optional})
    assert {field.name for field in new.schema().columns} == set(wanted)
    assert new.properties == properties_of(name)


def test_a_field_inside_a_column_is_added(catalog: Catalog) -> None:
    """Structs grow as tables do."""
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
    """Our rows need it; with its id come the values that files still have."""
    table = ensure_table(catalog, CONFIG, "logs")
    with table.update_schema() as update:
        update.delete_column("body")
    found = ensure_table(catalog, CONFIG, "logs").schema().find_field("body")
    assert found == schema_of("logs").find_field("body")


def test_what_others_add_stays(catalog: Catalog) -> None:
    """A column, a comment, a setting: not ours to undo. What keeps rows right is set again."""
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
        (replaced("body", name="message"), f"field {BODY} is called message, and not body (ALTER"),
        (
            replaced("body", field_id=500),
            f"column body has the id 500, and ours of that name {BODY}",
        ),
        (replaced("body", name="Body", field_id=500), "RENAME COLUMN Body TO Body_other"),
        (
            Schema(
                *without(schema_of("logs"), "attributes").columns,
                NestedField(39, "theirs", StringType()),
            ),
            "column theirs has the id 39 of attributes.key (ALTER",
        ),
        (replaced("body", required=True), "column body cannot be null, and ours can (ALTER TABLE"),
        (replaced("flags", field_type=LongType()), "column flags is long, and ours is int"),
        (replaced("flags", field_type=StructType()), "column flags is struct<>, and ours is int"),
        (
            replaced("attributes", field_type=MapType(500, StringType(), 40, DoubleType(), True)),
            "field attributes.key has the id 500, and ours 39; column attributes.value is double",
        ),
        (
            Schema(*schema_of("logs").columns, FOREIGN),
            "theirs cannot be null, and our rows have no",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(catalog: Catalog, schema: Schema, words: str) -> None:
    """The message names the table and the field, and says what to do. Nothing is changed."""
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
def test_a_table_that_lies_otherwise_is_refused(
    catalog: Catalog, change: Callable[[Table], None], words: str
) -> None:
    """Our files hold a day each, and could not be named in such a table."""
    change(ensure_table(catalog, CONFIG, "logs"))
    with pytest.raises(Unavailable, match=r"not by days\(time\) alone") as caught:
        ensure_table(catalog, CONFIG, "logs")
    assert words in str(caught.value)


def test_a_name_that_is_taken(catalog: Catalog, tmp_path: Path) -> None:
    """A view of somebody else is no table, and is not replaced by one."""
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.db")) as connection:
        connection.execute(
            "INSERT INTO iceberg_tables VALUES ('frazil', 'frazil', 'logs', 'x', NULL, 'VIEW')"
        )
        connection.commit()
    with pytest.raises(Conflict, match=r"something that is no table has its name"):
        ensure_table(catalog, CONFIG, "logs")


@pytest.fixture(scope="module")
def processes() -> Iterator[multiprocessing.pool.Pool]:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        yield pool


def test_several_processes_make_the_tables_at_once(
    tmp_path: Path, processes: multiprocessing.pool.Pool
) -> None:
    """One wins each table, and all go on with that one."""
    for attempt in range(3):
        first, *others = processes.map(ensure_all, [tmp_path / str(attempt)] * 3, chunksize=1)
        assert others == [first] * 2
        assert [count for _, count in first] == [1] * len(TABLES)


def test_several_processes_bring_the_tables_up_to_date_at_once(
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


def test_who_comes_second_changes_nothing(catalog: Catalog) -> None:
    """A table is made once; a change for a table that has changed since is not done."""
    table = make(catalog, "logs", without(schema_of("logs"), "body"))
    again = make(catalog, "logs", schema_of("logs"))
    assert again.metadata_location == table.metadata_location
    stale = catalog.load_table((CONFIG.namespace, "logs"))
    changed = ensure_table(catalog, CONFIG, "logs")
    tables._change(catalog, stale, tables._updates(stale, "logs", "logs"))
    assert table.refresh().metadata_location == changed.metadata_location


def test_no_column_has_a_name_that_iceberg_reserves() -> None:
    """Spark can neither show nor compact a table with such a column."""
    assert not [
        (name, column) for name in TABLES for column in TABLES[name].names if column in RESERVED
    ]
