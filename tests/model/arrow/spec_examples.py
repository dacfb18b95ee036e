"""Requests in OTLP/JSON of the shapes that OpenTelemetry's specification shows, in our own words,
and the rows they are, written by hand.

    logs      every kind of attribute, ids in capitals
    events    a log record with a name and a body of members
    trace     spans, one with a parent; and what else a span can have
    metrics   the five kinds of metrics

Of a row stands here what the request says; what it does not say is null, 0, empty or derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

RESOURCE = {"attributes": [{"key": "service.name", "value": {"stringValue": "lighthouse"}}]}
SCOPE = {
    "name": "harbour.instruments",
    "version": "2.4.1",
    "attributes": [{"key": "harbour.pier", "value": {"stringValue": "north mole"}}],
}
COMMON = {
    "service_name": "lighthouse",
    "resource_attributes": [("service.name", "lighthouse")],
    "resource_dropped_attributes_count": 0,
    "resource_schema_url": None,
    "scope_name": "harbour.instruments",
    "scope_version": "2.4.1",
    "scope_attributes": [("harbour.pier", "north mole")],
    "scope_dropped_attributes_count": 0,
    "scope_schema_url": None,
}
"""What all rows of these requests have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request, and its rows."""

    name: str
    signal: str
    request: dict[str, Any]
    rows: list[dict[str, Any]]


def request_of(kind: str, inner: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    """One resource, one scope, and these records."""
    scope = {"scope": SCOPE, inner: records}
    return {f"resource{kind}": [{"resource": RESOURCE, f"scope{kind}": [scope]}]}


LOGS = Example(
    name="logs",
    signal="logs",
    request=request_of(
        "Logs",
        "logRecords",
        [
            {
                "timeUnixNano": "1609459200123456789",
                "observedTimeUnixNano": "1609459201000000001",
                "severityNumber": 13,
                "severityText": "Warning",
                "traceId": "0AF7651916CD43DD8448EB211C80319C",
                "spanId": "B7AD6B7169203331",
                "body": {"stringValue": "The lamp is dim"},
                "attributes": [
                    {"key": "lamp.name", "value": {"stringValue": "east"}},
                    {"key": "lamp.lit", "value": {"boolValue": True}},
                    {"key": "lamp.turns", "value": {"intValue": "42"}},
                    {"key": "lamp.candela", "value": {"doubleValue": 812.25}},
                    {
                        "key": "lamp.colours",
                        "value": {
                            "arrayValue": {
                                "values": [{"stringValue": "white"}, {"stringValue": "red"}]
                            }
                        },
                    },
                    {
                        "key": "lamp.keeper",
                        "value": {
                            "kvlistValue": {
                                "values": [{"key": "keeper.name", "value": {"stringValue": "Ida"}}]
                            }
                        },
                    },
                ],
            }
        ],
    ),
    rows=[
        {
            "time_unix_nano": 1609459200123456789,
            "observed_time_unix_nano": 1609459201000000001,
            "severity_number": 13,
            "severity_text": "Warning",
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
            "span_id": "b7ad6b7169203331",
            "body": "The lamp is dim",
            "body_type": "string",
            "event_name": None,
            "attributes": [
                ("lamp.candela", "812.25"),
                ("lamp.colours", '["white","red"]'),
                ("lamp.keeper", '{"keeper.name":"Ida"}'),
                ("lamp.lit", "true"),
                ("lamp.name", "east"),
                ("lamp.turns", "42"),
            ],
            "_value_types": "||d[ss]{s}bsis",
        }
    ],
)

EVENTS = Example(
    name="events",
    signal="logs",
    request=request_of(
        "Logs",
        "logRecords",
        [
            {
                "eventName": "ship.sighted",
                "timeUnixNano": "1609459260000000000",
                "observedTimeUnixNano": "1609459260000000000",
                "severityNumber": 9,
                "severityText": "as it should be",
                "attributes": [{"key": "watch", "value": {"stringValue": "second dog"}}],
                "body": {
                    "kvlistValue": {
                        "values": [
                            {"key": "masts", "value": {"intValue": "0"}},
                            {"key": "home", "value": {"stringValue": "https://ships.example/a?b"}},
                            {"key": "flag", "value": {"stringValue": "none that is known"}},
                        ]
                    }
                },
            }
        ],
    ),
    rows=[
        {
            "event_name": "ship.sighted",
            "time_unix_nano": 1609459260000000000,
            "observed_time_unix_nano": 1609459260000000000,
            "severity_number": 9,
            "severity_text": "as it should be",
            "trace_id": None,
            "span_id": None,
            "attributes": [("watch", "second dog")],
            "body": '{"flag":"none that is known","home":"https://ships.example/a?b","masts":0}',
            "body_type": "kvlist",
            "_value_types": "||s{ssi}",
        }
    ],
)

TRACE = Example(
    name="trace",
    signal="traces",
    request=request_of(
        "Spans",
        "spans",
        [
            {
                "traceId": "4BF92F3577B34DA6A3CE929D0E0E4736",
                "spanId": "00F067AA0BA902B7",
                "parentSpanId": "00F067AA0BA902B6",
                "name": "answer a signal",
                "startTimeUnixNano": "1609459200000000000",
                "endTimeUnixNano": "1609459202500000000",
                "kind": 2,
                "attributes": [{"key": "signal.flags", "value": {"stringValue": "N, C"}}],
            },
            {
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                "spanId": "00f067aa0ba902b8",
                "traceState": "harbour=1",
                "name": "light the lamp",
                "kind": 3,
                "flags": 257,
                "startTimeUnixNano": 1609459200000000001,
                "endTimeUnixNano": 1609459200000000003,
                "droppedAttributesCount": 4,
                "events": [
                    {
                        "timeUnixNano": "1609459200000000002",
                        "name": "spark",
                        "attributes": [{"key": "tries", "value": {"intValue": 3}}],
                    }
                ],
                "links": [
                    {"traceId": "0AF7651916CD43DD8448EB211C80319C", "spanId": "b7ad6b7169203331"}
                ],
                "status": {"code": 2, "message": "wet wick"},
            },
        ],
    ),
    rows=[
        {
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "span_id": "00f067aa0ba902b7",
            "parent_span_id": "00f067aa0ba902b6",
            "name": "answer a signal",
            "kind": "SERVER",
            "time_unix_nano": 1609459200000000000,
            "end_time_unix_nano": 1609459202500000000,
            "duration_nano": 2_500_000_000,
            "status_code": "UNSET",
            "attributes": [("signal.flags", "N, C")],
            "events": [],
            "links": [],
            "_value_types": None,
        },
        {
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "span_id": "00f067aa0ba902b8",
            "parent_span_id": None,
            "trace_state": "harbour=1",
            "name": "light the lamp",
            "kind": "CLIENT",
            "flags": 257,
            "time_unix_nano": 1609459200000000001,
            "end_time_unix_nano": 1609459200000000003,
            "duration_nano": 2,
            "dropped_attributes_count": 4,
            "status_code": "ERROR",
            "status_message": "wet wick",
            "attributes": [],
            "events": [
                {
                    "time_unix_nano": 1609459200000000002,
                    "name": "spark",
                    "attributes": [("tries", "3")],
                    "dropped_attributes_count": 0,
                }
            ],
            "links": [
                {
                    "trace_id": "0af7651916cd43dd8448eb211c80319c",
                    "span_id": "b7ad6b7169203331",
                    "trace_state": "",
                    "attributes": [],
                    "dropped_attributes_count": 0,
                    "flags": 0,
                }
            ],
            "_value_types": "||i",
        },
    ],
)

BEGIN, END = "1609459200000000000", "1609459260000000000"


def point_of(**fields: Any) -> dict[str, Any]:
    """A data point at a pier."""
    attributes = [{"key": "pier", "value": {"stringValue": "south"}}]
    return {"timeUnixNano": END, "attributes": attributes, **fields}


POINT = {
    "time_unix_nano": 1609459260000000000,
    "start_time_unix_nano": 1609459200000000000,
    "attributes": [("pier", "south")],
    "flags": 0,
    "exemplars": [],
    "_value_types": None,
}

METRICS = Example(
    name="metrics",
    signal="metrics",
    request=request_of(
        "Metrics",
        "metrics",
        [
            {
                "name": "boats.landed",
                "unit": "{boat}",
                "description": "Boats that came in",
                "sum": {
                    "aggregationTemporality": 1,
                    "isMonotonic": True,
                    "dataPoints": [point_of(asDouble=7, startTimeUnixNano=BEGIN)],
                },
            },
            {
                "name": "tide.height",
                "unit": "m",
                "description": "Water over the sill",
                "gauge": {"dataPoints": [point_of(asDouble=3.75), point_of(asInt="-2")]},
            },
            {
                "name": "wait",
                "unit": "min",
                "description": "Minutes at anchor",
                "histogram": {
                    "aggregationTemporality": 2,
                    "dataPoints": [
                        point_of(
                            startTimeUnixNano=BEGIN,
                            count="3",
                            sum=33,
                            bucketCounts=["2", "1"],
                            explicitBounds=[15],
                            min=0,
                            max=30,
                        )
                    ],
                },
            },
            {
                "name": "catch",
                "unit": "kg",
                "description": "Fish of a boat",
                "exponentialHistogram": {
                    "aggregationTemporality": 1,
                    "dataPoints": [
                        point_of(
                            startTimeUnixNano=BEGIN,
                            count="4",
                            sum=12,
                            scale=0,
                            zeroCount="1",
                            positive={"offset": 1, "bucketCounts": ["0", "3"]},
                            min=0,
                            max=6.5,
                            zeroThreshold=0,
                        )
                    ],
                },
            },
            {
                "name": "visibility",
                "summary": {
                    "dataPoints": [
                        point_of(
                            count="2", sum="NaN", quantileValues=[{"quantile": 0.5, "value": 1e3}]
                        )
                    ]
                },
            },
        ],
    ),
    rows=[
        POINT
        | {
            "metric_name": "boats.landed",
            "metric_type": "sum",
            "description": "Boats that came in",
            "unit": "{boat}",
            "aggregation_temporality": "DELTA",
            "is_monotonic": True,
            "value_double": 7.0,
            "value_int": None,
            "count": None,
        },
        POINT
        | {
            "metric_name": "tide.height",
            "metric_type": "gauge",
            "description": "Water over the sill",
            "unit": "m",
            "aggregation_temporality": None,
            "is_monotonic": None,
            "start_time_unix_nano": 0,
            "value_double": 3.75,
            "value_int": None,
        },
        POINT
        | {
            "metric_name": "tide.height",
            "metric_type": "gauge",
            "start_time_unix_nano": 0,
            "value_double": None,
            "value_int": -2,
        },
        POINT
        | {
            "metric_name": "wait",
            "metric_type": "histogram",
            "unit": "min",
            "aggregation_temporality": "CUMULATIVE",
            "is_monotonic": None,
            "count": 3,
            "sum": 33.0,
            "min": 0.0,
            "max": 30.0,
            "bucket_counts": [2, 1],
            "explicit_bounds": [15.0],
            "value_double": None,
        },
        POINT
        | {
            "metric_name": "catch",
            "metric_type": "exponential_histogram",
            "aggregation_temporality": "DELTA",
            "count": 4,
            "sum": 12.0,
            "min": 0.0,
            "max": 6.5,
            "scale": 0,
            "zero_count": 1,
            "zero_threshold": 0.0,
            "positive_offset": 1,
            "positive_bucket_counts": [0, 3],
            "negative_offset": None,
            "negative_bucket_counts": None,
            "bucket_counts": None,
        },
        POINT
        | {
            "metric_name": "visibility",
            "metric_type": "summary",
            "description": None,
            "unit": None,
            "start_time_unix_nano": 0,
            "count": 2,
            "quantiles": [{"quantile": 0.5, "value": 1000.0}],
            "aggregation_temporality": None,
        },
    ],
)

EXAMPLES = (LOGS, EVENTS, TRACE, METRICS)
