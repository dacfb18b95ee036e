"""RequestTrace: spans, logs and measurements of one customer request, across all services.

It is computed at once and sent when its end time is reached. All signals come from the same calls,
so they agree.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from frazil.demo import protobuf
from frazil.demo.incidents import ShopState
from frazil.demo.services import Fleet, Pod
from frazil.demo.telemetry.instruments import Instrument, Labels, Measured
from frazil.demo.telemetry.points import Measurement
from frazil.model import NS_PER_MS, Rand

Kind = Literal["INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
KINDS: dict[Kind, int] = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
Severity = Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]
SEVERITIES: dict[Severity, int]
SEVERITIES = {"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}
NS_PER_S = 1000 * NS_PER_MS
SPREAD = 0.35
"""Variation of durations: sigma of the log-normal distribution."""

SAMPLED = 1
SPAN_FLAGS = protobuf.fixed32(16, 0x100 | SAMPLED)
REMOTE_SPAN_FLAGS = protobuf.fixed32(16, 0x300 | SAMPLED)
LINK_FLAGS = protobuf.fixed32(6, 0x300 | SAMPLED)
LOG_FLAGS = protobuf.fixed32(8, SAMPLED)
ATTRIBUTES = 9
"""Field number in a span."""
LOG_ATTRIBUTES = 6
ERROR_STATUS = protobuf.whole(3, 2)

pack_times = struct.Struct("<BQBQ").pack
"""Two tags with their times, of a span or a log record."""

Attributes = Mapping[str, str | bool | int | float]


class EmittedRow(NamedTuple):
    """An encoded span or log record and its pod."""

    pod: Pod
    content: bytes


@dataclass(slots=True, kw_only=True, eq=False)
class OpenSpan:
    """A span that has not ended yet."""

    pod: Pod
    trace_id: bytes
    span_id: bytes
    begin: bytes
    start_ns: int
    parts: list[bytes] = field(default_factory=list)

    def say(self, attributes: Attributes) -> None:
        """Add attributes."""
        self.parts.append(protobuf.attributes(ATTRIBUTES, attributes))

    def say_once(self, attributes: Attributes) -> None:
        """Add attributes that are unique to this span, without caching them."""
        self.parts += [protobuf.pair(ATTRIBUTES, key, value) for key, value in attributes.items()]

    def happen(self, name: str, at_ns: int, attributes: Attributes) -> None:
        """Add an event."""
        content = [protobuf.fixed64(1, at_ns), protobuf.text(2, name)]
        content += [protobuf.pair(3, key, value) for key, value in attributes.items()]
        self.parts.append(protobuf.field(11, b"".join(content)))

    def fail(self, message: str) -> None:
        self.parts.append(protobuf.field(15, protobuf.text(2, message) + ERROR_STATUS))

    def link(self, other: OpenSpan, attributes: Attributes) -> None:
        content = protobuf.field(1, other.trace_id) + protobuf.field(2, other.span_id)
        content += protobuf.attributes(4, attributes) + LINK_FLAGS
        self.parts.append(protobuf.field(13, content))


class RequestTrace:
    """Spans, logs and measurements of one request. Owned by Traffic."""

    def __init__(
        self,
        fleet: Fleet,
        state: ShopState,
        rand: Rand,
        start_ns: int,
        *,
        is_follow_up: bool = False,
    ) -> None:
        self.fleet = fleet
        self.state = state
        self.rand = rand
        self.end_ns = start_ns
        self.spans: list[EmittedRow] = []
        self.logs: list[EmittedRow] = []
        self.measured: list[Measured] = []
        self.follow_ups: list[RequestTrace] = []
        """Traces that follow from this one, such as mails, and end later."""
        self.is_follow_up = is_follow_up

    def begin(
        self, pod: Pod, name: str, kind: Kind, at_ns: int, parent: OpenSpan | None = None
    ) -> OpenSpan:
        """Begin a span; without a parent, a new trace."""
        rand, span_id = self.rand, self.rand.randbytes(8)
        is_remote = parent is not None and parent.pod is not pod
        flags = REMOTE_SPAN_FLAGS if is_remote else SPAN_FLAGS
        if parent is None:
            # Includes the time, so that the same seed later gives other trace ids.
            trace_id = rand.randbytes(8) + (rand.getrandbits(64) ^ at_ns).to_bytes(8, "big")
            parent_id = b""
        else:
            trace_id, parent_id = parent.trace_id, b"\x22\x08" + parent.span_id
        ids = b"\x0a\x10%b\x12\x08%b%b" % (trace_id, span_id, parent_id)
        begin = ids + _head(name, kind) + flags
        return OpenSpan(pod=pod, trace_id=trace_id, span_id=span_id, begin=begin, start_ns=at_ns)

    def end(self, span: OpenSpan, at_ns: int) -> None:
        content = span.begin + pack_times(0x39, span.start_ns, 0x41, at_ns) + b"".join(span.parts)
        self.spans.append(EmittedRow(span.pod, protobuf.field(2, content)))
        if at_ns > self.end_ns:
            self.end_ns = at_ns

    def log(
        self,
        span: OpenSpan,
        at_ns: int,
        severity: Severity,
        body: protobuf.Value,
        attributes: Attributes | None = None,
    ) -> None:
        """Write a log record inside a span."""
        context = b"%b\x4a\x10%b\x52\x08%b" % (LOG_FLAGS, span.trace_id, span.span_id)
        self.logs.append(
            EmittedRow(span.pod, log_record(at_ns, severity, body, attributes or {}, context))
        )

    def measure(
        self,
        metric: Instrument,
        span: OpenSpan,
        at_ns: int,
        value: float,
        labels: Labels = (),
        pod: Pod | None = None,
    ) -> None:
        """Add a measurement, reported by `pod` if that is not the pod of the span."""
        measurement = Measurement(value, at_ns, span.trace_id, span.span_id)
        self.measured.append(Measured(pod or span.pod, metric, labels, measurement))

    def after(self, at_ns: int, pod: Pod, median_ms: float) -> int:
        """Return the end time of work with this median duration."""
        spread = self.rand.lognormvariate(0, SPREAD)
        return at_ns + int(median_ms * NS_PER_MS * pod.slowness * spread)

    def chance(self, share: float) -> bool:
        return self.rand.random() < share


def log_record(
    at_ns: int,
    severity: Severity,
    body: protobuf.Value,
    attributes: Attributes,
    context: bytes = b"",
) -> bytes:
    """Encode a log record, observed 1 ms later."""
    content = [
        pack_times(0x09, at_ns, 0x59, at_ns + NS_PER_MS),
        _severity(severity),
        protobuf.field(5, protobuf.any_value(body)),
        *[protobuf.pair(LOG_ATTRIBUTES, key, value) for key, value in attributes.items()],
        context,
    ]
    return protobuf.field(2, b"".join(content))


@cache
def _head(name: str, kind: Kind) -> bytes:
    return protobuf.text(5, name) + protobuf.whole(6, KINDS[kind])


@cache
def _severity(severity: Severity) -> bytes:
    return protobuf.whole(2, SEVERITIES[severity]) + protobuf.text(3, severity)
