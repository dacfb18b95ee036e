"""What the catalog of the server says: publication, tables, types, the slot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from frazil.connectors.postgres.json_values import PostgresType
from frazil.connectors.postgres.options import PostgresOptions
from frazil.connectors.postgres.pgoutput import Relation, RelationColumn
from frazil.connectors.postgres.positions import parse_lsn
from frazil.connectors.postgres.replication import connect, error_of, quoted
from frazil.errors import Rejected

VERSION_MIN = 140000
COLUMN_LISTS_FROM = 150000
"""Publications have lists of columns and conditions on rows since Postgres 15."""

TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relreplident, c.relkind, c.reltuples, {attnames}, {rowfilter}
FROM pg_publication_tables p
JOIN pg_namespace n ON n.nspname = p.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
WHERE p.pubname = %s ORDER BY 2, 3
"""
COLUMNS = """
SELECT a.attrelid, a.attname, a.atttypid, a.atttypmod, a.attnotnull,
  coalesce(a.attnum = ANY (i.indkey), false), t.typname, t.typbasetype
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND CASE c.relreplident
  WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
WHERE a.attrelid = ANY (%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attrelid, a.attnum
"""
CANDIDATES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%%'
ORDER BY 1, 2
"""
EXISTING = """
SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%s)
"""
PUBLICATION = """
SELECT p.puballtables, pg_has_role(p.pubowner, 'USAGE'),
  p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate
FROM pg_publication p WHERE p.pubname = %s
"""
SLOT = """
SELECT plugin, database, active_pid, confirmed_flush_lsn::text, wal_status
FROM pg_replication_slots WHERE slot_name = %s
"""
AS_BEFORE = """
SELECT count(*) FILTER (WHERE c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid)
  AND c.relkind = 'r') FROM pg_class c
WHERE c.oid = %s OR c.oid IN (SELECT relid FROM pg_partition_tree(%s))
"""
"""The catalog is read as of the snapshot, the function tells what is now."""
TYPES = """
SELECT t.oid, t.typname, CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END, t.typbasetype,
  coalesce(e.typdelim, ',')
FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem WHERE t.oid = ANY (%s)
"""
PRIMARY_KEY = """
SELECT a.attname FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s AND i.indisprimary ORDER BY array_position(i.indkey::int[], a.attnum::int)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogColumn:
    """A column as tables are created from it."""

    name: str
    type_name: str
    type_modifier: int
    is_nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A table of the publication, as it is now."""

    relation: Relation
    """As the stream would tell it."""
    columns: Sequence[CatalogColumn]
    primary_key: Sequence[str]
    rows_about: int
    """As the last ANALYZE has found; -1 if there was none."""
    row_filter: str | None
    has_partitions: bool

    @property
    def name(self) -> str:
        return f"{self.relation.schema}.{self.relation.table}"


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot, as the server has it."""

    plugin: str
    database: str
    is_active: bool
    confirmed_lsn: int
    wal_status: str


class Catalog:
    """A connection for queries. Close it."""

    def __init__(self, connection: Mapping[str, str], application: str) -> None:
        self._connection = connect(connection, application)
        self.version = self._connection.info.server_version

    def check_server(self) -> None:
        """Raise `Rejected` if the server cannot be a source."""
        if self.version < VERSION_MIN:
            raise Rejected(f"Postgres {self.version // 10000} is too old: 14 and newer can be read")
        (level,) = self._row("SHOW wal_level")
        if level != "logical":
            raise Rejected(
                f"wal_level of the server is {level}: set wal_level = logical in postgresql.conf, "
                "and restart the server"
            )

    def wal_lsn(self) -> int:
        (lsn,) = self._row("SELECT pg_current_wal_lsn()::text")
        return parse_lsn(lsn)

    def slot(self, name: str) -> SlotState | None:
        rows = self._rows(SLOT, (name,))
        if not rows:
            return None
        plugin, database, pid, lsn, status = rows[0]
        return SlotState(plugin, database, pid is not None, parse_lsn(lsn or "0/0"), status or "")

    def publish(self, publication: str, options: PostgresOptions) -> list[PublishedTable]:
        """Return the wanted tables of the publication. Creates it if there is none, and adds tables
        that are missing, if it is ours."""
        found = self._rows(PUBLICATION, (publication,))
        wanted = [row for row in self._rows(CANDIDATES) if options.wants(*row)]
        if not found:
            if not wanted:
                raise Rejected(f"no table matches TABLES {', '.join(options.patterns)}")
            self._execute(
                f"CREATE PUBLICATION {quoted([publication])} FOR TABLE {_tables(wanted)} "
                "WITH (publish_via_partition_root = true)"
            )
            return self.published(publication, options)
        ((has_all, is_ours, publishes_all),) = found
        if not publishes_all:
            raise Rejected(
                f"publication {publication} does not publish all of insert, update, delete and "
                "truncate: ALTER PUBLICATION … SET (publish = 'insert, update, delete, truncate')"
            )
        tables = self.published(publication, options)
        names = {(table.relation.schema, table.relation.table) for table in tables}
        missing = [row for row in wanted if tuple(row) not in names]
        if missing and is_ours and not has_all:
            self._execute(f"ALTER PUBLICATION {quoted([publication])} ADD TABLE {_tables(missing)}")
            return self.published(publication, options)
        if not tables:
            raise Rejected(f"publication {publication} has none of the tables that TABLES names")
        return tables

    def published(self, publication: str, options: PostgresOptions) -> list[PublishedTable]:
        """Return the wanted tables of a publication."""
        has_lists = self.version >= COLUMN_LISTS_FROM
        query = TABLES.format(
            attnames="p.attnames" if has_lists else "NULL",
            rowfilter="p.rowfilter" if has_lists else "NULL",
        )
        rows = [row for row in self._rows(query, (publication,)) if options.wants(row[1], row[2])]
        columns: dict[int, list[Any]] = {row[0]: [] for row in rows}
        for column in self._rows(COLUMNS, (list(columns),)):
            columns[column[0]].append(column)
        return [_published(row, columns[row[0]]) for row in rows]

    def existing(self, oids: Sequence[int]) -> Mapping[int, tuple[str, str]]:
        """Return schema and name of those of these tables that exist."""
        return {oid: (schema, table) for oid, schema, table in self._rows(EXISTING, (list(oids),))}

    def types(self, oids: Sequence[int]) -> Mapping[int, PostgresType]:
        found: dict[int, PostgresType] = {}
        wanted = set(oids)
        while wanted:
            rows = self._rows(TYPES, (list(wanted),))
            found |= {row[0]: PostgresType(*row) for row in rows}
            below = {oid for row in rows for oid in (row[2], row[3]) if oid}
            wanted = below - set(found)
        return found

    def primary_key(self, oid: int) -> Sequence[str]:
        return [name for (name,) in self._rows(PRIMARY_KEY, (oid,))]

    def row_now(
        self, relation: Relation, columns: Sequence[str], key: Mapping[str, bytes]
    ) -> Sequence[bytes | None] | None:
        """Return columns of a row as text; None if it, or one of them, is not there any more."""
        conditions = " AND ".join(f"{quoted([name])} = %s" for name in key)
        query = (
            f"SELECT {quoted(columns)} FROM {quoted([relation.schema])}."
            f"{quoted([relation.table])} WHERE {conditions}"
        )
        try:
            cursor = self._connection.execute(
                query.encode(), tuple(value.decode() for value in key.values())
            )
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn):
            return None
        except psycopg.Error as error:
            raise error_of(error, "a row cannot be read") from error
        result = cursor.pgresult
        if result is None or not result.ntuples:
            return None
        values = (result.get_value(0, index) for index in range(len(columns)))
        return [None if value is None else bytes(value) for value in values]

    @contextmanager
    def snapshot(self, name: str) -> Iterator[None]:
        """Run the block as of an exported snapshot."""
        self._execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            self._execute(f"SET TRANSACTION SNAPSHOT '{name}'")
            yield
        finally:
            if not self._connection.closed:
                self._execute("ROLLBACK")

    def holds_rows(self, table: PublishedTable) -> bool:
        """Keep a table from being rewritten until the snapshot ends. False if it was, since: a
        TRUNCATE, and an ALTER TABLE that writes all rows anew, take them from older snapshots."""
        relation = table.relation
        self._execute(
            f"LOCK TABLE {quoted([relation.schema])}.{quoted([relation.table])} "
            "IN ACCESS SHARE MODE"
        )
        ((rewritten,),) = self._rows(AS_BEFORE, (relation.oid, relation.oid))
        return int(rewritten) == 0

    def copy_lines(self, table: PublishedTable) -> Iterator[bytes]:
        """Yield the rows of a table, in the text format of COPY."""
        names = [column.name for column in table.relation.columns]
        place = f"{quoted([table.relation.schema])}.{quoted([table.relation.table])}"
        query = f"SELECT {quoted(names)} FROM {'' if table.has_partitions else 'ONLY '}{place}"
        if table.row_filter:
            query += f" WHERE {table.row_filter}"
        rest = b""
        try:
            with self._connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
                for block in copy:
                    *lines, rest = (rest + bytes(block)).split(b"\n")
                    yield from lines
        except psycopg.Error as error:
            raise error_of(error, f"{table.name} cannot be copied") from error

    def _execute(self, statement: str) -> None:
        self._rows(statement)

    def _row(self, query: str) -> tuple[Any, ...]:
        (row,) = self._rows(query)
        return row

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            cursor = self._connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            raise error_of(error, re.sub(r"\s+", " ", query.strip())[:100]) from error

    def close(self) -> None:
        self._connection.close()


def _tables(rows: Sequence[Sequence[str]]) -> str:
    return ", ".join(f"{quoted([schema])}.{quoted([table])}" for schema, table in rows)


def _published(row: Sequence[Any], columns: Sequence[Sequence[Any]]) -> PublishedTable:
    oid, schema, table, identity, kind, rows, names, row_filter = row
    sent = [column for column in columns if names is None or column[1] in names]
    relation = Relation(
        oid,
        schema,
        table,
        identity,
        tuple(
            RelationColumn(name, type_oid, modifier, is_key and identity != "n")
            for _, name, type_oid, modifier, _, is_key, _, _ in sent
        ),
    )
    return PublishedTable(
        relation=relation,
        columns=[
            CatalogColumn(
                name=name, type_name=type_name, type_modifier=modifier, is_nullable=not not_null
            )
            for _, name, _, modifier, not_null, _, type_name, _ in sent
        ],
        primary_key=[column[1] for column in sent if column[5]],
        rows_about=int(rows),
        row_filter=row_filter,
        has_partitions=kind == "p",
    )
