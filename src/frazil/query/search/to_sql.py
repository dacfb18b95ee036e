"""A query of the search box as SQL conditions of a table.

A row matches or not: a missing value never matches, so `-http.route:/x` also finds rows without a
route. In SQL a missing value gives NULL, which counts as false until it is negated. So each
condition also has its opposite, which is never NULL.

Conditions on columns keep the form that pruning understands: see plan/predicates.py.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import pyarrow as pa

from frazil.errors import Malformed
from frazil.model import NS_PER_MS, NUMBERS_PER_SEVERITY, SEVERITIES
from frazil.model.arrow import LOGS, SERVICE_NAME, SPANS
from frazil.query.functions import search_parser as parser
from frazil.query.search.cursor import LONG_MAX
from frazil.query.search.filters import (
    column,
    is_plain_attribute,
    text,
    texts,
    timestamp_sql,
)
from frazil.query.search.severity import SEVERITY_UNKNOWN, least_number
from frazil.query.sql.entry_spans import is_entry

TEXT_COLUMN = {"logs": "body", "spans": "name"}
"""Column in which words are searched."""
SCHEMAS = {"logs": LOGS, "spans": SPANS}

_COMMON = {
    "service": "service_name",
    SERVICE_NAME: "service_name",
    "trace": "trace_id",
    "span": "span_id",
}
ALIASES: Mapping[str, Mapping[str, str]] = {"logs": _COMMON, "spans": _COMMON}
"""Other names of columns."""
COMPUTED_NAMES: Mapping[str, tuple[str, ...]] = {
    "logs": ("severity", "level"),
    "spans": ("duration", "duration_ms", "status", "entry"),
}
"""Names that are computed from columns."""

_UPPER = frozenset({"kind", "status_code"})
_LOWER = frozenset({"trace_id", "span_id", "parent_span_id"})
_STATUSES = frozenset({"UNSET", "OK", "ERROR"})
_SEVERITY_ALIASES = {"WARNING": "WARN", "ERR": "ERROR", "CRITICAL": "FATAL"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>"}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?", re.IGNORECASE | re.ASCII)
_NUMBER_LENGTH_MAX = 40
_DURATION = re.compile(r"(.*?[\d.])(ns|us|µs|ms|s|m|h)", re.ASCII)
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": NS_PER_MS,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_EXACT_MAX = 2**53
_YEARS = (1700, 2200)
"""Years of timestamp literals that the engine can parse."""

Kind = Literal["text", "integer", "time", "severity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCondition:
    """A condition. It may be NULL where it does not hold; `opposite` is never NULL."""

    sql: str
    opposite: str
    joined_by: str = ""  # AND or OR, if it has parts

    @property
    def grouped(self) -> str:
        """SQL that can be combined with other conditions."""
        return f"({self.sql})" if self.joined_by else self.sql


def query_conditions(table: str, query: str) -> list[str]:
    """Conditions of a query, to be joined by AND. `Malformed` has the position."""
    node = parser.parse(query)
    return [] if node is None else node_conditions(table, node)


def node_conditions(table: str, node: parser.Node) -> list[str]:
    """Conditions of a part of a query, to be joined by AND."""
    nodes = node.nodes if isinstance(node, parser.All) else (node,)
    return [condition.grouped for condition in _all_of(table, nodes)]


def query_names(table: str, query: str) -> list[str]:
    """Names of a query that may be attributes of the record as well as of its resource."""
    return [
        name
        for name in _names(parser.parse(query))
        if not is_reserved(table, name) and is_plain_attribute(name, SCHEMAS[table])
    ]


def _names(node: parser.Node | None) -> Iterator[str]:
    if isinstance(node, parser.FieldQuery):
        yield node.name
    elif isinstance(node, parser.Not):
        yield from _names(node.node)
    elif isinstance(node, parser.All | parser.Any):
        for each in node.nodes:
            yield from _names(each)


def field_condition(table: str, name: str, values: Sequence[str], *, is_included: bool) -> str:
    """Condition of one field that has one of these values, or none of them."""
    tests = tuple(parser.Equals(value=value, begin=0, end=0) for value in values)
    condition = _of_field(table, parser.FieldQuery(name=name, tests=tests, begin=0, end=0))
    return condition.grouped if is_included else condition.opposite


def is_reserved(table: str, key: str) -> bool:
    """Return whether an attribute key has another meaning in the search box."""
    return table in COMPUTED_NAMES and (key in ALIASES[table] or key in COMPUTED_NAMES[table])


def _of(table: str, node: parser.Node) -> SqlCondition:
    if isinstance(node, parser.All):
        return _joined("AND", _all_of(table, node.nodes))
    if isinstance(node, parser.Any):
        return _joined("OR", [_of(table, each) for each in node.nodes])
    if isinstance(node, parser.Not):
        negated = _of(table, node.node)
        return SqlCondition(sql=negated.opposite, opposite=f"({negated.sql}) IS TRUE")
    if isinstance(node, parser.Phrase):
        return _of_words(table, (node,))
    return _of_field(table, node)


def _all_of(table: str, nodes: Sequence[parser.Node]) -> list[SqlCondition]:
    """One condition per node; all words become one condition, found by one scan."""
    words = [node for node in nodes if isinstance(node, parser.Phrase)]
    others = [_of(table, node) for node in nodes if not isinstance(node, parser.Phrase)]
    return [*others, _of_words(table, words)] if words else others


def _joined(sign: str, conditions: Sequence[SqlCondition]) -> SqlCondition:
    if len(conditions) == 1:
        return conditions[0]
    return _plain(f" {sign} ".join(condition.grouped for condition in conditions), sign)


def _plain(sql: str, joined_by: str = "") -> SqlCondition:
    """A condition that may be NULL."""
    return SqlCondition(sql=sql, opposite=f"({sql}) IS NOT TRUE", joined_by=joined_by)


def _of_words(table: str, words: Sequence[parser.Phrase]) -> SqlCondition:
    search = " ".join(map(_search_text, words))
    return _plain(f"matches({TEXT_COLUMN[table]}, {text(search)})")


def _search_text(words: parser.Phrase) -> str:
    """Syntax of `matches`."""
    if words.is_prefix:
        return f"{words.text}*"
    if re.fullmatch(r"\w+", words.text, re.ASCII) and words.text not in ("AND", "OR", "NOT"):
        return words.text
    phrase = words.text.replace('"', " ")
    return f'"{phrase}"'


def _of_field(table: str, field: parser.FieldQuery) -> SqlCondition:
    """Any of the tests. Exact texts of one subject become an IN list."""
    lists: dict[Subject, list[str]] = {}
    conditions: list[SqlCondition] = []
    for test in field.tests:
        try:
            subject = _subject(table, field.name, test)
            if subject.kind == "text" and isinstance(test, parser.Equals):
                lists.setdefault(subject, []).append(_folded(subject, test.value))
            else:
                conditions.append(_tested(subject, test))
        except Malformed as error:
            message = f"{error} (character {test.begin + 1} of the query)"
            raise Malformed(message, begin=test.begin, end=test.end) from None
    conditions += [_one_of(subject, values) for subject, values in lists.items()]
    return _joined("OR", conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is tested: a column or an attribute."""

    kind: Kind
    name: str  # as written, shortened for errors
    sql: str
    is_nullable: bool = False
    unit_ns: int | None = None  # of a duration: nanoseconds of a number without a unit


def _subject(table: str, name: str, test: parser.Test) -> Subject:
    """Resolve a name, which may depend on the test."""
    if name in COMPUTED_NAMES[table]:
        return _computed(name, test)
    schema = SCHEMAS[table]
    real, short = ALIASES[table].get(name, name), name[: parser.SHOWN_MAX]
    if real == "duration_nano" and real in schema.names:
        return Subject(kind="integer", name=short, sql=real, unit_ns=1)
    if real not in schema.names:
        return Subject(kind="text", name=short, sql=column(real, schema), is_nullable=True)
    kind: Kind = "text"
    field = schema.field(real)
    if pa.types.is_timestamp(field.type):
        kind = "time"
    elif pa.types.is_integer(field.type):
        kind = "integer"
    else:
        column(real, schema)  # rejects nested columns
    return Subject(kind=kind, name=short, sql=real, is_nullable=field.nullable)


def _computed(name: str, test: parser.Test) -> Subject:
    if name in ("duration", "duration_ms"):
        return Subject(kind="integer", name=name, sql="duration_nano", unit_ns=NS_PER_MS)
    if name in ("severity", "level"):
        return Subject(kind="severity", name=name, sql="severity_number")
    if name == "entry":
        return Subject(
            kind="text", name=name, sql=f"CASE WHEN {is_entry()} THEN 'true' ELSE 'false' END"
        )
    if isinstance(test, parser.Equals) and test.value.upper() in _STATUSES:
        return Subject(kind="text", name=name, sql="status_code")
    return Subject(kind="integer", name=name, sql="http_response_status_code", is_nullable=True)


def _folded(subject: Subject, value: str) -> str:
    """Ignore case for columns whose values all have the same case."""
    if subject.sql in _UPPER:
        return value.upper()
    return value.lower() if subject.sql in _LOWER else value


def _one_of(subject: Subject, values: Sequence[str]) -> SqlCondition:
    """The subject equals one of these texts."""
    if len(values) > 1:
        sql = f"{subject.sql} IN ({texts(values)})"
        if subject.is_nullable:
            return _plain(sql)
        return SqlCondition(sql=sql, opposite=f"{subject.sql} NOT IN ({texts(values)})")
    value = text(values[0])
    opposite = f"{subject.sql} <> {value}"
    if subject.is_nullable:  # in parentheses: the engine would parse a following AND as part of it
        opposite = f"({subject.sql} IS DISTINCT FROM {value})"
    return SqlCondition(sql=f"{subject.sql} = {value}", opposite=opposite)


def _tested(subject: Subject, test: parser.Test) -> SqlCondition:
    """Condition of one test."""
    if subject.kind == "severity":
        return _of_severity(subject, test)
    if isinstance(test, parser.Exists):
        return SqlCondition(sql=f"{subject.sql} IS NOT NULL", opposite=f"{subject.sql} IS NULL")
    if isinstance(test, parser.Like):
        return _like(subject, test)
    write = _WRITERS[subject.kind]
    if isinstance(test, parser.Between) and test.low is not None and test.high is not None:
        low, high = write(subject, ">=", test.low), write(subject, "<=", test.high)
        return _plain(f"{low.subject} BETWEEN {low.value} AND {high.value}")
    sign, value = _comparison(test)
    return _compared(subject, write(subject, sign, value))


def _comparison(test: parser.Equals | parser.Compare | parser.Between) -> tuple[str, str]:
    """Sign and value of a test with one bound."""
    if isinstance(test, parser.Equals):
        return "=", test.value
    if isinstance(test, parser.Compare):
        return test.sign, test.value
    if test.low is not None:
        return ">=", test.low
    assert test.high is not None, "a range has at least one bound"
    return "<=", test.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison in SQL."""

    subject: str
    sign: str
    value: str


def _compared(subject: Subject, sides: Compared) -> SqlCondition:
    sql = f"{sides.subject} {sides.sign} {sides.value}"
    if subject.is_nullable or sides.subject != subject.sql:
        return _plain(sql)
    opposite = f"{sides.subject} {_OPPOSITE[sides.sign]} {sides.value}"
    return SqlCondition(sql=sql, opposite=opposite)


def _like(subject: Subject, test: parser.Like) -> SqlCondition:
    if subject.kind == "time" or subject.unit_ns is not None:
        raise Malformed(f"{subject.name} does not support *; use {subject.name}:>… or a range")
    pattern = text("%".join(_ESCAPED.sub(r"\\\g<0>", piece) for piece in test.pieces))
    if subject.kind == "integer":
        return _plain(f"CAST({subject.sql} AS VARCHAR) LIKE {pattern}")
    if subject.is_nullable:
        return _plain(f"{subject.sql} LIKE {pattern}")
    return SqlCondition(
        sql=f"{subject.sql} LIKE {pattern}", opposite=f"{subject.sql} NOT LIKE {pattern}"
    )


_ESCAPED = re.compile(r"[%_\\]")


def _number_in_text(subject: Subject, sign: str, value: str) -> Compared:
    """Compare a text as a number; texts that are not numbers never match."""
    number = float(_number(subject, value))
    if not math.isfinite(number):
        raise Malformed(f"{value} is too large; use a smaller number")
    is_whole = number.is_integer() and abs(number) < _EXACT_MAX
    literal = str(int(number)) if is_whole else repr(number)
    return Compared(subject=f"TRY_CAST({subject.sql} AS DOUBLE)", sign=sign, value=literal)


def _integer(subject: Subject, sign: str, value: str) -> Compared:
    """Compare an integer column without a cast, so that pruning works."""
    number = _number(subject, value) if subject.unit_ns is None else _nanos(subject, value)
    if abs(number) > LONG_MAX:
        raise Malformed(f"{value} is too large; use a smaller number")
    nearest = math.floor(number) if sign in (">", "<=") else math.ceil(number)
    if sign == "=" and nearest != number:
        return Compared(subject=subject.sql, sign="=", value=repr(float(number)))
    return Compared(subject=subject.sql, sign=sign, value=str(nearest))


def _number(subject: Subject, value: str) -> Decimal:
    if len(value) > _NUMBER_LENGTH_MAX or not _NUMBER.fullmatch(value):
        raise Malformed(f"{subject.name} needs a number, such as {subject.name}:>100")
    return Decimal(value)


def _nanos(subject: Subject, value: str) -> Decimal:
    """Parse a duration with or without a unit."""
    match = _DURATION.fullmatch(value)
    number, unit_ns = (match[1], _UNIT_NS[match[2]]) if match else (value, subject.unit_ns or 1)
    if len(number) > _NUMBER_LENGTH_MAX or not _NUMBER.fullmatch(number):
        raise Malformed(
            f"{subject.name} needs a duration, such as {subject.name}:>100ms; "
            f"units are ns, us, ms, s, m and h"
        )
    return Decimal(number) * unit_ns


def _time(subject: Subject, sign: str, value: str) -> Compared:
    try:
        time = datetime.datetime.fromisoformat(value)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None or not _YEARS[0] <= time.year < _YEARS[1]:
        raise Malformed(
            f"{subject.name} needs a time with a zone, such as {subject.name}:>2026-11-16T10:00:00Z"
        )
    return Compared(subject=subject.sql, sign=sign, value=timestamp_literal(time))


def timestamp_literal(time: datetime.datetime) -> str:
    """Readable SQL of a time, if the engine can parse it."""
    if not _YEARS[0] <= time.year < _YEARS[1]:
        return timestamp_sql(time)
    literal = time.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(sep=" ")
    return f"TIMESTAMP '{literal}Z'"


_WRITERS: Mapping[Kind, Callable[[Subject, str, str], Compared]] = {
    "text": _number_in_text,
    "integer": _integer,
    "time": _time,
}


def _of_severity(subject: Subject, test: parser.Test) -> SqlCondition:
    """Compare by rank. Records without a severity match no comparison."""
    if isinstance(test, parser.Like):
        raise Malformed(f"{subject.name} does not support *; use {subject.name}:>=WARN")
    if isinstance(test, parser.Equals) and test.value.upper() == SEVERITY_UNKNOWN:
        known = f"{subject.sql} BETWEEN 1 AND {_SEVERITY_MAX}"
        return SqlCondition(sql=f"{subject.sql} NOT BETWEEN 1 AND {_SEVERITY_MAX}", opposite=known)
    low, high = 1, _SEVERITY_MAX
    if isinstance(test, parser.Between):
        low = _rank(subject, test.low or SEVERITIES[0])[0]
        high = _rank(subject, test.high or SEVERITIES[-1])[1]
    elif not isinstance(test, parser.Exists):
        sign, value = _comparison(test)
        first, last = _rank(subject, value)
        low = {">=": first, ">": last + 1, "=": first}.get(sign, low)
        high = {"<=": last, "<": first - 1, "=": last}.get(sign, high)
        if sign in (">", ">="):
            return _compared(subject, Compared(subject=subject.sql, sign=">=", value=str(low)))
    return SqlCondition(
        sql=f"{subject.sql} BETWEEN {low} AND {high}",
        opposite=f"{subject.sql} NOT BETWEEN {low} AND {high}",
    )


_SEVERITY_MAX = NUMBERS_PER_SEVERITY * len(SEVERITIES)


def _rank(subject: Subject, value: str) -> tuple[int, int]:
    """Return the lowest and highest number of a severity name or number."""
    if re.fullmatch("[0-9]{1,2}", value) and 1 <= int(value) <= _SEVERITY_MAX:
        return int(value), int(value)
    word = _SEVERITY_ALIASES.get(value.upper(), value.upper())
    if word not in SEVERITIES:
        raise Malformed(
            f"{subject.name} must be one of {', '.join(SEVERITIES)}; try {subject.name}:>=WARN"
        )
    first = least_number(word)
    return first, first + NUMBERS_PER_SEVERITY - 1
