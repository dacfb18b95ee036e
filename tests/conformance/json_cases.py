"""Requests in JSON: what the OTLP JSON mapping accepts and refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from frazil.model import Signal

REQUESTS: dict[Signal, Any] = {
    Signal.LOGS: ExportLogsServiceRequest,
    Signal.TRACES: ExportTraceServiceRequest,
    Signal.METRICS: ExportMetricsServiceRequest,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonCase:
    """One request: the expression that must be true of what is stored, or why it is refused.

    @N@ in the text stands for a number that no other case has. `holds` sees the first record
    (log record, span or data point) as `r`.
    """

    row: str
    signal: Signal
    text: str
    holds: Callable[..., object] | None = None
    rejected: int = 0
    refused: str = ""
    is_stored: bool = True

    def body(self, number: int) -> bytes:
        return self.text.replace("@N@", str(number)).encode("utf-8", "surrogatepass")


def log(fields: str) -> str:
    comma = ", " if fields else ""
    record = '{"observedTimeUnixNano": "@N@"' + comma + fields + "}"
    return '{"resourceLogs": [{"scopeLogs": [{"logRecords": [' + record + "]}]}]}"


def span(fields: str) -> str:
    record = '{"startTimeUnixNano": "@N@", ' + fields + "}"
    return '{"resourceSpans": [{"scopeSpans": [{"spans": [' + record + "]}]}]}"


def point(fields: str, kind: str = "gauge") -> str:
    made = '{"timeUnixNano": "@N@", ' + fields + "}"
    metric = '{"name": "m", "' + kind + '": {"dataPoints": [' + made + "]}}"
    return '{"resourceMetrics": [{"scopeMetrics": [{"metrics": [' + metric + "]}]}]}"


def good(
    row: str, text: str, holds: Callable[..., object], signal: Signal = Signal.LOGS
) -> JsonCase:
    return JsonCase(row=row, signal=signal, text=text, holds=holds)


def bad(row: str, text: str, says: str, signal: Signal = Signal.LOGS) -> JsonCase:
    return JsonCase(row=row, signal=signal, text=text, refused=says)


def nothing(row: str, text: str) -> JsonCase:
    return JsonCase(row=row, signal=Signal.LOGS, text=text, is_stored=False)


T, M = Signal.TRACES, Signal.METRICS
HEX = "000102030405060708090A0b0c0d0e0f"
DEEP = '{"arrayValue": {"values": [' * 10_000 + "{}" + "]}}" * 10_000

JSON_CASES: dict[str, JsonCase] = {
    "an empty object": nothing("D4", "{}"),
    "an empty list": nothing("D4", '{"resourceLogs": []}'),
    "null for a list": nothing("D4", '{"resourceLogs": null}'),
    "ids are hex": good(
        "D12",
        log(f'"traceId": "{HEX}", "spanId": "0102030405060708"'),
        lambda r: r.trace_id == bytes(range(16)) and r.span_id == bytes(range(1, 9)),
    ),
    "ids may be empty": good("D12", log('"traceId": ""'), lambda r: r.trace_id == b""),
    "an id that is not hex": bad("D12", log('"traceId": "zz"'), "traceId"),
    "an id of odd length": bad("D12", log('"traceId": "012"'), "traceId"),
    "an id that is a number": bad("D12", log('"spanId": 7'), "spanId"),
    "an id of 15 bytes": JsonCase(
        row="D14",
        signal=Signal.LOGS,
        text=log('"traceId": "' + "00" * 15 + '"'),
        rejected=1,
        is_stored=False,
    ),
    "large integers as text": good(
        "D12",
        log('"timeUnixNano": "9223372036854775807"'),
        lambda r: r.time_unix_nano == 2**63 - 1,
    ),
    "large integers as numbers": good(
        "D12",
        log('"timeUnixNano": 9007199254740993'),
        lambda r: r.time_unix_nano == 2**53 + 1,
    ),
    "the smallest integer": good(
        "D12",
        log('"body": {"intValue": "-9223372036854775808"}'),
        lambda r: r.body.int_value == -(2**63),
    ),
    "an integer with an exponent": good(
        "D12", log('"body": {"intValue": 1e3}'), lambda r: r.body.int_value == 1000
    ),
    "an integer with a fraction": bad("D12", log('"body": {"intValue": 1.5}'), "intValue"),
    "an integer beyond 64 bits": bad(
        "D12", log('"body": {"intValue": "9223372036854775808"}'), "intValue"
    ),
    "a time beyond 64 bits": bad(
        "D12", log('"timeUnixNano": "18446744073709551616"'), "timeUnixNano"
    ),
    "a negative time": bad("D12", log('"timeUnixNano": "-1"'), "timeUnixNano"),
    "a time above what fits": JsonCase(
        row="D11",
        signal=Signal.LOGS,
        text=log('"timeUnixNano": "9223372036854775808"'),
        rejected=1,
        is_stored=False,
    ),
    "words for an integer": bad("D12", log('"body": {"intValue": "seven"}'), "intValue"),
    "a boolean for an integer": bad("D12", log('"body": {"intValue": true}'), "intValue"),
    "zero is kept": good(
        "D12", log('"body": {"intValue": 0}'), lambda r: r.body.HasField("int_value")
    ),
    "false is kept": good(
        "D12", log('"body": {"boolValue": false}'), lambda r: r.body.HasField("bool_value")
    ),
    "text for a boolean": bad("D12", log('"body": {"boolValue": "true"}'), "boolValue"),
    "NaN as text": good("D10", point('"asDouble": "NaN"'), lambda r: r.as_double != r.as_double, M),
    "infinity as text": good(
        "D10", point('"asDouble": "-Infinity"'), lambda r: r.as_double == float("-inf"), M
    ),
    "minus zero": good("D10", point('"asDouble": -0.0'), lambda r: str(r.as_double) == "-0.0", M),
    "NaN as a token": bad("D10", point('"asDouble": NaN'), "JSON", M),
    "a double too large": bad("D12", point('"asDouble": 1e400'), "JSON", M),
    "a double as text": good("D12", point('"asDouble": "2.5"'), lambda r: r.as_double == 2.5, M),
    "an enum by number": good(
        "D12", log('"severityNumber": 17'), lambda r: r.severity_number == 17
    ),
    "an enum by name": good(
        "D12",
        log('"severityNumber": "SEVERITY_NUMBER_ERROR"'),
        lambda r: r.severity_number == 17,
    ),
    "a kind by name": good("D12", span('"kind": "SPAN_KIND_CLIENT"'), lambda r: r.kind == 3, T),
    "an enum by an unknown name": bad("D12", log('"severityNumber": "LOUD"'), "severityNumber"),
    "an enum by an unknown number": good(
        "D12", log('"severityNumber": 1000'), lambda r: r.severity_number == 1000
    ),
    "bytes in base64": good(
        "D12", log('"body": {"bytesValue": "AP/+"}'), lambda r: r.body.bytes_value == b"\0\xff\xfe"
    ),
    "bytes in base64 for addresses": good(
        "D12", log('"body": {"bytesValue": "AP_-"}'), lambda r: r.body.bytes_value == b"\0\xff\xfe"
    ),
    "bytes that are not base64": bad("D12", log('"body": {"bytesValue": "!!"}'), "bytesValue"),
    "original field names": good(
        "D12",
        log('"severity_text": "WARN"'),
        lambda r: r.severity_text == "WARN",
    ),
    "unknown fields": good(
        "D12",
        log('"flavour": {"a": [1, {"b": null}]}, "severityText": "x"'),
        lambda r: r.severity_text == "x",
    ),
    "a field twice": good(
        "D12", log('"severityText": "a", "severityText": "b"'), lambda r: r.severity_text == "b"
    ),
    "two values at once": bad("D12", log('"body": {"stringValue": "a", "intValue": 1}'), "body"),
    "null for a value": good("D12", log('"severityText": null'), lambda r: r.severity_text == ""),
    "null in a list": bad("D12", log('"attributes": [null]'), "attributes[0]"),
    "an object for a list": bad("D12", log('"attributes": {}'), "attributes"),
    "a list for an object": bad("D12", log('"body": []'), "body"),
    "a number for text": bad("D12", log('"severityText": 7'), "severityText"),
    "nested values": good(
        "D12",
        log(
            '"body": {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": '
            '{"values": [{"doubleValue": 1.5}, {}]}}}]}}'
        ),
        lambda r: r.body.kvlist_value.values[0].value.array_value.values[0].double_value == 1.5,
    ),
    "nested 10,000 deep": bad("D8", log(f'"body": {DEEP}'), ""),
    "letters by number": good(
        "D9",
        log('"severityText": "\\ud83d\\ude00\\u0000"'),
        lambda r: r.severity_text == "\U0001f600\0",
    ),
    "half of a letter": bad("D9", log('"severityText": "\\ud83d"'), "JSON"),
    "a raw surrogate": bad("D9", log('"severityText": "\ud83d"'), "JSON"),
    "a raw control letter": bad("D9", log('"severityText": "a\x01"'), "JSON"),
    "a histogram": good(
        "D12",
        point(
            '"count": "3", "sum": 0, "bucketCounts": ["1", 2], "explicitBounds": [1, "2.5"]',
            "histogram",
        ),
        lambda r: (r.count, list(r.bucket_counts), r.HasField("sum")) == (3, [1, 2], True),
        M,
    ),
    "a summary": good(
        "D12",
        point('"count": 2, "quantileValues": [{"quantile": 0.5, "value": 7}]', "summary"),
        lambda r: r.quantile_values[0].value == 7,
        M,
    ),
    "a status": good(
        "D12",
        span('"status": {"code": "STATUS_CODE_ERROR", "message": "no"}'),
        lambda r: (r.status.code, r.status.message) == (2, "no"),
        T,
    ),
    "no JSON": bad("D12", "hello", "JSON"),
    "nothing": bad("D12", "", "JSON"),
    "a list": bad("D12", "[]", "object"),
    "null": bad("D12", "null", "object"),
    "half": bad("D12", '{"resourceLogs": [', "JSON"),
    "something behind": bad("D12", "{} {}", "JSON"),
    "a comment": bad("D12", "{} // well", "JSON"),
    "a comma too many": bad("D12", '{"resourceLogs": [],}', "JSON"),
}
