"""Metrics that clients push: subscriptions, refusals, and what is stored."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from frazil.kafka.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from frazil.log import Compression
from frazil.model import Signal
from frazil.settings import ClientTelemetryConfig
from tests.kafka.port.opened import Client, OpenedPort, opened
from tests.kafka.port.test_otlp_batches import receiving

HOUR_MS = 3_600_000
UNKNOWN = b"\1" * 16


@contextmanager
def pushing(folder: Path, **settings: Any) -> Iterator[tuple[OpenedPort, Client]]:
    """Open a port with a subscription to all metrics."""
    telemetry = ClientTelemetryConfig(**{"metrics": ("*",), "interval_ms": HOUR_MS, **settings})
    with (
        receiving() as intake,
        opened(folder, otlp=intake, telemetry=telemetry) as port,
        port.client() as client,
    ):
        yield port, client


def metrics(value: int = 1) -> bytes:
    data = MetricsData()
    point = data.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.k")
    point.gauge.data_points.add(as_int=value)
    data.resource_metrics[0].resource.attributes.add(key="principal").value.string_value = "forged"
    return data.SerializeToString()


def ask(client: Client, instance_id: bytes = bytes(16)) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(instance_id)
    return client.ask(GetTelemetrySubscriptionsResponse, request, 0)


def push(
    client: Client,
    subscription: GetTelemetrySubscriptionsResponse,
    body: bytes,
    codec: int = 0,
    *,
    is_last: bool = False,
) -> int:
    request = PushTelemetryRequest(
        subscription.client_instance_id, subscription.subscription_id, is_last, codec, body
    )
    return client.ask(PushTelemetryResponse, request, 0).error_code


def stored(port: OpenedPort) -> list[MetricsData]:
    reader = port.log.reader(Signal.METRICS.topic, "earliest")
    values = [r.value for batches in iter(reader.read, []) for b in batches for r in b.records()]
    reader.close()
    return [MetricsData.FromString(value or b"") for value in values]


def test_a_push_says_who_sent_it(tmp_path: Path) -> None:
    with pushing(tmp_path) as (port, client):
        client.ask(ApiVersionsResponse, ApiVersionsRequest("a-library", "1.2"), 3)
        told = ask(client)
        assert told.error_code == 0 and told.client_instance_id != bytes(16)
        assert (told.push_interval_ms, told.requested_metrics) == (HOUR_MS, ["*"])
        assert Compression.ZSTD in told.accepted_compression_types
        packed = zlib.compressobj(wbits=31)
        body = packed.compress(metrics()) + packed.flush()
        assert push(client, told, body, Compression.GZIP) == 0
        (data,) = stored(port)
        found = data.resource_metrics[0].resource.attributes
        attributes = {each.key: each.value.string_value for each in found}
        assert len(attributes) == len(found)
        assert attributes.pop("client_instance_id")
        assert attributes == {
            "service.name": "test",
            "client_id": "test",
            "client_software_name": "a-library",
            "client_software_version": "1.2",
            "client_source_address": "127.0.0.1",
            "principal": "User:ANONYMOUS",
        }


def test_a_client_pushes_once_in_an_interval_and_once_at_its_end(tmp_path: Path) -> None:
    early = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    with pushing(tmp_path) as (port, client):
        told = ask(client)
        assert ask(client, told.client_instance_id).error_code == early
        assert push(client, told, metrics(1)) == 0
        assert push(client, told, metrics(2)) == early
        assert push(client, told, metrics(3), is_last=True) == 0
        assert push(client, told, metrics(4), is_last=True) == ErrorCode.INVALID_REQUEST
        assert len(stored(port)) == 2


def test_refused_pushes(tmp_path: Path) -> None:
    """Each has Kafka's code, and nothing is stored."""
    bomb = zlib.compressobj(wbits=31)
    unpacked = bomb.compress(bytes(10_000_000)) + bomb.flush()
    with pushing(tmp_path, bytes_max=50_000) as (port, client):
        for body, codec, code in (
            (b"garbage", 0, ErrorCode.INVALID_RECORD),
            (b"garbage", Compression.ZSTD, ErrorCode.INVALID_RECORD),
            (metrics(), 9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
            (bytes(50_001), 0, ErrorCode.TELEMETRY_TOO_LARGE),
            (unpacked, Compression.GZIP, ErrorCode.TELEMETRY_TOO_LARGE),
        ):
            assert push(client, ask(client), body, codec) == code
        told = ask(client)
        told.subscription_id += 1
        assert push(client, told, metrics()) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        again = ask(client, told.client_instance_id)
        assert again.error_code == 0, "it may ask at once"
        assert push(client, again, b"") == 0
        nobody = GetTelemetrySubscriptionsResponse()
        assert push(client, nobody, metrics()) == ErrorCode.INVALID_REQUEST
        assert not stored(port)


def test_the_number_of_clients_is_limited(tmp_path: Path) -> None:
    """Otherwise new ids would get around the interval."""
    with pushing(tmp_path, clients_max=2) as (port, client):
        told = [ask(client) for _ in range(3)]
        assert [each.error_code for each in told] == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        told[2].client_instance_id = UNKNOWN
        codes = [push(client, each, metrics(n)) for n, each in enumerate(told)]
        assert codes == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert len(stored(port)) == 2


@pytest.mark.parametrize("names", [(), ("org.apache.kafka.producer.", "b")])
def test_without_a_subscription_the_apis_are_not_offered(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    with pushing(tmp_path, metrics=names) as (_, client):
        offered = client.ask(ApiVersionsResponse, ApiVersionsRequest(), 3).api_keys
        assert ({71, 72} <= {each.api_key for each in offered}) == bool(names)
        if names:
            assert ask(client).requested_metrics == list(names)
