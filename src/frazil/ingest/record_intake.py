"""RecordIntake: OTLP requests that arrive through the Kafka port, which appends them itself.

They are checked as on the OTLP ports. One difference: Kafka has no partial success, so log records,
spans and points that can never be rows stay in their request, and become dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from frazil.errors import FrazilError
from frazil.ingest.receiver import Receiver, count_accepted, count_refused
from frazil.ingest.request_check import CheckedRequest, Transport
from frazil.model import Signal

KAFKA: Transport = "kafka"


class RecordIntake:
    """`check` and `describe_metrics` may be used in any thread, the rest belongs to the event
    loop."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def check(self, signal: Signal, body: bytes) -> CheckedRequest:
        """Return a request as it may be stored. Raises `Malformed` or `TooLarge`. It may be left
        without records: a record of the log keeps its offset nevertheless."""
        check = self._receiver.check
        check.check_length(body)
        scanned = check.scan(signal, body)
        return check.apply(signal, KAFKA, body, scanned, keeps_unstorable=True)

    def stored(self, signal: Signal, records: int, length: int, *, is_duplicate: bool) -> None:
        """Count a request that is durable."""
        count_accepted(signal, KAFKA, records, length, is_duplicate=is_duplicate)

    def refused(self, signal: Signal, error: FrazilError, length: int) -> None:
        """Count a request that was refused."""
        count_refused(signal, KAFKA, error, length)

    def describe_metrics(self, body: bytes, attributes: Mapping[str, str]) -> bytes:
        """Return metrics with these attributes added to each resource. Raises `Malformed`."""
        check = self._receiver.check
        check.check_length(body)
        check.scan(Signal.METRICS, body)  # before protobuf makes objects of it
        return with_attributes(body, attributes)


def with_attributes(body: bytes, attributes: Mapping[str, str]) -> bytes:
    """Return metrics with attributes added to each resource, in place of those that it has."""
    request = ExportMetricsServiceRequest.FromString(body)
    for each in request.resource_metrics:
        kept = [own for own in each.resource.attributes if own.key not in attributes]
        del each.resource.attributes[:]
        each.resource.attributes.extend(kept)
        for key, value in attributes.items():
            each.resource.attributes.add(key=key).value.string_value = value
    return request.SerializeToString()
