"""From what the engine says to an error of ours: what is wrong, where, and what to do.

The engine tells by text only, so this is a table of texts. Whatever is not in it becomes
`Malformed` with our sentence in front. Tests keep the table true for the engine we use.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

from frazil.errors import FrazilError, Malformed, Rejected, TooLarge, Unavailable, Unknown
from frazil.model.arrow import RECORDS
from frazil.query.sql.dialect import EngineText
from frazil.results import line_and_column, tokens

MESSAGE_LENGTH_MAX = 300
"""Of the engine's own words."""

READ_ONLY = "SQL only reads here"
_WRITER = re.compile(
    "alter|analyze|attach|begin|call|checkpoint|commit|copy|create|deallocate|delete|detach|drop|"
    "execute|export|grant|import|insert|install|kill|load|lock|merge|pragma|prepare|refresh|reset|"
    "revoke|rollback|savepoint|set|start|truncate|unload|update|use|vacuum"
)
"""Statements that do something else than read. Only for the message: the engine refuses them."""

_NOISE = re.compile(
    r"^(DataFusion error: |Error during planning: |Execution error: |Arrow error: |SQL error: "
    r"|External error: |Optimizer rule '\w+' failed|type_coercion|caused by|Schema error: |\s)+"
)
_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")


class KnownNames:
    """The names there are, to suggest one for a name there is not."""

    def __init__(self, tables: Mapping[str, Iterable[str]], functions: Iterable[str]) -> None:
        self.tables = {table: tuple(columns) for table, columns in tables.items()}
        self.functions = tuple(functions)

    def beside(self, topics: Iterable[str]) -> KnownNames:
        """These names, and those of tables of topics."""
        topics = dict.fromkeys(topics, RECORDS.names)
        return KnownNames({**self.tables, **topics}, self.functions) if topics else self


def named(error: BaseException, spelled: EngineText, names: KnownNames) -> FrazilError:
    """The error of ours for one of the engine's."""
    if isinstance(error, FrazilError):
        return error
    names = names.beside(spelled.topics)
    message = str(error).replace("DataFusion error: ", "")
    for pattern, answer in _TABLE:
        found = re.search(pattern, message, re.DOTALL)
        if found is not None:
            return answer(found, spelled, names)
    first = next((token.name for token in tokens(spelled.written)), "")
    if _WRITER.fullmatch(first):
        return _read_only(first.upper())
    return Malformed(f"this query cannot be run: {_short(message)}")


def _short(message: str) -> str:
    """The engine's words, without its layers, and not too many."""
    words = _NOISE.sub("", message).strip()
    words = re.sub(
        r"\s*(\n\nbacktrace:|This issue was likely caused by a bug).*", "", words, flags=re.DOTALL
    )
    words = re.sub(r"\s*\n\s*(caused by\s*\n\s*)?", ": ", words)
    if len(words) > MESSAGE_LENGTH_MAX:
        words = f"{words[:MESSAGE_LENGTH_MAX]}..."
    return words or "the engine does not say why"


def _read_only(what: str) -> FrazilError:
    return Rejected(f"{READ_ONLY}: {what} is not allowed; ask with SELECT, EXPLAIN, SHOW, DESCRIBE")


def _statement(name: str) -> str:
    """`CREATE TABLE` for what the engine calls CreateMemoryTable."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()
    return words.replace(" MEMORY ", " ").replace(" CATALOG SCHEMA", " SCHEMA")


def _syntax(found: re.Match[str], spelled: EngineText, names: KnownNames) -> FrazilError:
    what = found[1].replace('\\"', '"')
    place = _PLACE.search(what)
    what = _PLACE.sub("", what).strip().rstrip(".")
    where = f" at {spelled.place(int(place[1]), int(place[2]))}" if place else ""
    if what.endswith("found: EOF"):
        where, what = " at its end", what.removesuffix(", found: EOF")
    first = next((token.name for token in tokens(spelled.written)), "")
    if _WRITER.fullmatch(first):
        return _read_only(first.upper())
    return Malformed(f"this is not SQL{where}: {what[0].lower()}{what[1:]}")


def _column(found: re.Match[str], spelled: EngineText, names: KnownNames) -> FrazilError:
    written = found[1].replace('"', "")
    _, _, column = written.rpartition(".")
    where = _where(spelled, column)
    used = {token.name for token in tokens(spelled.written)} & names.tables.keys()
    columns = [name for known in sorted(used) for name in names.tables[known]]
    said = re.search(r"Did you mean '([^']+)'", found[0])
    guess = said[1].rpartition(".")[2].replace('"', "") if said else ""
    suggestion = f"; did you mean {guess}?" if guess else _suggest(column, columns)
    of = f" in {', '.join(sorted(used))}" if used else ""
    return Unknown(f"no column {written}{of}{where}{suggestion}")


def _table(found: re.Match[str], spelled: EngineText, names: KnownNames) -> FrazilError:
    table = re.sub(r"^(datafusion\.)?(public\.)?", "", found[1])
    where = _where(spelled, table) or _where(spelled, table.rpartition(".")[2])
    there = ", ".join(sorted(names.tables))
    return Unknown(
        f"no table {table}{where}{_suggest(table, names.tables) or f'; there are {there}'}"
    )


def _function(found: re.Match[str], spelled: EngineText, names: KnownNames) -> FrazilError:
    function = found[1]
    guess = _suggest(function, names.functions)
    return Unknown(f"no function {function}{_where(spelled, function)}{guess}")


def _where(spelled: EngineText, name: str) -> str:
    """Where a name is written, for the eye."""
    for token in tokens(spelled.written):
        if token.kind in ("word", "quoted", "string") and token.name.strip("'") == name:
            return f" at {line_and_column(spelled.written, token.begin)}"
    return ""


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def _says(kind: type[FrazilError], sentence: str) -> Callable[..., FrazilError]:
    def answer(found: re.Match[str], spelled: EngineText, names: KnownNames) -> FrazilError:
        groups = [_short(group) for group in found.groups() if group]
        return kind(sentence.format(*groups))

    return answer


_TABLE: list[tuple[str, Callable[[re.Match[str], EngineText, KnownNames], FrazilError]]] = [
    (r"only supports a single SQL statement", _says(Malformed, "one statement at a time, please")),
    (
        r"RecursionLimitExceeded",
        _says(TooLarge, "the query has more than 50 parentheses or subqueries inside each other"),
    ),
    (r"(?:ParserError|TokenizerError)\(\"(.*)\"\)", _syntax),
    (
        r"(?:DDL|DML|Statement) not supported: ([\w ]+)",
        lambda found, *_: _read_only(_statement(found[1])),
    ),
    (r"Unsupported SQL statement: (\w+)", lambda found, *_: _read_only(found[1].upper())),
    (r"No SQL statements were provided", _says(Malformed, "there is no SQL to run")),
    (r"No field named (\"?[^\n]*?\"?)\.(?: Did you mean .*)?(?:\s|$).*", _column),
    (r"table '([^']*)' not found", _table),
    (r"[Tt]able function '?(\w+)'? not found", _function),
    (r"Invalid function '([^']*)'", _function),
    (
        r"Resources exhausted|Not enough memory|SpillPool",
        _says(
            TooLarge,
            "the query needs more memory than query.memory_bytes_max allows; read fewer rows or "
            "columns, group by less, or sort with a LIMIT",
        ),
    ),
    (
        r"(Object at location .*? not found)",
        _says(Unavailable, "a file of the lake is gone: {0}. Ask again in some seconds"),
    ),
    (
        r"(Object Store error: .*|Parquet error: .*)",
        _says(Unavailable, "a file of the lake cannot be read: {0}. Look at the warehouse's disk"),
    ),
    (
        r"CompiledTooBig",
        _says(TooLarge, "a regular expression in the query is too large; repeat fewer times in it"),
    ),
    (
        r"Placeholder '([^']*)' was not provided",
        _says(Malformed, "the query has a placeholder, {0}; write the value instead"),
    ),
    (r"[Dd]ivide by zero", _says(Malformed, "the query divides by zero")),
    (
        r"Ambiguous reference to unqualified field (\w+)",
        _says(Malformed, "column {0} is in more than one of the tables; write table.{0}"),
    ),
    (
        r"((?:Cannot cast|Error parsing|Cast error|Parser error).*)",
        _says(Malformed, "a value in the query does not fit where it stands: {0}"),
    ),
    (
        r"(?:rust future panicked|task \d+ panicked|Join Error|panicked)",
        _says(TooLarge, "the engine cannot work out this query; its values may be too long"),
    ),
]
"""A pattern of the engine's words, and what we say."""
