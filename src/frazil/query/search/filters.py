"""Filters and time ranges as SQL. Only this module writes values as SQL literals."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa

from frazil.errors import Malformed
from frazil.model.arrow import PROMOTED_RESOURCE, PROMOTED_SPAN, SERVICE_NAME

T = TypeVar("T")
Ask = Callable[[str], pa.Table]
"""Runs one query and returns all rows."""

MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """Time range: `since` inclusive, `until` exclusive. None is unbounded."""

    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    def conditions(self, column: str = "time") -> list[str]:
        since = if_set(f"{column} >= {{}}", self.since, timestamp_sql)
        return since + if_set(f"{column} < {{}}", self.until, timestamp_sql)


ALWAYS = TimeRange()


def timestamp_sql(time: datetime.datetime) -> str:
    """SQL expression of a time."""
    if time.tzinfo is None:
        raise Malformed(f"{time.isoformat()} has no time zone; add one, such as datetime.UTC")
    return f"to_timestamp_micros({(time - EPOCH) // MICROSECOND})"


def text(value: str) -> str:
    """SQL string literal; quotes are doubled."""
    return "'" + value.replace("'", "''") + "'"


def texts(values: Sequence[str]) -> str:
    return ", ".join(map(text, values))


FILTERS_MAX = 32
"""Filters per query."""
VALUES_MAX = 100
"""Values per filter."""

Filters = Mapping[str, str | Sequence[str]]
"""Name -> the value to match, or several of which one must match."""

RESOURCE = "resource."
SCOPE = "scope."
ATTRIBUTE = "attribute."
_MAPS = {
    RESOURCE: "resource_attributes",
    SCOPE: "scope_attributes",
    ATTRIBUTE: "attributes",
}


NONE: Mapping[str, str] = MappingProxyType({})


def column(name: str, schema: pa.Schema, computed: Mapping[str, str] = NONE) -> str:
    """SQL of a field name, as text:

    service_name          a column of the table, or one of `computed`; `service.name` is the same
    host.name             any other name: an attribute of the record, else of its resource
    attribute.host.name   the attribute of the record alone
    resource.host.name    the attribute of the resource alone
    scope.build           the attribute of the scope
    """
    if name in computed:
        return computed[name]
    if name == SERVICE_NAME:
        name = "service_name"
    if name in schema.names:
        return _as_text(schema.field(name))
    for prefix, attributes in _MAPS.items():
        if name.startswith(prefix) and name != prefix:
            return f"{attributes}[{text(name.removeprefix(prefix))}]"
    return _attribute(name, schema)


def _attribute(key: str, schema: pa.Schema) -> str:
    """SQL of an attribute of the record, else of its resource."""
    of_record = f"attributes[{text(key)}]"
    if _SPAN_COLUMNS.get(key) in schema.names:
        return of_record  # no resource has these
    of_resource = _RESOURCE_COLUMNS.get(key, f"resource_attributes[{text(key)}]")
    return f"coalesce({of_record}, {of_resource})"


_SPAN_COLUMNS = {key: name for name, keys in PROMOTED_SPAN.items() for key in keys}
_RESOURCE_COLUMNS = {key: name for name, keys in PROMOTED_RESOURCE.items() for key in keys}
"""Attribute -> the column that has it: cheaper to read than all attributes."""


def is_plain_attribute(name: str, schema: pa.Schema) -> bool:
    """Return whether a name may be an attribute of the record as well as of the resource."""
    return (
        name != SERVICE_NAME
        and name not in schema.names
        and not name.startswith(tuple(_MAPS))
        and _SPAN_COLUMNS.get(name) not in schema.names
    )


def attribute_name(key: str, schema: pa.Schema, computed: Mapping[str, str] = NONE) -> str:
    """Return the name by which `column` finds this attribute of the record."""
    is_taken = key in computed or key in schema.names or key.startswith(tuple(_MAPS))
    return ATTRIBUTE + key if is_taken else key


def _as_text(field: pa.Field) -> str:
    if field.type == pa.string():
        return f'"{field.name}"'
    if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
        raise Malformed(f"{field.name} has many values; use a key, such as {_EXAMPLE}")
    return f'CAST("{field.name}" AS VARCHAR)'


_EXAMPLE = "http.route or host.name"


def equals(filters: Filters, schema: pa.Schema, computed: Mapping[str, str] = NONE) -> list[str]:
    """One condition per filter: the field equals one of the values."""
    return [
        f"{column(name, schema, computed)} IN ({_values(name, value)})"
        for name, value in _checked(filters)
    ]


def differs(filters: Filters, schema: pa.Schema, computed: Mapping[str, str] = NONE) -> list[str]:
    """One condition per filter: the field is NULL or none of the values."""
    return [
        f"({subject} IS NULL OR {subject} NOT IN ({_values(name, value)}))"
        for name, value in _checked(filters)
        for subject in (column(name, schema, computed),)
    ]


def _checked(filters: Filters) -> list[tuple[str, str | Sequence[str]]]:
    if len(filters) > FILTERS_MAX:
        raise Malformed(f"there are {len(filters)} filters; use at most {FILTERS_MAX}")
    return list(filters.items())


def _values(name: str, value: str | Sequence[str]) -> str:
    values = [value] if isinstance(value, str) else list(value)
    if not 1 <= len(values) <= VALUES_MAX:
        raise Malformed(f"{name} has {len(values)} values; use 1 to {VALUES_MAX}")
    return texts(values)


def where(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def if_set(template: str, value: T | None, sql_of: Callable[[T], object]) -> list[str]:
    """The condition with `value` in SQL; no condition if it is None."""
    return [] if value is None else [template.format(sql_of(value))]


def bounded(number: int, name: str, maximum: int) -> int:
    """Return the number for use in SQL. `Malformed` if it is not 1 to `maximum`."""
    if not 1 <= number <= maximum:
        raise Malformed(f"{name} is {number}; it must be 1 to {maximum}")
    return number


def micros_of(step: datetime.timedelta, name: str = "step") -> int:
    """Convert a step width to microseconds. `Malformed` below one."""
    micros = step // MICROSECOND
    if micros < 1:
        raise Malformed(f"a {name} of {step} is too short; use at least one microsecond")
    return micros


def row_conditions(
    filters: Filters | None,
    exclude: Filters | None,
    schema: pa.Schema,
    computed: Mapping[str, str] = NONE,
) -> list[str]:
    """Conditions for rows that match `filters` and none of `exclude`."""
    return equals(filters or {}, schema, computed) + differs(exclude or {}, schema, computed)
