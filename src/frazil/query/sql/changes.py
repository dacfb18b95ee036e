"""`FROM changes('t', from, to)`: the changes of a keyed table.

DataFusion has no such function. It becomes a table with a numbered name and an alias, as an AS OF
table does:

    FROM changes('orders', 10, 20)                   FROM "_changes_1_orders" AS "changes"
    FROM changes('orders', TIMESTAMP '2026-…') c     FROM "_changes_1_orders" c
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from frazil.errors import Malformed, TooLarge, Unknown
from frazil.query.sql.as_of import has_alias, quoted, take_offsets, take_time
from frazil.results import Token, line_and_column

CHANGES_MAX = 8
"""`changes(…)` in one text."""
FUNCTION = "changes"
OFFSET_FIELD = pa.field("_offset", pa.int64(), nullable=False)
CHANGE_FIELD = pa.field("_change", pa.string(), nullable=False)
_BEFORE = frozenset({"from", "join", ","})
_USAGE = (
    "changes('table', from, to): from and to are offsets, TIMESTAMP '…' or '{\"0\": 10}'; without "
    "to, up to now"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A state of a keyed table: a time, or offsets. One number is for a table of one partition."""

    time_us: int | None = None
    offsets: int | Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesOf:
    """The changes of a table between two moments; without an end, up to now."""

    name: str
    """Its name in DataFusion."""
    table: str
    begin: Moment
    end: Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesCall:
    """Where `changes(…)` is written, and its replacement."""

    changes: ChangesOf
    begin: int
    end: int
    text: str


def change_calls(parsed: Sequence[Token], text: str) -> Iterator[ChangesCall]:
    """Yield every `changes(…)` in the place of a table."""
    count = 0
    for at in range(1, len(parsed) - 1):
        token = parsed[at]
        if token.kind != "word" or token.name != FUNCTION or parsed[at + 1].text != "(":
            continue
        if parsed[at - 1].name in _BEFORE:
            count += 1
            if count > CHANGES_MAX:
                raise TooLarge(f"a query may have at most {CHANGES_MAX} changes(…)")
            yield _call(parsed, at, count, text)


def _call(parsed: Sequence[Token], at: int, number: int, text: str) -> ChangesCall:
    reader = _Arguments(parsed, at + 2, text)
    table = reader.take_string()
    reader.take(",")
    begin = reader.take_moment()
    end = reader.take_moment() if reader.skip(",") else None
    reader.take(")")
    name = f"_changes_{number}_{table}"
    alias = "" if has_alias(parsed, reader.at) else f" AS {quoted(FUNCTION)}"
    return ChangesCall(
        changes=ChangesOf(name=name, table=table, begin=begin, end=end),
        begin=parsed[at].begin,
        end=parsed[reader.at - 1].end,
        text=f"{quoted(name)}{alias}",
    )


class _Arguments:
    """Reads the arguments of one call."""

    def __init__(self, parsed: Sequence[Token], at: int, text: str) -> None:
        self._parsed = parsed
        self._text = text
        self.at = at

    def _fail(self) -> Malformed:
        where = "the end"
        if self.at < len(self._parsed):
            where = line_and_column(self._text, self._parsed[self.at].begin)
        return Malformed(f"write {_USAGE}; see {where}")

    def skip(self, sign: str) -> bool:
        is_there = self.at < len(self._parsed) and self._parsed[self.at].text == sign
        self.at += is_there
        return is_there

    def take(self, sign: str) -> None:
        if not self.skip(sign):
            raise self._fail()

    def take_string(self) -> str:
        token = self._parsed[self.at] if self.at < len(self._parsed) else None
        if token is None or token.kind != "string" or not token.text.startswith("'"):
            raise self._fail()
        self.at += 1
        return token.text[1:-1].replace("''", "'")

    def take_moment(self) -> Moment:
        if self.at < len(self._parsed) and self._parsed[self.at].name == "timestamp":
            time_us, self.at = take_time(self._parsed, self.at, self._text)
            return Moment(time_us=time_us)
        offsets, self.at = take_offsets(self._parsed, self.at, self._text)
        return Moment(offsets=offsets)


def changes_schema(columns: pa.Schema) -> pa.Schema:
    """Return the columns of `changes(…)`, of a table with these columns."""
    fields = [field for field in columns if field.name != OFFSET_FIELD.name]
    return pa.schema([CHANGE_FIELD, OFFSET_FIELD, *fields])


def with_changes(
    schemas: Mapping[str, pa.Schema], keyed: Collection[str], calls: Sequence[ChangesOf]
) -> Mapping[str, pa.Schema]:
    """Add the schemas of `changes(…)`. `Unknown` for what is not a keyed table."""
    added = {}
    for call in calls:
        if call.table not in keyed or call.table not in schemas:
            known = ", ".join(sorted(keyed)) or "there are none"
            raise Unknown(f"{call.table} is not a keyed table; keyed tables: {known}")
        added[call.name] = changes_schema(schemas[call.table])
    return {**schemas, **added} if added else schemas
