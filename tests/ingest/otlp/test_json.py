"""OTLP/JSON: accepted spellings, refusals with their path, and comparison with protobuf's
json_format."""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from random import Random
from typing import Any

import pytest
from google.protobuf import json_format, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.ingest.otlp.json import protobuf_of_json
from frazil.model import Signal
from tests.fuzz.json import CLASSES, DIFFERENCES, KINDS, body_of, oracle, run, verdict

LOGS, TRACES, METRICS = Signal.LOGS, Signal.TRACES, Signal.METRICS
TRACE_ID = "5b8efff798038103d269b633813fc60c"
TRACE_BYTES = r"[\216\377\367\230\003\201\003\322i\2663\201?\306\014"
SPAN_ID = "eee19b7ec3c1b174"
SPAN_BYTES = r"\356\341\233~\303\301\261t"

WRAPS = {
    "record": (LOGS, "resourceLogs[0].scopeLogs[0].logRecords[0]"),
    "body": (LOGS, "resourceLogs[0].scopeLogs[0].logRecords[0].body"),
    "resource": (LOGS, "resourceLogs[0].resource"),
    "span": (TRACES, "resourceSpans[0].scopeSpans[0].spans[0]"),
    "metric": (METRICS, "resourceMetrics[0].scopeMetrics[0].metrics[0]"),
    "point": (METRICS, "resourceMetrics[0].scopeMetrics[0].metrics[0].gauge.dataPoints[0]"),
    "histogram": (METRICS, "resourceMetrics[0].scopeMetrics[0].metrics[0].histogram.dataPoints[0]"),
    "exponential": (
        METRICS,
        "resourceMetrics[0].scopeMetrics[0].metrics[0].exponentialHistogram.dataPoints[0]",
    ),
}
"""The position of a piece of JSON in its request."""


def wrapped(where: str, piece: str) -> tuple[Signal, bytes]:
    """Return the request that holds only this piece."""
    signal, path = WRAPS[where]
    for step in reversed(path.split(".")):
        piece = (
            f'{{"{step[:-3]}": [{piece}]}}' if step.endswith("[0]") else f'{{"{step}": {piece}}}'
        )
    return signal, piece.encode()


def parsed(where: str, piece: str) -> Message:
    """Return what protobuf reads at the piece's position."""
    signal, body = wrapped(where, piece)
    message: Any = CLASSES[signal].FromString(protobuf_of_json(signal, body))
    for step in WRAPS[where][1].split("."):
        known = {field.json_name: field.name for field in message.DESCRIPTOR.fields}
        message = getattr(message, known[step.removesuffix("[0]")])
        message = message[0] if step.endswith("[0]") else message
    assert isinstance(message, Message)
    return message


ACCEPTED = {
    # Keys.
    "an empty object": ("record", "{}", ""),
    "lowerCamelCase": ("record", '{"severityText": "WARN"}', 'severity_text: "WARN"'),
    "snake_case": ("record", '{"severity_text": "WARN"}', 'severity_text: "WARN"'),
    "unknown keys": ("record", '{"new": [{"a": null}], "eventName": "e"}', 'event_name: "e"'),
    "a key of another message": ("record", '{"spans": 7, "eventName": "e"}', 'event_name: "e"'),
    "keys have a case": ("record", '{"EventName": 5}', ""),
    "a key in brackets": ("record", '{"[a.b]": 1}', ""),
    "an escaped key": ("record", r'{"event\u004eame": "e"}', 'event_name: "e"'),
    "the last of two equal keys": ("record", '{"flags": 1, "flags": 2}', "flags: 2"),
    "the last, though it is null": ("record", '{"flags": 1, "flags": null}', ""),
    "the last, whatever the first": ("record", '{"flags": "x", "flags": 2}', "flags: 2"),
    # Null.
    "null for a string": ("record", '{"severityText": null}', ""),
    "null for a message": ("record", '{"body": null}', ""),
    "null for an array": ("record", '{"attributes": null}', ""),
    "null beside its other spelling": (
        "record",
        '{"traceId": null, "trace_id": "0a"}',
        r'trace_id: "\n"',
    ),
    "null beside its oneof": ("body", '{"stringValue": null, "intValue": 3}', "int_value: 3"),
    # Ids.
    "ids in hex": (
        "span",
        f'{{"traceId": "{TRACE_ID}", "spanId": "{SPAN_ID}", "parentSpanId": "{SPAN_ID}"}}',
        f'trace_id: "{TRACE_BYTES}" span_id: "{SPAN_BYTES}" parent_span_id: "{SPAN_BYTES}"',
    ),
    "ids in capitals": (
        "record",
        f'{{"traceId": "{TRACE_ID.upper()}"}}',
        f'trace_id: "{TRACE_BYTES}"',
    ),
    "ids of links": (
        "span",
        f'{{"links": [{{"traceId": "{TRACE_ID}", "spanId": "{SPAN_ID}"}}]}}',
        f'links {{ trace_id: "{TRACE_BYTES}" span_id: "{SPAN_BYTES}" }}',
    ),
    "ids of exemplars": (
        "point",
        f'{{"exemplars": [{{"traceId": "{TRACE_ID}", "spanId": "{SPAN_ID}"}}]}}',
        f'exemplars {{ trace_id: "{TRACE_BYTES}" span_id: "{SPAN_BYTES}" }}',
    ),
    "an empty id": ("span", '{"parentSpanId": ""}', ""),
    "an id of zeros is kept": ("record", '{"spanId": "0000"}', r'span_id: "\000\000"'),
    "ids of any length": ("record", '{"traceId": "0a0B0c"}', r'trace_id: "\n\013\014"'),
    # Enums.
    "an enum as a number": (
        "record",
        '{"severityNumber": 9}',
        "severity_number: SEVERITY_NUMBER_INFO",
    ),
    "an enum by its name": (
        "record",
        '{"severityNumber": "SEVERITY_NUMBER_INFO"}',
        "severity_number: 9",
    ),
    "the kind of a span": ("span", '{"kind": "SPAN_KIND_SERVER"}', "kind: SPAN_KIND_SERVER"),
    "an enum of zero": ("span", '{"kind": "SPAN_KIND_UNSPECIFIED"}', ""),
    "a number without a name": ("span", '{"kind": 4711}', "kind: 4711"),
    "a negative enum": ("span", '{"kind": -1}', "kind: -1"),
    "an enum of 2.0": ("span", '{"kind": 2.0}', "kind: SPAN_KIND_SERVER"),
    # Integers.
    "64 bits as a string": (
        "record",
        '{"timeUnixNano": "1700000000000000001"}',
        "time_unix_nano: 1700000000000000001",
    ),
    "64 bits as a number": (
        "record",
        '{"timeUnixNano": 1700000000000000001}',
        "time_unix_nano: 1700000000000000001",
    ),
    "the largest time": (
        "record",
        '{"timeUnixNano": "18446744073709551615"}',
        "time_unix_nano: 18446744073709551615",
    ),
    "the largest time, bare": (
        "record",
        '{"timeUnixNano": 18446744073709551615}',
        "time_unix_nano: 18446744073709551615",
    ),
    "the smallest int64": (
        "body",
        '{"intValue": "-9223372036854775808"}',
        "int_value: -9223372036854775808",
    ),
    "the largest int64": (
        "body",
        '{"intValue": 9223372036854775807}',
        "int_value: 9223372036854775807",
    ),
    "beyond 2^53": ("body", '{"intValue": 9007199254740993}', "int_value: 9007199254740993"),
    "the largest uint32": ("record", '{"flags": 4294967295}', "flags: 4294967295"),
    "32 bits as a string": (
        "record",
        '{"droppedAttributesCount": "7"}',
        "dropped_attributes_count: 7",
    ),
    "1.0 is an integer": ("body", '{"intValue": 1.0}', "int_value: 1"),
    "1e3 is an integer": ("body", '{"intValue": 1e3}', "int_value: 1000"),
    "so they are in strings": ("body", '{"intValue": "-2.5e1"}', "int_value: -25"),
    "-0 is an integer": ("body", '{"intValue": -0}', "int_value: 0"),
    "zeros in front": ("body", '{"intValue": "007"}', "int_value: 7"),
    "a time from a double": (
        "record",
        '{"timeUnixNano": 1.7e18}',
        "time_unix_nano: 1700000000000000000",
    ),
    "zero where it says nothing": ("record", '{"timeUnixNano": "0", "flags": 0}', ""),
    "zigzag": (
        "exponential",
        '{"scale": -3, "positive": {"offset": 2147483647}}',
        "scale: -3 positive { offset: 2147483647 }",
    ),
    "the smallest sint32": ("exponential", '{"scale": -2147483648}', "scale: -2147483648"),
    # Doubles.
    "a double": ("body", '{"doubleValue": 0.1}', "double_value: 0.1"),
    "a double from an integer": ("body", '{"doubleValue": 12}', "double_value: 12"),
    "a double from a long integer": (
        "body",
        f'{{"doubleValue": 1{"0" * 300}}}',
        "double_value: 1e300",
    ),
    "a double in a string": ("body", '{"doubleValue": "-1.5e3"}', "double_value: -1500"),
    "NaN": ("body", '{"doubleValue": "NaN"}', "double_value: nan"),
    "Infinity": ("body", '{"doubleValue": "Infinity"}', "double_value: inf"),
    "-Infinity": ("body", '{"doubleValue": "-Infinity"}', "double_value: -inf"),
    "minus zero": ("body", '{"doubleValue": -0.0}', "double_value: -0.0"),
    "minus zero where zero says nothing": (
        "exponential",
        '{"zeroThreshold": -0.0}',
        "zero_threshold: -0.0",
    ),
    "minus zero in a string": ("body", '{"doubleValue": "-0"}', "double_value: -0.0"),
    "the smallest double": ("body", '{"doubleValue": 5e-324}', "double_value: 5e-324"),
    "the largest double": (
        "body",
        '{"doubleValue": 1.7976931348623157e308}',
        "double_value: 1.7976931348623157e308",
    ),
    "too small for a double": ("body", '{"doubleValue": 1e-400}', "double_value: 0"),
    # Bytes, bools, strings.
    "base64": ("body", '{"bytesValue": "+/8="}', r'bytes_value: "\373\377"'),
    "base64 for URLs": ("body", '{"bytesValue": "-_8="}', r'bytes_value: "\373\377"'),
    "base64 without padding": ("body", '{"bytesValue": "-_8"}', r'bytes_value: "\373\377"'),
    "no bytes": ("body", '{"bytesValue": ""}', 'bytes_value: ""'),
    "true": ("body", '{"boolValue": true}', "bool_value: true"),
    "a string of all planes": (
        "body",
        r'{"stringValue": "é\u20ac😀\ud83d\ude00"}',
        'string_value: "é€😀😀"',
    ),
    "NUL": ("body", r'{"stringValue": "a\u0000b"}', r'string_value: "a\000b"'),
    "a long string": (
        "body",
        f'{{"stringValue": "{"ab" * 5000}"}}',
        f'string_value: "{"ab" * 5000}"',
    ),
    # Zeros with presence.
    "an empty string in a oneof": ("body", '{"stringValue": ""}', 'string_value: ""'),
    "false in a oneof": ("body", '{"boolValue": false}', "bool_value: false"),
    "zero in a oneof": ("body", '{"intValue": "0"}', "int_value: 0"),
    "zero as double in a oneof": ("body", '{"doubleValue": 0}', "double_value: 0"),
    "no elements in a oneof": ("body", '{"arrayValue": {}}', "array_value {}"),
    "no pairs in a oneof": ("body", '{"kvlistValue": {"values": []}}', "kvlist_value {}"),
    "an empty message": ("record", '{"body": {}}', "body {}"),
    "asInt of zero": ("point", '{"asInt": 0}', "as_int: 0"),
    "asInt below zero": ("point", '{"asInt": "-5"}', "as_int: -5"),
    "asDouble of zero": ("point", '{"asDouble": 0.0}', "as_double: 0"),
    "optional zeros": ("histogram", '{"sum": 0, "min": 0.0, "max": "0"}', "sum: 0 min: 0 max: 0"),
    # Arrays.
    "empty arrays": ("histogram", '{"bucketCounts": [], "explicitBounds": []}', ""),
    "packed numbers": (
        "histogram",
        '{"bucketCounts": ["0", 1, "2.0"], "explicitBounds": [0, "1.5"]}',
        "bucket_counts: [0, 1, 2] explicit_bounds: [0, 1.5]",
    ),
    "packed varints": (
        "exponential",
        '{"negative": {"bucketCounts": ["0", "300", 18446744073709551615]}}',
        "negative { bucket_counts: [0, 300, 18446744073709551615] }",
    ),
    "strings in an array": (
        "resource",
        '{"entityRefs": [{"type": "host", "idKeys": ["", "host.id"]}]}',
        'entity_refs { type: "host" id_keys: ["", "host.id"] }',
    ),
    "messages in an array": (
        "record",
        '{"attributes": [{}, {"key": "a"}, {"key": "a", "value": {"intValue": 1}}]}',
        'attributes {} attributes { key: "a" } attributes { key: "a" value { int_value: 1 } }',
    ),
    "nested values": (
        "body",
        '{"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": [{"boolValue":'
        ' true}, {}, {"kvlistValue": {}}]}}}]}}',
        'kvlist_value { values { key: "k" value { array_value {'
        " values { bool_value: true } values {} values { kvlist_value {} } } } } }",
    ),
}


@pytest.mark.parametrize(("where", "piece", "wanted"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted_json_means_the_same_protobuf(where: str, piece: str, wanted: str) -> None:
    """Presence included."""
    found = parsed(where, piece)
    message = text_format.Parse(wanted, type(found)())
    assert found.SerializeToString() == message.SerializeToString()


INT32 = "an integer from -2147483648 to 2147483647"
UINT32 = "an integer from 0 to 4294967295"
INT64 = "an integer from -9223372036854775808 to 9223372036854775807"
UINT64 = "an integer from 0 to 18446744073709551615"
DOUBLE = 'a double, or "NaN", "Infinity" or "-Infinity"'
HEX = "a string of hex digits, two for each byte"
BASE64 = "a string in base64"

WRONG_VALUES: list[tuple[str, str, str, dict[str, str]]] = [
    ("record", "body", "an object", {"text": '"x"', "array": "[]", "number": "1"}),
    ("record", "attributes", "an array", {"object": "{}", "text": '""', "bool": "true"}),
    ("record", "severityText", "a string", {"number": "5", "bool": "true", "object": "{}"}),
    ("body", "boolValue", "true or false", {"text": '"true"', "number": "1", "array": "[]"}),
    (
        "record",
        "flags",
        UINT32,
        {"33 bits": "4294967296", "negative": "-1", "33 bit text": '"4294967296"'},
    ),
    (
        "exponential",
        "scale",
        INT32,
        {"above": "2147483648", "below": "-2147483649", "object": "{}"},
    ),
    ("point", "asInt", INT64, {"above": '"9223372036854775808"', "bare": "9223372036854775808"}),
    ("span", "kind", INT32, {"fraction": "1.5", "33 bits": "4294967296", "bool": "true"}),
    ("span", "kind", "an integer or a name of SpanKind", {"unknown": '"SERVER"', "quoted": '"2"'}),
    (
        "record",
        "timeUnixNano",
        UINT64,
        {
            "above": '"18446744073709551616"',
            "above, bare": "18446744073709551616",
            "above, as a double": "1e+20",
            "negative": "-1",
            "a date": '"2024-01-01T00:00:00Z"',
        },
    ),
    (
        "body",
        "intValue",
        INT64,
        {
            "bool": "true",
            "array": "[1]",
            "fraction": "1.5",
            "fraction in text": '"1.5"',
            "above": '"9223372036854775808"',
            "above, bare": "9223372036854775808",
            "below": '"-9223372036854775809"',
            "below, bare": "-9223372036854775809",
            "empty": '""',
            "plus": '"+1"',
            "space": '" 1"',
            "line break": r'"1\n"',
            "underscore": '"1_000"',
            "Arabic digit": r'"\u0661"',
            "superscript": r'"\u00b2"',
            "hex": '"0x10"',
            "NaN": '"NaN"',
            "huge exponent": '"1e999999999"',
            "endless digits": f'"{"0" * 5000}1"',
            "long text": f'"{"x" * 100_000}"',
        },
    ),
    (
        "body",
        "doubleValue",
        DOUBLE,
        {
            "bool": "false",
            "object": "{}",
            "too large": '"1e400"',
            "too large, negative": '"-1e400"',
            "too many digits": f"1{'0' * 400}",
            "small letters": '"nan"',
            "short": '"inf"',
            "no digit in front": '".5"',
            "no digit behind": '"5."',
            "empty": '""',
            "word": '"two"',
        },
    ),
    (
        "record",
        "traceId",
        HEX,
        {
            "odd": '"abc"',
            "base64": '"W47/95gDgQPSabYzgT/GDA=="',
            "space": '"ab cd"',
            "Arabic digits": r'"\u0661\u0661"',
            "number": "12",
            "prefix": '"0xab"',
        },
    ),
    (
        "body",
        "bytesValue",
        BASE64,
        {
            "star": '"a*=="',
            "half of the padding": '"YQ="',
            "needless padding": '"YWJj="',
            "one letter too many": '"YWJjY"',
            "only padding": '"=="',
            "two in one": '"YQ==YQ=="',
            "line break": r'"YWJj\n"',
            "not ASCII": r'"\u00e9\u00e9"',
            "number": "5",
        },
    ),
]
"""Position, key, what is expected, and the wrong value."""

REFUSED = {
    f"{where} {key}: {name}": (
        where,
        f'{{"{key}": {literal}}}',
        f".{key}",
        expected,
        {"{": "an object", "[": "an array"}.get(literal[0])
        or (literal if len(literal) <= 40 else f"{literal[:40]}..."),
    )
    for where, key, expected, values in WRONG_VALUES
    for name, literal in values.items()
} | {
    "null in an array": (
        "record",
        '{"attributes": [{}, null]}',
        ".attributes[1]",
        "an object",
        "null",
    ),
    "null among numbers": (
        "histogram",
        '{"bucketCounts": [1, null]}',
        ".bucketCounts[1]",
        UINT64,
        "null",
    ),
    "null among strings": (
        "resource",
        '{"entityRefs": [{"idKeys": [null]}]}',
        ".entityRefs[0].idKeys[0]",
        "a string",
        "null",
    ),
    "a bad count": (
        "histogram",
        '{"bucketCounts": [0, 1, "x"]}',
        ".bucketCounts[2]",
        UINT64,
        '"x"',
    ),
    "a bad bound": (
        "histogram",
        '{"explicitBounds": [1, "x"]}',
        ".explicitBounds[1]",
        DOUBLE,
        '"x"',
    ),
    "a bad id in a link": (
        "span",
        '{"links": [{}, {"spanId": "x"}]}',
        ".links[1].spanId",
        HEX,
        '"x"',
    ),
    "a bad id in an exemplar": (
        "point",
        '{"exemplars": [{"traceId": "x"}]}',
        ".exemplars[0].traceId",
        HEX,
        '"x"',
    ),
    "both spellings": (
        "record",
        '{"traceId": "", "trace_id": ""}',
        ".trace_id",
        "only one of traceId, trace_id",
        '""',
    ),
    "two kinds of a value": (
        "body",
        '{"stringValue": "a", "intValue": 1}',
        ".intValue",
        "only one of stringValue, intValue",
        "1",
    ),
    "two kinds of a metric": (
        "metric",
        '{"gauge": {}, "name": "n", "sum": {}}',
        ".sum",
        "only one of gauge, sum",
        "an object",
    ),
    "two kinds of a number": (
        "point",
        '{"asInt": 1, "as_double": 1}',
        ".as_double",
        "only one of asInt, as_double",
        "1",
    ),
}


@pytest.mark.parametrize(
    ("where", "piece", "step", "expected", "found"), REFUSED.values(), ids=REFUSED.keys()
)
def test_refused_json_names_path_expectation_and_value(
    where: str, piece: str, step: str, expected: str, found: str
) -> None:
    signal, body = wrapped(where, piece)
    with pytest.raises(Malformed) as refused:
        protobuf_of_json(signal, body)
    assert str(refused.value) == f"{WRAPS[where][1]}{step}: expected {expected}, found {found}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b" ", "the body is not JSON"),
        (b"[]", "the body: expected an object, found an array"),
        (b"null", "the body: expected an object, found null"),
        (b'"{}"', 'the body: expected an object, found "{}"'),
        (b"7", "the body: expected an object, found 7"),
        (b"{} {}", "the body is not JSON"),
        (b"{}x", "the body is not JSON"),
        (b"{}\0", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b'{"resourceLogs": [', "the body is not JSON"),
        (b'{"a": 1,}', "the body is not JSON"),
        (b"{'a': 1}", "the body is not JSON"),
        (b'{"a": 1} // why', "the body is not JSON"),
        (b'{"a": NaN}', "the body is not JSON"),
        (b'{"a": -Infinity}', "the body is not JSON"),
        (b'{"a": 1e400}', "the body is not JSON"),
        (b'{"a": 01}', "the body is not JSON"),
        (b'{"a": +1}', "the body is not JSON"),
        (b'{"a": "\t"}', "the body is not JSON"),
        (b'{"a": "\\x41"}', "the body is not JSON"),
        (b'{"a": "\\ud800"}', "the body is not JSON"),
        (b'{"a": "\\ude00\\ud83d"}', "the body is not JSON"),
        (b'{"\\ud800": 1}', "the body is not JSON"),
        (b'{"a": "\xed\xa0\x80"}', "the body is not JSON"),
        (b'{"a": "\xff"}', "the body is not JSON"),
        (b'{"a": "\xc0\x80"}', "the body is not JSON"),
        (b"\xef\xbb\xbf{}", "the body is not JSON"),
        ("{}".encode("utf-16"), "the body is not JSON"),
        (b"\x0a\x00", "the body is not JSON"),
        (b"9" * 5000, "the body is not JSON"),
        (b'{"resourceLogs": 5}', "resourceLogs: expected an array, found 5"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(body: bytes, message: str) -> None:
    """By RFC 8259 to the letter."""
    with pytest.raises(Malformed) as refused:
        protobuf_of_json(LOGS, body)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("body", [b"{}", b" \t\r\n{ } \n", b'{"resourceLogs": []}', b'{"a": 1}'])
@pytest.mark.parametrize("signal", Signal)
def test_a_request_without_records_is_empty(signal: Signal, body: bytes) -> None:
    assert protobuf_of_json(signal, body) == b""


# Depth.


def nested_json(levels: int) -> bytes:
    array = '{"arrayValue": {"values": ['
    return wrapped("body", array * levels + '{"boolValue": true}' + "]}}" * levels)[1]


def nested_protobuf(levels: int) -> bytes:
    """Write the message by hand, since protobuf's objects might refuse to be written."""
    data = b"\x10\x01"
    for tag in [0x0A, 0x2A] * levels + [0x2A, 0x12, 0x12, 0x0A]:
        size = len(data)
        length = [size] if size < 128 else [size & 127 | 128, size >> 7]
        data = bytes([tag, *length]) + data
    return data


@pytest.mark.parametrize("levels", [1, 47, 48, 49, 50, 120])
def test_the_depth_limit_is_that_of_protobufs_parser(levels: int) -> None:
    wanted = nested_protobuf(levels)
    try:
        CLASSES[LOGS].FromString(wanted)
    except DecodeError:
        with pytest.raises(Malformed, match="expected at most 100 nested messages"):
            protobuf_of_json(LOGS, nested_json(levels))
    else:
        assert protobuf_of_json(LOGS, nested_json(levels)) == wanted


def test_the_deepest_accepted_body() -> None:
    assert protobuf_of_json(LOGS, nested_json(48)) == nested_protobuf(48)
    with pytest.raises(Malformed):
        protobuf_of_json(LOGS, nested_json(49))


@pytest.mark.parametrize("levels", [10_000, 1_000_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("[", "]"),
        ("[", ""),
        ('{"a":', "}"),
        ('{"arrayValue":{"values":[', "]}}"),
        ('{"kvlistValue":{"values":[{"value":', "}]}}"),
    ],
)
def test_bodies_of_any_depth_are_refused(levels: int, opening: str, closing: str) -> None:
    """Also below unknown keys."""
    tower = opening * levels + ("1" if closing else "") + closing * levels
    for body in (tower, f'{{"unknown": {tower}}}', wrapped("body", tower)[1].decode()):
        with pytest.raises(Malformed):
            protobuf_of_json(LOGS, body.encode())


def test_the_path_names_keys_and_element_numbers() -> None:
    """In the spelling of the request."""
    records = [
        {},
        {"attributes": [{}, {"key": "k", "value": {"kvlistValue": {"values": [{}, {}]}}}]},
    ]
    deepest: Any = records[1]["attributes"]
    deepest[1]["value"]["kvlistValue"]["values"][1]["value"] = {"bool_value": "no"}
    body = {"resource_logs": [{}, {"scopeLogs": [{}, {}, {"logRecords": records}]}]}
    with pytest.raises(Malformed) as refused:
        protobuf_of_json(LOGS, json.dumps(body).encode())
    path = "resource_logs[1].scopeLogs[2].logRecords[1].attributes[1].value.kvlistValue.values[1]"
    wanted = f'{path}.value.bool_value: expected true or false, found "no"'
    assert str(refused.value) == wanted


# Whole requests, like OTLP's examples.

EXAMPLE_LOGS = """
{"resourceLogs": [{
  "resource": {
    "attributes": [{"key": "service.name", "value": {"stringValue": "ferry"}}],
    "droppedAttributesCount": 1
  },
  "scopeLogs": [{
    "scope": {
      "name": "ferry.deck",
      "version": "2.1.0",
      "attributes": [{"key": "deck", "value": {"intValue": "3"}}]
    },
    "logRecords": [{
      "timeUnixNano": "1544712660300000000",
      "observedTimeUnixNano": "1544712660300000005",
      "severityNumber": 10,
      "severityText": "Information",
      "traceId": "5B8EFFF798038103D269B633813FC60C",
      "spanId": "EEE19B7EC3C1B174",
      "flags": 1,
      "eventName": "boarding",
      "body": {"stringValue": "gate 4 is open"},
      "attributes": [
        {"key": "text", "value": {"stringValue": "harbour"}},
        {"key": "flag", "value": {"boolValue": true}},
        {"key": "cars", "value": {"intValue": "10"}},
        {"key": "load", "value": {"doubleValue": 637.704}},
        {"key": "lanes", "value": {"arrayValue": {"values": [
          {"stringValue": "left"}, {"stringValue": "right"}]}}},
        {"key": "captain", "value": {"kvlistValue": {"values": [
          {"key": "name", "value": {"stringValue": "Ida"}}]}}},
        {"key": "seal", "value": {"bytesValue": "AQID"}}
      ]
    }]
  }],
  "schemaUrl": "https://example.com/schema"
}]}
"""
LOGS_PROTO = r"""
resource_logs {
  resource {
    attributes { key: "service.name" value { string_value: "ferry" } }
    dropped_attributes_count: 1
  }
  scope_logs {
    scope {
      name: "ferry.deck" version: "2.1.0"
      attributes { key: "deck" value { int_value: 3 } }
    }
    log_records {
      time_unix_nano: 1544712660300000000
      observed_time_unix_nano: 1544712660300000005
      severity_number: SEVERITY_NUMBER_INFO2
      severity_text: "Information"
      trace_id: "[\216\377\367\230\003\201\003\322i\2663\201?\306\014"
      span_id: "\356\341\233~\303\301\261t"
      flags: 1
      event_name: "boarding"
      body { string_value: "gate 4 is open" }
      attributes { key: "text" value { string_value: "harbour" } }
      attributes { key: "flag" value { bool_value: true } }
      attributes { key: "cars" value { int_value: 10 } }
      attributes { key: "load" value { double_value: 637.704 } }
      attributes { key: "lanes" value { array_value {
        values { string_value: "left" } values { string_value: "right" } } } }
      attributes { key: "captain" value { kvlist_value {
        values { key: "name" value { string_value: "Ida" } } } } }
      attributes { key: "seal" value { bytes_value: "\001\002\003" } }
    }
  }
  schema_url: "https://example.com/schema"
}
"""
EXAMPLE_TRACES = """
{"resourceSpans": [
  {
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "ferry"}}]},
    "scopeSpans": [{
      "scope": {"name": "ferry.route"},
      "spans": [
        {
          "traceId": "5b8efff798038103d269b633813fc60c",
          "spanId": "eee19b7ec3c1b174",
          "parentSpanId": "eee19b7ec3c1b173",
          "traceState": "a=1",
          "flags": 257,
          "name": "cross the sound",
          "startTimeUnixNano": "1544712660000000000",
          "endTimeUnixNano": "1544712661000000000",
          "kind": 2,
          "attributes": [{"key": "knots", "value": {"doubleValue": 17.5}}],
          "droppedAttributesCount": 2,
          "events": [{"timeUnixNano": "1544712660500000000", "name": "whistle"}],
          "droppedEventsCount": 3,
          "links": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b170"}],
          "droppedLinksCount": 4,
          "status": {"code": 2, "message": "fog"}
        },
        {"name": "moor", "parentSpanId": "", "kind": "SPAN_KIND_CLIENT", "status": {}}
      ]
    }]
  },
  {"resource": {}, "scopeSpans": [{"spans": [{"name": "second resource"}]}, {}]}
]}
"""
TRACES_PROTO = r"""
resource_spans {
  resource { attributes { key: "service.name" value { string_value: "ferry" } } }
  scope_spans {
    scope { name: "ferry.route" }
    spans {
      trace_id: "[\216\377\367\230\003\201\003\322i\2663\201?\306\014"
      span_id: "\356\341\233~\303\301\261t"
      parent_span_id: "\356\341\233~\303\301\261s"
      trace_state: "a=1"
      flags: 257
      name: "cross the sound"
      start_time_unix_nano: 1544712660000000000
      end_time_unix_nano: 1544712661000000000
      kind: SPAN_KIND_SERVER
      attributes { key: "knots" value { double_value: 17.5 } }
      dropped_attributes_count: 2
      events { time_unix_nano: 1544712660500000000 name: "whistle" }
      dropped_events_count: 3
      links {
        trace_id: "[\216\377\367\230\003\201\003\322i\2663\201?\306\014"
        span_id: "\356\341\233~\303\301\261p"
      }
      dropped_links_count: 4
      status { code: STATUS_CODE_ERROR message: "fog" }
    }
    spans { name: "moor" kind: SPAN_KIND_CLIENT status {} }
  }
}
resource_spans { resource {} scope_spans { spans { name: "second resource" } } scope_spans {} }
"""
EXAMPLE_METRICS = """
{"resourceMetrics": [{
  "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "ferry"}}]},
  "scopeMetrics": [{
    "scope": {"name": "ferry.engine"},
    "metrics": [
      {"name": "tickets", "unit": "1", "description": "sold so far", "sum": {
        "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{
          "asDouble": 5, "startTimeUnixNano": "1544712660300000000",
          "timeUnixNano": "1544712660300000007",
          "attributes": [{"key": "class", "value": {"stringValue": "foot"}}],
          "exemplars": [{"timeUnixNano": "1544712660300000006", "asInt": "-1",
            "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174",
            "filteredAttributes": [{"key": "till", "value": {"intValue": 2}}]}]}]}},
      {"name": "fuel", "unit": "l", "gauge": {"dataPoints": [
        {"asInt": "10", "timeUnixNano": "1544712660300000007", "flags": 0}, {"flags": 1}]}},
      {"name": "wait", "unit": "s", "histogram": {
        "aggregationTemporality": "AGGREGATION_TEMPORALITY_DELTA", "dataPoints": [{
          "timeUnixNano": "1544712660300000007", "count": "2", "sum": 2.5, "min": 0, "max": 2.5,
          "bucketCounts": ["1", "1"], "explicitBounds": [1]}]}},
      {"name": "waves", "unit": "m", "exponentialHistogram": {
        "aggregationTemporality": 1, "dataPoints": [{
          "timeUnixNano": "1544712660300000007", "count": "3", "sum": 10, "scale": -1,
          "zeroCount": "1", "zeroThreshold": 0.5, "min": 0, "max": 5,
          "positive": {"offset": -2, "bucketCounts": ["0", "2"]}, "negative": {}}]}},
      {"name": "delay", "summary": {"dataPoints": [{
        "timeUnixNano": 1544712660300000007, "count": 4, "sum": "NaN",
        "quantileValues": [{"quantile": 0, "value": 1}, {"quantile": 1, "value": "Infinity"}]}]}},
      {"name": "nothing yet", "metadata": [{"key": "owner", "value": {"stringValue": "Ida"}}]}
    ]
  }]
}]}
"""
METRICS_PROTO = r"""
resource_metrics {
  resource { attributes { key: "service.name" value { string_value: "ferry" } } }
  scope_metrics {
    scope { name: "ferry.engine" }
    metrics { name: "tickets" unit: "1" description: "sold so far" sum {
      aggregation_temporality: AGGREGATION_TEMPORALITY_CUMULATIVE is_monotonic: true
      data_points {
        as_double: 5 start_time_unix_nano: 1544712660300000000 time_unix_nano: 1544712660300000007
        attributes { key: "class" value { string_value: "foot" } }
        exemplars { time_unix_nano: 1544712660300000006 as_int: -1
          trace_id: "[\216\377\367\230\003\201\003\322i\2663\201?\306\014"
          span_id: "\356\341\233~\303\301\261t"
          filtered_attributes { key: "till" value { int_value: 2 } } } } } }
    metrics { name: "fuel" unit: "l" gauge {
      data_points { as_int: 10 time_unix_nano: 1544712660300000007 }
      data_points { flags: 1 } } }
    metrics { name: "wait" unit: "s" histogram {
      aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA
      data_points { time_unix_nano: 1544712660300000007 count: 2 sum: 2.5 min: 0 max: 2.5
        bucket_counts: [1, 1] explicit_bounds: 1 } } }
    metrics { name: "waves" unit: "m" exponential_histogram {
      aggregation_temporality: AGGREGATION_TEMPORALITY_DELTA
      data_points { time_unix_nano: 1544712660300000007 count: 3 sum: 10 scale: -1
        zero_count: 1 zero_threshold: 0.5 min: 0 max: 5
        positive { offset: -2 bucket_counts: [0, 2] } negative {} } } }
    metrics { name: "delay" summary {
      data_points { time_unix_nano: 1544712660300000007 count: 4 sum: nan
        quantile_values { value: 1 } quantile_values { quantile: 1 value: inf } } } }
    metrics { name: "nothing yet" metadata { key: "owner" value { string_value: "Ida" } } }
  }
}
"""


@pytest.mark.parametrize(
    ("signal", "example", "wanted"),
    [
        (LOGS, EXAMPLE_LOGS, LOGS_PROTO),
        (TRACES, EXAMPLE_TRACES, TRACES_PROTO),
        (METRICS, EXAMPLE_METRICS, METRICS_PROTO),
    ],
)
def test_a_request_with_every_kind_of_record_is_converted(
    signal: Signal, example: str, wanted: str
) -> None:
    message = CLASSES[signal].FromString(protobuf_of_json(signal, example.encode()))
    expected = text_format.Parse(wanted, CLASSES[signal]())
    assert message.SerializeToString() == expected.SerializeToString()


# Any request.

SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_BYTES: st.binary(max_size=20),
    FieldDescriptor.TYPE_DOUBLE: st.floats(allow_nan=False) | st.just(math.nan),
    FieldDescriptor.TYPE_ENUM: st.integers(0, 30) | st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_FIXED32: st.integers(0, 2**32 - 1),
    FieldDescriptor.TYPE_FIXED64: st.integers(0, 2**64 - 1),
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SFIXED64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SINT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_STRING: st.text(max_size=20),
    FieldDescriptor.TYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: st.integers(0, 2**64 - 1),
}
FIELD_COUNT_MAX = 5
SPINE_LEVELS = 2
"""Messages above the records; all their fields are set."""
LEVELS_MAX = 12


def fill(draw: st.DrawFn, message: Any, level: int) -> None:
    """Set some of the fields to arbitrary values."""
    fields = list(message.DESCRIPTOR.fields)
    chosen = draw(st.lists(st.sampled_from(fields), max_size=FIELD_COUNT_MAX, unique=True))
    for field in fields if level < SPINE_LEVELS else chosen:
        if field.message_type is not None and level >= LEVELS_MAX:
            continue
        if field.message_type is None and not field.is_repeated:
            setattr(message, field.name, draw(SCALARS[field.type]))
        elif field.message_type is None:
            values = draw(st.lists(SCALARS[field.type], max_size=3))
            getattr(message, field.name).extend(values)
        elif field.is_repeated:
            for _ in range(draw(st.integers(1, 2))):
                fill(draw, getattr(message, field.name).add(), level + 1)
        else:
            getattr(message, field.name).SetInParent()
            fill(draw, getattr(message, field.name), level + 1)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Signal, Message]:
    signal = draw(st.sampled_from(Signal))
    message = CLASSES[signal]()
    fill(draw, message, 0)
    return signal, message


def as_otlp(value: Any, *, numbers: bool) -> Any:
    """Return json_format's output with ids in hex and, optionally, integers without quotes."""
    if isinstance(value, list):
        return [as_otlp(element, numbers=numbers) for element in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key in ID_KEYS:
            result[key] = base64.b64decode(item).hex()
        elif numbers and key in INTEGER_KEYS:
            result[key] = [int(n) for n in item] if isinstance(item, list) else int(item)
        else:
            result[key] = as_otlp(item, numbers=numbers)
    return result


ID_KEYS = {key for key, kind in KINDS.items() if kind == "id"}
INTEGER_KEYS = {key for key, kind in KINDS.items() if kind == "integer"}


@settings(max_examples=200)
@given(requests(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_any_request_round_trips(
    request: tuple[Signal, Message], numbers: bool, enums: bool, snake: bool, zeros: bool
) -> None:
    """Strings or numbers, names or enums, either spelling, with or without zeros."""
    signal, message = request
    value = json_format.MessageToDict(
        message,
        use_integers_for_enums=enums,
        preserving_proto_field_name=snake,
        always_print_fields_with_no_presence=zeros,
    )
    body = json.dumps(as_otlp(value, numbers=numbers)).encode()
    data = protobuf_of_json(signal, body)
    wanted = message.SerializeToString()
    assert CLASSES[signal].FromString(data).SerializeToString() == wanted
    assert len(data) == len(wanted)


# Mutated requests, compared with protobuf's json_format.


@given(st.randoms(use_true_random=False), st.sampled_from(Signal))
def test_mutated_bodies_agree_with_json_format(rand: Random, signal: Signal) -> None:
    """Refused by both, or with the same meaning."""
    _, body = body_of(rand, signal)
    assert verdict(signal, body) == oracle(signal, body, Counter())


def test_the_fuzzer_finds_no_difference() -> None:
    """It sees both sides of every rule."""
    report = run(5_000, seed=4)
    assert report["disagreements"] == []
    accepted, refused = report["accepted"], report["refused"]
    assert isinstance(accepted, int)
    assert isinstance(refused, int)
    assert accepted + refused == report["bodies"] == 5_000
    assert min(accepted, refused) > 1_500
    assert report["differences"].keys() | {"brackets"} == DIFFERENCES.keys()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("difference", "where", "piece"),
    [
        ("ids", "record", '{"traceId": "W47/95gDgQPSabYzgT/GDA=="}'),
        ("objects", "record", '{"body": ""}'),
        ("objects", "record", '{"body": ["x"]}'),
        ("spellings", "record", '{"eventName": "a", "event_name": "b"}'),
        ("integers", "body", '{"intValue": "1_000"}'),
        ("integers", "body", '{"intValue": "+1"}'),
        ("doubles", "body", '{"doubleValue": true}'),
        ("doubles", "body", '{"doubleValue": "1e400"}'),
        ("enums", "span", '{"kind": "SERVER"}'),
        ("enums", "span", '{"kind": "2"}'),
        ("enums", "span", '{"kind": 1.5}'),
        ("enums", "span", '{"kind": true}'),
        ("enums", "span", '{"kind": 4294967296}'),
        ("base64", "body", '{"bytesValue": "Y*Q="}'),
        ("overflow", "record", '{"unknown": 1e400}'),
        ("surrogates", "record", r'{"unknown": "\ud800"}'),
    ],
)
def test_documented_differences_are_accepted_by_json_format(
    difference: str, where: str, piece: str
) -> None:
    """Every difference on the fuzzer's list is one: json_format accepts what we refuse."""
    signal, body = wrapped(where, piece)
    json_format.ParseDict(json.loads(body), CLASSES[signal](), ignore_unknown_fields=True)
    with pytest.raises(Malformed):
        protobuf_of_json(signal, body)
    differences: Counter[str] = Counter()
    assert oracle(signal, body, differences) is None
    assert differences == {difference: 1}


def test_a_key_in_brackets_is_unknown() -> None:
    """json_format takes it for an extension; OTLP has none."""
    signal, body = wrapped("record", '{"[a.b]": 1}')
    with pytest.raises(json_format.ParseError):
        json_format.ParseDict(json.loads(body), CLASSES[signal](), ignore_unknown_fields=True)
    assert verdict(signal, body) == oracle(signal, body, Counter())
    assert verdict(signal, body) is not None
