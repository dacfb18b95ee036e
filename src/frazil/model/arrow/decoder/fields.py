"""The fields of OTLP, and the place in the arena of each.

A node is described by the fields of its message. A singular message has its fields in the parent
node (`FLAT`). Fields with the same place are a oneof, or parts of one. A test compares all of it
with protobuf's descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.model.arrow.decoder.arena import METRICS, NO_LEVEL, RECORDS, RESOURCES, SCOPES
from frazil.model.arrow.decoder.walk import COUNTS, SWITCH, TEXTUAL
from frazil.model.protobuf.reader import (
    BOOL,
    BYTES,
    FIXED32,
    FIXED64,
    FLAT,
    NODE,
    ONE_FIXED64,
    ONE_VARINT,
    TEXT,
    VARINT,
    VARINT32,
    ZIGZAG32,
)

# Marks of oneofs: the number of the field.
EMPTY, IS_STRING, IS_BOOL, IS_INT, IS_DOUBLE, IS_ARRAY, IS_KVLIST, IS_BYTES = range(8)
IS_STRINDEX = 8
"""An index into a dictionary that only profiles have; otherwise an empty value."""
AS_DOUBLE, AS_INT = 4, 6
GAUGE, SUM, HISTOGRAM, EXPONENTIAL, SUMMARY = 5, 7, 9, 10, 11

WORDS = {TEXT: 2, BYTES: 2, NODE: 3, ONE_FIXED64: 3, ONE_VARINT: 3, FLAT: 3}
"""Words of a value; a number has 1."""

COUNT = 0
SPAN_ID, TRACE_ID = 8, 16


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field of a message, and where its value goes."""

    number: int
    place: str
    kind: int
    mark: int = 0
    """For a oneof: the first word of the place has this, and the value follows."""
    rule: int | None = None
    """COUNT for a time or count that must not be above 2^63-1, else the length of an id."""
    flags: int = 0
    fields: tuple[ProtoField, ...] = ()
    """Fields of a FLAT message."""
    node: str = ""
    """Node type of a repeated message."""
    after: int = 0
    """Words of the place before the value, besides the mark."""

    @property
    def words(self) -> int:
        """Words of the place that this field needs."""
        if self.kind == FLAT and not self.mark:
            return 0
        return bool(self.mark) + self.after + WORDS.get(self.kind, 1)


@dataclass(frozen=True, slots=True)
class Node:
    """A repeated message."""

    message: str
    fields: tuple[ProtoField, ...]
    level: int = NO_LEVEL


def _many(number: int, place: str, node: str = "key_value") -> ProtoField:
    return ProtoField(number, place, NODE, node=node)


def _value(place: str, flags: int = 0) -> tuple[ProtoField, ...]:
    """An AnyValue."""
    array = ProtoField(1, place, NODE, node="element", after=1)
    kvlist = ProtoField(1, place, NODE, node="member", after=1)
    return (
        ProtoField(1, place, TEXT, mark=IS_STRING),
        ProtoField(2, place, BOOL, mark=IS_BOOL, flags=flags),
        ProtoField(3, place, VARINT, mark=IS_INT, flags=flags),
        ProtoField(4, place, FIXED64, mark=IS_DOUBLE, flags=flags),
        ProtoField(5, place, FLAT, mark=IS_ARRAY, flags=flags, fields=(array,)),
        ProtoField(6, place, FLAT, mark=IS_KVLIST, flags=flags, fields=(kvlist,)),
        ProtoField(7, place, BYTES, mark=IS_BYTES, flags=flags),
        ProtoField(8, place, VARINT32, mark=IS_STRINDEX),
    )


def _key_value(flags: int) -> tuple[ProtoField, ...]:
    return (ProtoField(1, "key", TEXT), ProtoField(2, "", FLAT, fields=_value("value", flags)))


def _resources(scopes: str) -> tuple[ProtoField, ...]:
    """Fields of ResourceLogs, ResourceSpans and ResourceMetrics."""
    entity = tuple(ProtoField(number, "entity", TEXT) for number in (1, 2, 3, 4))
    resource = (
        _many(1, "attributes"),
        ProtoField(2, "dropped_attributes_count", VARINT32),
        ProtoField(3, "", FLAT, fields=entity),
    )
    return (
        ProtoField(1, "", FLAT, fields=resource),
        _many(2, "", scopes),
        ProtoField(3, "schema_url", TEXT),
    )


def _scopes(records: str) -> tuple[ProtoField, ...]:
    """Fields of ScopeLogs, ScopeSpans and ScopeMetrics."""
    scope = (
        ProtoField(1, "name", TEXT),
        ProtoField(2, "version", TEXT),
        _many(3, "attributes"),
        ProtoField(4, "dropped_attributes_count", VARINT32),
    )
    return (
        ProtoField(1, "", FLAT, fields=scope),
        _many(2, "", records),
        ProtoField(3, "schema_url", TEXT),
    )


def _buckets(place: str) -> tuple[ProtoField, ...]:
    return (
        ProtoField(1, place, ZIGZAG32, after=1),
        ProtoField(2, place, ONE_VARINT, after=2, flags=COUNTS),
    )


def _data(number: int, node: str) -> ProtoField:
    """Gauge, Sum and so on, as a oneof of a metric."""
    fields = [_many(1, "", node)]
    if number in (SUM, HISTOGRAM, EXPONENTIAL):
        fields.append(ProtoField(2, "data", VARINT32, after=1))
    if number == SUM:
        fields.append(ProtoField(3, "data", BOOL, after=2))
    return ProtoField(number, "data", FLAT, mark=number, flags=SWITCH, fields=tuple(fields))


LOG_RECORD = (
    ProtoField(1, "time_unix_nano", FIXED64, rule=COUNT),
    ProtoField(11, "observed_time_unix_nano", FIXED64, rule=COUNT),
    ProtoField(2, "severity_number", VARINT32),
    ProtoField(3, "severity_text", TEXT),
    ProtoField(5, "has_body", FLAT, mark=1, fields=_value("body", TEXTUAL)),
    _many(6, "attributes"),
    ProtoField(7, "dropped_attributes_count", VARINT32),
    ProtoField(8, "flags", FIXED32),
    ProtoField(9, "trace_id", BYTES, rule=TRACE_ID),
    ProtoField(10, "span_id", BYTES, rule=SPAN_ID),
    ProtoField(12, "event_name", TEXT),
)
SPAN = (
    ProtoField(1, "trace_id", BYTES, rule=TRACE_ID),
    ProtoField(2, "span_id", BYTES, rule=SPAN_ID),
    ProtoField(3, "trace_state", TEXT),
    ProtoField(4, "parent_span_id", BYTES, rule=SPAN_ID),
    ProtoField(16, "flags", FIXED32),
    ProtoField(5, "name", TEXT),
    ProtoField(6, "kind", VARINT32),
    ProtoField(7, "start_time_unix_nano", FIXED64, rule=COUNT),
    ProtoField(8, "end_time_unix_nano", FIXED64, rule=COUNT),
    _many(9, "attributes"),
    ProtoField(10, "dropped_attributes_count", VARINT32),
    _many(11, "events", "event"),
    ProtoField(12, "dropped_events_count", VARINT32),
    _many(13, "links", "link"),
    ProtoField(14, "dropped_links_count", VARINT32),
    ProtoField(
        15,
        "",
        FLAT,
        fields=(ProtoField(2, "status_message", TEXT), ProtoField(3, "status_code", VARINT32)),
    ),
)
EVENT = (
    ProtoField(1, "time_unix_nano", FIXED64, rule=COUNT),
    ProtoField(2, "name", TEXT),
    _many(3, "attributes"),
    ProtoField(4, "dropped_attributes_count", VARINT32),
)
LINK = (
    ProtoField(1, "trace_id", BYTES, rule=TRACE_ID),
    ProtoField(2, "span_id", BYTES, rule=SPAN_ID),
    ProtoField(3, "trace_state", TEXT),
    _many(4, "attributes"),
    ProtoField(5, "dropped_attributes_count", VARINT32),
    ProtoField(6, "flags", FIXED32),
)
METRIC = (
    ProtoField(1, "name", TEXT),
    ProtoField(2, "description", TEXT),
    ProtoField(3, "unit", TEXT),
    _data(GAUGE, "number_point"),
    _data(SUM, "number_point"),
    _data(HISTOGRAM, "histogram_point"),
    _data(EXPONENTIAL, "exponential_point"),
    _data(SUMMARY, "summary_point"),
    _many(12, "metadata"),
)
POINT = (
    ProtoField(2, "start_time_unix_nano", FIXED64, rule=COUNT),
    ProtoField(3, "time_unix_nano", FIXED64, rule=COUNT),
)
"""Fields of all data points."""
NUMBER_POINT = (
    *POINT,
    _many(7, "attributes"),
    ProtoField(8, "flags", VARINT32),
    _many(5, "exemplars", "exemplar"),
    ProtoField(4, "value", FIXED64, mark=AS_DOUBLE),
    ProtoField(6, "value", FIXED64, mark=AS_INT),
)
HISTOGRAM_POINT = (
    *POINT,
    _many(9, "attributes"),
    ProtoField(10, "flags", VARINT32),
    _many(8, "exemplars", "exemplar"),
    ProtoField(4, "count", FIXED64, rule=COUNT),
    ProtoField(5, "sum", FIXED64, mark=1),
    ProtoField(11, "min", FIXED64, mark=1),
    ProtoField(12, "max", FIXED64, mark=1),
    ProtoField(6, "bucket_counts", ONE_FIXED64, flags=COUNTS),
    ProtoField(7, "explicit_bounds", ONE_FIXED64),
)
EXPONENTIAL_POINT = (
    *POINT,
    _many(1, "attributes"),
    ProtoField(10, "flags", VARINT32),
    _many(11, "exemplars", "exemplar"),
    ProtoField(4, "count", FIXED64, rule=COUNT),
    ProtoField(5, "sum", FIXED64, mark=1),
    ProtoField(12, "min", FIXED64, mark=1),
    ProtoField(13, "max", FIXED64, mark=1),
    ProtoField(6, "scale", ZIGZAG32),
    ProtoField(7, "zero_count", FIXED64, rule=COUNT),
    ProtoField(14, "zero_threshold", FIXED64),
    ProtoField(8, "positive", FLAT, mark=1, fields=_buckets("positive")),
    ProtoField(9, "negative", FLAT, mark=1, fields=_buckets("negative")),
)
SUMMARY_POINT = (
    *POINT,
    _many(7, "attributes"),
    ProtoField(8, "flags", VARINT32),
    ProtoField(4, "count", FIXED64, rule=COUNT),
    ProtoField(5, "sum", FIXED64, after=1),
    _many(6, "quantiles", "quantile"),
)
EXEMPLAR = (
    _many(7, "filtered_attributes"),
    ProtoField(2, "time_unix_nano", FIXED64, rule=COUNT),
    ProtoField(3, "value", FIXED64, mark=AS_DOUBLE),
    ProtoField(6, "value", FIXED64, mark=AS_INT),
    ProtoField(4, "span_id", BYTES, rule=SPAN_ID),
    ProtoField(5, "trace_id", BYTES, rule=TRACE_ID),
)
QUANTILE = (ProtoField(1, "quantile", FIXED64), ProtoField(2, "value", FIXED64))

NODES = {
    "logs": Node("ExportLogsServiceRequest", (_many(1, "", "resource_logs"),)),
    "traces": Node("ExportTraceServiceRequest", (_many(1, "", "resource_spans"),)),
    "metrics": Node("ExportMetricsServiceRequest", (_many(1, "", "resource_metrics"),)),
    "resource_logs": Node("ResourceLogs", _resources("scope_logs"), RESOURCES),
    "resource_spans": Node("ResourceSpans", _resources("scope_spans"), RESOURCES),
    "resource_metrics": Node("ResourceMetrics", _resources("scope_metrics"), RESOURCES),
    "scope_logs": Node("ScopeLogs", _scopes("log_record"), SCOPES),
    "scope_spans": Node("ScopeSpans", _scopes("span"), SCOPES),
    "scope_metrics": Node("ScopeMetrics", _scopes("metric"), SCOPES),
    "metric": Node("Metric", METRIC, METRICS),
    "log_record": Node("LogRecord", LOG_RECORD, RECORDS),
    "span": Node("Span", SPAN, RECORDS),
    "number_point": Node("NumberDataPoint", NUMBER_POINT, RECORDS),
    "histogram_point": Node("HistogramDataPoint", HISTOGRAM_POINT, RECORDS),
    "exponential_point": Node("ExponentialHistogramDataPoint", EXPONENTIAL_POINT, RECORDS),
    "summary_point": Node("SummaryDataPoint", SUMMARY_POINT, RECORDS),
    "event": Node("Event", EVENT),
    "link": Node("Link", LINK),
    "exemplar": Node("Exemplar", EXEMPLAR),
    "quantile": Node("ValueAtQuantile", QUANTILE),
    "key_value": Node("KeyValue", _key_value(TEXTUAL)),
    "member": Node("KeyValue", _key_value(0)),
    "element": Node("AnyValue", (ProtoField(0, "key", TEXT), *_value("value"))),
}
"""An attribute is a `key_value`; below it are only members of kvlists and elements of arrays.
They share the same slots; an element has an empty key."""
