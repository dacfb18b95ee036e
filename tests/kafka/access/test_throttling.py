"""Quotas on an open port: told in the response, and kept by not reading."""

from __future__ import annotations

import select
from collections.abc import Mapping
from pathlib import Path

import pytest

from frazil.kafka.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from frazil.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from frazil.kafka.wire.messages.produce import ProduceResponse
from frazil.settings import TopicConfig
from tests.kafka.port.opened import Client, opened
from tests.kafka.port.test_connection import batch, produce

INVALID = 42
Entity = AlterClientQuotasRequest.EntityData


def alter(
    client: Client,
    entity: Mapping[str, str | None],
    values: Mapping[str, float],
    *,
    check_only: bool = False,
) -> tuple[int, str | None]:
    """Set quotas; 0 removes one. Returns code and message."""
    entry = AlterClientQuotasRequest.EntryData(
        [Entity(*each) for each in entity.items()],
        [AlterClientQuotasRequest.OpData(name, v, remove=v == 0) for name, v in values.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=check_only)
    (result,) = client.ask(AlterClientQuotasResponse, request, 1).entries
    return result.error_code, result.error_message


def test_a_client_above_its_quota_is_not_read(tmp_path: Path) -> None:
    """The response comes at once and says how long; the next request waits, others do not."""
    with opened(tmp_path) as port, port.client() as admin, port.client() as slow:
        port.log.create_topic("t", TopicConfig())
        fast = port.client()
        assert slow.ask(ProduceResponse, produce("t", [batch(b"x")]), 9).throttle_time_ms == 0
        assert alter(admin, {"client-id": "test"}, {"producer_byte_rate": 1000.0}) == (0, None)
        response = slow.ask(ProduceResponse, produce("t", [batch(bytes(100_000))]), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        assert response.throttle_time_ms == 10_000
        slow.send(ApiVersionsRequest(), 0)
        for _ in range(20):
            assert fast.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0
        readable, _, _ = select.select([slow.socket], [], [], 0)
        assert not readable
        # The bytes are those of the client id, on whatever connection.
        assert fast.ask(ProduceResponse, produce("t", [batch(b"x")]), 9).throttle_time_ms > 0
        fast.socket.close()


def test_who_consumes_too_much_is_told(tmp_path: Path) -> None:
    fetch = FetchRequest(
        max_bytes=10**6,
        topics=[
            FetchRequest.FetchTopic(
                topic="t", partitions=[FetchRequest.FetchPartition(0, partition_max_bytes=10**6)]
            )
        ],
    )
    with opened(tmp_path) as port, port.client() as client, port.client() as admin:
        port.log.create_topic("t", TopicConfig())
        client.ask(ProduceResponse, produce("t", [batch(bytes(100_000))]), 9)
        assert client.ask(FetchResponse, fetch, 11).throttle_time_ms == 0
        assert alter(admin, {"user": None}, {"consumer_byte_rate": 50_000.0}) == (0, None)
        response = client.ask(FetchResponse, fetch, 11)
        assert response.throttle_time_ms > 0
        assert len(response.responses[0].partitions[0].records or b"") > 100_000


@pytest.mark.parametrize(
    ("entity", "values", "message"),
    [
        ({"user": "a"}, {"request_percentage": 50.0}, "there is no quota request_percentage"),
        ({"user": "a"}, {"controller_mutation_rate": 1.0}, "there is no quota controller"),
        ({"ip": "1.1.1.1"}, {"connection_creation_rate": 1.0}, "by IP address"),
        ({"user": "a"}, {"producer_byte_rate": float("nan")}, "at least 1"),
        ({"user": "a"}, {"producer_byte_rate": 0.5}, "at least 1"),
        ({}, {"producer_byte_rate": 5.0}, "for a user or a client-id"),
        ({"planet": "a"}, {"producer_byte_rate": 5.0}, "no quotas by planet"),
    ],
)
def test_quotas_that_are_refused(
    tmp_path: Path, entity: dict[str, str | None], values: dict[str, float], message: str
) -> None:
    with opened(tmp_path) as port, port.client() as client:
        code, said = alter(client, entity, values)
        assert code == INVALID and said is not None and message in said


def test_quotas_are_listed_and_survive_a_restart(tmp_path: Path) -> None:
    def listed(client: Client, *components: tuple[str, int, str | None], strict: bool) -> set[str]:
        parts = [DescribeClientQuotasRequest.ComponentData(*each) for each in components]
        request = DescribeClientQuotasRequest(components=parts, strict=strict)
        response = client.ask(DescribeClientQuotasResponse, request, 1)
        return {
            " ".join(f"{each.entity_type}={each.entity_name}" for each in entry.entity)
            for entry in response.entries or ()
        }

    entities: list[dict[str, str | None]]
    entities = [{"user": "a"}, {"user": "a", "client-id": "c"}, {"user": None}]
    with opened(tmp_path) as port, port.client() as client:
        for entity in entities:
            assert alter(client, entity, {"producer_byte_rate": 5000.0}) == (0, None)
        only_checked = alter(client, {"user": "b"}, {"producer_byte_rate": 5.0}, check_only=True)
        assert only_checked == (0, None)
    with opened(tmp_path) as port, port.client() as client:
        everything = {"user=a", "user=a client-id=c", "user=None"}
        assert listed(client, strict=False) == everything
        assert listed(client, ("user", 0, "a"), strict=True) == {"user=a"}
        assert listed(client, ("user", 0, "a"), strict=False) == everything - {"user=None"}
        assert listed(client, ("user", 1, None), strict=True) == {"user=None"}
        assert listed(client, ("user", 2, None), strict=True) == {"user=a", "user=None"}
        assert listed(client, ("client-id", 2, None), strict=False) == {"user=a client-id=c"}
        for entity in entities:
            assert alter(client, entity, {"producer_byte_rate": 0.0}) == (0, None)
        assert listed(client, strict=False) == set()
