"""The grammar of keyed tables: CREATE TABLE, ALTER TABLE, INSERT, UPSERT, UPDATE and DELETE.

Expressions, conditions and queries are kept as text, with balanced parentheses: the read-only
planner judges them.
"""

from __future__ import annotations

from frazil.definitions.options import COLUMN_TYPES, in_parentheses, take_columns
from frazil.definitions.statements import (
    AddColumn,
    CreateTable,
    DeleteRows,
    InsertRows,
    Statement,
    TableColumnSpec,
    TopicFormat,
    UpdateRows,
    WidenColumn,
)
from frazil.definitions.token_reader import LIST_MAX, TokenReader
from frazil.errors import Malformed, TooLarge

TYPES = {
    **{word: kind for word, kind in COLUMN_TYPES.items() if kind not in ("UUID", "JSON")},
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
}
INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
FORMATS: dict[str, TopicFormat] = {"upsert": "upsert", "debezium": "debezium"}
PRECISION_MAX = 38
PARTITIONS_MAX = 256
VALUES_MAX = 10_000
"""Rows of one VALUES."""


def take_create_table(reader: TokenReader, name: str, *, if_not_exists: bool) -> Statement:
    """Read `(a BIGINT, b TEXT NOT NULL, PRIMARY KEY (a)) [PARTITIONS n | FROM TOPIC 't' FORMAT
    UPSERT]`."""
    columns: list[TableColumnSpec] = []
    key: tuple[str, ...] = ()
    reader.take_sign("(")
    while True:
        if reader.skip_words("primary", "key"):
            if key:
                reader.fail("one PRIMARY KEY")
            key = take_columns(reader)
        else:
            column = _column(reader)
            if reader.skip_words("primary", "key"):
                if key:
                    reader.fail("one PRIMARY KEY")
                key = (column.name,)
            columns.append(column)
        if len(columns) > LIST_MAX:
            raise TooLarge(f"a table may have {LIST_MAX} columns")
        if not reader.skip_sign(","):
            break
    reader.take_sign(")")
    if not key:
        raise Malformed(f"table {name} has no PRIMARY KEY; add PRIMARY KEY (column, …)")
    partitions = 1
    topic, topic_format = "", None
    if reader.skip_words("from", "topic"):
        topic = reader.take_string("the name of a topic in single quotes")
        reader.take_words("format")
        topic_format = FORMATS[reader.take_choice(tuple(FORMATS))]
    elif reader.skip_words("partitions"):
        partitions = reader.take_integer("the number of partitions")
        if partitions > PARTITIONS_MAX:
            raise Malformed(f"a table has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
    return CreateTable(
        name=name,
        if_not_exists=if_not_exists,
        columns=tuple(columns),
        key=key,
        partitions=partitions,
        topic=topic,
        topic_format=topic_format,
    )


def _column(reader: TokenReader) -> TableColumnSpec:
    name = reader.take_column()
    column_type = _type(reader)
    not_null = reader.skip_words("not", "null")
    if not not_null:
        reader.skip_words("null")
    return TableColumnSpec(name=name, type=column_type, not_null=not_null)


def _type(reader: TokenReader) -> str:
    """Read a type; return it in capitals."""
    found = TYPES[reader.take_choice(tuple(TYPES))]
    if found == "DECIMAL":
        reader.take_sign("(")
        precision = reader.take_integer("a precision")
        scale = reader.take_integer("a scale", least=0) if reader.skip_sign(",") else 0
        reader.take_sign(")")
        if precision > PRECISION_MAX or scale > precision:
            raise Malformed(f"DECIMAL has at most {PRECISION_MAX} digits, and a scale below that")
        return f"DECIMAL({precision}, {scale})"
    if found == "DOUBLE":
        reader.skip_words("precision")
    if found == "TIMESTAMP" and reader.skip_words("with", "time", "zone"):
        return "TIMESTAMPTZ"
    if found in INTEGERS and reader.skip_words("unsigned"):
        return f"{found} UNSIGNED"
    return found


def take_alter_table(reader: TokenReader, table: str) -> Statement:
    """Read `ADD [COLUMN] c TEXT` or `ALTER [COLUMN] c [SET DATA] TYPE BIGINT`."""
    if reader.skip_words("add"):
        reader.skip_words("column")
        column = TableColumnSpec(name=reader.take_column(), type=_type(reader))
        if reader.is_word("not"):
            raise Malformed("a column that is added is null in the rows that exist: no NOT NULL")
        return AddColumn(table=table, column=column)
    reader.take_words("alter")
    reader.skip_words("column")
    name = reader.take_column()
    reader.skip_words("set", "data")
    reader.take_words("type")
    return WidenColumn(table=table, column=TableColumnSpec(name=name, type=_type(reader)))


def take_insert(reader: TokenReader, *, is_upsert: bool) -> Statement:
    """Read `t [(a, b)] VALUES (…), …` or `t [(a, b)] SELECT …`."""
    table = reader.take_table()
    columns = take_columns(reader) if reader.is_sign("(") else ()
    if len(set(columns)) < len(columns):
        raise Malformed("a column is named twice")
    if not reader.skip_words("values"):
        if not (reader.is_word("select") or reader.is_word("with")):
            reader.fail("VALUES, SELECT or WITH")
        query = reader.take_query()
        return InsertRows(table=table, columns=columns, query=query, is_upsert=is_upsert)
    rows = [_values(reader)]
    while reader.skip_sign(","):
        if len(rows) >= VALUES_MAX:
            raise TooLarge(f"VALUES may have {VALUES_MAX} rows; send several statements")
        rows.append(_values(reader))
    if any(len(row) != len(rows[0]) for row in rows):
        raise Malformed("the rows of VALUES differ in their number of values")
    return InsertRows(table=table, columns=columns, rows=tuple(rows), is_upsert=is_upsert)


def _values(reader: TokenReader) -> tuple[str, ...]:
    return in_parentheses(reader, lambda r: r.take_expression("a value"))


def take_update(reader: TokenReader) -> Statement:
    """Read `t SET a = expression, … [WHERE condition]`."""
    table = reader.take_table()
    reader.take_words("set")
    assignments = [_assignment(reader)]
    while reader.skip_sign(","):
        if len(assignments) >= LIST_MAX:
            raise TooLarge(f"SET may have {LIST_MAX} columns")
        assignments.append(_assignment(reader))
    names = [name for name, _ in assignments]
    if len(set(names)) < len(names):
        raise Malformed("SET names a column twice")
    return UpdateRows(table=table, assignments=tuple(assignments), where=_where(reader))


def _assignment(reader: TokenReader) -> tuple[str, str]:
    column = reader.take_column()
    reader.take_sign("=")
    return column, reader.take_expression("an expression", "where")


def take_delete(reader: TokenReader) -> Statement:
    """Read `t [WHERE condition]`."""
    table = reader.take_table()
    return DeleteRows(table=table, where=_where(reader))


def _where(reader: TokenReader) -> str:
    return reader.take_expression("a condition") if reader.skip_words("where") else ""
