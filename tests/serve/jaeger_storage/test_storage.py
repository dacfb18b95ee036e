"""A Jaeger finds the same over gRPC as over HTTP, and no client harms another."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckResponse
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from frazil.config import InvalidConfig
from frazil.errors import Unavailable
from frazil.query import spans_of_trace
from frazil.serve.jaeger_storage import calls
from frazil.serve.jaeger_storage.answers import messages_of
from tests.demo.records import Sent, plain
from tests.ingest.certificates import make_certificates
from tests.serve.doors.test_trace_doors import _sorted, largest_trace
from tests.serve.doors.trace_clients import BEGIN_S, RANGE, RANGE_US
from tests.serve.jaeger_storage.opened import (
    StorageClient,
    by_id,
    connected,
    find,
    jaeger_port,
)
from tests.serve.jaeger_storage.protocol import PACKAGE, message
from tests.serve.served import Served, served, settings

TOKEN = "reader-0123456789"
READER = f"{PACKAGE}.TraceReader"
YEAR_1 = {"seconds": -62_135_596_800}
"""What Go sends for a time that is not set."""


@pytest.fixture(scope="module")
def port(shop: tuple[Served, Sent], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    config = settings(tmp_path_factory.mktemp("settings"), jaeger={"enabled": True, "port": 0})
    with jaeger_port(shop[0], config) as number:
        yield number


@pytest.fixture(scope="module")
def client(port: int) -> Iterator[StorageClient]:
    with connected(port) as opened:
        yield opened


def over_http(there: Served, path: str) -> Any:
    said = there.ask("GET", f"/jaeger/api/{path}")
    assert said.status == 200, said.body
    return said.json["data"]


def test_names_and_calls_are_those_of_the_http_door(there: Served, client: StorageClient) -> None:
    services = list(client.one("GetServices", b"").services)
    assert services == over_http(there, "services")
    for service in services:
        request = message("GetOperationsRequest", service=service)
        found = client.one("GetOperations", request).operations
        wanted = over_http(there, f"operations?service={service}")
        assert [each.name for each in found] == [each["name"] for each in wanted]
        assert [each.span_kind for each in found] == [each["spanKind"] for each in wanted]
    request.span_kind = "server"
    assert {each.span_kind for each in client.one("GetOperations", request).operations} == {
        "server"
    }
    between = message(
        "GetDependenciesRequest",
        start_time={"seconds": BEGIN_S - 3000},
        end_time={"seconds": BEGIN_S + 600},
    )
    found = client.one("GetDependencies", between, service="DependencyReader").dependencies
    wanted = over_http(there, f"dependencies?endTs={(BEGIN_S + 600) * 1000}&lookback=3600000")
    assert wanted
    assert [
        {"parent": d.parent, "child": d.child, "callCount": d.call_count} for d in found
    ] == wanted


def test_traces_are_as_they_were_sent(client: StorageClient, sent: Sent) -> None:
    """Every field of every span, with resource and scope. Unknown ids are left out, and times
    beside ids, which Jaeger leaves at the year 1, cut nothing off."""
    rows = {row.record.span_id.hex(): row for row in sent.spans}
    ids = list(dict.fromkeys(row.record.trace_id.hex() for row in sent.spans))[:50]
    request = by_id(*ids, "f" * 32, ids[0], start_time=YEAR_1, end_time=YEAR_1)
    found = client.traces("GetTraces", request)
    assert list(found) == ids
    for trace_id, spans in found.items():
        wanted = {k for k, row in rows.items() if row.record.trace_id.hex() == trace_id}
        assert {span.span_id.hex() for _, _, span in spans} == wanted
        assert len(spans) == len(wanted)
        for resource, _, span in spans:
            row = rows[span.span_id.hex()]
            row.record.status.SetInParent()
            assert span.SerializeToString(deterministic=True) == _sorted(row.record)
            assert plain(resource.resource.attributes) == row.resource
    assert client.traces("GetTraces", by_id("f" * 32)) == {}
    assert client.traces("GetTraces", b"") == {}


def seconds(number: int) -> dict[str, int]:
    return {"seconds": number}


SEARCHES: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"operation_name": "GET /"}, "&operation=GET%20%2F"),
    ({"search_depth": 3}, "&limit=3"),
    (
        {"search_depth": 1000, "duration_min": {"nanos": 20_000_000}},
        "&limit=1000&minDuration=20ms",
    ),
    (
        {
            "search_depth": 1000,
            "duration_min": {},
            "duration_max": {"nanos": 2_000_000},
        },
        "&limit=1000&maxDuration=2ms",
    ),
    (
        {"attributes": {"http.request.method": {"string_value": "GET"}}, "search_depth": 1000},
        '&limit=1000&tags={"http.request.method":"GET"}',
    ),
    (
        {"attributes": {"http.response.status_code": {"int_value": 200}}},
        '&tags={"http.response.status_code":200}',
    ),
    (
        {"attributes": {"error": {"bool_value": True}}, "search_depth": 1000},
        "&limit=1000&tag=error:true",
    ),
    ({"attributes": {"no.such": {"double_value": 1.5}}}, "&tag=no.such:1.5"),
    (
        {"start_time_min": seconds(BEGIN_S + 5), "start_time_max": seconds(BEGIN_S + 6)},
        f"&start={(BEGIN_S + 5) * 10**6}&end={(BEGIN_S + 6) * 10**6}",
    ),
]


@pytest.mark.parametrize(("fields", "path"), SEARCHES)
def test_searches_find_what_http_finds(
    there: Served, client: StorageClient, fields: dict[str, Any], path: str
) -> None:
    """The same traces, with the same spans, in the same order; and their ids alone."""
    bounds = {"start_time_min": seconds(RANGE["start"]), "start_time_max": seconds(RANGE["end"])}
    request = find(service_name="storefront", **{**bounds, **fields})
    start_end = f"&start={RANGE_US['start']}&end={RANGE_US['end']}" if "&start" not in path else ""
    wanted = {
        trace["traceID"]: sorted(span["spanID"] for span in trace["spans"])
        for trace in over_http(there, f"traces?service=storefront{start_end}{path}")
    }
    assert bool(wanted) == ("no.such" not in path)
    found = {
        trace_id: sorted(span.span_id.hex() for _, _, span in spans)
        for trace_id, spans in client.traces("FindTraces", request).items()
    }
    assert list(found.items()) == list(wanted.items())
    ids = [each.trace_id.hex() for each in client.one("FindTraceIDs", request).trace_ids]
    assert ids == list(wanted)


def test_a_long_trace_comes_in_parts(there: Served, sent: Sent) -> None:
    """Each part fits, or is one span; together they are the trace."""
    trace_id, span_count = largest_trace(sent)
    rows = spans_of_trace(lambda text: there.embedded.sql(text).arrow(), trace_id, "*")
    for bytes_max in (1, 700, 5000, 10**9):
        ids = []
        for part in messages_of(rows, bytes_max):
            spans = [
                span
                for resource in TracesData.FromString(part).resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]
            assert len(part) <= bytes_max or len(spans) == 1
            ids += [span.span_id for span in spans]
        assert len(ids) == len(set(ids)) == span_count


BAD = grpc.StatusCode.INVALID_ARGUMENT
TOO_MUCH = grpc.StatusCode.RESOURCE_EXHAUSTED
LIST = message("ArrayValue")
REFUSED: list[tuple[str, Any, grpc.StatusCode, str]] = [
    ("GetTraces", b"\xff\xff\xff", BAD, "no GetTracesRequest"),
    ("GetTraces", b"\x0a\x04\x0a\x02ab", BAD, "2 bytes; it must have 16"),
    ("GetTraces", by_id(*(f"{n:032x}" for n in range(101))), BAD, "at most 100"),
    ("GetTraces", b"\x0a\x00" * 5000, BAD, "0 bytes"),
    ("GetTraces", bytes(300_000), TOO_MUCH, "larger than max"),
    ("GetTraces", gzip.compress(bytes(10**8)), TOO_MUCH, "once decompressed"),
    ("GetTraces", b"\x1f\x8bnothing", BAD, "truncated"),
    ("FindTraces", b"\x0a\x03\x0a\x01\xff", BAD, "UTF-8"),
    ("FindTraces", b"\x0a\x04\x4a\x02\x0a\x00", BAD, "filter is not supported"),
    ("FindTraces", find(pagination=message("Pagination", page_size=5)), BAD, "pagination is not"),
    ("FindTraces", find(search_depth=-1), BAD, "must not be negative"),
    ("FindTraces", find(search_depth=2**31 - 1), BAD, "must be 1 to 1500"),
    ("FindTraces", find(duration_min={"seconds": -1}), BAD, "duration_min is negative"),
    ("FindTraces", find(start_time_min={"nanos": -1}), BAD, "start_time_min has -1 ns"),
    ("FindTraces", find(attributes={"a": {"array_value": LIST}}), BAD, "no value to compare"),
    ("FindTraces", find(attributes={"a": {}}), BAD, "no value to compare"),
    ("FindTraces", find(attributes={"": {"string_value": ""}}), BAD, "has no key"),
    ("FindTraces", find(attributes={f"k{n}": {"int_value": n} for n in range(33)}), BAD, "33 tags"),
]


@pytest.mark.parametrize(("method", "body", "code", "why"), REFUSED)
def test_wrong_requests_are_refused(
    client: StorageClient, method: str, body: Any, code: grpc.StatusCode, why: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.traces(method, body)
    assert (caught.value.code(), why in caught.value.details()) == (code, True), caught.value


def test_extreme_values_find_nothing_or_all(client: StorageClient) -> None:
    """Quotes, zero bytes, and the largest of everything are values like others."""
    huge = {"seconds": 315_576_000_000}
    last = {"seconds": 253_402_300_799}
    for request in (
        find(service_name="' OR 1=1 --"),
        find(service_name="a\x00b", operation_name="\U0001f9ca" * 1000),
        find(duration_min=huge),
        find(attributes={"a'b\"c`d\\": {"string_value": "'"}}),
        find(start_time_min=last),
    ):
        assert client.traces("FindTraces", request) == {}
    everything = find(duration_max=huge, start_time_min=YEAR_1, start_time_max=last)
    assert len(client.traces("FindTraces", everything)) == 20
    between = message("GetDependenciesRequest", start_time=last, end_time=last)
    assert not client.one("GetDependencies", between, service="DependencyReader").dependencies


def test_requests_may_be_compressed(client: StorageClient) -> None:
    """As `compression` of a Jaeger's storage asks for."""
    body = message("GetOperationsRequest", service="storefront").SerializeToString()
    padded = body + b"\x7a\xff\x07" + bytes(1023)  # an unknown field is ignored
    call = client.channel.unary_unary(f"/{READER}/GetOperations")
    for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        assert call(padded, compression=compression, timeout=60) == call(body, timeout=60)


@given(body=st.binary(max_size=200))
@hypothesis_settings(max_examples=60, deadline=None)
def test_any_bytes_are_answered_or_refused(client: StorageClient, body: bytes) -> None:
    """Never an internal error."""
    try:
        client.traces("FindTraces", body)
    except grpc.RpcError as error:
        assert error.code() is BAD, error


def test_other_methods_say_where_to_go(client: StorageClient) -> None:
    """Those that a storage may leave out are UNIMPLEMENTED, as the protocol wants it; writing names
    the port to use."""
    for path in (
        f"{READER}/FindTraceSummaries",
        f"{PACKAGE}.Capabilities/GetCapabilities",
        "jaeger.storage.v1.SpanReaderPlugin/GetServices",
        "opentelemetry.proto.collector.trace.v1.TraceService/Export",
    ):
        with pytest.raises(grpc.RpcError) as caught:
            client.raw(path, b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "ingest.grpc_port" in caught.value.details()


def all_ids(sent: Sent) -> list[str]:
    return list(dict.fromkeys(row.record.trace_id.hex() for row in sent.spans))


def test_calls_are_limited_and_end_with_their_client(
    there: Served, sent: Sent, tmp_path: Path
) -> None:
    """A stream that is read takes a slot, which is free again once its client cancels, or its time
    is over; also when it gave up during a query."""
    limits = {"enabled": True, "port": 0, "calls_max": 1}
    config = settings(tmp_path, jaeger=limits)
    request = by_id(*all_ids(sent)[:100])
    with jaeger_port(there, config) as number, connected(number) as client:
        stream = client.many("GetTraces", request)
        assert next(stream)
        with pytest.raises(grpc.RpcError, match=r"jaeger\.calls_max") as caught:
            client.one("GetServices", b"")
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        stream.cancel()
        eventually_served(client)
        call = client.channel.unary_stream(f"/{READER}/FindTraces")
        with pytest.raises(grpc.RpcError) as caught:
            list(call(find(search_depth=1000).SerializeToString(), timeout=0.005))
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        eventually_served(client)


def eventually_served(client: StorageClient) -> None:
    """The server hears of the end a moment after the client."""
    for _ in range(1000):
        try:
            assert client.one("GetServices", b"").services
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.UNAVAILABLE, error
            time.sleep(0.01)
        else:
            return
    raise AssertionError("the slot is not free")


def test_a_stream_that_nobody_reads_ends(
    there: Served, sent: Sent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "UNREAD_S", 0.2)
    config = settings(tmp_path, jaeger={"enabled": True, "port": 0, "calls_max": 1})
    with jaeger_port(there, config) as number, connected(number) as client:
        stream = client.many("FindTraces", find(search_depth=1000))
        assert next(stream)
        with connected(number) as other:
            eventually_served(other)
        with pytest.raises(grpc.RpcError, match="not read") as caught:
            list(stream)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_stop_ends_streams(there: Served, sent: Sent, tmp_path: Path) -> None:
    """The port closes although a client holds a stream."""
    config = settings(tmp_path, jaeger={"enabled": True, "port": 0})
    with ExitStack() as clients:
        with jaeger_port(there, config) as number:
            client = clients.enter_context(connected(number))
            stream = client.many("FindTraces", find(search_depth=1000))
            assert next(stream)
        with pytest.raises(grpc.RpcError):
            list(stream)


def test_tokens_and_tls(tmp_path: Path) -> None:
    """Only those who may read are answered, and their request is not even waited for otherwise;
    probes need no token; plain text does not reach a port with TLS."""
    files = make_certificates(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    ingest = {
        "tls_certificate_file": files.server_certificate,
        "tls_key_file": files.server_key,
        "token_file": str(tmp_path / "token"),
    }
    jaeger = {"enabled": True, "port": 0}
    with (
        served(tmp_path / "data", ingest=ingest) as there,
        jaeger_port(there, settings(tmp_path, ingest=ingest, jaeger=jaeger)) as number,
    ):
        credentials = grpc.ssl_channel_credentials(Path(files.authority).read_bytes())
        with grpc.secure_channel(f"127.0.0.1:{number}", credentials) as channel:
            known = StorageClient(channel, (("authorization", f"Bearer {TOKEN}"),))
            assert list(known.one("GetServices", b"").services) == []
            for metadata in ((), (("authorization", "Bearer wrong-0123456789"),)):
                stranger = StorageClient(channel, metadata)
                for method in (f"{READER}/GetServices", f"{READER}/Nothing"):
                    with pytest.raises(grpc.RpcError) as caught:
                        stranger.raw(method, b"")
                    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
                    assert "wrong-" not in caught.value.details()
            silent = channel.stream_unary(f"/{READER}/GetServices")
            with pytest.raises(grpc.RpcError) as caught:
                silent(iter(threading.Event().wait, True), timeout=60)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            health = StorageClient(channel).raw("grpc.health.v1.Health/Check", b"")
            assert HealthCheckResponse.FromString(health).status == HealthCheckResponse.SERVING
        with connected(number) as plain_text, pytest.raises(grpc.RpcError):
            plain_text.channel.unary_unary(f"/{READER}/GetServices")(b"", timeout=20)


def test_a_taken_port_is_named(there: Served, port: int, tmp_path: Path) -> None:
    config = settings(tmp_path, jaeger={"enabled": True, "port": port})
    with (
        pytest.raises(Unavailable, match=rf"127.0.0.1:{port} for Jaeger's .* set jaeger\.port"),
        jaeger_port(there, config),
    ):
        pass


def test_a_port_that_anyone_could_reach_is_not_opened(tmp_path: Path) -> None:
    """As for the other ports: TLS and tokens, or `insecure`."""
    jaeger = {"enabled": True, "host": "0.0.0.0"}
    with pytest.raises(InvalidConfig, match=r"jaeger\.host is 0\.0\.0\.0.*TLS is off"):
        settings(tmp_path, jaeger=jaeger)
    assert settings(tmp_path, jaeger=jaeger, ingest={"insecure": True}).jaeger_host == "0.0.0.0"
    with pytest.raises(InvalidConfig, match=r"both"):
        settings(tmp_path, jaeger={"enabled": True}, flight={"port": 17271})
    assert not settings(tmp_path).has_jaeger
