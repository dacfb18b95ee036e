"""LogColumns: which column becomes which field of a log record.

Columns are named as in the table `logs`. `resource.x` is the resource attribute x, and every other
column an attribute of its own name.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from frazil.errors import Malformed
from frazil.load.copy.columns import type_name
from frazil.load.formats.blocks import JSON_TEXT
from frazil.load.formats.times import nanoseconds_of

if TYPE_CHECKING:
    from frazil.ingest import LogValues

RESOURCE_COLUMNS = {
    "service_name": "service.name",
    "service_namespace": "service.namespace",
    "service_instance_id": "service.instance.id",
    "deployment_environment": "deployment.environment.name",
    "host_name": "host.name",
    "k8s_namespace_name": "k8s.namespace.name",
    "k8s_pod_name": "k8s.pod.name",
    "k8s_container_name": "k8s.container.name",
}
"""Columns of the table, and the resource attributes that they are."""
RESOURCE_PREFIX = "resource."
RESOURCE_MAP, ATTRIBUTE_MAP = "resource_attributes", "attributes"
"""Columns whose values are several attributes."""
FIELDS = frozenset(
    {
        "time",
        "time_unix_nano",
        "observed_time_unix_nano",
        "severity_number",
        "severity_text",
        "body",
        "trace_id",
        "span_id",
        "flags",
        "event_name",
        "scope_name",
        "scope_version",
    }
)
DERIVED = frozenset(
    {
        "_log_partition",
        "_offset",
        "_row",
        "_value_types",
        "ingest_time",
        "body_type",
        "scope_attributes",
        "scope_schema_url",
        "resource_schema_url",
        "dropped_attributes_count",
        "resource_dropped_attributes_count",
        "scope_dropped_attributes_count",
    }
)
"""Columns of the table that a load cannot set."""
NS_PER_US = 1000
SEVERITY_MAX = 24
FLAGS_MAX = 2**32 - 1
NANO_MAX = 2**63 - 1
TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8
VALUE_CHARACTERS_MAX = 80


class BadValue(ValueError):
    """A value that is not one of its field."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class LogColumns:
    """The columns of rows that become log records. `fields` has their types as they are read:
    values of JSON text are parsed."""

    fields: pa.Schema
    renamed: Mapping[str, str]
    """Column of a file -> column of the table, where they differ."""

    def records(
        self, rows: pa.Table, default_ns: int, observed_ns: int
    ) -> Iterator[LogValues | BadValue]:
        """Yield a record per row, or why there is none. Without a time it is `default_ns`."""
        names = [self.renamed.get(name, name) for name in rows.column_names]
        columns = [
            _values(column, self.fields.field(name).type)
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        ]
        for values in zip(*columns, strict=True):
            try:
                yield _record(dict(zip(names, values, strict=True)), default_ns, observed_ns)
            except BadValue as error:
                yield error


def log_columns(schema: pa.Schema, mapping: Sequence[tuple[str, str]]) -> LogColumns:
    """Return the fields of columns. `Malformed` if there is no such column, or if one cannot be a
    field."""
    renamed = {source: column for column, source in mapping}
    if len(renamed) < len(mapping):
        raise Malformed("MAPPING takes two columns from one field; each field becomes one column")
    for source in renamed:
        if source not in schema.names:
            raise Malformed(
                f"MAPPING takes {source}, which no file has; there are: {', '.join(schema.names)}"
            )
    names = [renamed.get(name, name) for name in schema.names]
    for name in names:
        if names.count(name) > 1:
            raise Malformed(f"two fields become the column {name}; leave one out by a SELECT")
        if name in DERIVED:
            raise Malformed(
                f"the column {name} of logs is set by Frazil; leave it out by a SELECT. What "
                "`frazil export` writes is loaded with FILE_FORMAT=(TYPE=OTLP_JSON)"
            )
    if {"resourceLogs", "resourceSpans", "resourceMetrics"}.intersection(names):
        raise Malformed("the files have OTLP/JSON requests; add FILE_FORMAT=(TYPE=OTLP_JSON)")
    for field in schema:
        _check_type(renamed.get(field.name, field.name), field.type)
    return LogColumns(fields=schema, renamed=renamed)


def _check_type(name: str, kind: pa.DataType) -> None:
    is_text = kind in (pa.string(), JSON_TEXT)
    if name == "time" and not (is_text or pa.types.is_timestamp(kind)):
        raise Malformed(
            f"the column time has the type {type_name(kind)}; it is a TIMESTAMP or a text such as "
            "2026-09-21T14:00:00Z. Compute it in a SELECT: to_timestamp_millis(x) AS time"
        )
    is_map = pa.types.is_map(kind) or pa.types.is_struct(kind) or kind == JSON_TEXT
    if name in (RESOURCE_MAP, ATTRIBUTE_MAP) and not is_map:
        raise Malformed(f"the column {name} has the type {type_name(kind)}; it is an object")


def _values(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    """Return the values of a column: times in nanoseconds, maps as dictionaries."""
    if pa.types.is_timestamp(column.type):
        numbers: list[int | None] = column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        return [None if each is None else each * NS_PER_US for each in numbers]
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return [_plain(value, kind) for value in values] if _has_texts(kind) else values


def _has_texts(kind: pa.DataType) -> bool:
    """Return whether values of a type are, or contain, JSON text or times."""
    if kind == JSON_TEXT or pa.types.is_temporal(kind):
        return True
    if pa.types.is_map(kind):
        return _has_texts(kind.item_type)
    if pa.types.is_list(kind):
        return _has_texts(kind.value_type)
    return pa.types.is_struct(kind) and any(_has_texts(field.type) for field in kind)


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value with JSON text parsed, and times as text."""
    if value is None:
        return None
    if kind == JSON_TEXT:
        return msgspec.json.decode(value)
    if pa.types.is_temporal(kind):
        return value.isoformat().replace("+00:00", "Z")
    if pa.types.is_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    if pa.types.is_map(kind):
        return {name: _plain(each, kind.item_type) for name, each in value.items()}
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    return value


def _record(row: dict[str, Any], default_ns: int, observed_ns: int) -> LogValues:
    from frazil.ingest import LogValues

    resource: dict[str, object] = {}
    attributes: dict[str, object] = {}
    for name, value in row.items():
        if value is None or name in FIELDS:
            continue
        if name in RESOURCE_COLUMNS:
            resource[RESOURCE_COLUMNS[name]] = _text(value)
        elif name in (RESOURCE_MAP, ATTRIBUTE_MAP):
            target = resource if name == RESOURCE_MAP else attributes
            if not isinstance(value, dict):
                raise BadValue(name, f"{_shown(value)} is not an object")
            target.update(value)
        elif name.startswith(RESOURCE_PREFIX):
            resource[name.removeprefix(RESOURCE_PREFIX)] = value
        else:
            attributes[name] = value
    get = row.get
    return LogValues(
        time_unix_nano=_time(row, default_ns),
        observed_time_unix_nano=_integer(row, "observed_time_unix_nano", NANO_MAX) or observed_ns,
        severity_number=_integer(row, "severity_number", SEVERITY_MAX),
        severity_text=_text(get("severity_text")),
        body=get("body"),
        attributes=attributes,
        trace_id=_id(row, "trace_id", TRACE_ID_BYTES),
        span_id=_id(row, "span_id", SPAN_ID_BYTES),
        flags=_integer(row, "flags", FLAGS_MAX),
        event_name=_text(get("event_name")),
        resource=resource,
        scope=(_text(get("scope_name")), _text(get("scope_version"))),
    )


def _time(row: Mapping[str, Any], default_ns: int) -> int:
    """Return the time of a row."""
    exact = _integer(row, "time_unix_nano", NANO_MAX)
    value = row.get("time")
    if exact or value is None:
        return exact or default_ns
    if isinstance(value, int) and not isinstance(value, bool):
        found: int | None = value
    else:
        found = nanoseconds_of(value) if isinstance(value, str) else None
    if found is None or not 0 < found <= NANO_MAX:
        raise BadValue("time", f"{_shown(value)} is not a time such as 2026-09-21T14:00:00Z")
    return found


def _integer(row: Mapping[str, Any], name: str, most: int) -> int:
    value = row.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadValue(name, f"{_shown(value)} is not a number from 0 to {most}")
    return value


def _id(row: Mapping[str, Any], name: str, size: int) -> bytes:
    value = row.get(name)
    if value is None or value == "":
        return b""
    try:
        found = binascii.unhexlify(value) if isinstance(value, str) else b""
    except ValueError:
        found = b""
    if len(found) != size:
        raise BadValue(name, f"{_shown(value)} is not {2 * size} hex digits")
    return found


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _shown(value: Any) -> str:
    return _json(value)[:VALUE_CHARACTERS_MAX]
