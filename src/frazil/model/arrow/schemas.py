"""The four telemetry tables. Arrow and Iceberg use the same column names.

    LOGS           one row per log record
    SPANS          one row per span
    METRICS        one row per data point
    DEAD_LETTERS   what could not become a row

A column's comment says where its value comes from; a test compares with docs/schemas.md.
"""

from __future__ import annotations

import pyarrow as pa

STRING = pa.string()
INT = pa.int32()
LONG = pa.int64()
DOUBLE = pa.float64()
BOOLEAN = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
MAP = pa.map_(STRING, pa.field("value", STRING, nullable=False))
DICTIONARY = pa.dictionary(INT, STRING)
DICTIONARY_MAP = pa.map_(DICTIONARY, pa.field("value", DICTIONARY, nullable=False))
DICTIONARY_KEY_MAP = pa.map_(DICTIONARY, pa.field("value", STRING, nullable=False))


def _list(item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", item, nullable=False))


def _structs(*fields: tuple[str, pa.DataType, bool]) -> pa.DataType:
    return _list(pa.struct([pa.field(name, kind, null) for name, kind, null in fields]))


EVENTS = _structs(
    ("time_unix_nano", LONG, False),
    ("name", STRING, False),
    ("attributes", MAP, False),
    ("dropped_attributes_count", INT, False),
)
LINKS = _structs(
    ("trace_id", STRING, False),
    ("span_id", STRING, False),
    ("trace_state", STRING, False),
    ("attributes", MAP, False),
    ("dropped_attributes_count", INT, False),
    ("flags", INT, False),
)
EXEMPLARS = _structs(
    ("time_unix_nano", LONG, False),
    ("value_double", DOUBLE, True),
    ("value_int", LONG, True),
    ("trace_id", STRING, False),
    ("span_id", STRING, False),
    ("filtered_attributes", MAP, False),
)
QUANTILES = _structs(("quantile", DOUBLE, False), ("value", DOUBLE, False))

PROMOTED_RESOURCE = {
    "service_namespace": ("service.namespace",),
    "service_instance_id": ("service.instance.id",),
    "deployment_environment": ("deployment.environment.name", "deployment.environment"),
    "host_name": ("host.name",),
    "k8s_namespace_name": ("k8s.namespace.name",),
    "k8s_pod_name": ("k8s.pod.name",),
    "k8s_container_name": ("k8s.container.name",),
}
"""Column -> resource attributes; the first that is present is used."""
PROMOTED_SPAN = {
    "http_request_method": ("http.request.method",),
    "http_response_status_code": ("http.response.status_code",),
    "http_route": ("http.route",),
    "url_path": ("url.path",),
    "db_system": ("db.system",),
    "rpc_system": ("rpc.system",),
    "rpc_method": ("rpc.method",),
    "messaging_system": ("messaging.system",),
}
"""Column -> span attributes."""
SERVICE_NAME = "service.name"
SERVICE_UNKNOWN = "unknown_service"
"""`service_name` of a resource without that attribute."""


def _column(name: str, kind: pa.DataType, comment: str, *, null: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=null, metadata={"comment": comment})


def _optional(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    return _column(name, kind, comment, null=True)


def _promoted(name: str, keys: tuple[str, ...], owner: str, kind: pa.DataType = STRING) -> pa.Field:
    return _optional(name, kind, f"{owner} attribute {', else '.join(keys)}")


COMMON = [
    _column("_log_partition", INT, "partition of the log that holds the request"),
    _column("_offset", LONG, "offset of the request in that partition"),
    _column("_row", INT, "index of the record in the request, from 0"),
    _column("time", TIME, "event time, else observed time, else ingest time"),
    _column("time_unix_nano", LONG, "event time as sent; 0 if not sent"),
    _column("ingest_time", TIME, "time the log accepted the request"),
    _column("service_name", STRING, f"resource attribute {SERVICE_NAME}, else {SERVICE_UNKNOWN}"),
    *(_promoted(name, keys, "resource") for name, keys in PROMOTED_RESOURCE.items()),
    _optional("scope_name", STRING, "scope.name"),
    _optional("scope_version", STRING, "scope.version"),
    _optional("resource_schema_url", STRING, "schema_url of the resource"),
    _optional("scope_schema_url", STRING, "schema_url of the scope"),
    _column("resource_attributes", MAP, "resource.attributes"),
    _column("scope_attributes", MAP, "scope.attributes"),
    _column("resource_dropped_attributes_count", INT, "resource.dropped_attributes_count"),
    _column("scope_dropped_attributes_count", INT, "scope.dropped_attributes_count"),
]
"""First columns of every telemetry table."""
VALUE_TYPES = _optional(
    "_value_types", STRING, "original types of the values; null if all are strings"
)
"""Last column of every telemetry table."""

LOGS = pa.schema(
    [
        *COMMON,
        _column("observed_time_unix_nano", LONG, "observed_time_unix_nano"),
        _optional("trace_id", STRING, "trace_id in lower-case hex"),
        _optional("span_id", STRING, "span_id in lower-case hex"),
        _column("flags", INT, "flags, bit for bit"),
        _column("severity_number", INT, "severity_number"),
        _optional("severity_text", STRING, "severity_text"),
        _optional("event_name", STRING, "event_name"),
        _optional("body", STRING, "body: text as it is, anything else as JSON"),
        _column("body_type", STRING, "string, int, double, bool, bytes, array, kvlist or empty"),
        _column("attributes", MAP, "attributes"),
        _column("dropped_attributes_count", INT, "dropped_attributes_count"),
        VALUE_TYPES,
    ]
)

SPANS = pa.schema(
    [
        *COMMON,
        _column("trace_id", STRING, "trace_id in lower-case hex"),
        _column("span_id", STRING, "span_id in lower-case hex"),
        _optional("parent_span_id", STRING, "parent_span_id in lower-case hex"),
        _optional("trace_state", STRING, "trace_state"),
        _column("name", STRING, "name"),
        _column("kind", STRING, "kind: INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER, UNSPECIFIED"),
        _column("end_time_unix_nano", LONG, "end_time_unix_nano"),
        _column("duration_nano", LONG, "from start to end; 0 if the end is before the start"),
        _column("status_code", STRING, "status.code: UNSET, OK, ERROR"),
        _optional("status_message", STRING, "status.message"),
        _column("attributes", MAP, "attributes"),
        *(
            _promoted(name, keys, "span", INT if name == "http_response_status_code" else STRING)
            for name, keys in PROMOTED_SPAN.items()
        ),
        _column("events", EVENTS, "events"),
        _column("links", LINKS, "links"),
        _column("flags", INT, "flags, bit for bit"),
        _column("dropped_attributes_count", INT, "dropped_attributes_count"),
        _column("dropped_events_count", INT, "dropped_events_count"),
        _column("dropped_links_count", INT, "dropped_links_count"),
        VALUE_TYPES,
    ]
)

METRICS = pa.schema(
    [
        *COMMON,
        _column("metric_name", STRING, "metric.name"),
        _column("metric_type", STRING, "gauge, sum, histogram, exponential_histogram or summary"),
        _optional("description", STRING, "metric.description"),
        _optional("unit", STRING, "metric.unit"),
        _column("start_time_unix_nano", LONG, "start_time_unix_nano"),
        _optional("value_double", DOUBLE, "as_double of gauges and sums"),
        _optional("value_int", LONG, "as_int of gauges and sums"),
        _optional("count", LONG, "count of histograms and summaries"),
        _optional("sum", DOUBLE, "sum of histograms, when sent, and summaries"),
        _optional("min", DOUBLE, "min of histograms, when sent"),
        _optional("max", DOUBLE, "max of histograms, when sent"),
        _optional("bucket_counts", _list(LONG), "bucket_counts of histograms"),
        _optional("explicit_bounds", _list(DOUBLE), "explicit_bounds of histograms"),
        _optional("scale", INT, "scale of exponential histograms"),
        _optional("zero_count", LONG, "zero_count of exponential histograms"),
        _optional("zero_threshold", DOUBLE, "zero_threshold of exponential histograms"),
        _optional("positive_offset", INT, "positive.offset, when positive was sent"),
        _optional(
            "positive_bucket_counts", _list(LONG), "positive.bucket_counts, when positive was sent"
        ),
        _optional("negative_offset", INT, "negative.offset, when negative was sent"),
        _optional(
            "negative_bucket_counts", _list(LONG), "negative.bucket_counts, when negative was sent"
        ),
        _optional("quantiles", QUANTILES, "quantile_values of summaries"),
        _optional(
            "aggregation_temporality",
            STRING,
            "UNSPECIFIED, DELTA or CUMULATIVE, of sums and histograms",
        ),
        _optional("is_monotonic", BOOLEAN, "is_monotonic of sums"),
        _column("flags", INT, "flags, bit for bit"),
        _column("attributes", MAP, "attributes"),
        _column("metadata", MAP, "metric.metadata"),
        _column("exemplars", EXEMPLARS, "exemplars"),
        VALUE_TYPES,
    ]
)

DEAD_LETTERS = pa.schema(
    [
        _column("topic", STRING, "topic of the log that holds the bytes"),
        _column("_log_partition", INT, "partition of that topic"),
        _column("_offset", LONG, "offset in that partition"),
        _optional("_row", INT, "index of the record in the request; null for the whole request"),
        _column("time", TIME, "when it was set aside"),
        _column("stage", STRING, "validate, decode, convert or commit"),
        _column("reason", STRING, "error message"),
        _column("payload", pa.binary(), "bytes of the request, or of the record"),
    ]
)

TABLES = {"logs": LOGS, "spans": SPANS, "metrics": METRICS, "dead_letters": DEAD_LETTERS}
"""Name -> schema."""

SHARED_COLUMNS = frozenset(
    {
        "service_name",
        *PROMOTED_RESOURCE,
        "resource_schema_url",
        "resource_attributes",
        "scope_name",
        "scope_version",
        "scope_schema_url",
        "scope_attributes",
        "metric_name",
        "description",
        "unit",
        "metadata",
    }
)
"""Texts and maps that a request has once for many rows."""


RECORD_ATTRIBUTES = "attributes"
"""Attributes of each record, mostly with the same keys."""


def dictionary_field(field: pa.Field) -> pa.Field:
    """Return the column with dictionary-encoded texts, if many rows share them."""
    if field.name not in SHARED_COLUMNS | {RECORD_ATTRIBUTES}:
        return field
    if not pa.types.is_map(field.type):
        return field.with_type(DICTIONARY)
    key, item = field.type.key_field.with_type(DICTIONARY), field.type.item_field
    return field.with_type(
        pa.map_(key, item if field.name == RECORD_ATTRIBUTES else item.with_type(DICTIONARY))
    )


DICTIONARY_TABLES = {
    name: pa.schema(map(dictionary_field, schema)) for name, schema in TABLES.items()
}
"""The same tables with dictionary-encoded columns."""
