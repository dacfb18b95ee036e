"""Statements of keyed tables: CREATE, ALTER, DROP, INSERT, UPSERT, UPDATE, DELETE.

    pin a view ─> the read-only engine evaluates ─> append, if the log still ends at the view

A statement that changes rows reads the table at one moment, and its changes are appended only if
nothing else was written to their partition since: else it is evaluated again. All rows of a
partition change together; partitions change one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import pyarrow as pa

from frazil.definitions import (
    AddColumn,
    CreateTable,
    DeleteRows,
    Drop,
    InsertRows,
    ShowKeyedTables,
    StatementCall,
    StatementExecutor,
    StatementHandler,
    UpdateRows,
    WidenColumn,
    done,
)
from frazil.errors import (
    Conflict,
    FrazilError,
    Malformed,
    TooLarge,
    Unavailable,
    Unknown,
    Unresolved,
)
from frazil.model import Rand, SystemRand
from frazil.query.engine import Engine
from frazil.query.scan.keyed_tables import KeyedViews
from frazil.query.sql.as_of import quoted
from frazil.query.strict_values import literal_array, literal_of, strict_column
from frazil.query.table_definitions import definition_of, definition_text, type_of
from frazil.results import CancelToken, Limits, tokens
from frazil.tables import (
    KeyedTableStatus,
    KeyedView,
    Operation,
    TableDefinition,
    Token,
    rows_by_partition,
)

ROWS_MAX = 100_000
"""Rows that one statement changes."""
EXPRESSIONS_MAX = 1000
"""Values of one VALUES that are no constants."""
TRIES_MAX = 10
"""How often a statement is evaluated while others write to its table."""
WAIT_S = 10.0
"""How long a statement waits until the table has its rows."""
CHANGED_SCHEMA = pa.schema(
    [
        pa.field("status", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("token", pa.string(), nullable=False),
    ]
)
SHOW_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("definition", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("written", pa.string(), nullable=False),
        pa.field("indexed", pa.string(), nullable=False),
        pa.field("iceberg", pa.string(), nullable=False),
    ]
)


class KeyedStore(KeyedViews, Protocol):
    """Keyed tables that can be changed. `frazil.tables.KeyedTables` implements it."""

    def latest(self, name: str) -> KeyedView: ...

    def wait(self, name: str, token: Token, timeout_s: float) -> KeyedView: ...

    def create(self, definition: TableDefinition) -> None: ...

    def alter(self, definition: TableDefinition) -> None: ...

    def drop(self, name: str) -> None: ...

    def write(
        self,
        name: str,
        operation: Operation,
        rows: pa.RecordBatch | pa.Table,
        *,
        expects: Token | None = None,
        by: str | None = None,
    ) -> Token: ...

    def status(self, name: str) -> KeyedTableStatus: ...


def register_tables(
    executor: StatementExecutor,
    engine: Engine,
    tables: KeyedStore,
    *,
    rand: Rand | None = None,
) -> None:
    """Let `executor` carry out the statements of keyed tables. What drops other tables is
    registered before."""
    statements = TableStatements(engine, tables, rand or SystemRand())
    executor.register(CreateTable, statements.create)
    executor.register(AddColumn, statements.add_column)
    executor.register(WidenColumn, statements.widen_column)
    executor.register(InsertRows, statements.insert)
    executor.register(UpdateRows, statements.update)
    executor.register(DeleteRows, statements.delete)
    executor.register(ShowKeyedTables, statements.show)
    executor.wrap_drop("table", statements.dropper)


class TableStatements:
    """Carries out statements of keyed tables. Any thread may call it."""

    def __init__(self, engine: Engine, tables: KeyedStore, rand: Rand) -> None:
        self._engine = engine
        self._tables = tables
        self._rand = rand

    def create(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, CreateTable)
        definition = definition_of(statement, self._rand)
        if statement.name in self._tables.names():
            existing = self._tables.definition(statement.name)
            if not statement.if_not_exists:
                raise Conflict(f"table {statement.name} exists; write IF NOT EXISTS, or DROP TABLE")
            if definition_text(existing) != definition_text(definition):
                raise Conflict(
                    f"table {statement.name} exists, and is another one: "
                    f"{definition_text(existing)}; change it with ALTER TABLE"
                )
            return done(f"table {statement.name} exists")
        self._engine.check_keyed_name(statement.name)
        self._tables.create(definition)
        return done(f"created table {statement.name} with {len(definition.columns)} columns")

    def add_column(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, AddColumn)
        before = self._definition(statement.table)
        column = statement.column
        if any(each.name.lower() == column.name.lower() for each in before.columns):
            raise Conflict(f"table {statement.table} has a column {column.name}")
        self._tables.alter(before.add_column(column.name, type_of(column)))
        return done(f"added column {column.name} to table {statement.table}")

    def widen_column(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, WidenColumn)
        before = self._definition(statement.table)
        column = statement.column
        self._tables.alter(before.widen_column(column.name, type_of(column)))
        return done(f"column {column.name} of table {statement.table} is {column.type}")

    def dropper(self, drop_other: StatementHandler | None) -> StatementHandler:
        """Return what drops a keyed table, and leaves others to `drop_other`."""

        def drop(call: StatementCall) -> pa.Table:
            statement = call.statement
            assert isinstance(statement, Drop)
            if statement.name in self._tables.names():
                self._tables.drop(statement.name)
                return done(f"dropped table {statement.name}")
            if drop_other is not None:
                return drop_other(call)
            if statement.if_exists:
                return done(f"there is no table {statement.name}")
            raise Unknown(f"there is no table {statement.name}")

        return drop

    def show(self, call: StatementCall) -> pa.Table:
        rows = []
        for name in self._tables.names():
            status = self._tables.status(name)
            rows.append(
                {
                    "name": name,
                    "definition": definition_text(self._tables.definition(name)),
                    "rows": status.keys,
                    "state": status.state,
                    "written": _json({p.partition: p.written for p in status.partitions}),
                    "indexed": _json({p.partition: p.indexed for p in status.partitions}),
                    "iceberg": _json({p.partition: p.iceberg for p in status.partitions}),
                }
            )
        return pa.Table.from_pylist(rows, SHOW_SCHEMA)

    def insert(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, InsertRows)
        table = statement.table
        word = "upserted" if statement.is_upsert else "inserted"

        def rows_at(view: KeyedView) -> pa.Table:
            rows = self._rows_of(statement, view, call.cancel_token)
            _check_once(view.definition, rows)
            if not statement.is_upsert:
                _check_new(view, rows)
            return rows

        reads_itself = any(token.name == table for token in tokens(statement.query))
        is_blind = statement.is_upsert and not reads_itself
        return self._change(table, Operation.UPSERT, rows_at, word, call.who, is_blind=is_blind)

    def update(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, UpdateRows)

        def rows_at(view: KeyedView) -> pa.Table:
            return self._updated(statement, view, call.cancel_token)

        return self._change(statement.table, Operation.UPDATE, rows_at, "updated", call.who)

    def delete(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, DeleteRows)

        def rows_at(view: KeyedView) -> pa.Table:
            keys = ", ".join(map(quoted, view.definition.key))
            text = f"SELECT {keys} FROM {quoted(statement.table)}{_where(statement.where)}"
            return self._evaluate(text, view, call.cancel_token)

        return self._change(statement.table, Operation.DELETE, rows_at, "deleted", call.who)

    def _definition(self, table: str) -> TableDefinition:
        if table not in self._tables.names():
            raise Unknown(f"there is no keyed table {table}; {self._known()}")
        return self._tables.definition(table)

    def _known(self) -> str:
        names = ", ".join(self._tables.names())
        return f"keyed tables: {names}" if names else "there are none; CREATE TABLE makes one"

    def _change(
        self,
        table: str,
        operation: Operation,
        rows_at: RowsAt,
        word: str,
        who: str,
        *,
        is_blind: bool = False,
    ) -> pa.Table:
        """Evaluate a statement and append its changes, until every partition took them. `is_blind`:
        they do not depend on the rows that exist."""
        self._definition(table)
        token: Token = {}
        before: Token = {}
        count, by = 0, f"sql:{who}"
        try:
            for _ in range(TRIES_MAX):
                view = self._tables.view(table) if is_blind else self._tables.latest(table)
                # What this statement wrote is not what it reads.
                view = view.as_of(before)
                parts = _parts_to_write(view.definition, operation, rows_at(view), token)
                for number, rows in parts.items():
                    expects = None if is_blind else {number: view.offsets[number]}
                    with suppress(Conflict):  # evaluated again
                        token |= self._tables.write(table, operation, rows, expects=expects, by=by)
                        before[number] = view.offsets[number]
                        count += rows.num_rows
                if parts.keys() <= token.keys():
                    return self._changed(table, f"{word} {count} rows", count, token)
            raise Conflict(
                f"others wrote to table {table} {TRIES_MAX} times while the statement was "
                "evaluated; retry"
            )
        except FrazilError as error:
            if not count:
                raise
            raise Unresolved(
                f"{count} rows were {word}, those of other partitions of table {table} not: {error}"
            ) from error

    def _changed(self, table: str, status: str, count: int, token: Token) -> pa.Table:
        """Return what a statement did, once queries see it."""
        try:
            self._tables.wait(table, token, WAIT_S)
        except Unavailable:
            status += f"; queries do not see them yet after {WAIT_S:.0f} s"
        row = {"status": status, "rows": count, "token": _json(token)}
        return pa.Table.from_pylist([row], CHANGED_SCHEMA)

    def _rows_of(
        self, statement: InsertRows, view: KeyedView, cancel_token: CancelToken
    ) -> pa.Table:
        """Return the rows of VALUES or of a query, in the types of the table."""
        definition = view.definition
        fields = _fields(definition, statement.columns)
        if statement.query:
            found = self._evaluate(statement.query, view, cancel_token, is_cast=False)
            if found.num_columns != len(fields):
                raise Malformed(
                    f"the query has {found.num_columns} columns, and {len(fields)} are written"
                )
            columns = [strict_column(*each) for each in zip(found.columns, fields, strict=True)]
            return pa.table(columns, names=[field.name for field in fields])
        if len(statement.rows[0]) != len(fields):
            raise Malformed(
                f"a row has {len(statement.rows[0])} values, and {len(fields)} columns are written"
            )
        if len(statement.rows) > ROWS_MAX:
            raise TooLarge(f"a statement changes at most {ROWS_MAX} rows")
        return self._values(statement.rows, fields, view, cancel_token)

    def _values(
        self,
        rows: Sequence[Sequence[str]],
        fields: Sequence[pa.Field],
        view: KeyedView,
        cancel_token: CancelToken,
    ) -> pa.Table:
        """Return VALUES. Constants are read exactly as they are written; what is no constant is
        evaluated, each value on its own, so that none takes the type of another."""
        texts = sorted({text for row in rows for text in row if literal_of(text) is None})
        if len(texts) > EXPRESSIONS_MAX:
            raise TooLarge(
                f"VALUES may have {EXPRESSIONS_MAX} expressions that are no constants; use SELECT"
            )
        evaluated: dict[str, pa.ChunkedArray] = {}
        if texts:
            selected = ", ".join(f"({text}) AS v{number}" for number, text in enumerate(texts))
            found = self._evaluate(f"SELECT {selected}", view, cancel_token, is_cast=False)
            if found.num_rows != 1 or found.num_columns != len(texts):
                raise Malformed("a value of VALUES is not a single value")
            evaluated = dict(zip(texts, found.columns, strict=True))
        columns = []
        for number, field in enumerate(fields):
            parts = [
                strict_column(evaluated[row[number]], field).chunk(0)
                if row[number] in evaluated
                else _constant(row[number], field)
                for row in rows
            ]
            columns.append(pa.chunked_array(parts, field.type).combine_chunks())
        return pa.table(columns, names=[field.name for field in fields])

    def _updated(
        self, statement: UpdateRows, view: KeyedView, cancel_token: CancelToken
    ) -> pa.Table:
        """Return the keys of the rows to update, and their new values."""
        definition = view.definition
        fields = _fields(definition, [column for column, _ in statement.assignments])
        for field in fields:
            if field.name in definition.key:
                raise Malformed(
                    f"column {field.name} is part of the key, which never changes; delete the row, "
                    "and insert another one"
                )
        constants = [literal_of(text) for _, text in statement.assignments]
        selected = [quoted(name) for name in definition.key]
        selected += [
            f"({text}) AS _set_{number}"
            for number, (_, text) in enumerate(statement.assignments)
            if constants[number] is None
        ]
        text = (
            f"SELECT {', '.join(selected)} FROM {quoted(statement.table)}{_where(statement.where)}"
        )
        found = self._evaluate(text, view, cancel_token, is_cast=False)
        keys = definition.key_columns
        columns = [
            strict_column(found.column(at), column.field()) for at, column in enumerate(keys)
        ]
        computed = iter(found.columns[len(keys) :])
        for field, constant in zip(fields, constants, strict=True):
            if constant is None:
                columns.append(strict_column(next(computed), field))
            else:
                one = literal_array([constant.value], field)
                columns.append(pa.chunked_array([pa.repeat(one[0], found.num_rows)], field.type))
        names = [*definition.key, *(field.name for field in fields)]
        return pa.table(columns, names=names)

    def _evaluate(
        self, text: str, view: KeyedView, cancel_token: CancelToken, *, is_cast: bool = True
    ) -> pa.Table:
        """Run a query over the pinned rows of a table. `TooLarge` for more than `ROWS_MAX` rows."""
        table = view.definition.name
        result = self._engine.sql(
            text,
            limits=Limits(rows_max=ROWS_MAX),
            cancel_token=cancel_token,
            keyed_views={table: view},
        )
        with result:
            batches = list(result)
            if result.is_cut:
                raise TooLarge(
                    f"the statement changes more than {ROWS_MAX} rows, the limit of one statement; "
                    "narrow its condition, and send it several times"
                )
        found = pa.Table.from_batches(batches, result.schema)
        if not is_cast:
            return found
        fields = [column.field() for column in view.definition.key_columns]
        columns = [strict_column(*each) for each in zip(found.columns, fields, strict=True)]
        return pa.table(columns, names=[field.name for field in fields])


class RowsAt(Protocol):
    """The rows that a statement writes, evaluated at a view."""

    def __call__(self, view: KeyedView, /) -> pa.Table: ...


def _parts_to_write(
    definition: TableDefinition, operation: Operation, rows: pa.Table, written: Token
) -> dict[int, pa.Table]:
    """Return the rows by partition, without those partitions that took them already. `Malformed` if
    a row cannot be written: then none is."""
    for column in definition.columns:
        is_given = column.name in rows.column_names
        is_null = is_given and rows[column.name].null_count > 0
        is_missing = not is_given and operation is Operation.UPSERT
        if not column.is_nullable and (is_null or is_missing):
            raise Malformed(f"column {column.name} is NOT NULL: each row needs a value for it")
    if not rows.num_rows:
        return {}
    parts = rows_by_partition(definition, rows)
    return {number: part for number, part in parts.items() if number not in written}


def _constant(text: str, field: pa.Field) -> pa.Array:
    constant = literal_of(text)
    assert constant is not None
    return literal_array([constant.value], field)


def _fields(definition: TableDefinition, columns: Sequence[str]) -> list[pa.Field]:
    """Return the columns that are written; all without a list."""
    known = {column.name.lower(): column.field() for column in definition.columns}
    for name in columns:
        if name.lower() not in known:
            listed = ", ".join(column.name for column in definition.columns)
            raise Unknown(f"table {definition.name} has no column {name}; it has {listed}")
    return [known[name.lower()] for name in columns] if columns else list(known.values())


def _where(condition: str) -> str:
    return f" WHERE ({condition})" if condition else ""


def _check_once(definition: TableDefinition, rows: pa.Table) -> None:
    """Raise `Malformed` if a key is there twice: which row counts would be chance."""
    keys = _keys(definition, rows)
    if len(set(keys)) < len(keys):
        seen: set[tuple[object, ...]] = set()
        twice = next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Malformed(f"two rows of the statement have the key {_key_text(definition, twice)}")


def _check_new(view: KeyedView, rows: pa.Table) -> None:
    """Raise `Conflict` if the table has one of the keys."""
    for batch in view.take(_keys(view.definition, rows)):
        if batch.num_rows:
            (key,) = _keys(view.definition, pa.Table.from_batches([batch.slice(0, 1)]))
            raise Conflict(
                f"table {view.definition.name} has a row with the key "
                f"{_key_text(view.definition, key)}; write UPSERT to replace rows"
            )


def _keys(definition: TableDefinition, rows: pa.Table) -> list[tuple[object, ...]]:
    for name in definition.key:
        if name not in rows.column_names or rows[name].null_count:
            raise Malformed(f"column {name} is part of the key: each row needs a value for it")
    return list(zip(*(rows[name].to_pylist() for name in definition.key), strict=True))


def _key_text(definition: TableDefinition, key: Sequence[object]) -> str:
    pairs = zip(definition.key, key, strict=True)
    return ", ".join(f"{name} = {value!r}" for name, value in pairs)


def _json(offsets: Mapping[int, int | None]) -> str:
    return json.dumps({str(number): offset for number, offset in sorted(offsets.items())})
