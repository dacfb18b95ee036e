"""OpenTelemetry SDKs of three languages against a real node: every record is stored once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from frazil.model import Signal
from tests.clients import programs
from tests.clients.flaky import Fault, Flaky
from tests.clients.node import Node, stored
from tests.clients.programs import Program, Sent
from tests.clients.send import MANY, TEXT

COUNT = 50
SEVERITIES = ((9, "INFO"), (13, "WARN"), (17, "ERROR"))
INSTRUMENTS = (
    ("counter", "sum"),
    ("up_down", "sum"),
    ("gauge", "gauge"),
    ("histogram", "histogram"),
    ("exponential", "exponential_histogram"),
)
"""Name, and what OTLP makes of it."""
YEAR_2020_NS = 1_577_836_800 * 10**9
Places = dict[str, tuple[str, str]]
"""Trace and span by `chk.id`."""
ATTRIBUTES = {
    "text": TEXT,
    "large": 2**53 - 1,
    "negative": -1,
    "ratio": 0.1,
    "yes": True,
    "words": ["a", TEXT],
    **{f"many.{number}": number for number in range(MANY)},
}
FAULTS = (Fault.REFUSE, Fault.LOSE, Fault.FORWARD, Fault.LOSE)
"""Per signal. The first try never arrives; the second is stored, but its response is lost; the
third is a duplicate. The response to the next request, if any, is lost too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One SDK with one transport."""

    name: str
    program: Callable[[], Program]
    protocol: Literal["grpc", "http"]
    has_exemplars: bool = True
    gateway: bool = False
    """The exporters of Go for HTTP try again when a gateway says so, and not when a connection
    breaks."""

    def send(self, name: str, ports: dict[Signal, int], *, gzip: bool) -> Sent:
        """Send everything under a name, each signal to its port."""
        environment = {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"} if gzip else {}
        for signal, port in ports.items():
            path = signal.path if self.protocol == "http" else ""
            key = f"OTEL_EXPORTER_OTLP_{signal.name}_ENDPOINT"
            environment[key] = f"http://127.0.0.1:{port}{path}"
        encoding = self.name.partition("-")[2]
        sent = self.program().send(encoding, name, str(COUNT), environment=environment)
        assert {signal: len(ids) for signal, ids in sent.items()} == dict.fromkeys(sent, COUNT)
        return sent


CLIENTS = [
    Client(name="python-grpc", program=programs.python, protocol="grpc"),
    Client(name="python-http", program=programs.python, protocol="http"),
    Client(name="js-json", program=programs.javascript, protocol="http", has_exemplars=False),
    Client(name="js-proto", program=programs.javascript, protocol="http", has_exemplars=False),
    Client(name="go-grpc", program=programs.go, protocol="grpc"),
    Client(name="go-http", program=programs.go, protocol="http", gateway=True),
    Client(name="go-json", program=programs.go, protocol="http", gateway=True),
]

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda c: c.name)


@each_client
def test_every_record_is_stored_once(client: Client, tmp_path: Path) -> None:
    """As it was sent, compressed or not, to the last attribute."""
    client.program()
    with Node(tmp_path / "data") as node:
        ports = dict.fromkeys(Signal, _port(node, client))
        runs = [
            client.send(f"{client.name}-plain", ports, gzip=False),
            client.send(f"{client.name}-gzip", ports, gzip=True),
        ]
        assert node.stop() == 0, node.errors()
    check(client, runs, tmp_path / "data")


@each_client
def test_lost_responses_and_refusals_cause_no_loss_and_no_duplicates(
    client: Client, tmp_path: Path
) -> None:
    """The SDK retries by itself."""
    client.program()
    with Node(tmp_path / "data") as node, ExitStack() as opened:
        lines = {
            signal: opened.enter_context(
                Flaky(_port(node, client), client.protocol, FAULTS, gateway=client.gateway)
            )
            for signal in Signal
        }
        ports = {signal: line.port for signal, line in lines.items()}
        run = client.send(client.name, ports, gzip=True)
        assert node.stop() == 0, node.errors()
    for line in lines.values():
        assert line.done[Fault.REFUSE] == 1
        assert line.done[Fault.LOSE] >= 1
    check(client, [run], tmp_path / "data")


def _port(node: Node, client: Client) -> int:
    return node.grpc_port if client.protocol == "grpc" else node.http_port


def check(client: Client, runs: list[Sent], folder: Path) -> None:
    """Check that the log holds each sent record once, and nothing else."""
    requests = stored(folder)
    found = {
        Signal.LOGS: list(_logs(requests[Signal.LOGS])),
        Signal.TRACES: list(_spans(requests[Signal.TRACES])),
        Signal.METRICS: list(_points(requests[Signal.METRICS])),
    }
    for signal, records in found.items():
        places = {chk_id: place for run in runs for chk_id, place in run[signal.value].items()}
        assert sorted(record.chk_id for record in records) == sorted(places)
        for record in records:
            assert record.about == {"service.name": record.run, "text": TEXT}
            assert {key: record.attributes[key] for key in ATTRIBUTES} == ATTRIBUTES
            CHECKS[signal](record, places)
    points = found[Signal.METRICS]
    assert any(point.record.exemplars for point in points if point.number % 5 == 3) == (
        client.has_exemplars
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A log record, span or data point, with its resource and scope."""

    about: dict[str, Any]
    """The attributes of the resource."""
    attributes: dict[str, Any]
    record: Any
    metric: Any = None

    @property
    def chk_id(self) -> str:
        return str(self.attributes["chk.id"])

    @property
    def run(self) -> str:
        return self.chk_id.rsplit("-", 2)[0]

    @property
    def number(self) -> int:
        return int(self.chk_id.rsplit("-", 2)[2])

    def sibling(self, number: int) -> str:
        """Return the `chk.id` of another record of the same run."""
        return f"{self.chk_id.rpartition('-')[0]}-{number}"


def check_log(found: Stored, places: Places) -> None:
    log = found.record
    assert (log.trace_id.hex(), log.span_id.hex()) == places[found.chk_id]
    assert (log.severity_number, log.severity_text) == SEVERITIES[found.number % 3]
    assert log.event_name == "chk.event"
    assert log.observed_time_unix_nano > YEAR_2020_NS
    is_error = log.severity_text == "ERROR"
    assert value(log.body) == ({"text": TEXT, "numbers": [1, 2.5]} if is_error else TEXT)
    assert found.attributes.get("exception.message") == (TEXT if is_error else None)


def check_span(found: Stored, places: Places) -> None:
    span, number = found.record, found.number
    assert (span.trace_id.hex(), span.span_id.hex()) == places[found.chk_id]
    assert (span.name, span.kind) == (
        "span",
        Span.SPAN_KIND_CLIENT if number % 2 else Span.SPAN_KIND_SERVER,
    )
    assert YEAR_2020_NS < span.start_time_unix_nano <= span.end_time_unix_nano
    before = places.get(found.sibling(number - 1), ("", ""))
    links = [(link.trace_id.hex(), link.span_id.hex()) for link in span.links]
    assert links == ([before] if number else [])
    assert span.parent_span_id.hex() == (before[1] if number % 2 else "")
    events = {event.name: attributes_of(event) for event in span.events}
    assert events["event"] == {"text": TEXT}
    if number % 3 == 2:
        assert events["exception"]["exception.message"] == TEXT
        assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, TEXT)
    else:
        assert "exception" not in events
        assert not span.HasField("status") or span.status == Status()


def check_point(found: Stored, places: Places) -> None:
    metric, point, number = found.metric, found.record, found.number
    name, kind = INSTRUMENTS[number % len(INSTRUMENTS)]
    assert (metric.name, metric.unit, metric.description) == (name, "{thing}", TEXT)
    assert metric.WhichOneof("data") == kind
    assert point.time_unix_nano > YEAR_2020_NS
    if kind in ("histogram", "exponential_histogram"):
        assert (point.count, point.sum, point.min, point.max) == (1, number, number, number)
    else:
        assert (point.as_int or point.as_double) == number
    if kind == "sum":
        assert metric.sum.is_monotonic == (name == "counter")
    if kind == "histogram":
        assert sum(point.bucket_counts) == 1
        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    for exemplar in point.exemplars:
        assert (exemplar.trace_id.hex(), exemplar.span_id.hex()) == places[found.chk_id]
        assert (exemplar.as_int or exemplar.as_double) == number


CHECKS: dict[Signal, Callable[[Stored, Places], None]] = {
    Signal.LOGS: check_log,
    Signal.TRACES: check_span,
    Signal.METRICS: check_point,
}


def _logs(requests: list[Any]) -> Iterator[Stored]:
    for resource in (r for request in requests for r in request.resource_logs):
        about = attributes_of(resource.resource)
        for record in (r for scope in resource.scope_logs for r in scope.log_records):
            yield Stored(about=about, attributes=attributes_of(record), record=record)


def _spans(requests: list[Any]) -> Iterator[Stored]:
    for resource in (r for request in requests for r in request.resource_spans):
        about = attributes_of(resource.resource)
        for span in (s for scope in resource.scope_spans for s in scope.spans):
            yield Stored(about=about, attributes=attributes_of(span), record=span)


def _points(requests: list[Any]) -> Iterator[Stored]:
    for resource in (r for request in requests for r in request.resource_metrics):
        about = attributes_of(resource.resource)
        for metric in (m for scope in resource.scope_metrics for m in scope.metrics):
            for point in getattr(metric, metric.WhichOneof("data")).data_points:
                attributes = attributes_of(point)
                yield Stored(about=about, attributes=attributes, record=point, metric=metric)


def attributes_of(owner: Any) -> dict[str, Any]:
    """Return attributes as Python values. A duplicate key is a failure."""
    attributes = {pair.key: value(pair.value) for pair in owner.attributes}
    assert len(attributes) == len(owner.attributes)
    return attributes


def value(any_value: Any) -> Any:
    """Return an `AnyValue` as a Python value."""
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: value(pair.value) for pair in any_value.kvlist_value.values}
    return getattr(any_value, kind)
