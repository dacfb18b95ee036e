"""OTLP/gRPC: responses, what is stored, auth, TLS, shutdown, health and reflection."""

from __future__ import annotations

import asyncio
import gzip
import logging
import queue
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from frazil.errors import Overloaded, Unavailable
from frazil.ingest.grpc.deadlines import UNREAD
from frazil.ingest.grpc.reflection import OPEN_COUNT_MAX, REFLECTION_METHODS, SERVICES
from frazil.ingest.receiver import REFUSED_BYTES, REFUSED_REQUESTS, Receipt, Receiver
from frazil.ingest.request_check import Transport
from frazil.model import KiB, Signal
from tests.conformance.cases import log, logs, metric, metrics, span, spans
from tests.ingest.certificates import make_certificates
from tests.ingest.grpc_edge import (
    LOOPS,
    WAIT_S,
    Answer,
    Edge,
    LoopKind,
    answer_to,
    eventually,
    grpc_edge,
    refusal,
)

Code = grpc.StatusCode
LIMIT = 64 * KiB
TOKEN = "correct-horse-battery-staple"
BEARER = (("authorization", f"Bearer {TOKEN}"),)

BODY = logs(log(1))
BAD_ID = logs(log(2), log(3, trace_id=b"short"))


def _point(number: int) -> Metric:
    made = metric(number)
    made.gauge.data_points.add(time_unix_nano=number, as_int=number)
    return made


def _body_of(length: int) -> bytes:
    """Return a valid request of exactly this many bytes."""
    record = log(4)
    record.body.string_value = "x" * length
    around = len(logs(record)) - length
    record.body.string_value = "x" * (length - around)
    body = logs(record)
    assert len(body) == length
    return body


def _deflate(data: bytes) -> bytes:
    return zlib.compress(data, 1)


BODIES = {
    Signal.LOGS: BODY,
    Signal.TRACES: spans(span(1)),
    Signal.METRICS: metrics(_point(1)),
}


@pytest.fixture(params=sorted(LOOPS))
def loop_kind(request: pytest.FixtureRequest) -> LoopKind:
    kind: LoopKind = request.param
    return kind


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """A port shared by simple cases; each checks only what it adds."""
    folder = tmp_path_factory.mktemp("log")
    with grpc_edge(folder, body_bytes_max=LIMIT, in_flight_bytes_max=8 * LIMIT) as opened:
        yield opened


@pytest.mark.parametrize("signal", Signal)
def test_an_export_is_durable_when_it_is_acknowledged(
    tmp_path: Path, signal: Signal, loop_kind: LoopKind
) -> None:
    """For each signal, byte for byte."""
    with grpc_edge(tmp_path, loop_kind=loop_kind) as opened, opened.channel() as channel:
        call = channel.unary_unary(signal.method)
        assert answer_to(lambda: call(BODIES[signal], timeout=WAIT_S)) == Answer(code=Code.OK)
        assert opened.stored(signal) == [BODIES[signal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Messages of one call, the expected code, and what is stored."""

    name: str
    messages: tuple[bytes, ...]
    code: grpc.StatusCode = Code.OK
    says: str = ""
    stored: tuple[bytes, ...] = ()
    is_told_by_grpc: bool = False
    compression: grpc.Compression | None = None
    method: str = Signal.LOGS.method


LARGEST = _body_of(LIMIT)
TOO_LARGE = _body_of(LIMIT + 1)
DENSE = _body_of(1024 * KiB)
NOISE = bytes(range(256)) * 8
CASES = [
    Case(name="good", messages=(logs(log(10)),), stored=(logs(log(10)),)),
    Case(name="empty", messages=(b"",)),
    Case(name="no records", messages=(logs(),)),
    Case(name="as large as may be", messages=(LARGEST,), stored=(LARGEST,)),
    Case(
        name="gzip",
        messages=(logs(log(11)) * 20,),
        stored=(logs(log(11)) * 20,),
        compression=grpc.Compression.Gzip,
    ),
    Case(
        name="deflate",
        messages=(logs(log(12)) * 20,),
        stored=(logs(log(12)) * 20,),
        compression=grpc.Compression.Deflate,
    ),
    Case(
        name="as large as may be, gzip",
        messages=(_body_of(LIMIT - 1),),
        stored=(_body_of(LIMIT - 1),),
        compression=grpc.Compression.Gzip,
    ),
    Case(name="gzip made by the caller", messages=(gzip.compress(BODY),), stored=(BODY,)),
    Case(
        name="an unknown field that looks like deflate",
        messages=(b"\x78\x9c\x01" + logs(log(13)),),
        stored=(b"\x78\x9c\x01" + logs(log(13)),),
    ),
    Case(
        name="one record of two can never be stored",
        messages=(BAD_ID,),
        stored=(logs(log(2)),),
        says="LogRecord.trace_id must be 16 bytes long or empty",
    ),
    Case(
        name="not protobuf",
        messages=(b"\xff" * 20,),
        code=Code.INVALID_ARGUMENT,
        says="not an OTLP request",
    ),
    Case(
        name="cut off",
        messages=(BODY[:-1],),
        code=Code.INVALID_ARGUMENT,
        says="reaches beyond the end",
    ),
    Case(
        name="gzip that is damaged",
        messages=(gzip.compress(NOISE)[:-4],),
        code=Code.INVALID_ARGUMENT,
        says="gzip body is truncated",
    ),
    Case(
        name="deflate that is damaged",
        messages=(_deflate(NOISE)[:-4],),
        code=Code.INVALID_ARGUMENT,
        says="not an OTLP request",
    ),
    Case(
        name="no message",
        messages=(),
        code=Code.INVALID_ARGUMENT,
        says="ended before its message",
    ),
    Case(
        name="two messages",
        messages=(logs(log(14)), logs(log(15))),
        code=Code.INVALID_ARGUMENT,
        says="second message",
    ),
    Case(
        name="too large",
        messages=(TOO_LARGE,),
        code=Code.RESOURCE_EXHAUSTED,
        says="larger than max",
        is_told_by_grpc=True,
    ),
    Case(
        name="too large once decompressed from gzip",
        messages=(DENSE,),
        code=Code.RESOURCE_EXHAUSTED,
        says=f"exceeds {LIMIT} bytes once decompressed",
        compression=grpc.Compression.Gzip,
    ),
    Case(
        name="too large once decompressed from deflate",
        messages=(DENSE,),
        code=Code.RESOURCE_EXHAUSTED,
        says=f"exceeds {LIMIT} bytes once decompressed",
        compression=grpc.Compression.Deflate,
    ),
    Case(
        name="unknown method",
        messages=(BODY,),
        code=Code.UNIMPLEMENTED,
        method=f"/{Signal.LOGS.service}/Import",
        is_told_by_grpc=True,
    ),
    Case(
        name="unknown service",
        messages=(BODY,),
        code=Code.UNIMPLEMENTED,
        method="/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        is_told_by_grpc=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_call_gets_its_status_and_effect(edge: Edge, case: Case) -> None:
    """None of these refusals is retryable."""
    before = len(edge.stored())
    answer = edge.send(*case.messages, method=case.method, compression=case.compression)
    assert answer.code == case.code, answer
    assert case.says in answer.text or case.code == Code.OK
    assert answer.retry_after_ms is None
    assert (answer.status is None) == (case.is_told_by_grpc or case.code == Code.OK)
    if answer.status is not None:
        assert (answer.status.code, answer.status.message) == (case.code.value[0], answer.text)
    partial = ExportLogsServiceResponse.FromString(answer.response).partial_success
    assert partial.rejected_log_records == (1 if case.code == Code.OK and case.says else 0)
    assert case.says in partial.error_message or case.code != Code.OK
    assert edge.stored()[before:] == list(case.stored)
    edge.await_idle()


def test_a_duplicate_export_is_stored_once(edge: Edge) -> None:
    """Also when the retry is compressed."""
    body = logs(log(20)) * 10
    before = len(edge.stored())
    for compression in (None, grpc.Compression.Gzip, grpc.Compression.Deflate):
        assert edge.send(body, compression=compression) == Answer(code=Code.OK)
    assert edge.stored()[before:] == [body]


@pytest.mark.parametrize(
    ("messages", "reason", "length"),
    [((b"\xff" * 20,), "malformed", 20), ((), "malformed", 0)],
)
def test_refusals_are_counted_by_signal_transport_and_reason(
    edge: Edge, messages: tuple[bytes, ...], reason: str, length: int
) -> None:
    labels = {"signal": "logs", "transport": "grpc", "reason": reason}
    requests, size = REFUSED_REQUESTS.value(**labels), REFUSED_BYTES.value(**labels)
    edge.send(*messages)
    assert REFUSED_REQUESTS.value(**labels) == requests + 1
    assert REFUSED_BYTES.value(**labels) == size + length


def test_messages_refused_by_grpc_itself_are_counted(edge: Edge) -> None:
    before = UNREAD.value()
    edge.send(TOO_LARGE)
    eventually(lambda: UNREAD.value() == before + 1)


@contextmanager
def half_sent(
    edge: Edge, *messages: bytes, metadata: tuple[tuple[str, str], ...] = ()
) -> Iterator[grpc.Future]:
    """A call whose client never half-closes, and cancels in the end."""
    is_over = threading.Event()

    def outgoing() -> Iterator[bytes]:
        yield from messages
        is_over.wait(WAIT_S)

    with edge.channel() as channel:
        call = channel.stream_unary(Signal.LOGS.method).future(outgoing(), metadata=metadata)
        try:
            yield call
        finally:
            is_over.set()
            call.cancel()


def result_of(call: grpc.Future) -> Answer:
    return answer_to(lambda: call.result(WAIT_S))


@pytest.mark.parametrize("messages", [(), (BODY,)], ids=["no message", "no end"])
def test_a_late_message_is_refused_and_stores_nothing(
    tmp_path: Path, messages: tuple[bytes, ...], loop_kind: LoopKind
) -> None:
    """The refusal is retryable, and the call holds no memory."""
    with (
        grpc_edge(tmp_path, loop_kind=loop_kind, body_timeout_ms=200) as edge,
        half_sent(edge, *messages) as call,
    ):
        answer = result_of(call)
        assert answer.code == Code.UNAVAILABLE
        assert "did not arrive within 200 ms (ingest.body_timeout_ms)" in answer.text
        assert answer.retry_after_ms == 1000
        edge.await_idle()
        assert edge.stored() == []
        assert edge.send(BODY).code == Code.OK


def test_slow_calls_are_evicted_when_reads_are_crowded(tmp_path: Path) -> None:
    """Also when their timeout is far away."""
    with grpc_edge(tmp_path, requests_max=5, body_timeout_ms=600_000) as edge:
        slow = [half_sent(edge) for _ in range(5)]
        calls = [one.__enter__() for one in slow]
        eventually(lambda: edge.gate.status().request_count == 5)
        eventually(lambda: edge.send(BODY).code == Code.OK)
        eventually(lambda: sum(call.done() for call in calls) >= 3)
        cut = [call for call in calls if call.done()]
        for call in cut:
            answer = result_of(call)
            assert answer.code == Code.UNAVAILABLE
            assert "arrives slowly" in answer.text
            assert answer.retry_after_ms == 1000
        for one in slow:
            one.__exit__(None, None, None)
        edge.await_idle()


def close_gate(edge: Edge) -> None:
    edge.on_loop(
        lambda: edge.gate.note_full(Overloaded("the disk is full", retry_after_ms=600_000))
    )


def drain(edge: Edge) -> None:
    edge.on_loop(edge.gate.drain)


@pytest.mark.parametrize(
    ("shut", "says"), [(close_gate, "the disk is full"), (drain, "this node is stopping")]
)
def test_a_closed_gate_refuses_before_the_message_is_read(
    tmp_path: Path, shut: Callable[[Edge], None], says: str
) -> None:
    """With a retry hint."""
    with grpc_edge(tmp_path) as edge:
        shut(edge)
        with half_sent(edge) as call:
            answer = result_of(call)
        assert answer.code == Code.UNAVAILABLE
        assert says in answer.text
        assert answer.retry_after_ms is not None
        assert 1000 <= answer.retry_after_ms <= 2000
        assert edge.stored() == []


def test_a_call_above_requests_max_is_refused_with_a_hint(tmp_path: Path) -> None:
    """It enters when another has left."""
    with grpc_edge(tmp_path, requests_max=1) as edge:
        with half_sent(edge):
            eventually(lambda: edge.gate.status().request_count == 1)
            answer = edge.send(BODY)
            assert answer.code == Code.UNAVAILABLE
            assert "ingest.requests_max" in answer.text
            assert answer.retry_after_ms is not None
        edge.await_idle()
        assert edge.send(BODY).code == Code.OK


class Failing(Receiver):
    """A receiver that raises an unexpected error."""

    async def accept(
        self, signal: Signal, transport: Transport, body: bytes, *, is_own: bool = False
    ) -> Receipt:
        raise ZeroDivisionError("unexpected")


def test_an_unexpected_error_is_retryable_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The client learns no internals."""
    labels = {"signal": "logs", "transport": "grpc", "reason": "unavailable"}
    before = REFUSED_REQUESTS.value(**labels)
    with grpc_edge(tmp_path, receiver_kind=Failing) as edge, caplog.at_level(logging.INFO):
        answer = edge.send(BODY)
        assert (answer.code, answer.retry_after_ms) == (Code.UNAVAILABLE, 1000)
        assert "unexpected" not in answer.text
        edge.await_idle()
    (record,) = caplog.records
    assert record.getMessage() == "a call failed unexpectedly"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert REFUSED_REQUESTS.value(**labels) == before + 1


class Patient(Receiver):
    """A receiver that accepts nothing until it is released."""

    go: asyncio.Event

    async def accept(
        self, signal: Signal, transport: Transport, body: bytes, *, is_own: bool = False
    ) -> Receipt:
        self.go = asyncio.Event()
        await self.go.wait()
        return await super().accept(signal, transport, body)


@contextmanager
def admitted_call(edge: Edge, *, timeout_s: float = WAIT_S) -> Iterator[grpc.Future]:
    """A call whose message has been read and that is not answered yet."""
    with edge.channel() as channel:
        call = channel.unary_unary(Signal.LOGS.method).future(BODY, timeout=timeout_s)
        eventually(lambda: hasattr(edge.receiver, "go"))
        yield call


@pytest.mark.parametrize("how", ["cancel", "deadline", "disconnect"])
def test_a_client_that_leaves_releases_its_slot_and_bytes(
    tmp_path: Path, how: str, loop_kind: LoopKind
) -> None:
    with grpc_edge(tmp_path, loop_kind=loop_kind, receiver_kind=Patient, requests_max=1) as edge:
        with admitted_call(edge, timeout_s=2 if how == "deadline" else WAIT_S) as call:
            if how == "cancel":
                call.cancel()
            elif how == "deadline":
                assert result_of(call).code == Code.DEADLINE_EXCEEDED
        edge.await_idle()
        assert edge.stored() == []
        edge.on_loop(lambda: delattr(edge.receiver, "go"))
        with admitted_call(edge) as call:
            edge.on_loop(lambda: edge.receiver.go.set())  # type: ignore[attr-defined]
            assert call.result(WAIT_S) == b""
        assert edge.stored() == [BODY]


def test_concurrent_calls_on_one_connection_succeed(tmp_path: Path, loop_kind: LoopKind) -> None:
    """On both kinds of event loop."""
    bodies = [logs(log(number)) for number in range(1000)]

    async def send_all(target: str) -> list[bytes]:
        async with grpc.aio.insecure_channel(target) as channel:
            call = channel.unary_unary(Signal.LOGS.method)
            return list(await asyncio.gather(*(call(body, timeout=WAIT_S) for body in bodies)))

    with grpc_edge(tmp_path, loop_kind=loop_kind) as edge:
        assert asyncio.run(send_all(edge.target)) == [b""] * len(bodies)
        assert sorted(edge.stored()) == sorted(bodies)
        edge.await_idle()


# Tokens and TLS.


@contextmanager
def guarded(folder: Path) -> Iterator[Edge]:
    token_file = folder / "tokens"
    token_file.write_text(f"another-token-of-good-length\n{TOKEN}\n")
    with grpc_edge(folder / "data", token_file=str(token_file)) as edge:
        yield edge


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", "Bearer wrong-horse-battery-staple"),),
        (("authorization", TOKEN),),
        (("authorization", f"Basic {TOKEN}"),),
        (("authorization", "Bearer "),),
        (("x-authorization", f"Bearer {TOKEN}"),),
    ],
)
def test_a_wrong_token_is_refused_before_the_message_is_read(
    tmp_path: Path, metadata: tuple[tuple[str, str], ...]
) -> None:
    """The refusal is not retryable."""
    with guarded(tmp_path) as edge, half_sent(edge, metadata=metadata) as call:
        answer = result_of(call)
        assert answer.code == Code.UNAUTHENTICATED
        assert "Authorization: Bearer <token>" in answer.text
        assert answer.status is not None
        assert answer.retry_after_ms is None
        assert edge.stored() == []


def test_a_valid_token_is_accepted(tmp_path: Path) -> None:
    """Any of the tokens; `Bearer` in any case."""
    with guarded(tmp_path) as edge:
        for number, value in enumerate(
            (f"Bearer {TOKEN}", f"bearer {TOKEN}", "BEARER another-token-of-good-length")
        ):
            answer = edge.send(logs(log(number)), metadata=(("authorization", value),))
            assert answer == Answer(code=Code.OK)
        assert len(edge.stored()) == 3


@pytest.mark.parametrize("method", ["/some.Service/Method", *REFLECTION_METHODS])
def test_unknown_methods_need_a_token_too(tmp_path: Path, method: str) -> None:
    """Without a token a client cannot learn which methods exist."""
    with guarded(tmp_path) as edge:
        assert edge.send(b"", method=method).code == Code.UNAUTHENTICATED


def test_health_needs_no_token(tmp_path: Path) -> None:
    """Load balancers have none."""
    with guarded(tmp_path) as edge, edge.channel() as channel:
        assert health_of(channel, "") == HealthCheckResponse.SERVING


@contextmanager
def secured(folder: Path, *, mutual: bool) -> Iterator[tuple[Edge, Callable[..., Answer]]]:
    """A port with TLS, and a way to call it with some of the files."""
    files = make_certificates(folder)
    settings: dict[str, Any] = {
        "tls_certificate_file": files.server_certificate,
        "tls_key_file": files.server_key,
    }
    if mutual:
        settings["tls_client_ca_file"] = files.authority

    def call(authority: str | None, certificate: str | None, key: str | None) -> Answer:
        def read(name: str | None) -> bytes | None:
            return Path(getattr(files, name)).read_bytes() if name else None

        credentials = grpc.ssl_channel_credentials(read(authority), read(key), read(certificate))
        with grpc.secure_channel(opened.target, credentials) as channel:
            export = channel.unary_unary(Signal.LOGS.method)
            return answer_to(lambda: export(BODY, timeout=WAIT_S))

    with grpc_edge(folder / "data", **settings) as opened:
        yield opened, call


def test_tls_serves_clients_that_trust_our_authority(tmp_path: Path) -> None:
    """Others, and clear text, are refused."""
    with secured(tmp_path, mutual=False) as (edge, call):
        assert call("authority", None, None) == Answer(code=Code.OK)
        assert call("stranger_certificate", None, None).code == Code.UNAVAILABLE
        assert edge.send(logs(log(9))).code == Code.UNAVAILABLE
        assert edge.stored() == [BODY]


def test_client_certificates_must_be_signed_by_the_named_authority(tmp_path: Path) -> None:
    with secured(tmp_path, mutual=True) as (edge, call):
        assert call("authority", None, None).code == Code.UNAVAILABLE
        stranger = call("authority", "stranger_certificate", "stranger_key")
        assert stranger.code == Code.UNAVAILABLE
        assert edge.stored() == []
        assert call("authority", "client_certificate", "client_key") == Answer(code=Code.OK)
        assert edge.stored() == [BODY]


# Opening and closing.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_the_port_listens_on_names_and_both_address_families(tmp_path: Path, host: str) -> None:
    with grpc_edge(tmp_path, host=host) as edge:
        name = f"[{host}]" if ":" in host else host
        with grpc.insecure_channel(f"{name}:{edge.otlp.port}") as channel:
            export = channel.unary_unary(Signal.LOGS.method)
            assert answer_to(lambda: export(BODY, timeout=WAIT_S)).code == Code.OK


def test_a_port_in_use_is_named_in_the_error(tmp_path: Path) -> None:
    """The first server is not affected."""
    with grpc_edge(tmp_path / "first") as first:
        port = first.otlp.port
        with (
            pytest.raises(Unavailable, match=f"cannot listen on 127.0.0.1:{port} .*grpc_port"),
            grpc_edge(tmp_path / "second", grpc_port=port),
        ):
            raise AssertionError("two servers on one port")
        assert first.send(BODY).code == Code.OK


def is_listening(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), WAIT_S):
            return True
    except (ConnectionRefusedError, ConnectionResetError):  # reset: closed while we connected
        return False


def test_close_answers_admitted_calls(tmp_path: Path, loop_kind: LoopKind) -> None:
    """Within the grace period, while new calls are refused."""
    with (
        grpc_edge(tmp_path, loop_kind=loop_kind, receiver_kind=Patient) as edge,
        admitted_call(edge) as call,
    ):
        closing = threading.Thread(target=edge.close, args=(WAIT_S,))
        closing.start()
        eventually(lambda: not is_listening(edge.otlp.port))
        assert edge.send(logs(log(30))).code == Code.UNAVAILABLE
        edge.on_loop(lambda: edge.receiver.go.set())  # type: ignore[attr-defined]
        assert call.result(WAIT_S) == b""
        closing.join(WAIT_S)
        assert not closing.is_alive()
        assert edge.stored() == [BODY]


def test_close_cuts_off_calls_after_the_grace_period(tmp_path: Path, loop_kind: LoopKind) -> None:
    """With a retryable code."""
    with (
        grpc_edge(tmp_path, loop_kind=loop_kind, receiver_kind=Patient) as edge,
        admitted_call(edge) as call,
        half_sent(edge) as other,
    ):
        eventually(lambda: edge.gate.status().request_count == 2)
        edge.close(0.1)
        assert result_of(call).code in (Code.CANCELLED, Code.UNAVAILABLE)
        assert result_of(other).code in (Code.CANCELLED, Code.UNAVAILABLE)
        eventually(lambda: edge.gate.status().request_count == 0)
        assert edge.stored() == []
        edge.close(0)  # closing twice is harmless


def test_open_and_close_leave_nothing_behind(tmp_path: Path, loop_kind: LoopKind) -> None:
    """No tasks on the loop, and the port is free at once."""
    port = 0
    for _ in range(5):
        with grpc_edge(tmp_path, loop_kind=loop_kind, grpc_port=port) as edge:
            port = edge.otlp.port
            edge.send(BODY)
            edge.close(0)
            edge.await_tasks(1)


# Health and reflection.


def health_of(channel: grpc.Channel, service: str) -> int:
    request = HealthCheckRequest(service=service)
    status: int = HealthStub(channel).Check(request, timeout=WAIT_S).status
    return status


def test_health_of_known_and_unknown_services(edge: Edge) -> None:
    with edge.channel() as channel:
        for service in ("", *SERVICES):
            assert health_of(channel, service) == HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as error:
            health_of(channel, "some.Service")
        assert refusal(error.value).code == Code.NOT_FOUND


@pytest.mark.parametrize("name", ["Check", "Watch"])
@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ((), Code.INVALID_ARGUMENT),
        ((b"\xff",), Code.INVALID_ARGUMENT),
        ((b"", b""), Code.INVALID_ARGUMENT),
        ((b"\x0a\x88\x27" + b"x" * 5000,), Code.RESOURCE_EXHAUSTED),
    ],
)
def test_invalid_health_requests_are_refused(
    edge: Edge, name: str, messages: tuple[bytes, ...], code: grpc.StatusCode
) -> None:
    assert edge.send(*messages, method=f"/grpc.health.v1.Health/{name}").code == code


def test_a_health_watch_sees_the_shutdown(tmp_path: Path, loop_kind: LoopKind) -> None:
    """Serving, then not serving, then the call ends; watches do not delay the close."""
    with grpc_edge(tmp_path, loop_kind=loop_kind) as edge, edge.channel() as channel:
        stub = HealthStub(channel)
        watched = stub.Watch(HealthCheckRequest(service=Signal.TRACES.service), timeout=WAIT_S)
        unknown = stub.Watch(HealthCheckRequest(service="some.Service"), timeout=WAIT_S)
        assert next(watched).status == HealthCheckResponse.SERVING
        assert next(unknown).status == HealthCheckResponse.SERVICE_UNKNOWN
        edge.close(WAIT_S * 10)
        assert next(watched).status == HealthCheckResponse.NOT_SERVING
        for call in (watched, unknown):
            with pytest.raises(grpc.RpcError) as error:
                list(call)
            assert refusal(error.value).code == Code.UNAVAILABLE


def test_health_watches_are_limited(edge: Edge) -> None:
    """They need no token."""
    with edge.channel() as one, edge.channel() as two, edge.channel() as three:
        watched = [
            HealthStub(channel).Watch(HealthCheckRequest(), timeout=WAIT_S)
            for channel in (one, two, three)
            for _ in range(OPEN_COUNT_MAX // 3)
        ]
        watched.append(HealthStub(one).Watch(HealthCheckRequest(), timeout=WAIT_S))
        assert len(watched) == OPEN_COUNT_MAX
        for call in watched:
            assert next(call).status == HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as error:
            next(HealthStub(one).Watch(HealthCheckRequest(), timeout=WAIT_S))
        assert refusal(error.value).retry_after_ms == 1000
        assert health_of(two, "") == HealthCheckResponse.SERVING
    edge.await_idle()


def reflect(
    channel: grpc.Channel, method: str, *questions: ServerReflectionRequest
) -> list[ServerReflectionResponse]:
    call = channel.stream_stream(
        method,
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    return list(call(iter(questions), timeout=WAIT_S))


@pytest.mark.parametrize("method", REFLECTION_METHODS)
def test_reflection_lists_services_and_their_messages(edge: Edge, method: str) -> None:
    with edge.channel() as channel:
        listed, described, unknown = reflect(
            channel,
            method,
            ServerReflectionRequest(list_services=""),
            ServerReflectionRequest(file_containing_symbol=Signal.METRICS.service),
            ServerReflectionRequest(file_containing_symbol="some.Service"),
        )
    names = {service.name for service in listed.list_services_response.service}
    assert names >= {*SERVICES, "grpc.health.v1.Health"}
    assert len(described.file_descriptor_response.file_descriptor_proto) > 1
    assert unknown.error_response.error_code == Code.NOT_FOUND.value[0]


def test_invalid_reflection_requests_are_refused(edge: Edge) -> None:
    assert edge.send(b"\xff", method=REFLECTION_METHODS[0]).code == Code.INVALID_ARGUMENT


def test_an_idle_reflection_call_is_ended(tmp_path: Path) -> None:
    questions: queue.SimpleQueue[ServerReflectionRequest] = queue.SimpleQueue()
    questions.put(ServerReflectionRequest(list_services=""))
    with grpc_edge(tmp_path, body_timeout_ms=200) as edge, edge.channel() as channel:
        call = channel.stream_stream(
            REFLECTION_METHODS[0],
            request_serializer=ServerReflectionRequest.SerializeToString,
            response_deserializer=ServerReflectionResponse.FromString,
        )(iter(lambda: questions.get(timeout=WAIT_S), None), timeout=WAIT_S)
        assert next(call).list_services_response.service
        with pytest.raises(grpc.RpcError) as error:
            next(call)
        assert refusal(error.value).code == Code.UNAVAILABLE
        questions.put(ServerReflectionRequest())
        edge.await_idle()
