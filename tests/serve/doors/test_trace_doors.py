"""What clients of Tempo and Jaeger send is answered, with something in it; formats and errors."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from frazil.serve.doors.tempo.search import tags_of
from tests.demo.records import Sent, plain
from tests.serve.doors.trace_clients import (
    PROTOBUF,
    RANGE,
    ClientRequest,
    jaeger_requests,
    tempo_requests,
)
from tests.serve.served import Said, Served

COUNT: dict[str, Callable[[Any], int]] = {
    "trace_by_id_json": lambda answer: len(answer["trace"]["resourceSpans"]),
    "search": lambda answer: len(answer["traces"]),
    "tags": lambda answer: len(answer["tagNames"]),
    "tags_v2": lambda answer: sum(len(scope["tags"]) for scope in answer["scopes"]),
    "values": lambda answer: len(answer["tagValues"]),
    "values_v2": lambda answer: len(answer["tagValues"]),
    "range": lambda answer: sum(len(series["samples"]) for series in answer["series"]),
    "instant": lambda answer: len(answer["series"]),
    "jaeger_names": lambda answer: len(answer["data"]),
    "jaeger_operations": lambda answer: len(answer["data"]),
    "jaeger_traces": lambda answer: sum(len(trace["spans"]) for trace in answer["data"]),
    "jaeger_dependencies": lambda answer: len(answer["data"]),
    "jaeger_v3": lambda answer: sum(map(len, answer.values())),
    "jaeger_v3_traces": lambda answer: len(answer["result"]["resourceSpans"]),
}


def ask(
    there: Served, path: str, accept: str = "application/json", /, **parameters: object
) -> Said:
    query = f"?{urlencode(parameters)}" if parameters else ""
    return there.ask("GET", f"{path}{query}", headers={"Accept": accept})


def count(request: ClientRequest, said: Said) -> int:
    if request.reads in COUNT:
        return COUNT[request.reads](said.json)
    return len(said.body)


def largest_trace(sent: Sent) -> tuple[str, int]:
    """The trace with the most spans, and their number."""
    counts: dict[str, int] = {}
    for span in sent.spans:
        trace_id = span.record.trace_id.hex()
        counts[trace_id] = counts.get(trace_id, 0) + 1
    return max(counts.items(), key=lambda each: (each[1], each[0]))


def test_every_request_of_the_clients_is_answered(there: Served, sent: Sent) -> None:
    """None is empty: the shop has sent something for each."""
    trace_id, _ = largest_trace(sent)
    for request in (*tempo_requests(trace_id), *jaeger_requests(trace_id)):
        said = ask(there, request.path, request.accept)
        assert said.status == 200, (request, said.body)
        assert count(request, said) > 0, (request, said.body[:500])


def test_a_trace_in_every_format(there: Served, sent: Sent) -> None:
    """All formats have the spans that were sent, with their types."""
    trace_id, span_count = largest_trace(sent)
    rows = {
        row.record.span_id.hex(): row for row in sent.spans if row.record.trace_id.hex() == trace_id
    }
    bare = ask(there, f"/tempo/api/traces/{trace_id}", PROTOBUF).body
    wrapped = ask(there, f"/tempo/api/v2/traces/{trace_id}", PROTOBUF).body
    assert wrapped.endswith(bare)
    assert wrapped[0] == 1 << 3 | 2
    read = [
        (resource, span)
        for resource in TracesData.FromString(bare).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert len(read) == span_count == len(rows)
    for resource, span in read:
        row = rows[span.span_id.hex()]
        # Grafana's data source reads these without a look whether they are there.
        assert resource.HasField("resource")
        assert span.HasField("status")
        row.record.status.SetInParent()
        assert span.SerializeToString(deterministic=True) == _sorted(row.record)
        assert plain(resource.resource.attributes) == row.resource
    answer = ask(there, f"/tempo/api/traces/{trace_id}").json
    assert (
        answer["batches"]
        == ask(there, f"/tempo/api/v2/traces/{trace_id}").json["trace"]["resourceSpans"]
    )
    shown = {
        base64.b64decode(span["spanId"]).hex(): span
        for resource in answer["batches"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    }
    assert shown.keys() == rows.keys()
    for span_id, row in rows.items():
        values = {each["key"]: each["value"] for each in shown[span_id].get("attributes", ())}
        assert {key: _value(value) for key, value in values.items()} == row.attributes
        assert shown[span_id]["startTimeUnixNano"] == str(row.record.start_time_unix_nano)


def _sorted(span: Any) -> bytes:
    """A span with its attributes in the order of their keys, as the table has them."""
    copy = type(span).FromString(span.SerializeToString())
    for holder in (copy, *copy.events, *copy.links):
        pairs = sorted(holder.attributes, key=lambda pair: pair.key)
        del holder.attributes[:]
        holder.attributes.extend(pairs)
    return bytes(copy.SerializeToString(deterministic=True))


def _value(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return int(content) if kind == "intValue" else content


def test_jaeger_has_the_trace_as_well(there: Served, sent: Sent) -> None:
    """References, tags with types, processes; and the same as OTLP."""
    trace_id, span_count = largest_trace(sent)
    (trace,) = ask(there, f"/jaeger/api/traces/{trace_id}").json["data"]
    rows = {row.record.span_id.hex(): row for row in sent.spans}
    assert (trace["traceID"], len(trace["spans"])) == (trace_id, span_count)
    types = {str: "string", int: "int64", bool: "bool", float: "float64"}
    for span in trace["spans"]:
        row = rows[span["spanID"]]
        assert trace["processes"][span["processID"]]["serviceName"] == row.service
        parents = [each["spanID"] for each in span["references"] if each["refType"] == "CHILD_OF"]
        assert parents == ([row.record.parent_span_id.hex()] if row.record.parent_span_id else [])
        tags = {tag["key"]: (tag["type"], tag["value"]) for tag in span["tags"]}
        for key, value in row.attributes.items():
            assert tags[key] == (types[type(value)], value)
        assert (span["startTime"], span["warnings"]) == (
            row.record.start_time_unix_nano // 1000,
            None,
        )
        assert len(span["logs"]) == len(row.record.events)
    otlp = ask(there, f"/jaeger/api/v3/traces/{trace_id}").json["result"]["resourceSpans"]
    ids = [
        span["spanId"]
        for resource in otlp
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert sorted(ids) == sorted(span["spanID"] for span in trace["spans"])


def test_searches_agree(there: Served, sent: Sent) -> None:
    """Tempo by TraceQL and by tags, and Jaeger, find what the shop has sent."""
    wanted = {
        row.record.trace_id.hex()
        for row in sent.spans
        if row.service == "cart" and row.attributes.get("rpc.system") == "grpc"
    }
    assert wanted
    query = '{ resource.service.name = "cart" && span.rpc.system = "grpc" }'
    by_query = ask(there, "/tempo/api/search", q=query, limit=1000).json["traces"]
    tags = 'service.name="cart" rpc.system=grpc'
    by_tags = ask(there, "/tempo/api/search", tags=tags, limit=1000).json["traces"]
    jaeger = ask(
        there, "/jaeger/api/traces", service="cart", tags='{"rpc.system":"grpc"}', limit=1000
    ).json["data"]
    found = [
        {trace["traceID"] for trace in by_query},
        {trace["traceID"] for trace in by_tags},
        {trace["traceID"] for trace in jaeger},
    ]
    assert found[0] == found[1] == found[2] == wanted
    (first, *_) = by_query
    assert set(first) == {
        *("traceID", "rootServiceName", "rootTraceName", "startTimeUnixNano", "durationMs"),
        *("spanSet", "spanSets", "serviceStats"),
    }


def test_rates_count_what_was_sent(there: Served, sent: Sent) -> None:
    """The samples of a metric sum up to the spans."""
    answer = ask(
        there, "/tempo/api/metrics/query_range", q="{} | count_over_time()", step="5s", **RANGE
    ).json
    (series,) = answer["series"]
    assert sum(sample["value"] for sample in series["samples"]) == len(sent.spans)
    times = [int(sample["timestampMs"]) for sample in series["samples"]]
    assert times == list(range(RANGE["start"] * 1000, RANGE["end"] * 1000, 5000))


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/tempo/api/traces/zz", 400, "is not a trace id"),
        ("/tempo/api/v2/traces/1", 404, f"trace {'1'.rjust(32, '0')} was not found"),
        (f"/tempo/api/search?q={quote('{ foo = 1 }')}", 400, "'foo' is not known"),
        (f"/tempo/api/search?q={quote('{} | rate()')}", 400, "makes metrics"),
        ("/tempo/api/search?q=%7B%7D&limit=99999", 400, "limit is 99999"),
        ("/tempo/api/search?q=%7B%7D&limit=x", 400, "limit is 'x'"),
        ("/tempo/api/search?q=%7B%7D&start=soon", 400, "start is 'soon'"),
        ("/tempo/api/search?tags=%22", 400, "write key=value"),
        ("/tempo/api/search?minDuration=long", 400, "minDuration is 'long'"),
        ("/tempo/api/metrics/query_range?q=%7B%7D", 400, "makes no metrics"),
        ("/tempo/api/metrics/query_range", 400, "the parameter q is missing"),
        (f"/tempo/api/metrics/query?q={quote('{}|rate()')}&start=9&end=5", 400, "not after start"),
        ("/tempo/api/v2/search/tags?scope=other", 400, "scope is 'other'"),
        ("/tempo/api/nothing", 404, "there is no /tempo/api/nothing"),
        ("/jaeger/api/traces", 400, "the parameter service is missing"),
        ("/jaeger/api/traces?service=x&tags=x", 400, "write a JSON object"),
        ("/jaeger/api/traces?service=x&tag=x", 400, "write key:value"),
        ("/jaeger/api/traces?service=x&start=x", 400, "write microseconds"),
        ("/jaeger/api/traces/1", 404, "trace not found"),
        ("/jaeger/api/operations", 400, "the parameter service is missing"),
        ("/jaeger/api/operations?service=x&spanKind=y", 400, "choose one of"),
        ("/jaeger/api/v3/traces?query.start_time_min=x", 400, "write a time"),
        ("/jaeger/api/v3/traces/1", 404, "trace not found"),
        ("/jaeger/api/metrics/calls", 501, "not supported"),
    ],
)
def test_errors_say_what_to_do(there: Served, path: str, status: int, why: str) -> None:
    """In the form that the clients show: text for Tempo, an envelope for Jaeger."""
    said = ask(there, path)
    assert said.status == status, said.body
    if path.startswith("/jaeger"):
        (error,) = said.json["errors"]
        assert (error["code"], said.json["data"]) == (status, None)
        assert why in error["msg"]
        assert said.json["error"]["httpCode"] == status
    else:
        assert said.headers["content-type"].startswith("text/plain")
        assert why in said.body.decode()


def test_short_ids_are_padded(there: Served, sent: Sent) -> None:
    """Leading zeros of an id may be missing, and letters may be capitals."""
    trace_id, _ = largest_trace(sent)
    said = ask(there, f"/tempo/api/v2/traces/{trace_id.upper().lstrip('0')}")
    assert said.status == 200


def test_tags_are_logfmt() -> None:
    assert tags_of(' a=b service.name="x y"  q="say \\"hi\\"" e= ') == [
        ("a", "b"),
        ("service.name", "x y"),
        ("q", 'say "hi"'),
        ("e", ""),
    ]
