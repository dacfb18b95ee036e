"""D1 and D3: duplicates are stored once; overload is refused with a retry hint."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from frazil.errors import Overloaded
from frazil.model import MiB, Signal
from frazil.settings import IngestConfig, LogConfig
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
def test_a_duplicate_is_acknowledged_and_stored_once(
    first: Send, second: Send, served: Serving
) -> None:
    """Also when the client changes its transport between two tries."""
    before, body = served.end_offset(LOGS), logs(log(next(NUMBERS)))
    answers = [first(served, body), second(served, body), first(served, body)]
    assert all(answer.status in SUCCESS for answer in answers)
    assert all(answer.body == b"" for answer in answers)
    assert served.stored_since(LOGS, before) == [body]


def test_duplicate_json_with_other_whitespace_is_recognised(served: Serving) -> None:
    """The digest is that of the stored bytes."""
    before, text = served.end_offset(LOGS), JSON_TEXT % next(NUMBERS)
    for body in (text, text, text.replace(" ", "")):
        assert post_json(served, body.encode()).status == 200
    assert len(served.stored_since(LOGS, before)) == 1


def test_the_same_bytes_of_another_signal_are_another_request(served: Serving) -> None:
    """Each signal has its own digest window."""
    ends = {signal: served.end_offset(signal) for signal in (LOGS, Signal.TRACES)}
    record = field(1000, b"a field that neither knows: %d" % next(NUMBERS))
    body = field(1, field(2, field(2, record)))
    for signal, end in ends.items():
        answer = send_http(served.otlp.http_port, signal.path, body, {"Content-Type": PROTOBUF})
        assert answer.status == 200
        assert served.stored_since(signal, end) == [body]


def test_partial_success_is_repeated_for_a_duplicate(served: Serving) -> None:
    before = served.end_offset(LOGS)
    body = logs(log(next(NUMBERS)), log(1, trace_id=b"short"))
    for send in (post, call, post):
        response = send(served, body).response(LOGS)
        assert response.partial_success.rejected_log_records == 1
    assert len(served.stored_since(LOGS, before)) == 1


@pytest.mark.parametrize("send", [post, post_json, call])
def test_a_closed_gate_refuses_with_a_hint_and_stores_nothing(send: Send, served: Serving) -> None:
    """Before the body is read; requests succeed once it is open."""
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


def test_a_body_above_in_flight_bytes_max_is_refused_with_a_hint(tmp_path: Path) -> None:
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


def test_a_full_log_refuses_with_a_hint(tmp_path: Path) -> None:
    """Everything accepted before is stored."""
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


def test_a_stopping_node_refuses_on_both_ports(tmp_path: Path) -> None:
    with serving(tmp_path) as both:
        both.on_loop(both.otlp._gate.drain)
        http_answer = post(both, logs(log(next(NUMBERS))))
        grpc_answer = call(both, logs(log(next(NUMBERS))))
        assert (http_answer.status, http_answer.has_retry_hint) == (503, True)
        assert (grpc_answer.status, grpc_answer.has_retry_hint) == (UNAVAILABLE, True)
        assert both.stored_since(LOGS, 0) == []


def test_deduplication_can_be_turned_off(tmp_path: Path) -> None:
    config = IngestConfig(grpc_port=0, http_port=0, deduplicate=False)
    body = logs(log(next(NUMBERS)))
    with serving(tmp_path, config) as both:
        assert [post(both, body).status, call(both, body).status] == [200, 0]
        assert both.stored_since(LOGS, 0) == [body, body]
