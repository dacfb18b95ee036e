"""Ask: how a question becomes SQL. Values are written as literals here, and nowhere else."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from frazil.errors import Malformed

Ask = Callable[[str], pa.Table]
"""Runs one query and gives its rows."""

MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """A stretch of time: from `since` on, and before `until`. None is without end."""

    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    def conditions(self, column: str = "time") -> list[str]:
        found = []
        if self.since is not None:
            found.append(f"{column} >= {moment(self.since)}")
        if self.until is not None:
            found.append(f"{column} < {moment(self.until)}")
        return found


ALWAYS = TimeRange()


def moment(when: datetime.datetime) -> str:
    """A time as SQL has it."""
    if when.tzinfo is None:
        raise Malformed(f"{when.isoformat()} has no time zone; say which, as in datetime.UTC")
    return f"to_timestamp_micros({(when - EPOCH) // MICROSECOND})"


def text(value: str) -> str:
    """A text as SQL has it; a quote in it is doubled, which ends nothing."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Sequence[str]) -> str:
    return ", ".join(map(text, values))


FILTERS_MAX = 32
"""Conditions of one question on columns and attributes; more is nothing that anybody types."""
VALUES_MAX = 100
"""Of one of them."""

Filters = Mapping[str, str | Sequence[str]]
"""Name -> the text that is wanted there, or several of which one is."""

RESOURCE = "resource."
SCOPE = "scope."
ATTRIBUTE = "attribute."
_MAPS = {
    RESOURCE: "resource_attributes",
    SCOPE: "scope_attributes",
    ATTRIBUTE: "attributes",
}


def column(name: str, schema: pa.Schema, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """What a name of a question stands for, as text:

    service_name          a column of the table, or one of `more`
    resource.host.name    the attribute host.name of the resource
    scope.build           the attribute build of the scope
    http.route            any other name: that attribute of the record itself
    attribute.scope.x     the same for a key that would be read as one of the above
    """
    if name in more:
        return more[name]
    if name in schema.names:
        return _as_text(schema.field(name))
    for prefix, attributes in _MAPS.items():
        if name.startswith(prefix) and name != prefix:
            return f"{attributes}[{text(name.removeprefix(prefix))}]"
    return f"attributes[{text(name)}]"


def spelled(key: str, schema: pa.Schema, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """The name for which `column` gives this attribute of the record itself."""
    is_taken = key in more or key in schema.names or key.startswith(tuple(_MAPS))
    return ATTRIBUTE + key if is_taken else key


def _as_text(field: pa.Field) -> str:
    if field.type == pa.string():
        return f'"{field.name}"'
    if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
        raise Malformed(f"{field.name} is no single value; name one of its keys, as in {_EXAMPLE}")
    return f'CAST("{field.name}" AS VARCHAR)'


_EXAMPLE = "http.route, or resource.host.name"


def equals(
    filters: Filters, schema: pa.Schema, more: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """One condition per filter: what it names has exactly this text, or one of these."""
    return [
        f"{column(name, schema, more)} IN ({_wanted(name, value)})"
        for name, value in _bounded(filters)
    ]


def differs(
    filters: Filters, schema: pa.Schema, more: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """One condition per filter: what it names has another text than these, or none."""
    return [
        f"({subject} IS NULL OR {subject} NOT IN ({_wanted(name, value)}))"
        for name, value in _bounded(filters)
        for subject in (column(name, schema, more),)
    ]


def _bounded(filters: Filters) -> list[tuple[str, str | Sequence[str]]]:
    if len(filters) > FILTERS_MAX:
        raise Malformed(f"there are {len(filters)} filters; use at most {FILTERS_MAX}")
    return list(filters.items())


def _wanted(name: str, value: str | Sequence[str]) -> str:
    values = [value] if isinstance(value, str) else list(value)
    if not 1 <= len(values) <= VALUES_MAX:
        raise Malformed(f"{name} has {len(values)} wanted values; it must have 1 to {VALUES_MAX}")
    return texts(values)


def where(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def whole(number: int, name: str, largest: int) -> int:
    """A number that goes into SQL as it is, within bounds."""
    if not 1 <= number <= largest:
        raise Malformed(f"{name} is {number}; it must be 1 to {largest}")
    return number


def micros_of(step: datetime.timedelta, name: str = "step") -> int:
    """A length of time in microseconds, which SQL cuts time into."""
    micros = step // MICROSECOND
    if micros < 1:
        raise Malformed(f"a {name} of {step} is too short; use at least a microsecond")
    return micros


def row_conditions(filters: Filters, exclude: Filters, schema: pa.Schema) -> list[str]:
    """What SQL demands of rows that have some texts, and do not have others."""
    return equals(filters, schema) + differs(exclude, schema)
