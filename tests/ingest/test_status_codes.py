"""Every error has a true answer on both transports."""

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
"""What the specification has senders retry."""


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
def test_every_error_is_mapped(kind: type[FrazilError]) -> None:
    """A leaf that is added to the tree has an answer, never 500, INTERNAL or UNKNOWN."""
    error = made(kind)
    status, code = codes_of(error)
    assert status != 500
    assert code not in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.OK)
    assert (status in RETRYABLE_HTTP) == (code in RETRYABLE_GRPC)


@pytest.mark.parametrize("kind", leaves())
def test_a_hint_is_there_exactly_when_a_retry_is_of_use(kind: type[FrazilError]) -> None:
    """Retryable answers say when; RESOURCE_EXHAUSTED never does, so that nobody retries it."""
    error = made(kind)
    status, code = codes_of(error)
    has_hint = any(detail.Is(RetryInfo.DESCRIPTOR) for detail in status_of(error).details)
    assert has_hint == (status in RETRYABLE_HTTP)
    assert (retry_after_s(error) is not None) == has_hint
    assert not (code is grpc.StatusCode.RESOURCE_EXHAUSTED and has_hint)


def test_an_error_outside_the_tables_is_a_fault_of_ours() -> None:
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
def test_hints_keep_their_time(error: FrazilError, wait_ms: int | None, wait_s: int | None) -> None:
    """The header has whole seconds and never says sooner than was meant."""
    assert retry_after_ms(error) == wait_ms
    assert retry_after_s(error) == wait_s
    for detail in status_of(error).details:
        info = RetryInfo()
        assert detail.Unpack(info)
        assert info.retry_delay.ToMilliseconds() == wait_ms


def test_reasons_read_like_words() -> None:
    assert reason_of(TooLarge("words")) == "too_large"
    assert reason_of(Malformed("words")) == "malformed"


def test_partial_success_tells_the_count_and_why() -> None:
    """The sender learns how many were not stored; full success is the empty message."""
    response = response_of(Signal.TRACES, 3, "span 7: trace_id of 15 bytes")
    assert isinstance(response, ExportTraceServiceResponse)
    assert response.partial_success.rejected_spans == 3
    assert json.loads(json_of(response)) == {
        "partialSuccess": {"rejectedSpans": "3", "errorMessage": "span 7: trace_id of 15 bytes"}
    }
    for signal in Signal:
        assert response_of(signal, 0, "").SerializeToString() == b""
        assert json_of(response_of(signal, 0, "")) == b"{}"
