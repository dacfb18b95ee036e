"""Every case of the tables: status, response body, and what is stored."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.json_format import Parse
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from frazil.model import Signal
from frazil.settings import IngestConfig
from tests.conformance.cases import BODY_BYTES_MAX, CASES, Case
from tests.conformance.clients import JSON, PROTOBUF, Answer, send_grpc, send_http
from tests.conformance.http_cases import HTTP_CASES, request_body
from tests.conformance.json_cases import JSON_CASES, REQUESTS, JsonCase
from tests.ingest.serving import Serving, serving

NUMBERS = itertools.count(1)

REFUSALS = {
    "malformed": (400, grpc.StatusCode.INVALID_ARGUMENT),
    "too large": (413, grpc.StatusCode.RESOURCE_EXHAUSTED),
}
OK = (200, grpc.StatusCode.OK)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    config = IngestConfig(grpc_port=0, http_port=0, body_bytes_max=BODY_BYTES_MAX)
    with serving(tmp_path_factory.mktemp("data"), config) as both:
        yield both


def records_of(signal: Signal, value: bytes) -> list[Message]:
    """Return the log records, spans or data points of one stored request."""
    request = REQUESTS[signal].FromString(value)
    found: list[Message] = []
    for resource in getattr(request, f"resource_{_envelope(signal)}"):
        for scope in getattr(resource, f"scope_{_envelope(signal)}"):
            match signal:
                case Signal.LOGS:
                    found += scope.log_records
                case Signal.TRACES:
                    found += scope.spans
                case Signal.METRICS:
                    for metric in scope.metrics:
                        kind = metric.WhichOneof("data")
                        found += getattr(metric, kind).data_points if kind else []
    return found


def _envelope(signal: Signal) -> str:
    return {"logs": "logs", "traces": "spans", "metrics": "metrics"}[signal.value]


def check(case: Case, answer: Answer, wanted_status: int) -> None:
    """Check that the response matches what became of the request."""
    assert answer.status == wanted_status, answer.message
    if case.refused:
        assert answer.message
        assert not answer.has_retry_hint
        return
    response = answer.response(case.signal)
    assert getattr(response.partial_success, case.signal.rejected) == case.rejected
    assert case.says in response.partial_success.error_message
    assert case.warns in response.partial_success.error_message
    has_message = bool(response.partial_success.error_message)
    assert has_message == bool(case.rejected or case.warns)
    if not has_message:
        assert answer.body == b""


@pytest.mark.parametrize("transport", ["http", "grpc"])
@pytest.mark.parametrize("name", CASES)
def test_protobuf_has_the_same_result_on_both_transports(
    name: str, transport: str, served: Serving
) -> None:
    case, number = CASES[name], next(NUMBERS)
    before, body = served.end_offset(case.signal), case.body(number)
    status, code = REFUSALS[case.refused] if case.refused else OK
    if transport == "http":
        headers = {"Content-Type": PROTOBUF}
        answer = send_http(served.otlp.http_port, case.signal.path, body, headers)
        assert answer.headers["content-type"] == PROTOBUF
        check(case, answer, status)
    else:
        answer = send_grpc(served.otlp.grpc_port, case.signal.method, body)
        check(case, answer, code.value[0])
    stored = served.stored_since(case.signal, before)
    assert len(stored) == bool(case.stored)
    assert [len(records_of(case.signal, value)) for value in stored] == [case.stored] * len(stored)
    if case.stored and not case.rejected and not case.warns:
        assert stored == [body]


@pytest.mark.parametrize("name", JSON_CASES)
def test_json_is_stored_as_protobuf_of_the_same_meaning(name: str, served: Serving) -> None:
    case = JSON_CASES[name]
    before, body = served.end_offset(case.signal), case.body(next(NUMBERS))
    answer = send_http(served.otlp.http_port, case.signal.path, body, {"Content-Type": JSON})
    assert answer.headers["content-type"] == JSON
    stored = served.stored_since(case.signal, before)
    if case.refused or "deep" in name:
        _check_refused(case, answer)
        assert stored == []
        return
    assert answer.status == 200, answer.message
    response = answer.response(case.signal)
    assert getattr(response.partial_success, case.signal.rejected) == case.rejected
    assert len(stored) == (case.is_stored and not case.rejected)
    for value in stored:
        assert case.holds is not None
        assert case.holds(records_of(case.signal, value)[0])


def _check_refused(case: JsonCase, answer: Answer) -> None:
    assert answer.status == 400, answer.body
    status = json.loads(answer.body)
    assert status["code"] == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert case.refused in status["message"]
    assert not answer.has_retry_hint


@pytest.mark.parametrize("name", HTTP_CASES)
def test_http_heads_have_their_status(name: str, served: Serving) -> None:
    case, signal = HTTP_CASES[name], Signal.LOGS
    before, body = served.end_offset(signal), request_body(next(NUMBERS))
    headers = dict(case.headers)
    if case.content_type is not None:
        headers["Content-Type"] = case.content_type
    packed = None if case.method == "GET" else case.pack(body)
    answer = send_http(served.otlp.http_port, case.path, packed, headers, case.method)
    assert answer.status == case.status, answer.message
    assert answer.headers.get("content-type") == case.answer_type
    assert case.answered.items() <= answer.headers.items()
    assert case.says in answer.message
    if case.status != 200:
        text = answer.body
        status = Status.FromString(text) if case.answer_type != JSON else Parse(text, Status())
        assert status.code
        assert status.message
        assert not answer.has_retry_hint
    assert served.stored_since(signal, before) == [body] * case.stored


def test_there_are_enough_cases() -> None:
    """At least 120 named cases, with every row of the fault catalogue that a request can be."""
    assert 2 * len(CASES) + len(JSON_CASES) + len(HTTP_CASES) >= 120
    rows = {case.row for case in CASES.values()} | {case.row for case in JSON_CASES.values()}
    rows |= {case.row for case in HTTP_CASES.values()}
    assert rows == {
        "D2",
        "D4",
        "D5",
        "D6",
        "D7",
        "D8",
        "D9",
        "D10",
        "D11",
        "D12",
        "D13",
        "D14",
        "D18",
    }
