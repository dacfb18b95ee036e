"""Time travel: `FROM logs FOR SYSTEM_TIME AS OF TIMESTAMP '...'`, `FOR SYSTEM_VERSION AS OF ...`.

The engine knows no such clause. A table of another time is written as a table of its own, with a
number in its name, and keeps the name that the rest of the text calls it by:

    FROM logs FOR SYSTEM_VERSION AS OF 42        FROM "_as_of_1_logs" AS "logs"
    FROM logs FOR SYSTEM_VERSION AS OF 42 l      FROM "_as_of_1_logs" l
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from frazil.errors import Malformed, TooLarge, Unknown
from frazil.results import Token, line_and_column

SNAPSHOTS = "snapshots"
"""Table of snapshots, which has no AS OF itself."""

AS_OF_MAX = 8
"""Tables of other times in one text."""
SNAPSHOT_ID_MAX = 2**63 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FOLLOWING = frozenset(
    {"where", "group", "order", "limit", "offset", "fetch", "having", "window", "qualify", "for"}
    | {"union", "except", "intersect", "tablesample", "lateral", "using", "returning"}
    | {"join", "inner", "left", "right", "full", "cross", "natural", "semi", "anti", "on"}
)
"""Words behind a table that do not name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """A table of another time."""

    name: str
    """What the engine calls it."""
    table: str
    version: int | str | None = None
    """A snapshot by its id, or by a name that somebody has given it."""
    moment_us: int | None = None
    """Or else what was visible then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """Such a table where it is written, and what stands there for the engine."""

    as_of: AsOf
    begin: int
    end: int
    text: str


def clauses(found: Sequence[Token], written: str) -> Iterator[Clause]:
    """Every table of another time in a text."""
    names = [token.name if token.kind == "word" else "" for token in found]
    count = 0
    for at in range(1, len(found) - 3):
        if names[at] != "for" or names[at + 2 : at + 4] != ["as", "of"]:
            continue
        if names[at + 1] in ("system_time", "system_version"):
            count += 1
            if count > AS_OF_MAX:
                raise TooLarge(f"a query may have {AS_OF_MAX} tables of another time, and no more")
            yield _clause(found, at, count, written)


def _clause(found: Sequence[Token], at: int, number: int, written: str) -> Clause:
    table = found[at - 1].name
    begin = at - 1
    while begin >= 2 and found[begin - 1].text == ".":
        begin -= 2
    name = f"_as_of_{number}_{table}"
    if found[at + 1].name == "system_time":
        moment_us, end = _moment(found, at + 4, written)
        as_of = AsOf(name=name, table=table, moment_us=moment_us)
    else:
        version, end = _version(found, at + 4, written)
        as_of = AsOf(name=name, table=table, version=version)
    alias = "" if _has_name(found, end) else f" AS {_quoted(table)}"
    return Clause(
        as_of=as_of,
        begin=found[begin].begin,
        end=found[end - 1].end,
        text=f"{_quoted(name)}{alias}",
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _has_name(found: Sequence[Token], at: int) -> bool:
    """Does a name for the table stand here?"""
    if at >= len(found):
        return False
    token = found[at]
    return token.kind == "quoted" or (token.kind == "word" and token.name not in _FOLLOWING)


def _moment(found: Sequence[Token], at: int, written: str) -> tuple[int, int]:
    """A time in microseconds, and where the tokens behind it begin."""
    if at < len(found) and found[at].name == "timestamp":
        at += 1
    text = _text(found, at)
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        raise Malformed(
            f"FOR SYSTEM_TIME AS OF needs a time at {_place(found, at, written)}, such as "
            "TIMESTAMP '2026-09-21 14:00:00'"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1), at + 1


def _version(found: Sequence[Token], at: int, written: str) -> tuple[int | str, int]:
    text = _text(found, at)
    if text:
        return text, at + 1
    if at < len(found) and found[at].kind == "number" and found[at].text.isdecimal():
        number = int(found[at].text)
        if number <= SNAPSHOT_ID_MAX:
            return number, at + 1
    raise Malformed(
        f"FOR SYSTEM_VERSION AS OF needs the id of a snapshot or the name of a tag in quotes at "
        f"{_place(found, at, written)}; SELECT * FROM snapshots lists them"
    )


def _text(found: Sequence[Token], at: int) -> str | None:
    """What stands between simple quotes here."""
    if at >= len(found) or found[at].kind != "string" or not found[at].text.startswith("'"):
        return None
    return found[at].text[1:-1].replace("''", "'")


def _place(found: Sequence[Token], at: int, written: str) -> str:
    return line_and_column(written, found[at].begin) if at < len(found) else "its end"


def with_as_of(schemas: Mapping[str, pa.Schema], as_ofs: Sequence[AsOf]) -> Mapping[str, pa.Schema]:
    """The tables that a text can name, with those of other times."""
    if not as_ofs:
        return schemas
    more = {}
    for as_of in as_ofs:
        if as_of.table not in schemas or as_of.table == SNAPSHOTS:
            known = ", ".join(sorted(schemas.keys() - {SNAPSHOTS}))
            raise Unknown(f"{as_of.table} has no earlier times; these tables have: {known}")
        more[as_of.name] = schemas[as_of.table]
    return {**schemas, **more}
