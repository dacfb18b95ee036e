"""Translates DataFusion's errors: what is wrong, where, and what to do.

DataFusion's errors are only texts, so this is a table of patterns. A text that matches none becomes
`Malformed`. Tests check the table against the installed DataFusion.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

from frazil.errors import FrazilError, Malformed, Rejected, TooLarge, Unavailable, Unknown
from frazil.model.arrow import RECORDS
from frazil.query.sql.dialect import EngineText
from frazil.query.sql.table_names import lake_schemas
from frazil.results import line_and_column, tokens

MESSAGE_LENGTH_MAX = 300
"""Characters of DataFusion's message, or of a name in the text, in an error of ours."""

READ_ONLY = "SQL is read-only"
_WRITER = re.compile(
    "alter|analyze|attach|begin|call|checkpoint|commit|copy|create|deallocate|delete|detach|drop|"
    "execute|export|grant|import|insert|install|kill|load|lock|merge|pragma|prepare|refresh|reset|"
    "revoke|rollback|savepoint|set|start|truncate|unload|update|use|vacuum"
)
"""Statements that write. Only for the message: DataFusion rejects them."""

_NOISE = re.compile(
    r"^(DataFusion error: |Error during planning: |Execution error: |Arrow error: |SQL error: "
    r"|External error: |Optimizer rule '\w+' failed|type_coercion|caused by|Schema error: |\s)+"
)
_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")


class KnownNames:
    """The names of tables, columns and functions, to suggest one for an unknown name."""

    def __init__(self, tables: Mapping[str, Iterable[str]], functions: Iterable[str]) -> None:
        self.tables = {table: tuple(columns) for table, columns in tables.items()}
        self.functions = tuple(functions)

    def with_topics(self, topics: Iterable[str]) -> KnownNames:
        """Return these names and those of topics."""
        topics = dict.fromkeys(topics, RECORDS.names)
        return KnownNames({**self.tables, **topics}, self.functions) if topics else self

    def with_views(self, views: Iterable[str]) -> KnownNames:
        """Return these names and those of views, whose columns only the engine knows."""
        views = dict.fromkeys(views, ())
        return KnownNames({**self.tables, **views}, self.functions) if views else self


def frazil_error(error: BaseException, sql: EngineText, names: KnownNames) -> FrazilError:
    """Return our error for one of DataFusion's."""
    if isinstance(error, FrazilError):
        return error
    names = names.with_topics(sql.topics).with_views(name for name, _ in sql.views)
    if sql.tables:
        columns = {name: schema.names for name, schema in lake_schemas(sql).items()}
        names = KnownNames({**names.tables, **columns}, names.functions)
    message = str(error).replace("DataFusion error: ", "")
    for pattern, translate in _TABLE:
        match = re.search(pattern, message, re.DOTALL)
        if match is not None:
            return translate(match, sql, names)
    first = next((token.name for token in tokens(sql.original)), "")
    if _WRITER.fullmatch(first):
        return _read_only(first.upper())
    return Malformed(f"this query cannot be run: {_short(message)}")


def _short(message: str) -> str:
    """Return DataFusion's message without its prefixes, shortened."""
    text = _NOISE.sub("", message).strip()
    text = re.sub(
        r"\s*(\n\nbacktrace:|This issue was likely caused by a bug).*", "", text, flags=re.DOTALL
    )
    text = re.sub(r"\s*\n\s*(caused by\s*\n\s*)?", ": ", text)
    return _cut(text) or "no message"


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_LENGTH_MAX else f"{text[:MESSAGE_LENGTH_MAX]}..."


def _read_only(what: str) -> FrazilError:
    return Rejected(f"{READ_ONLY}: {what} is not allowed; use SELECT, EXPLAIN, SHOW or DESCRIBE")


def _statement(name: str) -> str:
    """Return `CREATE TABLE` for DataFusion's CreateMemoryTable."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()
    return words.replace(" MEMORY ", " ").replace(" CATALOG SCHEMA", " SCHEMA")


def _syntax(match: re.Match[str], sql: EngineText, names: KnownNames) -> FrazilError:
    what = match[1].replace('\\"', '"')
    place = _PLACE.search(what)
    what = _PLACE.sub("", what).strip().rstrip(".")
    where = f" at {sql.place(int(place[1]), int(place[2]))}" if place else ""
    if what.endswith("found: EOF"):
        where, what = " at the end", what.removesuffix(", found: EOF")
    first = next((token.name for token in tokens(sql.original)), "")
    if _WRITER.fullmatch(first):
        return _read_only(first.upper())
    return Malformed(f"this is not SQL{where}: {_cut(what[0].lower() + what[1:])}")


def _column(match: re.Match[str], sql: EngineText, names: KnownNames) -> FrazilError:
    name = match[1].replace('"', "")
    _, _, column = name.rpartition(".")
    where = _where(sql, column)
    used = {token.name for token in tokens(sql.original)} & names.tables.keys()
    columns = [column for table in sorted(used) for column in names.tables[table]]
    hint = re.search(r"Did you mean '([^']+)'", match[0])
    guess = hint[1].rpartition(".")[2].replace('"', "") if hint else ""
    suggestion = f"; did you mean {guess}?" if guess else _suggest(column, columns)
    tables = f" in {', '.join(sorted(used))}" if used else ""
    return Unknown(f"no column {_cut(name)}{tables}{where}{suggestion}")


def _table(match: re.Match[str], sql: EngineText, names: KnownNames) -> FrazilError:
    table = re.sub(r"^(datafusion\.)?(public\.)?", "", match[1])
    where = _where(sql, table) or _where(sql, table.rpartition(".")[2])
    known = ", ".join(sorted(names.tables))
    guess = _suggest(table, names.tables) or f"; the tables are {known}"
    return Unknown(f"no table {_cut(table)}{where}{guess}")


def _function(match: re.Match[str], sql: EngineText, names: KnownNames) -> FrazilError:
    function = match[1]
    guess = _suggest(function, names.functions)
    return Unknown(f"no function {_cut(function)}{_where(sql, function)}{guess}")


def _where(sql: EngineText, name: str) -> str:
    """Return ` at line 1, column 8` for the first use of a name, or nothing."""
    for token in tokens(sql.original):
        if token.kind in ("word", "quoted", "string") and token.name.strip("'") == name:
            return f" at {line_and_column(sql.original, token.begin)}"
    return ""


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _message(kind: type[FrazilError], template: str) -> Callable[..., FrazilError]:
    def translate(match: re.Match[str], sql: EngineText, names: KnownNames) -> FrazilError:
        groups = [_short(group) for group in match.groups() if group]
        return kind(template.format(*groups))

    return translate


_TABLE: list[tuple[str, Callable[[re.Match[str], EngineText, KnownNames], FrazilError]]] = [
    (r"only supports a single SQL statement", _message(Malformed, "send one statement at a time")),
    (
        r"RecursionLimitExceeded",
        _message(TooLarge, "the query nests more than 50 parentheses or subqueries"),
    ),
    (r"(?:ParserError|TokenizerError)\(\"(.*)\"\)", _syntax),
    (
        r"(?:DDL|DML|Statement) not supported: ([\w ]+)",
        lambda match, *_: _read_only(_statement(match[1])),
    ),
    (r"Unsupported SQL statement: (\w+)", lambda match, *_: _read_only(match[1].upper())),
    (r"No SQL statements were provided", _message(Malformed, "the query is empty")),
    (r"No field named (\"?[^\n]*?\"?)\.(?: Did you mean .*)?(?:\s|$).*", _column),
    (r"table '([^']*)' not found", _table),
    (r"[Tt]able function '?(\w+)'? not found", _function),
    (r"Invalid function '([^']*)'", _function),
    (
        r"Resources exhausted|Not enough memory|SpillPool",
        _message(
            TooLarge,
            "the query needs more memory than query.memory_bytes_max allows; read fewer rows or "
            "columns, group by less, or sort with a LIMIT",
        ),
    ),
    (
        r"(Object at location .*? not found)",
        _message(Unavailable, "a data file is missing: {0}; run the query again in a few seconds"),
    ),
    (
        r"(Object Store error: .*|Parquet error: .*)",
        _message(Unavailable, "a data file cannot be read: {0}; check the disk of the warehouse"),
    ),
    (
        r"CompiledTooBig",
        _message(TooLarge, "a regular expression in the query is too large; use fewer repetitions"),
    ),
    (
        r"Placeholder '([^']*)' was not provided",
        _message(Malformed, "the query has the placeholder {0}; write the value instead"),
    ),
    (r"[Dd]ivide by zero", _message(Malformed, "the query divides by zero")),
    (
        r"Ambiguous reference to unqualified field (\w+)",
        _message(Malformed, "column {0} is in more than one of the tables; write table.{0}"),
    ),
    (
        r"((?:Cannot cast|Error parsing|Cast error|Parser error).*)",
        _message(Malformed, "a value in the query has the wrong type: {0}"),
    ),
    (
        r"(?:rust future panicked|task \d+ panicked|Join Error|panicked)",
        _message(TooLarge, "the query engine failed on this query; its values may be too long"),
    ),
]
"""Patterns of DataFusion's messages, and our errors."""
