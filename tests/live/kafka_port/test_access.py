"""TLS, SCRAM, ACLs and quotas with clients that others wrote, and with Kafka's tools."""

from __future__ import annotations

import asyncio
import io
import ssl
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from frazil import cli
from tests.clients.node import Node
from tests.ingest.certificates import Certificates, make_certificates
from tests.kafka.wire.java import QUICK
from tests.live.kafka_port.jars import class_path, missing

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the library, against itself
    from kafka import KafkaProducer  # type: ignore[import-untyped]
    from kafka.errors import TopicAuthorizationFailedError  # type: ignore[import-untyped]

MISSING = missing()
WAIT_S = 60
TOOL_WAIT_S = 120
PASSWORD = "correct horse"
RATE = 100_000
TOOLS = "org.apache.kafka.tools"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A node that lets in users only, and them to what ACLs allow."""

    node: Node
    certificates: Certificates
    folder: Path

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.node.kafka_port}"

    def settings(self, user: str, password: str = PASSWORD, **others: Any) -> dict[str, Any]:
        """Return the settings of librdkafka for a user."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": self.certificates.authority,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": password,
            "log_level": 0,
            **others,
        }

    def add_user(self, name: str) -> None:
        """While the node runs."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
            assert cli.main(["users", "add", name, "--data", str(self.node.folder)]) == 0

    def allow(self, user: str, topic: str, *operations: AclOperation) -> None:
        admin = AdminClient(self.settings("admin"))
        acls = [acl(user, ResourceType.TOPIC, topic, each) for each in operations]
        for future in admin.create_acls(acls).values():
            future.result(WAIT_S)

    def tool(
        self,
        tool: str,
        user: str,
        *words: str,
        password: str = PASSWORD,
        text: str = "",
        code: int = 0,
    ) -> str:
        """Run a tool of Kafka as a user, with SCRAM-SHA-512. Returns what it prints."""
        file = self.folder / f"{user}.properties"
        file.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.certificates.authority}\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{user}" password="{password}";\n'
        )
        done = subprocess.run(
            [
                *("java", *QUICK, "-cp", class_path("4.2.1"), tool),
                *("--bootstrap-server", self.address, "--command-config", str(file), *words),
            ],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TOOL_WAIT_S,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


def acl(
    user: str,
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, allow)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("access")
    certificates = make_certificates(folder)
    settings = {
        "lake.enabled": "false",
        "serve.enabled": "false",
        "hot.enabled": "false",
        "ingest.tls_certificate_file": certificates.server_certificate,
        "ingest.tls_key_file": certificates.server_key,
        "kafka.scram": "true",
        "kafka.acls": "true",
        "kafka.super_users": '["User:admin"]',
        "kafka.groups.initial_rebalance_delay_ms": "0",
    }
    options = [word for each in settings.items() for word in ("--set", "=".join(each))]
    with Node(folder / "data", *options) as node:
        found = Guarded(node, certificates, folder)
        found.add_user("admin")
        yield found


class Outcomes:
    """What became of records, and how long the broker asked to wait."""

    def __init__(self) -> None:
        self.errors: list[str | None] = []
        self.throttled_s: list[float] = []

    def delivered(self, error: KafkaError | None, _: object) -> None:
        self.errors.append(None if error is None else error.name())

    def throttled(self, event: Any) -> None:
        self.throttled_s.append(event.throttle_time)


def test_librdkafka(guarded: Guarded) -> None:
    """A user made with its admin client writes and reads what it may, and is slowed down."""
    admin = AdminClient(guarded.settings("admin"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    upsertion = UserScramCredentialUpsertion("rd", info, PASSWORD.encode())
    admin.alter_user_scram_credentials([upsertion])["rd"].result(WAIT_S)
    users: Any = admin.describe_user_scram_credentials(["rd"])
    described = users["rd"].result(WAIT_S)
    assert [each.iterations for each in described.scram_credential_infos] == [8192]

    outcomes = Outcomes()
    producer = Producer(guarded.settings("rd", throttle_cb=outcomes.throttled))
    producer.produce("rd-topic", b"one", on_delivery=outcomes.delivered)
    assert producer.flush(WAIT_S) == 0
    assert outcomes.errors == ["TOPIC_AUTHORIZATION_FAILED"]
    prefixed = ResourcePatternType.PREFIXED
    acls = [
        acl("rd", ResourceType.TOPIC, "rd-", AclOperation.ALL, prefixed),
        acl("rd", ResourceType.GROUP, "rd-group", AclOperation.READ),
    ]
    for future in admin.create_acls(acls).values():
        future.result(WAIT_S)
    anything: Any = None
    wanted = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        "User:rd",
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert set(admin.describe_acls(wanted).result(WAIT_S)) == set(acls)

    outcomes.errors.clear()
    producer = Producer(guarded.settings("rd", throttle_cb=outcomes.throttled))
    producer.produce("rd-topic", b"one", on_delivery=outcomes.delivered)
    assert producer.flush(WAIT_S) == 0
    assert outcomes.errors == [None] and not outcomes.throttled_s
    consumer = Consumer(
        guarded.settings("rd", **{"group.id": "rd-group", "auto.offset.reset": "earliest"})
    )
    consumer.subscribe(["rd-topic"])
    message = consumer.poll(WAIT_S)
    assert message is not None and message.value() == b"one"
    consumer.close()
    stranger = Consumer(guarded.settings("rd", **{"group.id": "other"}))
    stranger.subscribe(["rd-topic"])
    message = stranger.poll(WAIT_S)
    error = None if message is None else message.error()
    assert error is not None and error.name() == "GROUP_AUTHORIZATION_FAILED"
    stranger.close()


def test_librdkafka_with_a_wrong_password(guarded: Guarded) -> None:
    said: list[KafkaError] = []
    client = AdminClient(guarded.settings("admin", "wrong", error_cb=said.append))
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    client.poll(0)
    assert said[0].name() == "_AUTHENTICATION"
    assert "the user name or the password is wrong" in said[0].str()


def test_aiokafka(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    """With SCRAM-SHA-512; a wrong password, and a topic without an ACL, are refused."""
    aiokafka: Any = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    errors: Any = pytest.importorskip("aiokafka.errors")
    guarded.add_user("aio")
    guarded.allow("aio", "aio-topic", AclOperation.WRITE, AclOperation.CREATE)

    def producer(password: str) -> Any:
        return aiokafka.AIOKafkaProducer(
            bootstrap_servers=guarded.address,
            security_protocol="SASL_SSL",
            ssl_context=ssl.create_default_context(cafile=guarded.certificates.authority),
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username="aio",
            sasl_plain_password=password,
        )

    async def exercise() -> None:
        wrong = producer("wrong")
        with pytest.raises(errors.KafkaConnectionError):
            await wrong.start()
        await wrong.stop()
        async with producer(PASSWORD) as client:
            sent = await client.send_and_wait("aio-topic", b"one")
            assert sent.offset == 0
            with pytest.raises(errors.TopicAuthorizationFailedError):
                await client.send_and_wait("hidden", b"one")

    asyncio.run(exercise())
    assert "SaslAuthenticationFailed: the user name or the password is wrong" in caplog.text


def test_kafka_python(guarded: Guarded) -> None:
    guarded.add_user("py")
    guarded.allow("py", "py-topic", AclOperation.WRITE, AclOperation.CREATE)
    client = KafkaProducer(
        bootstrap_servers=guarded.address,
        security_protocol="SASL_SSL",
        ssl_cafile=guarded.certificates.authority,
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="py",
        sasl_plain_password=PASSWORD,
        max_block_ms=WAIT_S * 1000,
    )
    assert client.send("py-topic", b"one").get(WAIT_S).offset == 0
    with pytest.raises(TopicAuthorizationFailedError):
        client.send("hidden", b"one").get(WAIT_S)
    client.close()


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
def test_the_tools_of_kafka(guarded: Guarded) -> None:
    """kafka-configs makes a user and its quota, kafka-acls its permissions; producers feel all of
    them."""
    configs, acls = "kafka.admin.ConfigCommand", f"{TOOLS}.AclCommand"
    user = ("--entity-type", "users", "--entity-name", "java")
    password = f"SCRAM-SHA-512=[iterations=8192,password={PASSWORD}]"
    alter = (configs, "admin", "--alter", *user, "--add-config")
    guarded.tool(*alter, password)
    guarded.tool(*alter, f"producer_byte_rate={RATE}")
    described = guarded.tool(configs, "admin", "--describe", *user)
    assert f"producer_byte_rate={RATE}" in described and "iterations=8192" in described
    refused = guarded.tool(*alter, "request_percentage=50", code=1)
    assert "there is no quota request_percentage" in refused
    made = guarded.tool(
        *(acls, "admin", "--add", "--allow-principal", "User:java", "--producer"),
        *("--topic", "java-", "--resource-pattern-type", "prefixed"),
    )
    assert "name=java-, patternType=PREFIXED" in made
    produce = (f"{TOOLS}.ConsoleProducer", "java", "--sync", "--topic")
    assert "Exception" not in guarded.tool(*produce, "java-topic", text="one\n")
    said = guarded.tool(*produce, "hidden", text="one\n", code=1)
    assert "TopicAuthorizationException" in said
    said = guarded.tool(*produce, "java-topic", password="wrong", text="one\n", code=1)
    assert "SaslAuthenticationException: the user name or the password is wrong" in said

    # librdkafka reports the pauses that it is told; every record arrives.
    outcomes = Outcomes()
    settings: dict[str, Any]
    settings = {"sasl.mechanism": "SCRAM-SHA-512", "batch.size": 50_000, "linger.ms": 0}
    client = Producer(guarded.settings("java", throttle_cb=outcomes.throttled, **settings))
    for _ in range(8):
        client.produce("java-topic", bytes(40_000), on_delivery=outcomes.delivered)
        client.poll(0.05)
    assert client.flush(WAIT_S) == 0
    assert outcomes.errors == [None] * 8
    assert sum(outcomes.throttled_s) > 0
