"""Topics, their settings, and who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.httpd import Auth
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from frazil.kafka.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from frazil.kafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from frazil.kafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.kafka.port.opened import Client, opened

TOKEN = "a-token-of-this-test"


def create(client: Client, name: str, *, is_real: bool = True, **fields: object) -> tuple[int, str]:
    """Return code and message."""
    configs = fields.pop("configs", {})
    assert isinstance(configs, dict)
    asked = CreateTopicsRequest.CreatableTopic(
        **{"name": name, "num_partitions": -1, "replication_factor": -1, **fields},  # type: ignore[arg-type]
        configs=[CreateTopicsRequest.CreatableTopicConfig(*each) for each in configs.items()],
    )
    request = CreateTopicsRequest([asked], validate_only=not is_real)
    result = client.ask(CreateTopicsResponse, request, 7).topics[0]
    return result.error_code, result.error_message or ""


def configs_of(client: Client, topic: str) -> dict[str, str | None]:
    asked = DescribeConfigsRequest.DescribeConfigsResource(2, topic, None)
    response = client.ask(DescribeConfigsResponse, DescribeConfigsRequest([asked]), 4)
    return {each.name: each.value for each in response.results[0].configs}


def metadata(client: Client, *topics: str, version: int = 12) -> MetadataResponse:
    asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    return client.ask(MetadataResponse, MetadataRequest(asked), version)


def test_a_topic_is_created_with_its_settings(tmp_path: Path) -> None:
    settings = {"retention.ms": "-1", "cleanup.policy": "compact", "flush.messages": "10"}
    with opened(tmp_path, partitions=3) as port, port.client() as client:
        assert create(client, "t", is_real=False, configs=settings) == (0, "")
        assert not port.log.has_topic("t")
        assert create(client, "t", configs=settings) == (0, "")
        assert create(client, "t")[0] == ErrorCode.TOPIC_ALREADY_EXISTS
        assert port.log.topic("t").config.cleanup == "compact"
        described = configs_of(client, "t")
        assert described["retention.ms"] == "-1"
        assert described["cleanup.policy"] == "compact"
        (topic,) = metadata(client, "t").topics
        assert [p.leader_id for p in topic.partitions] == [1, 1, 1]
        by_id = MetadataRequest([MetadataRequest.MetadataRequestTopic(topic.topic_id, None)])
        assert client.ask(MetadataResponse, by_id, 12).topics[0].name == "t"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "__consumer_offsets"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": 10_000}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"no.such.setting": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"compression.type": "brotli"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"min.insync.replicas": "2"}}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    tmp_path: Path, fields: dict[str, Any], code: int
) -> None:
    """With a message that says why."""
    with opened(tmp_path) as port, port.client() as client:
        name = str(fields.pop("name", "t"))
        found, message = create(client, name, **fields)
        assert found == code
        assert message
        assert not port.log.topics()


@pytest.mark.parametrize("version", [0, 4, 9, 13])
def test_a_topic_is_created_when_it_is_asked_for(tmp_path: Path, version: int) -> None:
    """Unless the settings, or the client, do not want that."""
    with opened(tmp_path, advertised="kafka.example.org:9093") as port, port.client() as client:
        response = metadata(client, "made", "not/one", version=version)
        assert [topic.error_code for topic in response.topics] == [0, 17]
        assert (response.brokers[0].host, response.brokers[0].port) == ("kafka.example.org", 9093)
        assert port.log.has_topic("made")
        if version >= 4:
            asked = [MetadataRequest.MetadataRequestTopic(name="other")]
            request = MetadataRequest(asked, allow_auto_topic_creation=False)
            assert client.ask(MetadataResponse, request, version).topics[0].error_code == 3
    with opened(tmp_path, auto_create_topics=False) as port, port.client() as client:
        assert metadata(client, "other", version=version).topics[0].error_code == 3


def test_the_cluster_keeps_its_id(tmp_path: Path) -> None:
    ids = set()
    for _ in range(2):
        with opened(tmp_path) as port, port.client() as client:
            response = client.ask(DescribeClusterResponse, DescribeClusterRequest(), 1)
            broker = response.brokers[0]
            assert (broker.host, broker.port) == ("127.0.0.1", port.port)
            ids.add(response.cluster_id)
            ids.add(metadata(client).cluster_id or "")
    assert len(ids) == 1 and len(ids.pop()) == 22


def test_librdkafka_2_0_finds_sasl(tmp_path: Path) -> None:
    """It takes SASL to be missing unless version 0 of the handshake is named."""
    with opened(tmp_path) as port, port.client() as client:
        response = client.ask(ApiVersionsResponse, ApiVersionsRequest(), 3)
    (found,) = (each for each in response.api_keys if each.api_key == 17)
    assert (found.min_version, found.max_version) == (0, 1)


def test_a_client_without_the_token_is_refused(tmp_path: Path) -> None:
    """It can ask for versions and authenticate, and nothing else."""

    def authenticate(client: Client, token: str) -> int:
        shaken = client.ask(SaslHandshakeResponse, SaslHandshakeRequest("PLAIN"), 1)
        assert shaken.error_code == 0
        request = SaslAuthenticateRequest(f"\0someone\0{token}".encode())
        return client.ask(SaslAuthenticateResponse, request, 2).error_code

    with opened(tmp_path, auth=Auth(tokens=(TOKEN.encode(),))) as port:
        with port.client() as client:
            client.send(MetadataRequest(None), 9)
            assert client.is_closed()
        with port.client() as client:
            assert authenticate(client, "wrong") == 58
            client.send(MetadataRequest(None), 9)
            assert client.is_closed()
        with port.client() as client:
            wrong = client.ask(SaslHandshakeResponse, SaslHandshakeRequest("GSSAPI"), 1)
            assert (wrong.error_code, wrong.mechanisms) == (33, ["PLAIN"])
            assert authenticate(client, TOKEN) == 0
            assert metadata(client, "t").topics[0].error_code == 0
