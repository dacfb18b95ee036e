"""Every error has a status on both transports."""

from __future__ import annotations

import json

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from frazil import errors
from frazil.errors import (
    Corrupt,
    FrazilError,
    Malformed,
    Overloaded,
    TooLarge,
    Unresolved,
    reason_of,
)
from frazil.ingest.status_codes import (
    codes_of,
    json_of,
    response_of,
    retry_after_ms,
    retry_after_s,
    status_of,
)
from frazil.model import Signal

RETRYABLE_HTTP = {429, 502, 503, 504}
RETRYABLE_GRPC = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""The retryable codes of the OTLP specification."""


def leaves() -> list[type[FrazilError]]:
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, FrazilError) and not kind.__subclasses__()
    ]


def made(kind: type[FrazilError]) -> FrazilError:
    if kind is Corrupt:
        return Corrupt(path="p", position=0, expected="a", found="b", hint="c")
    return kind("words")


@pytest.mark.parametrize("kind", leaves())
def test_every_error_has_a_status(kind: type[FrazilError]) -> None:
    """Never 500, INTERNAL or UNKNOWN."""
    error = made(kind)
    status, code = codes_of(error)
    assert status != 500
    assert code not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.OK)
    assert (status in RETRYABLE_HTTP) == (code in RETRYABLE_GRPC)


@pytest.mark.parametrize("kind", leaves())
def test_only_retryable_errors_carry_a_retry_hint(kind: type[FrazilError]) -> None:
    """RESOURCE_EXHAUSTED never does, so clients do not retry it."""
    error = made(kind)
    status, code = codes_of(error)
    has_hint = any(detail.Is(RetryInfo.DESCRIPTOR) for detail in status_of(error).details)
    assert has_hint == (status in RETRYABLE_HTTP)
    assert (retry_after_s(error) is not None) == has_hint
    assert not (code is grpc.StatusCode.RESOURCE_EXHAUSTED and has_hint)


def test_an_error_outside_the_table_fails_an_assertion() -> None:
    with pytest.raises(AssertionError, match="FrazilError has no status codes"):
        codes_of(FrazilError("words"))


@pytest.mark.parametrize(
    ("error", "wait_ms", "wait_s"),
    [
        (Overloaded("words", retry_after_ms=1), 1, 1),
        (Overloaded("words", retry_after_ms=1001), 1001, 2),
        (Overloaded("words", retry_after_ms=5000), 5000, 5),
        (Unresolved("words"), 1000, 1),
        (Malformed("words"), None, None),
    ],
)
def test_retry_hints_are_rounded_up_to_seconds(
    error: FrazilError, wait_ms: int | None, wait_s: int | None
) -> None:
    """The header has whole seconds and is never sooner than the hint."""
    assert retry_after_ms(error) == wait_ms
    assert retry_after_s(error) == wait_s
    for detail in status_of(error).details:
        info = RetryInfo()
        assert detail.Unpack(info)
        assert info.retry_delay.ToMilliseconds() == wait_ms


def test_reasons_are_in_snake_case() -> None:
    assert reason_of(TooLarge("words")) == "too_large"
    assert reason_of(Malformed("words")) == "malformed"


def test_partial_success_reports_count_and_reason() -> None:
    """Full success is the empty message."""
    response = response_of(Signal.TRACES, 3, "span 7: trace_id of 15 bytes")
    assert isinstance(response, ExportTraceServiceResponse)
    assert response.partial_success.rejected_spans == 3
    assert json.loads(json_of(response)) == {
        "partialSuccess": {"rejectedSpans": "3", "errorMessage": "span 7: trace_id of 15 bytes"}
    }
    for signal in Signal:
        assert response_of(signal, 0, "").SerializeToString() == b""
        assert json_of(response_of(signal, 0, "")) == b"{}"
