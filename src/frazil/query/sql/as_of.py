"""Time travel: `FROM logs FOR SYSTEM_TIME AS OF TIMESTAMP '...'`, `FOR SYSTEM_VERSION AS OF ...`;
for keyed tables also `FOR SYSTEM_VERSION AS OF OFFSET 42`.

DataFusion has no such clause. An AS OF table becomes a separate table with a numbered name, and an
alias under which the rest of the text refers to it:

    FROM logs FOR SYSTEM_VERSION AS OF 42        FROM "_as_of_1_logs" AS "logs"
    FROM logs FOR SYSTEM_VERSION AS OF 42 l      FROM "_as_of_1_logs" l
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa

from frazil.errors import Malformed, TooLarge, Unknown
from frazil.results import Token, line_and_column

SNAPSHOTS = "snapshots"
"""The table of snapshots."""
STATEMENT_AUDIT = "statement_audit"
"""The table of statements."""
COPY_HISTORY = "copy_history"
"""The table of files that were loaded."""
WITHOUT_SNAPSHOTS = frozenset({SNAPSHOTS, STATEMENT_AUDIT, COPY_HISTORY})
"""Tables that cannot be read AS OF."""

AS_OF_MAX = 8
"""AS OF tables in one text."""
SNAPSHOT_ID_MAX = OFFSET_MAX = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOLLOWING = frozenset(
    {"where", "group", "order", "limit", "offset", "fetch", "having", "window", "qualify", "for"}
    | {"union", "except", "intersect", "tablesample", "lateral", "using", "returning"}
    | {"join", "inner", "left", "right", "full", "cross", "natural", "semi", "anti", "on"}
)
"""Words after a table that are no alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A table at another time or version."""

    name: str
    """Its name in DataFusion."""
    table: str
    version: int | str | None = None
    """Snapshot id or tag."""
    time_us: int | None = None
    """Or the time at which rows were visible."""
    offsets: int | Mapping[int, int] | None = None
    """Or the offsets of a keyed table, by partition; a number if it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """Where an AS OF table is written, and its replacement."""

    as_of: AsOf
    begin: int
    end: int
    text: str


def clauses(parsed: Sequence[Token], text: str) -> Iterator[Clause]:
    """Yield every AS OF table in a text."""
    names = [token.name if token.kind == "word" else "" for token in parsed]
    count = 0
    for at in range(1, len(parsed) - 3):
        if names[at] != "for" or names[at + 2 : at + 4] != ["as", "of"]:
            continue
        if names[at + 1] in ("system_time", "system_version"):
            count += 1
            if count > AS_OF_MAX:
                raise TooLarge(f"a query may have at most {AS_OF_MAX} AS OF tables")
            yield _clause(parsed, at, count, text)


def _clause(parsed: Sequence[Token], at: int, number: int, text: str) -> Clause:
    table = parsed[at - 1].name
    begin = at - 1
    while begin >= 2 and parsed[begin - 1].text == ".":
        begin -= 2
    name = f"_as_of_{number}_{table}"
    if parsed[at + 1].name == "system_time":
        time_us, end = take_time(parsed, at + 4, text)
        as_of = AsOf(name=name, table=table, time_us=time_us)
    elif at + 4 < len(parsed) and parsed[at + 4].name == "offset":
        offsets, end = take_offsets(parsed, at + 5, text)
        as_of = AsOf(name=name, table=table, offsets=offsets)
    else:
        version, end = _version(parsed, at + 4, text)
        as_of = AsOf(name=name, table=table, version=version)
    alias = "" if has_alias(parsed, end) else f" AS {quoted(table)}"
    return Clause(
        as_of=as_of,
        begin=parsed[begin].begin,
        end=parsed[end - 1].end,
        text=f"{quoted(name)}{alias}",
    )


def quoted(name: str) -> str:
    """Return a name as a text writes it in quotes."""
    return '"' + name.replace('"', '""') + '"'


def has_alias(parsed: Sequence[Token], at: int) -> bool:
    """Return whether an alias of the table begins here."""
    if at >= len(parsed):
        return False
    token = parsed[at]
    return token.kind == "quoted" or (token.kind == "word" and token.name not in _FOLLOWING)


def take_time(parsed: Sequence[Token], at: int, text: str) -> tuple[int, int]:
    """Return a time in microseconds, and the index of the token after it."""
    if at < len(parsed) and parsed[at].name == "timestamp":
        at += 1
    literal = _string(parsed, at)
    try:
        time = datetime.fromisoformat(literal or "")
    except ValueError:
        raise Malformed(
            f"the query needs a time at {_place(parsed, at, text)}, such as "
            "TIMESTAMP '2026-09-21 14:00:00'"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - EPOCH) // timedelta(microseconds=1), at + 1


def take_offsets(parsed: Sequence[Token], at: int, text: str) -> tuple[int | dict[int, int], int]:
    """Return an offset, or one per partition, and the index of the token after it."""
    if at < len(parsed) and parsed[at].kind == "number" and parsed[at].text.isdecimal():
        number = int(parsed[at].text)
        if number <= OFFSET_MAX:
            return number, at + 1
    try:
        offsets = msgspec.json.decode(_string(parsed, at) or "", type=dict[int, int])
    except msgspec.MsgspecError:
        offsets = {}
    if not offsets or not all(0 <= offset <= OFFSET_MAX for offset in offsets.values()):
        raise Malformed(
            f"offsets are needed at {_place(parsed, at, text)}: a number, or for each partition "
            'one, such as \'{"0": 42, "1": 17}\''
        )
    return offsets, at + 1


def _version(parsed: Sequence[Token], at: int, text: str) -> tuple[int | str, int]:
    literal = _string(parsed, at)
    if literal:
        return literal, at + 1
    if at < len(parsed) and parsed[at].kind == "number" and parsed[at].text.isdecimal():
        number = int(parsed[at].text)
        if number <= SNAPSHOT_ID_MAX:
            return number, at + 1
    raise Malformed(
        f"FOR SYSTEM_VERSION AS OF needs a snapshot id or a tag in single quotes at "
        f"{_place(parsed, at, text)}; SELECT * FROM snapshots lists them"
    )


def _string(parsed: Sequence[Token], at: int) -> str | None:
    """Return the value of a string literal at this index."""
    if at >= len(parsed) or parsed[at].kind != "string" or not parsed[at].text.startswith("'"):
        return None
    return parsed[at].text[1:-1].replace("''", "'")


def _place(parsed: Sequence[Token], at: int, text: str) -> str:
    return line_and_column(text, parsed[at].begin) if at < len(parsed) else "the end"


def with_as_of(schemas: Mapping[str, pa.Schema], as_ofs: Sequence[AsOf]) -> Mapping[str, pa.Schema]:
    """Add the schemas of AS OF tables. `Unknown` for a table without snapshots."""
    if not as_ofs:
        return schemas
    added = {}
    for as_of in as_ofs:
        if as_of.table not in schemas or as_of.table in WITHOUT_SNAPSHOTS:
            known = ", ".join(sorted(schemas.keys() - WITHOUT_SNAPSHOTS))
            raise Unknown(f"{as_of.table} cannot be read AS OF; these tables can: {known}")
        added[as_of.name] = schemas[as_of.table]
    return {**schemas, **added}
