"""The slow, obvious decoder: protobuf parses, and plain Python walks the objects.

What `frazil.model.arrow.decode` gives must be this, row for row. Nothing of its code is used
here.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

from frazil.model.arrow.schemas import TABLES
from frazil.model.arrow.types import Decoded, ExportRequest
from tests.fuzz.wire import POINTS, has_group, is_log_record, is_span

CLASSES: dict[str, type[Message]] = {
    "logs": ExportLogsServiceRequest,
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
INT32_MAX = 2**31 - 1
BODY_TYPES = {
    "string_value": "string",
    "int_value": "int",
    "double_value": "double",
    "bool_value": "bool",
    "bytes_value": "bytes",
    "array_value": "array",
    "kvlist_value": "kvlist",
}
TYPE_WORDS = {
    "string_value": "s",
    "int_value": "i",
    "double_value": "d",
    "bool_value": "b",
    "bytes_value": "y",
}
OTHER_SEVERITIES = {
    "UNSPECIFIED": "",
    "VERBOSE": "DEBUG",
    "INFORMATION": "INFO",
    "INFORMATIONAL": "INFO",
    "NOTICE": "INFO2",
    "WARNING": "WARN",
    "ERR": "ERROR",
    "SEVERE": "ERROR",
    "CRIT": "ERROR2",
    "ALERT": "ERROR3",
    "CRITICAL": "FATAL",
    "EMERG": "FATAL",
    "EMERGENCY": "FATAL",
}
PARTS = ("resource_types", "scope_types", "metric_types", "record_types")
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUS_CODES = ("UNSET", "OK", "ERROR")
TEMPORALITIES = ("UNSPECIFIED", "DELTA", "CUMULATIVE")

Row = dict[str, Any]


class Dead(NamedTuple):
    """What could not become a row."""

    offset: int
    row: int | None
    record: Any
    """The record, or None when the whole request is meant."""


def reference(
    signal: str, requests: Sequence[ExportRequest], *, plain: frozenset[int] = frozenset()
) -> tuple[list[Row], list[Dead]]:
    """Rows, and what could not become one. In requests with `plain` offsets there are no groups,
    which saves looking for them."""
    rows: list[Row] = []
    dead: list[Dead] = []
    for request in requests:
        message = parsed(signal, request.body, request.offset not in plain)
        if message is None:
            dead.append(Dead(request.offset, None, None))
            continue
        for number, found in enumerate(RECORDS[signal](message)):
            record, is_storable, common, row_of = found
            if is_storable(record):
                rows.append(finished(place(request, number) | common | row_of(record, request)))
            else:
                dead.append(Dead(request.offset, number, record))
    return rows, dead


def parsed(signal: str, body: bytes, has_groups: bool) -> Any:
    """The request, or None when it is none. Groups are not accepted."""
    try:
        message: Any = CLASSES[signal].FromString(body)
    except DecodeError:
        return None
    return None if has_groups and has_group(message.DESCRIPTOR, body) else message


def place(request: ExportRequest, number: int) -> Row:
    return {
        "_log_partition": request.partition,
        "_offset": request.offset,
        "_row": number,
        "ingest_time": request.ingest_time_ms * 1000,
    }


def finished(row: Row) -> Row:
    """With what its values were, of which each level has told its own."""
    parts = [row.pop(part) for part in PARTS if part in row]
    # Strings need not be told.
    parts = ["" if set(part) <= {"s"} else part for part in parts]
    return row | {"_value_types": "|".join(parts) if any(parts) else None}


Found = tuple[Any, Callable[[Any], bool], Row, Callable[[Any, ExportRequest], Row]]
"""A record, whether it can be stored, what is said above it, what it says itself."""


def log_records(message: Any) -> Iterator[Found]:
    for resource_logs in message.resource_logs:
        above = of_resource(resource_logs)
        for scope_logs in resource_logs.scope_logs:
            common = above | of_scope(scope_logs)
            for record in scope_logs.log_records:
                yield record, is_log_record, common, of_log


def spans(message: Any) -> Iterator[Found]:
    for resource_spans in message.resource_spans:
        above = of_resource(resource_spans)
        for scope_spans in resource_spans.scope_spans:
            common = above | of_scope(scope_spans)
            for span in scope_spans.spans:
                yield span, is_span, common, of_span


def points(message: Any) -> Iterator[Found]:
    for resource_metrics in message.resource_metrics:
        above = of_resource(resource_metrics)
        for scope_metrics in resource_metrics.scope_metrics:
            common = above | of_scope(scope_metrics)
            for metric in scope_metrics.metrics:
                kind = metric.WhichOneof("data")
                if kind is not None:
                    named = common | of_metric(metric, kind)
                    row_of = partial(of_point, kind=kind)
                    for point in getattr(metric, kind).data_points:
                        yield point, POINTS[kind], named, row_of


RECORDS = {"logs": log_records, "traces": spans, "metrics": points}


def of_resource(message: Any) -> Row:
    resource = message.resource
    attributes = map_of(resource.attributes)
    found = dict(attributes)
    named = [each.value for each in resource.attributes if each.key == "service.name"]
    name = named[-1].string_value if named else ""
    return {
        "service_name": name or "unknown_service",
        "service_namespace": found.get("service.namespace"),
        "service_instance_id": found.get("service.instance.id"),
        "deployment_environment": found.get(
            "deployment.environment.name", found.get("deployment.environment")
        ),
        "host_name": found.get("host.name"),
        "k8s_namespace_name": found.get("k8s.namespace.name"),
        "k8s_pod_name": found.get("k8s.pod.name"),
        "k8s_container_name": found.get("k8s.container.name"),
        "resource_schema_url": message.schema_url or None,
        "resource_attributes": attributes,
        "resource_dropped_attributes_count": count_of(resource.dropped_attributes_count),
        "resource_types": types_of(resource.attributes),
    }


def of_scope(message: Any) -> Row:
    scope = message.scope
    return {
        "scope_name": scope.name or None,
        "scope_version": scope.version or None,
        "scope_schema_url": message.schema_url or None,
        "scope_attributes": map_of(scope.attributes),
        "scope_dropped_attributes_count": count_of(scope.dropped_attributes_count),
        "scope_types": types_of(scope.attributes),
    }


def times(request: ExportRequest, event: int, *others: int) -> Row:
    known = next((time for time in (event, *others) if time), None)
    time = request.ingest_time_ms * 1000 if known is None else known // 1000
    return {"time": time, "time_unix_nano": event}


def severity_number(text: str) -> int:
    """The number that OpenTelemetry's data model gives a text, by the names in its .proto."""
    name = OTHER_SEVERITIES.get(text.strip().upper(), text.strip().upper())
    return dict(SeverityNumber.items()).get(f"SEVERITY_NUMBER_{name}", 0)


def of_log(record: Any, request: ExportRequest) -> Row:
    kind = record.body.WhichOneof("value")
    body_type = BODY_TYPES.get(kind, "empty")
    if body_type == "empty":
        body = None
    elif body_type == "string":
        body = record.body.string_value
    else:
        body = json_of(record.body)
    return times(request, record.time_unix_nano, record.observed_time_unix_nano) | {
        "observed_time_unix_nano": record.observed_time_unix_nano,
        "trace_id": record.trace_id.hex() or None,
        "span_id": record.span_id.hex() or None,
        "flags": bits_of(record.flags),
        "severity_number": record.severity_number or severity_number(record.severity_text),
        "severity_text": record.severity_text or None,
        "event_name": record.event_name or None,
        "body": body,
        "body_type": body_type,
        "attributes": map_of(record.attributes),
        "dropped_attributes_count": count_of(record.dropped_attributes_count),
        "record_types": types_of(record.attributes)
        + (type_of(record.body) if record.HasField("body") else ""),
    }


def of_span(span: Any, request: ExportRequest) -> Row:
    begin, end = span.start_time_unix_nano, span.end_time_unix_nano
    attributes = map_of(span.attributes)
    found = dict(attributes)
    return times(request, begin) | {
        "trace_id": span.trace_id.hex(),
        "span_id": span.span_id.hex(),
        "parent_span_id": span.parent_span_id.hex() or None,
        "trace_state": span.trace_state or None,
        "name": span.name,
        "kind": word_of(span.kind, KINDS),
        "end_time_unix_nano": end,
        "duration_nano": max(0, end - begin),
        "status_code": word_of(span.status.code, STATUS_CODES),
        "status_message": span.status.message or None,
        "attributes": attributes,
        "http_request_method": found.get("http.request.method"),
        "http_response_status_code": status_code_of(span.attributes),
        "http_route": found.get("http.route"),
        "url_path": found.get("url.path"),
        "db_system": found.get("db.system"),
        "rpc_system": found.get("rpc.system"),
        "rpc_method": found.get("rpc.method"),
        "messaging_system": found.get("messaging.system"),
        "events": [
            {
                "time_unix_nano": event.time_unix_nano,
                "name": event.name,
                "attributes": map_of(event.attributes),
                "dropped_attributes_count": count_of(event.dropped_attributes_count),
            }
            for event in span.events
        ],
        "links": [
            {
                "trace_id": link.trace_id.hex(),
                "span_id": link.span_id.hex(),
                "trace_state": link.trace_state,
                "attributes": map_of(link.attributes),
                "dropped_attributes_count": count_of(link.dropped_attributes_count),
                "flags": bits_of(link.flags),
            }
            for link in span.links
        ],
        "flags": bits_of(span.flags),
        "dropped_attributes_count": count_of(span.dropped_attributes_count),
        "dropped_events_count": count_of(span.dropped_events_count),
        "dropped_links_count": count_of(span.dropped_links_count),
        "record_types": types_of(
            span.attributes,
            *(event.attributes for event in span.events),
            *(link.attributes for link in span.links),
        ),
    }


def status_code_of(attributes: Iterable[Any]) -> int | None:
    """An int of 32 bits, or a text of digits that means one."""
    values = [each.value for each in attributes if each.key == "http.response.status_code"]
    kind = values[-1].WhichOneof("value") if values else None
    number = None
    if kind == "int_value":
        number = values[-1].int_value
    elif kind == "string_value":
        text = values[-1].string_value
        if text.isascii() and text.isdigit():
            # Python refuses to read thousands of digits.
            text = text.lstrip("0") or "0"
            number = int(text) if len(text) < 20 else None
    return number if number is not None and -(2**31) <= number <= INT32_MAX else None


def of_metric(metric: Any, kind: str) -> Row:
    data = getattr(metric, kind)
    has_temporality = kind in ("sum", "histogram", "exponential_histogram")
    return {
        "metric_name": metric.name,
        "metric_type": kind,
        "description": metric.description or None,
        "unit": metric.unit or None,
        "aggregation_temporality": (
            word_of(data.aggregation_temporality, TEMPORALITIES) if has_temporality else None
        ),
        "is_monotonic": data.is_monotonic if kind == "sum" else None,
        "metadata": map_of(metric.metadata),
        "metric_types": types_of(metric.metadata),
    }


def of_point(point: Any, request: ExportRequest, *, kind: str) -> Row:
    exemplars = getattr(point, "exemplars", ())
    row = times(request, point.time_unix_nano) | {
        "start_time_unix_nano": point.start_time_unix_nano,
        "flags": bits_of(point.flags),
        "attributes": map_of(point.attributes),
        "exemplars": [of_exemplar(each) for each in exemplars],
        "record_types": types_of(
            point.attributes, *(each.filtered_attributes for each in exemplars)
        ),
    }
    if kind in ("gauge", "sum"):
        return row | value_of(point)
    row["count"] = point.count
    if kind == "summary":
        quantiles = [{"quantile": q.quantile, "value": q.value} for q in point.quantile_values]
        return row | {"sum": point.sum, "quantiles": quantiles}
    for name in ("sum", "min", "max"):
        row[name] = getattr(point, name) if point.HasField(name) else None
    if kind == "histogram":
        return row | {
            "bucket_counts": list(point.bucket_counts),
            "explicit_bounds": list(point.explicit_bounds),
        }
    row |= {
        "scale": point.scale,
        "zero_count": point.zero_count,
        "zero_threshold": point.zero_threshold,
    }
    for side in ("positive", "negative"):
        if point.HasField(side):
            buckets = getattr(point, side)
            row[f"{side}_offset"] = buckets.offset
            row[f"{side}_bucket_counts"] = list(buckets.bucket_counts)
    return row


def of_exemplar(exemplar: Any) -> Row:
    return value_of(exemplar) | {
        "time_unix_nano": exemplar.time_unix_nano,
        "trace_id": exemplar.trace_id.hex(),
        "span_id": exemplar.span_id.hex(),
        "filtered_attributes": map_of(exemplar.filtered_attributes),
    }


def value_of(message: Any) -> Row:
    kind = message.WhichOneof("value")
    return {
        "value_double": message.as_double if kind == "as_double" else None,
        "value_int": message.as_int if kind == "as_int" else None,
    }


def map_of(attributes: Iterable[Any]) -> list[tuple[str, str]]:
    """Sorted by the bytes of the keys; of equal keys the last one counts."""
    found = {each.key: text_of(each.value) for each in attributes}
    return sorted(found.items(), key=lambda item: item[0].encode())


def text_of(value: Any) -> str:
    """A value of a map."""
    match value.WhichOneof("value"):
        case "string_value":
            return str(value.string_value)
        case "double_value":
            return double_text(value.double_value)
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
        case "bool_value" | "int_value" | "array_value" | "kvlist_value":
            return json_of(value)
    return ""


def json_of(value: Any) -> str:
    """A value as JSON."""
    match value.WhichOneof("value"):
        case "string_value":
            return json_string(value.string_value)
        case "bool_value":
            return "true" if value.bool_value else "false"
        case "int_value":
            return str(value.int_value)
        case "double_value":
            text = double_text(value.double_value)
            return text if math.isfinite(value.double_value) else json_string(text)
        case "bytes_value":
            return json_string(base64.b64encode(value.bytes_value).decode())
        case "array_value":
            return "[" + ",".join(json_of(each) for each in value.array_value.values) + "]"
        case "kvlist_value":
            found = {each.key: each.value for each in value.kvlist_value.values}
            members = sorted(found.items(), key=lambda item: item[0].encode())
            return "{" + ",".join(f"{json_string(k)}:{json_of(v)}" for k, v in members) + "}"
    return "null"


def types_of(*lists: Iterable[Any]) -> str:
    """A word for each value of maps, in their order."""
    words = ""
    for attributes in lists:
        found = {each.key: type_of(each.value) for each in attributes}
        words += "".join(found[key] for key in sorted(found, key=str.encode))
    return words


def type_of(value: Any) -> str:
    """What a value is, as one word."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return "[" + "".join(type_of(each) for each in value.array_value.values) + "]"
    if kind == "kvlist_value":
        return "{" + types_of(value.kvlist_value.values) + "}"
    return TYPE_WORDS.get(kind, "e")


def json_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def double_text(number: float) -> str:
    """As ECMAScript writes it, but -0 keeps its sign."""
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1, number) < 0 else ""
    if math.isinf(number):
        return f"{sign}Infinity"
    if number == 0:
        return f"{sign}0"
    # Python's digits are the shortest, too.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def count_of(number: int) -> int:
    return min(number, INT32_MAX)


def bits_of(number: int) -> int:
    return number - 2**32 if number > INT32_MAX else number


def word_of(number: int, words: tuple[str, ...]) -> str:
    return words[number] if 0 <= number < len(words) else str(number)


def differences(signal: str, decoded: Decoded, rows: list[Row], dead: list[Dead]) -> list[str]:
    """Where a decoder's result is not the reference's, bit for bit."""
    schema = TABLES[{"traces": "spans"}.get(signal, signal)]
    batch = decoded.batch
    if batch.schema != schema:
        return [f"the schema is {batch.schema}"]
    if batch.num_rows != len(rows):
        return [f"{batch.num_rows} rows should be {len(rows)}"]
    batch.validate(full=True)
    wanted = pa.RecordBatch.from_pylist(rows, schema)
    found = [
        f"{name}: {batch.column(name).to_pylist()} should be {wanted.column(name).to_pylist()}"
        for name in schema.names
        if not is_same(batch.column(name), wanted.column(name))
    ]
    letters = [(letter.offset, letter.row) for letter in decoded.dead]
    if letters != [(each.offset, each.row) for each in dead]:
        found.append(f"dead letters {letters} should be {dead}")
    else:
        found += [
            f"payload of {letter.offset}, {letter.row}"
            for letter, each in zip(decoded.dead, dead, strict=True)
            if each.record is not None and not is_record(each.record, letter.payload)
        ]
    return found


def is_same(one: pa.Array, other: pa.Array) -> bool:
    """Arrow says that NaN is not NaN, and that 0 is -0; so doubles are compared by their bits."""
    if not pa.types.is_nested(one.type):
        if pa.types.is_floating(one.type):
            one, other = one.view(pa.int64()), other.view(pa.int64())
        return bool(one.equals(other))
    if pa.types.is_map(one.type):
        return bool(one.equals(other))
    if pa.types.is_struct(one.type):
        return all(is_same(one.field(i), other.field(i)) for i in range(one.type.num_fields))
    if not one.is_valid().equals(other.is_valid()):
        return False
    if not one.value_lengths().equals(other.value_lengths()):
        return False
    return is_same(one.flatten(), other.flatten())


def is_record(record: Any, payload: bytes) -> bool:
    again = type(record).FromString(payload)
    return bool(again.SerializeToString() == record.SerializeToString())
