"""D1 and D3: what is repeated is stored once; what is too much is refused with a hint."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from frazil.errors import Overloaded
from frazil.ingest.config import IngestConfig
from frazil.log import LogConfig
from frazil.model import MiB, Signal
from tests.conformance.cases import field, log, logs
from tests.conformance.clients import JSON, PROTOBUF, Answer, send_grpc, send_http
from tests.ingest.serving import Serving, serving

LOGS = Signal.LOGS
NUMBERS = itertools.count(1)
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE.value[0]

JSON_TEXT = '{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "%d"}]}]}]}'


def post(served: Serving, body: bytes) -> Answer:
    return send_http(served.otlp.http_port, LOGS.path, body, {"Content-Type": PROTOBUF})


def post_json(served: Serving, body: bytes) -> Answer:
    return send_http(served.otlp.http_port, LOGS.path, body, {"Content-Type": JSON})


def call(served: Serving, body: bytes) -> Answer:
    return send_grpc(served.otlp.grpc_port, LOGS.method, body)


Send = Callable[[Serving, bytes], Answer]
SUCCESS = (0, 200)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("data")) as both:
        yield both


@pytest.mark.parametrize(
    ("first", "second"),
    [(post, post), (call, call), (post, call), (call, post)],
    ids=["http, http", "grpc, grpc", "http, grpc", "grpc, http"],
)
def test_a_repetition_is_success_and_no_second_copy(
    first: Send, second: Send, served: Serving
) -> None:
    """Also when a sender changes its transport between two tries."""
    before, body = served.end_offset(LOGS), logs(log(next(NUMBERS)))
    answers = [first(served, body), second(served, body), first(served, body)]
    assert all(answer.status in SUCCESS for answer in answers)
    assert all(answer.body == b"" for answer in answers)
    assert served.stored_since(LOGS, before) == [body]


def test_json_is_recognised_by_what_it_means(served: Serving) -> None:
    """The digest is that of the stored bytes: spaces do not make a new request."""
    before, text = served.end_offset(LOGS), JSON_TEXT % next(NUMBERS)
    for body in (text, text, text.replace(" ", "")):
        assert post_json(served, body.encode()).status == 200
    assert len(served.stored_since(LOGS, before)) == 1


def test_the_same_bytes_of_another_signal_are_another_request(served: Serving) -> None:
    """Signals do not share a window: what was a log is not a span that was seen."""
    ends = {signal: served.end_offset(signal) for signal in (LOGS, Signal.TRACES)}
    record = field(1000, b"a field that neither knows: %d" % next(NUMBERS))
    body = field(1, field(2, field(2, record)))
    for signal, end in ends.items():
        answer = send_http(served.otlp.http_port, signal.path, body, {"Content-Type": PROTOBUF})
        assert answer.status == 200
        assert served.stored_since(signal, end) == [body]


def test_partial_success_is_told_again(served: Serving) -> None:
    """A repeated request gets the answer of the first, with its count."""
    before = served.end_offset(LOGS)
    body = logs(log(next(NUMBERS)), log(1, trace_id=b"short"))
    for send in (post, call, post):
        response = send(served, body).response(LOGS)
        assert response.partial_success.rejected_log_records == 1
    assert len(served.stored_since(LOGS, before)) == 1


@pytest.mark.parametrize("send", [post, post_json, call])
def test_a_closed_gate_is_polite(send: Send, served: Serving) -> None:
    """Refused before the body is read, with a hint, and nothing is stored; then all is well."""
    gate, before = served.otlp._gate, served.end_offset(LOGS)
    served.on_loop(lambda: gate.note_full(Overloaded("no room", retry_after_ms=600)))
    body = logs(log(next(NUMBERS))) if send is not post_json else b'{"resourceLogs": []}'
    answer = send(served, body)
    assert answer.status in (429, UNAVAILABLE)
    assert answer.has_retry_hint
    assert "no room" in answer.message
    assert served.stored_since(LOGS, before) == []
    served.on_loop(lambda: gate.note_full(Overloaded("no room", retry_after_ms=0)))
    assert send(served, body).status in SUCCESS


def test_more_than_may_be_in_hand_is_refused(tmp_path: Path) -> None:
    """With everything in hand that may be, the next body is told to come back."""
    config = IngestConfig(grpc_port=0, http_port=0, body_bytes_max=MiB, in_flight_bytes_max=2 * MiB)
    with serving(tmp_path, config) as both:
        passage = both.on_loop(both.otlp._gate.enter)
        both.on_loop(lambda: passage.take(2 * MiB - 10))
        for send in (post, call):
            answer = send(both, logs(log(next(NUMBERS))))
            assert (answer.status in (429, UNAVAILABLE), answer.has_retry_hint) == (True, True)
        assert both.stored_since(LOGS, 0) == []
        both.on_loop(lambda: passage.__exit__())
        for send in (post, call):
            assert send(both, logs(log(next(NUMBERS)))).status in SUCCESS


def test_a_full_log_is_polite(tmp_path: Path) -> None:
    """At the disk budget every request is refused retryably; what was accepted is all there."""
    config = LogConfig(segment_bytes_max=MiB, batch_bytes_max=24 * MiB, disk_bytes_max=32 * MiB)
    with serving(tmp_path, log_config=config) as both:
        accepted, refused = [], 0
        for number in range(60):
            body = logs(log(next(NUMBERS), severity_text="x" * MiB))
            answer = (post if number % 2 else call)(both, body)
            if answer.status in SUCCESS:
                accepted.append(body)
                continue
            refused += 1
            assert answer.status in (429, UNAVAILABLE)
            assert answer.has_retry_hint
        assert len(accepted) > 20
        assert refused > 20
        assert both.stored_since(LOGS, 0) == accepted


def test_a_stopping_node_says_so(tmp_path: Path) -> None:
    """Draining: those outside are told to come back, on both ports."""
    with serving(tmp_path) as both:
        both.on_loop(both.otlp._gate.drain)
        http_answer = post(both, logs(log(next(NUMBERS))))
        grpc_answer = call(both, logs(log(next(NUMBERS))))
        assert (http_answer.status, http_answer.has_retry_hint) == (503, True)
        assert (grpc_answer.status, grpc_answer.has_retry_hint) == (UNAVAILABLE, True)
        assert both.stored_since(LOGS, 0) == []


def test_the_window_can_be_switched_off(tmp_path: Path) -> None:
    """Then every request is a new one."""
    config = IngestConfig(grpc_port=0, http_port=0, deduplicate=False)
    body = logs(log(next(NUMBERS)))
    with serving(tmp_path, config) as both:
        assert [post(both, body).status, call(both, body).status] == [200, 0]
        assert both.stored_since(LOGS, 0) == [body, body]
