"""OTLP over gRPC: each answer is true, whoever calls and however he goes away."""

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
from frazil.ingest.receiver import REFUSED_BYTES, REFUSED_REQUESTS, Receipt, Receiver, Transport
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
    """A good request of exactly so many bytes."""
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
    """A port that all simple cases share; each looks only at what it adds."""
    folder = tmp_path_factory.mktemp("log")
    with grpc_edge(folder, body_bytes_max=LIMIT, in_flight_bytes_max=8 * LIMIT) as opened:
        yield opened


@pytest.mark.parametrize("signal", Signal)
def test_an_export_is_in_the_log_when_it_is_answered(
    tmp_path: Path, signal: Signal, loop_kind: LoopKind
) -> None:
    """Of each signal, byte for byte as it came, and the answer has nothing to complain about."""
    with grpc_edge(tmp_path, loop_kind=loop_kind) as opened, opened.channel() as channel:
        call = channel.unary_unary(signal.method)
        assert answer_to(lambda: call(BODIES[signal], timeout=WAIT_S)) == Answer(code=Code.OK)
        assert opened.stored(signal) == [BODIES[signal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Messages of one call, the code it is answered with, and what of it is stored."""

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
def test_answers(edge: Edge, case: Case) -> None:
    """Each has its code and its effect; none of these refusals invites the same call again."""
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


def test_a_repeated_export_is_stored_once(edge: Edge) -> None:
    """A caller who did not hear the answer sends again, also compressed, and is told yes."""
    body = logs(log(20)) * 10
    before = len(edge.stored())
    for compression in (None, grpc.Compression.Gzip, grpc.Compression.Deflate):
        assert edge.send(body, compression=compression) == Answer(code=Code.OK)
    assert edge.stored()[before:] == [body]


@pytest.mark.parametrize(
    ("messages", "reason", "length"),
    [((b"\xff" * 20,), "malformed", 20), ((), "malformed", 0)],
)
def test_refusals_are_counted(
    edge: Edge, messages: tuple[bytes, ...], reason: str, length: int
) -> None:
    """By signal, transport and reason, with what was read."""
    labels = {"signal": "logs", "transport": "grpc", "reason": reason}
    requests, size = REFUSED_REQUESTS.value(**labels), REFUSED_BYTES.value(**labels)
    edge.send(*messages)
    assert REFUSED_REQUESTS.value(**labels) == requests + 1
    assert REFUSED_BYTES.value(**labels) == size + length


def test_calls_that_grpc_refuses_are_counted(edge: Edge) -> None:
    """A sender of messages that are too large must show somewhere."""
    before = UNREAD.value()
    edge.send(TOO_LARGE)
    eventually(lambda: UNREAD.value() == before + 1)


@contextmanager
def half_sent(
    edge: Edge, *messages: bytes, metadata: tuple[tuple[str, str], ...] = ()
) -> Iterator[grpc.Future]:
    """A call whose caller never says that he is done; in the end he cancels it."""
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
def test_a_message_must_come_in_time(
    tmp_path: Path, messages: tuple[bytes, ...], loop_kind: LoopKind
) -> None:
    """A call that dawdles is told to come again, holds nothing and stores nothing."""
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


def test_slow_callers_make_way_in_a_crowd(tmp_path: Path) -> None:
    """However many send slowly, and however long they may take, there is room for the quick."""
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
def test_a_closed_gate_is_told_before_the_message(
    tmp_path: Path, shut: Callable[[Edge], None], says: str
) -> None:
    """Nobody sends megabytes only to hear no; and the answer says when to come back."""
    with grpc_edge(tmp_path) as edge:
        shut(edge)
        with half_sent(edge) as call:
            answer = result_of(call)
        assert answer.code == Code.UNAVAILABLE
        assert says in answer.text
        assert answer.retry_after_ms is not None
        assert 1000 <= answer.retry_after_ms <= 2000
        assert edge.stored() == []


def test_more_calls_than_places_are_told_to_come_back(tmp_path: Path) -> None:
    """The first are served, the next is refused with a hint, and enters when one has left."""
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
    """One with a mistake in it."""

    async def accept(
        self, signal: Signal, transport: Transport, body: bytes, *, is_own: bool = False
    ) -> Receipt:
        raise ZeroDivisionError("what nobody foresaw")


def test_a_mistake_of_ours_is_retryable_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller is not told that his request is wrong, and nothing about our insides."""
    labels = {"signal": "logs", "transport": "grpc", "reason": "unavailable"}
    before = REFUSED_REQUESTS.value(**labels)
    with grpc_edge(tmp_path, receiver_kind=Failing) as edge, caplog.at_level(logging.INFO):
        answer = edge.send(BODY)
        assert (answer.code, answer.retry_after_ms) == (Code.UNAVAILABLE, 1000)
        assert "foresaw" not in answer.text
        edge.await_idle()
    (record,) = caplog.records
    assert record.getMessage() == "a call failed unexpectedly"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert REFUSED_REQUESTS.value(**labels) == before + 1


class Patient(Receiver):
    """One that takes its time: nothing is accepted before it is told so."""

    go: asyncio.Event

    async def accept(
        self, signal: Signal, transport: Transport, body: bytes, *, is_own: bool = False
    ) -> Receipt:
        self.go = asyncio.Event()
        await self.go.wait()
        return await super().accept(signal, transport, body)


@contextmanager
def in_hand(edge: Edge, *, timeout_s: float = WAIT_S) -> Iterator[grpc.Future]:
    """A call that has been read and is not answered yet."""
    with edge.channel() as channel:
        call = channel.unary_unary(Signal.LOGS.method).future(BODY, timeout=timeout_s)
        eventually(lambda: hasattr(edge.receiver, "go"))
        yield call


@pytest.mark.parametrize("how", ["cancel", "deadline", "disconnect"])
def test_a_caller_who_leaves_takes_nothing_along(
    tmp_path: Path, how: str, loop_kind: LoopKind
) -> None:
    """His place and his bytes are free again; the next one is served."""
    with grpc_edge(tmp_path, loop_kind=loop_kind, receiver_kind=Patient, requests_max=1) as edge:
        with in_hand(edge, timeout_s=2 if how == "deadline" else WAIT_S) as call:
            if how == "cancel":
                call.cancel()
            elif how == "deadline":
                assert result_of(call).code == Code.DEADLINE_EXCEEDED
        edge.await_idle()
        assert edge.stored() == []
        edge.on_loop(lambda: delattr(edge.receiver, "go"))
        with in_hand(edge) as call:
            edge.on_loop(lambda: edge.receiver.go.set())  # type: ignore[attr-defined]
            assert call.result(WAIT_S) == b""
        assert edge.stored() == [BODY]


def test_asyncio_clients(tmp_path: Path, loop_kind: LoopKind) -> None:
    """Many at a time on one connection, on either kind of loop."""
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
def test_who_does_not_know_a_token_is_told_before_the_message(
    tmp_path: Path, metadata: tuple[tuple[str, str], ...]
) -> None:
    """No byte of what he sends is taken in, and trying again will not help."""
    with guarded(tmp_path) as edge, half_sent(edge, metadata=metadata) as call:
        answer = result_of(call)
        assert answer.code == Code.UNAUTHENTICATED
        assert "Authorization: Bearer <token>" in answer.text
        assert answer.status is not None
        assert answer.retry_after_ms is None
        assert edge.stored() == []


def test_who_knows_a_token_is_served(tmp_path: Path) -> None:
    """Any of the tokens; the word Bearer may be written in any way."""
    with guarded(tmp_path) as edge:
        for number, value in enumerate(
            (f"Bearer {TOKEN}", f"bearer {TOKEN}", "BEARER another-token-of-good-length")
        ):
            answer = edge.send(logs(log(number)), metadata=(("authorization", value),))
            assert answer == Answer(code=Code.OK)
        assert len(edge.stored()) == 3


@pytest.mark.parametrize("method", ["/some.Service/Method", *REFLECTION_METHODS])
def test_other_methods_are_guarded_as_well(tmp_path: Path, method: str) -> None:
    """Without a token nobody learns which methods there are."""
    with guarded(tmp_path) as edge:
        assert edge.send(b"", method=method).code == Code.UNAUTHENTICATED


def test_health_is_open_to_everybody(tmp_path: Path) -> None:
    """Balancers have no token."""
    with guarded(tmp_path) as edge, edge.channel() as channel:
        assert health_of(channel, "") == HealthCheckResponse.SERVING


@contextmanager
def secured(folder: Path, *, mutual: bool) -> Iterator[tuple[Edge, Callable[..., Answer]]]:
    """A port that speaks TLS, and a way to call it with some of the files."""
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


def test_tls(tmp_path: Path) -> None:
    """Who trusts our authority is served; who does not, or speaks clear text, is not."""
    with secured(tmp_path, mutual=False) as (edge, call):
        assert call("authority", None, None) == Answer(code=Code.OK)
        assert call("stranger_certificate", None, None).code == Code.UNAVAILABLE
        assert edge.send(logs(log(9))).code == Code.UNAVAILABLE
        assert edge.stored() == [BODY]


def test_client_certificates(tmp_path: Path) -> None:
    """Only those that the named authority has signed open the door."""
    with secured(tmp_path, mutual=True) as (edge, call):
        assert call("authority", None, None).code == Code.UNAVAILABLE
        stranger = call("authority", "stranger_certificate", "stranger_key")
        assert stranger.code == Code.UNAVAILABLE
        assert edge.stored() == []
        assert call("authority", "client_certificate", "client_key") == Answer(code=Code.OK)
        assert edge.stored() == [BODY]


# Opening and closing.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_hosts(tmp_path: Path, host: str) -> None:
    """Names and both kinds of addresses, with the port that was found."""
    with grpc_edge(tmp_path, host=host) as edge:
        name = f"[{host}]" if ":" in host else host
        with grpc.insecure_channel(f"{name}:{edge.otlp.port}") as channel:
            export = channel.unary_unary(Signal.LOGS.method)
            assert answer_to(lambda: export(BODY, timeout=WAIT_S)).code == Code.OK


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """The second is told which port, and the first does not notice."""
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
    except (ConnectionRefusedError, ConnectionResetError):  # reset: closed while we knocked
        return False


def test_close_answers_those_inside(tmp_path: Path, loop_kind: LoopKind) -> None:
    """Within the grace they finish, while nobody new comes in."""
    with (
        grpc_edge(tmp_path, loop_kind=loop_kind, receiver_kind=Patient) as edge,
        in_hand(edge) as call,
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


def test_close_cuts_off_those_who_take_too_long(tmp_path: Path, loop_kind: LoopKind) -> None:
    """After the grace the call ends with a code that invites another try."""
    with (
        grpc_edge(tmp_path, loop_kind=loop_kind, receiver_kind=Patient) as edge,
        in_hand(edge) as call,
        half_sent(edge) as other,
    ):
        eventually(lambda: edge.gate.status().request_count == 2)
        edge.close(0.1)
        assert result_of(call).code in (Code.CANCELLED, Code.UNAVAILABLE)
        assert result_of(other).code in (Code.CANCELLED, Code.UNAVAILABLE)
        eventually(lambda: edge.gate.status().request_count == 0)
        assert edge.stored() == []
        edge.close(0)  # once more does no harm


def test_open_and_close_many_times(tmp_path: Path, loop_kind: LoopKind) -> None:
    """Nothing is left behind on the loop, and the port is free at once."""
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


def test_health(edge: Edge) -> None:
    """Each service is healthy, and others are not known."""
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
def test_bad_questions_about_health(
    edge: Edge, name: str, messages: tuple[bytes, ...], code: grpc.StatusCode
) -> None:
    """They are told what is wrong."""
    assert edge.send(*messages, method=f"/grpc.health.v1.Health/{name}").code == code


def test_who_watches_health_sees_the_end(tmp_path: Path, loop_kind: LoopKind) -> None:
    """Serving, then not serving, then the call ends; watchers do not hold up the close."""
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


def test_watchers_are_bounded(edge: Edge) -> None:
    """Watching needs no token, so that there must not be any number of them."""
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
def test_reflection(edge: Edge, method: str) -> None:
    """Tools find our services and the messages they take."""
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


def test_bad_questions_to_reflection(edge: Edge) -> None:
    """They are told what is wrong."""
    assert edge.send(b"\xff", method=REFLECTION_METHODS[0]).code == Code.INVALID_ARGUMENT


def test_a_tool_that_asks_nothing_more_is_let_go(tmp_path: Path) -> None:
    """A conversation that nobody continues does not stay open."""
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
