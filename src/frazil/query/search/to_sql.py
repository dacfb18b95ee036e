"""What a query of the search box means for a table, as SQL.

A row fits or it does not: what a row has no value for is not there, so that `-http.route:/x` also
finds rows without a route. SQL has a third answer, NULL; it may stand for no, until something is
negated. So each condition also knows its opposite, which is never NULL.

Conditions on columns are written so that pieces can be left out by them: see conditions.py.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import pyarrow as pa

from frazil.errors import Malformed
from frazil.model.arrow import LOGS, SPANS
from frazil.query.search import parser
from frazil.query.search.cursor import LONG_MAX
from frazil.query.search.filters import column, moment, text, texts
from frazil.query.search.severity import (
    NUMBERS_PER_SEVERITY,
    SEVERITIES,
    SEVERITY_UNKNOWN,
    least_number,
)

TEXT_OF = {"logs": "body", "spans": "name"}
"""Where words are looked for."""
SCHEMAS = {"logs": LOGS, "spans": SPANS}

ALIASES: Mapping[str, Mapping[str, str]] = {
    "logs": {"service": "service_name", "trace": "trace_id", "span": "span_id"},
    "spans": {"service": "service_name", "trace": "trace_id", "span": "span_id"},
}
"""Shorter names for columns."""
MADE: Mapping[str, tuple[str, ...]] = {
    "logs": ("severity", "level"),
    "spans": ("duration_ms", "status"),
}
"""Names that are no columns, and are worked out of some."""

_UPPER = frozenset({"kind", "status_code"})
_LOWER = frozenset({"trace_id", "span_id", "parent_span_id"})
_STATUSES = frozenset({"UNSET", "OK", "ERROR"})
_SEVERITY_ALIASES = {"WARNING": "WARN", "ERR": "ERROR", "CRITICAL": "FATAL"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>"}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?", re.IGNORECASE | re.ASCII)
_NUMBER_LENGTH_MAX = 40
_EXACT_MAX = 2**53
_NS_PER_MS = 1_000_000
_YEARS = (1700, 2200)
"""Of times that the engine reads from a text."""

Kind = Literal["text", "whole", "time", "severity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCondition:
    """What SQL demands of a row. Where it does not hold it may be NULL; `opposite` never is."""

    sql: str
    opposite: str
    joined_by: str = ""
    """AND or OR, when parts are joined by it."""

    @property
    def inside(self) -> str:
        """To be put among others."""
        return f"({self.sql})" if self.joined_by else self.sql


def box_conditions(table: str, query: str) -> list[str]:
    """What SQL demands of rows that a query finds; all of these. `Malformed` has the place."""
    node = parser.parse(query)
    if node is None:
        return []
    nodes = node.nodes if isinstance(node, parser.All) else (node,)
    return [condition.inside for condition in _all_of(table, nodes)]


def field_condition(table: str, name: str, values: Sequence[str], *, is_wanted: bool) -> str:
    """The same for one name that has one of these texts, or none of them."""
    tests = tuple(parser.Equals(value=value, begin=0, end=0) for value in values)
    found = _of_field(table, parser.FieldQuery(name=name, tests=tests, begin=0, end=0))
    return found.inside if is_wanted else found.opposite


def is_taken(table: str, key: str) -> bool:
    """Is the key of an attribute a name of the box that means something else?"""
    return table in MADE and (key in ALIASES[table] or key in MADE[table])


def _of(table: str, node: parser.Node) -> SqlCondition:
    if isinstance(node, parser.All):
        return _joined("AND", _all_of(table, node.nodes))
    if isinstance(node, parser.Any):
        return _joined("OR", [_of(table, each) for each in node.nodes])
    if isinstance(node, parser.Not):
        wrong = _of(table, node.node)
        # The opposite of the opposite is what may be NULL again; here it may.
        return SqlCondition(sql=wrong.opposite, opposite=f"({wrong.sql}) IS TRUE")
    if isinstance(node, parser.Phrase):
        return _of_words(table, (node,))
    return _of_field(table, node)


def _all_of(table: str, nodes: Sequence[parser.Node]) -> list[SqlCondition]:
    """Each as a condition; words together are one, as they are found by one scan."""
    words = [node for node in nodes if isinstance(node, parser.Phrase)]
    others = [_of(table, node) for node in nodes if not isinstance(node, parser.Phrase)]
    return [*others, _of_words(table, words)] if words else others


def _joined(sign: str, conditions: Sequence[SqlCondition]) -> SqlCondition:
    if len(conditions) == 1:
        return conditions[0]
    return _plain(f" {sign} ".join(condition.inside for condition in conditions), sign)


def _plain(sql: str, joined_by: str = "") -> SqlCondition:
    """A condition that may be NULL."""
    return SqlCondition(sql=sql, opposite=f"({sql}) IS NOT TRUE", joined_by=joined_by)


def _of_words(table: str, words: Sequence[parser.Phrase]) -> SqlCondition:
    search = " ".join(map(_searched, words))
    return _plain(f"matches({TEXT_OF[table]}, {text(search)})")


def _searched(words: parser.Phrase) -> str:
    """Words as `matches` takes them."""
    if words.is_prefix:
        return f"{words.text}*"
    if re.fullmatch(r"\w+", words.text, re.ASCII) and words.text not in ("AND", "OR", "NOT"):
        return words.text
    phrase = words.text.replace('"', " ")
    return f'"{phrase}"'


def _of_field(table: str, field: parser.FieldQuery) -> SqlCondition:
    """One of the tests passes. Texts of one subject that are wanted as they are become a list."""
    lists: dict[Subject, list[str]] = {}
    found: list[SqlCondition] = []
    for test in field.tests:
        try:
            subject = _subject(table, field.name, test)
            if subject.kind == "text" and isinstance(test, parser.Equals):
                lists.setdefault(subject, []).append(_folded(subject, test.value))
            else:
                found.append(_tested(subject, test))
        except Malformed as error:
            said = f"{error} (character {test.begin + 1} of the query)"
            raise Malformed(said, begin=test.begin, end=test.end) from None
    found += [_one_of(subject, values) for subject, values in lists.items()]
    return _joined("OR", found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is tested: a column, or a value in one."""

    kind: Kind
    name: str
    """How it was called, as far as an error repeats it."""
    sql: str
    is_nullable: bool = False
    scale: int = 1
    """Of a number: how many of the column's units are one of those that were written."""


def _subject(table: str, name: str, test: parser.Test) -> Subject:
    """What a name stands for, where it is tested like this."""
    if name in MADE[table]:
        return _made(name, test)
    schema = SCHEMAS[table]
    real, shown = ALIASES[table].get(name, name), name[: parser.SHOWN_MAX]
    if real not in schema.names:
        return Subject(kind="text", name=shown, sql=column(real, schema), is_nullable=True)
    kind: Kind = "text"
    field = schema.field(real)
    if pa.types.is_timestamp(field.type):
        kind = "time"
    elif pa.types.is_integer(field.type):
        kind = "whole"
    else:
        column(real, schema)  # it refuses what is no single value
    return Subject(kind=kind, name=shown, sql=real, is_nullable=field.nullable)


def _made(name: str, test: parser.Test) -> Subject:
    if name == "duration_ms":
        return Subject(kind="whole", name=name, sql="duration_nano", scale=_NS_PER_MS)
    if name in ("severity", "level"):
        return Subject(kind="severity", name=name, sql="severity_number")
    if isinstance(test, parser.Equals) and test.value.upper() in _STATUSES:
        return Subject(kind="text", name=name, sql="status_code")
    return Subject(kind="whole", name=name, sql="http_response_status_code", is_nullable=True)


def _folded(subject: Subject, value: str) -> str:
    """Of columns whose texts are all in one case, any case is understood."""
    if subject.sql in _UPPER:
        return value.upper()
    return value.lower() if subject.sql in _LOWER else value


def _one_of(subject: Subject, values: Sequence[str]) -> SqlCondition:
    """It has one of these texts."""
    if len(values) > 1:
        sql = f"{subject.sql} IN ({texts(values)})"
        if subject.is_nullable:
            return _plain(sql)
        return SqlCondition(sql=sql, opposite=f"{subject.sql} NOT IN ({texts(values)})")
    value = text(values[0])
    opposite = f"{subject.sql} <> {value}"
    if subject.is_nullable:  # in parentheses: the engine takes a following AND for a part of it
        opposite = f"({subject.sql} IS DISTINCT FROM {value})"
    return SqlCondition(sql=f"{subject.sql} = {value}", opposite=opposite)


def _tested(subject: Subject, test: parser.Test) -> SqlCondition:
    """A test as a condition."""
    if subject.kind == "severity":
        return _of_severity(subject, test)
    if isinstance(test, parser.Exists):
        return SqlCondition(sql=f"{subject.sql} IS NOT NULL", opposite=f"{subject.sql} IS NULL")
    if isinstance(test, parser.Like):
        return _like(subject, test)
    write = _WRITTEN[subject.kind]
    if isinstance(test, parser.Between) and test.low is not None and test.high is not None:
        low, high = write(subject, ">=", test.low), write(subject, "<=", test.high)
        return _plain(f"{low.subject} BETWEEN {low.value} AND {high.value}")
    sign, value = _comparison(test)
    return _compared(subject, write(subject, sign, value))


def _comparison(test: parser.Equals | parser.Compare | parser.Between) -> tuple[str, str]:
    """What is compared, where it is one thing only."""
    if isinstance(test, parser.Equals):
        return "=", test.value
    if isinstance(test, parser.Compare):
        return test.sign, test.value
    if test.low is not None:
        return ">=", test.low
    assert test.high is not None, "one end is there"
    return "<=", test.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Both sides of a comparison, as SQL."""

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
    if subject.kind == "time" or subject.scale != 1:
        raise Malformed(f"{subject.name} takes no *; write {subject.name}:>… or a range with ..")
    pattern = text("%".join(_ESCAPED.sub(r"\\\g<0>", piece) for piece in test.pieces))
    if subject.kind == "whole":
        return _plain(f"CAST({subject.sql} AS VARCHAR) LIKE {pattern}")
    if subject.is_nullable:
        return _plain(f"{subject.sql} LIKE {pattern}")
    return SqlCondition(
        sql=f"{subject.sql} LIKE {pattern}", opposite=f"{subject.sql} NOT LIKE {pattern}"
    )


_ESCAPED = re.compile(r"[%_\\]")


def _number_in_text(subject: Subject, sign: str, value: str) -> Compared:
    """A text that is no number is neither above nor below one."""
    number = float(_number(subject, value))
    if not math.isfinite(number):
        raise Malformed(f"{value} is too large a number; write a smaller one")
    is_whole = number.is_integer() and abs(number) < _EXACT_MAX
    written = str(int(number)) if is_whole else repr(number)
    return Compared(subject=f"TRY_CAST({subject.sql} AS DOUBLE)", sign=sign, value=written)


def _whole_number(subject: Subject, sign: str, value: str) -> Compared:
    """Columns of whole numbers stay as they are, so that pieces can be left out."""
    number = _number(subject, value) * subject.scale
    if abs(number) > LONG_MAX:
        raise Malformed(f"{value} is too large a number; write a smaller one")
    nearest = math.floor(number) if sign in (">", "<=") else math.ceil(number)
    if sign == "=" and nearest != number:
        return Compared(subject=subject.sql, sign="=", value=repr(float(number)))
    return Compared(subject=subject.sql, sign=sign, value=str(nearest))


def _number(subject: Subject, value: str) -> Decimal:
    if len(value) > _NUMBER_LENGTH_MAX or not _NUMBER.fullmatch(value):
        raise Malformed(
            f"{subject.name} is compared with a number here; write one, as in {subject.name}:>100"
        )
    return Decimal(value)


def _time(subject: Subject, sign: str, value: str) -> Compared:
    try:
        when = datetime.datetime.fromisoformat(value)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None or not _YEARS[0] <= when.year < _YEARS[1]:
        raise Malformed(
            f"{subject.name} is compared with a time; write one with its zone, as in "
            f"{subject.name}:>2026-11-16T10:00:00Z"
        )
    return Compared(subject=subject.sql, sign=sign, value=timestamp(when))


def timestamp(when: datetime.datetime) -> str:
    """A time as somebody would write it in SQL, where the engine can read that."""
    if not _YEARS[0] <= when.year < _YEARS[1]:
        return moment(when)
    written = when.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(sep=" ")
    return f"TIMESTAMP '{written}Z'"


_WRITTEN: Mapping[Kind, Callable[[Subject, str, str], Compared]] = {
    "text": _number_in_text,
    "whole": _whole_number,
    "time": _time,
}


def _of_severity(subject: Subject, test: parser.Test) -> SqlCondition:
    """By rank; records without a severity are below and above none."""
    if isinstance(test, parser.Like):
        raise Malformed(f"{subject.name} takes no *; write {subject.name}:>=WARN")
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
    """The first and last number that a severity stands for; a number stands for itself."""
    if re.fullmatch("[0-9]{1,2}", value) and 1 <= int(value) <= _SEVERITY_MAX:
        return int(value), int(value)
    word = _SEVERITY_ALIASES.get(value.upper(), value.upper())
    if word not in SEVERITIES:
        raise Malformed(
            f"{subject.name} is one of {', '.join(SEVERITIES)}; write {subject.name}:>=WARN"
        )
    first = least_number(word)
    return first, first + NUMBERS_PER_SEVERITY - 1
