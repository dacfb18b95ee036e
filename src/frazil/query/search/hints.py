"""Hints for a search without rows: why, and the nearest search that has some."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from frazil.errors import Malformed
from frazil.model import doc
from frazil.query.functions import search_parser as parser
from frazil.query.search.facets import facets_of
from frazil.query.search.fields import NamedField, fields_of
from frazil.query.search.filters import (
    ALWAYS,
    Ask,
    Filters,
    TimeRange,
    row_conditions,
    timestamp_sql,
    where,
)
from frazil.query.search.severity import COMPUTED
from frazil.query.search.to_sql import SCHEMAS, node_conditions, query_conditions

TERMS_MAX = 8
"""Terms of a query that are tried one by one."""
FIELDS_MAX = 1000
VALUES_MAX = 200
"""Most frequent values among which the nearest is looked for."""
NEAR = 0.6
"""Least similarity of a name or value that is suggested, from 0 to 1."""
MARGIN = datetime.timedelta(minutes=5)
"""Least time around the nearest row, if the range has no length."""
NOUNS = {"logs": "log record", "spans": "span"}

Kind = Literal["query", "range"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A search that has rows: another query, or another time range."""

    kind: Kind
    label: Annotated[str, doc("What it changes, for a button.")]
    query: str
    since: datetime.datetime | None
    until: datetime.datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """Why a search has no rows. `reason` is empty if it has some."""

    reason: str
    suggestions: tuple[Suggestion, ...]


def hints_of(
    ask: Ask,
    table: str,
    *,
    query: str = "",
    within: TimeRange = ALWAYS,
    filters: Filters | None = None,
    exclude: Filters | None = None,
    more: Sequence[str] = (),
) -> Hints:
    """Explain a search without rows. `more` are further conditions in SQL."""
    search = _Search(ask, table, within)
    computed = COMPUTED if table == "logs" else {}
    beside = [*row_conditions(filters, exclude, SCHEMAS[table], computed), *more]
    conditions = [*query_conditions(table, query), *beside]
    if search.has_rows(conditions):
        return Hints(reason="", suggestions=())
    if not search.has_rows([]):
        return search.outside(query, conditions)
    return search.term_without_rows(query, beside) or search.outside(query, conditions)


class _Search:
    """One search without rows, and the searches near it."""

    def __init__(self, ask: Ask, table: str, within: TimeRange) -> None:
        self._ask = ask
        self._table = table
        self._noun = NOUNS[table]
        self._within = within
        self._when = "" if within == ALWAYS else " in this time range"

    def has_rows(self, conditions: Sequence[str], within: TimeRange | None = None) -> bool:
        limits = (self._within if within is None else within).conditions()
        matching = where([*limits, *conditions])
        rows = self._ask(f"SELECT time FROM {self._table} {matching} LIMIT 1")
        return bool(rows.num_rows)

    def outside(self, query: str, conditions: Sequence[str]) -> Hints:
        """Rows match at another time, or never."""
        which = "matching " if conditions else ""
        time = self._nearest(conditions)
        if time is not None:
            suggestion = self._range_at(time, query)
            return Hints(reason=f"No {which}{self._noun}{self._when}.", suggestions=(suggestion,))
        if not self.has_rows([], ALWAYS):
            return Hints(reason=f"There are no {self._noun}s yet.", suggestions=())
        if not self.has_rows([]):
            return Hints(reason=f"No {self._noun} matches at any time.", suggestions=())
        return Hints(
            reason=f"Each part of the search matches, but no {self._noun} matches all of them.",
            suggestions=(),
        )

    def _nearest(self, conditions: Sequence[str]) -> datetime.datetime | None:
        """Time of the newest row before the range, else of the oldest after it."""
        since, until = self._within.since, self._within.until
        if since is not None:
            found = self._time([*conditions, f"time < {timestamp_sql(since)}"], "DESC")
            if found is not None:
                return found
        if until is None:
            return None
        return self._time([*conditions, f"time >= {timestamp_sql(until)}"], "ASC")

    def _time(self, conditions: Sequence[str], direction: str) -> datetime.datetime | None:
        rows = self._ask(
            f"SELECT time FROM {self._table} {where(conditions)} ORDER BY time {direction} LIMIT 1"
        )
        time: datetime.datetime | None = rows["time"][0].as_py() if rows.num_rows else None
        return time

    def _range_at(self, time: datetime.datetime, query: str) -> Suggestion:
        """A range as long as the searched one, with this time in its middle."""
        half = MARGIN
        if self._within.since is not None and self._within.until is not None:
            half = max((self._within.until - self._within.since) / 2, MARGIN)
        return Suggestion(
            kind="range",
            label=f"Show {time:%Y-%m-%d %H:%M:%S} UTC, the nearest {self._noun}",
            query=query,
            since=time - half,
            until=time + half,
        )

    def term_without_rows(self, query: str, beside: Sequence[str]) -> Hints | None:
        """Explain the first term that has no row in this time range."""
        for term in _terms(query):
            if self.has_rows(node_conditions(self._table, term)):
                continue
            if isinstance(term, parser.FieldQuery):
                return self._of_field(query, term)
            written = query[term.begin : term.end]
            return Hints(
                reason=f"No {self._noun}{self._when} matches {written}.",
                suggestions=(
                    *self._as_trace(query, term),
                    *self._elsewhere(query),
                    *self._without(query, term),
                ),
            )
        if beside and not self.has_rows(beside):
            reason = f"No {self._noun}{self._when} matches the filters beside the search."
            return Hints(reason=reason, suggestions=())
        return None

    def _of_field(self, query: str, term: parser.FieldQuery) -> Hints:
        written = query[term.begin : term.end]
        present = parser.FieldQuery(
            name=term.name,
            tests=(parser.Exists(begin=term.begin, end=term.end),),
            begin=term.begin,
            end=term.end,
        )
        if self.has_rows(node_conditions(self._table, present)):
            reason = f"{term.name} exists, but no {self._noun}{self._when} matches {written}."
            fixes = [*self._values(query, term), *self._elsewhere(query)]
        else:
            reason = f"No {self._noun}{self._when} has the field {term.name}."
            fixes = [*self._names(query, term), *self._as_text(query, term)]
            fixes += self._elsewhere(query)
        return Hints(reason=reason, suggestions=tuple(fixes or self._without(query, term)))

    def _elsewhere(self, query: str) -> Iterator[Suggestion]:
        time = self._nearest(query_conditions(self._table, query))
        if time is not None:
            yield self._range_at(time, query)

    def _names(self, query: str, term: parser.FieldQuery) -> Iterator[Suggestion]:
        """Fields of a similar name."""
        fields = fields_of(self._ask, self._table, within=self._within, limit=FIELDS_MAX)
        for name in nearest_names(term.name, fields):
            written = quoted_name(name)
            rest = query[term.begin : term.end]
            changed = written + rest[len(_name_text(rest, term.name)) :]
            if self._has_match(changed):
                yield self._changed(query, term, changed, f"Did you mean {name}?")

    def _has_match(self, term: str) -> bool:
        try:
            conditions = query_conditions(self._table, term)
        except Malformed:  # such as a text for a number
            return False
        return self.has_rows(conditions)

    def _values(self, query: str, term: parser.FieldQuery) -> Iterator[Suggestion]:
        """Values of the field that are similar to the only one that was searched for."""
        if len(term.tests) != 1 or not isinstance(term.tests[0], parser.Equals):
            return
        test = term.tests[0]
        facets = facets_of(
            self._ask, self._table, [term.name], self._within.conditions(), limit=VALUES_MAX
        )
        values = {value.casefold(): value for value, _ in facets.facets[0].values if value}
        for near in difflib.get_close_matches(test.value.casefold(), values, n=2, cutoff=NEAR):
            value = values[near]
            before = query[term.begin : test.begin]
            yield self._changed(query, term, before + quoted_value(value), f"Did you mean {value}?")

    def _as_text(self, query: str, term: parser.FieldQuery) -> Iterator[Suggestion]:
        """`key=value` may be part of a text."""
        phrase = quoted(query[term.begin : term.end])
        if self._has_match(phrase):
            yield self._changed(query, term, phrase, f"Search for the text {phrase}")

    def _as_trace(self, query: str, term: parser.Node) -> Iterator[Suggestion]:
        """A word may be the id of a trace."""
        written = query[term.begin : term.end]
        if _ID.fullmatch(written) and self.has_rows(
            query_conditions(self._table, f"trace:{written}"), ALWAYS
        ):
            yield self._changed(query, term, f"trace:{written}", f"Search in trace {written}")

    def _without(self, query: str, term: parser.Node) -> Iterator[Suggestion]:
        written = query[term.begin : term.end]
        rest = f"{query[: term.begin]} {query[term.end :]}".strip()
        if rest:
            yield self._suggestion(rest, f"Remove {written}")

    def _changed(self, query: str, term: parser.Node, text: str, label: str) -> Suggestion:
        return self._suggestion(query[: term.begin] + text + query[term.end :], label)

    def _suggestion(self, query: str, label: str) -> Suggestion:
        return Suggestion(kind="query", label=label, query=query, since=None, until=None)


def _terms(query: str) -> Sequence[parser.Node]:
    """Terms that must all match."""
    node = parser.parse(query)
    if node is None:
        return ()
    return node.nodes[:TERMS_MAX] if isinstance(node, parser.All) else (node,)


def _name_text(written: str, name: str) -> str:
    """The name as it is written at the begin of a term, in quotes or not."""
    return quoted(name) if written.startswith('"') else name


def nearest_names(name: str, fields: Sequence[NamedField], count: int = 3) -> list[str]:
    """Names of fields similar to a name: by spelling, or the same last parts."""
    folded = {field.name.casefold().replace("_", "."): field.name for field in fields}
    wanted = name.casefold().replace("_", ".")
    near = [text for text in folded if text.endswith(f".{wanted}")]
    near += difflib.get_close_matches(wanted, folded, n=count, cutoff=NEAR)
    return [folded[text] for text in dict.fromkeys(near)][:count]


def quoted(text: str) -> str:
    """A value or phrase of the search box, in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def quoted_value(text: str) -> str:
    """A value of the search box, in quotes if it needs them."""
    is_plain = _PLAIN.fullmatch(text) and ".." not in text and text not in ("AND", "OR", "NOT")
    return text if is_plain else quoted(text)


_PLAIN = re.compile(r"[\w/@][\w./@-]*")
_ID = re.compile("[0-9a-fA-F]{32}")


def quoted_name(name: str) -> str:
    """A field name of the search box, in quotes if it needs them."""
    node = None if set(name) & set(' ()"') else parser.parse(f"{name}:x")
    is_plain = isinstance(node, parser.FieldQuery) and node.name == name
    return name if is_plain else quoted(name)
