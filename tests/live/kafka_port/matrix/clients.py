"""The clients of the table, and what is run for each column."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import confluent_kafka

from tests.kafka.wire.java import QUICK
from tests.live.kafka_port import go_programs, test_aiokafka
from tests.live.kafka_port.client_jars import KAFKA, SPARK
from tests.live.kafka_port.jars import RELEASES, class_path
from tests.live.kafka_port.judges import kafka_tools
from tests.live.kafka_port.matrix import librdkafka

TLS = "TLS + SASL PLAIN"
PASSWORD = "a-token-of-the-node"
WAIT_S = 300
LINES = "".join(f"{number}\n" for number in range(100))
HERE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The address of a node, and of one with TLS and SASL whose authority is in a file."""

    plain: str
    secure: str
    authority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableClient:
    """A client with its version, and the check of each column that it has."""

    name: str
    checks: Mapping[str, Callable[[Nodes], object]]


def table_clients() -> dict[str, TableClient]:
    """Return all clients that are installed, by a short name."""
    found = {
        "librdkafka": _librdkafka(),
        "kafka-python": _kafka_python(),
        "aiokafka": _aiokafka(),
        **{name: _go(name) for name in go_programs.PROGRAMS},
        **{f"java-{release}": _java(release) for release in RELEASES},
        "spark": _tested(f"Spark {SPARK}, Kafka source and sink", "test_spark.py", "produce"),
        "connect": _tested(
            f"Kafka Connect {KAFKA}, exactly-once source",
            "test_connect.py",
            *("produce", "group", "transactions", "admin"),
        ),
    }
    if shutil.which("kcat") is not None:
        found["kcat"] = _kcat()
    return found


def _librdkafka() -> TableClient:
    def settings(nodes: Nodes) -> dict[str, str]:
        return {"bootstrap.servers": nodes.plain, "log_level": "0"}

    def secure(nodes: Nodes) -> None:
        librdkafka.produce(
            {
                "bootstrap.servers": nodes.secure,
                "security.protocol": "sasl_ssl",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "user",
                "sasl.password": PASSWORD,
                "ssl.ca.location": nodes.authority,
            }
        )

    columns = {
        "produce": librdkafka.produce,
        "codecs": librdkafka.codecs,
        "group": librdkafka.group,
        "transactions": librdkafka.transactions,
        "admin": librdkafka.admin,
    }
    checks: dict[str, Callable[[Nodes], object]] = {
        name: partial(lambda check, nodes: check(settings(nodes)), check)
        for name, check in columns.items()
    }
    name = f"librdkafka {confluent_kafka.libversion()[0]} (confluent-kafka)"
    return TableClient(name=name, checks={**checks, TLS: secure})


def _kafka_python() -> TableClient:
    kafka: Any = __import__("kafka")

    def produce(topic: str, nodes: Nodes, codec: str | None = None, **more: Any) -> None:
        common = {"bootstrap_servers": nodes.plain, **more}
        producer = kafka.KafkaProducer(compression_type=codec, **common)
        sent = [producer.send(topic, b"%d" % number, partition=0) for number in range(100)]
        assert [each.get(WAIT_S).offset for each in sent] == list(range(100))
        producer.close()
        reader = kafka.KafkaConsumer(
            topic,
            group_id=topic,
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
            **common,
        )
        assert [next(reader).value for _ in range(100)] == [b"%d" % each for each in range(100)]
        reader.commit()
        reader.close()

    def codecs(nodes: Nodes) -> None:
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            produce(f"python-{codec}", nodes, codec)

    def transactions(nodes: Nodes) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=nodes.plain, transactional_id="python")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("python-transactions", b"v").get(WAIT_S)
        producer.commit_transaction()
        producer.close()

    def admin(nodes: Nodes) -> None:
        tools = kafka.KafkaAdminClient(bootstrap_servers=nodes.plain)
        topic = kafka.admin.NewTopic("python-admin", 3, 1)
        tools.create_topics([topic])
        tools.delete_topics(["python-admin"])
        tools.close()

    def secure(nodes: Nodes) -> None:
        produce(
            "python-secure",
            nodes,
            bootstrap_servers=nodes.secure,
            security_protocol="SASL_SSL",
            ssl_cafile=nodes.authority,
            sasl_mechanism="PLAIN",
            sasl_plain_username="user",
            sasl_plain_password=PASSWORD,
        )

    return TableClient(
        name=f"kafka-python {version('kafka-python')}",
        checks={
            "produce": partial(produce, "python"),
            "codecs": codecs,
            "group": partial(produce, "python-group"),
            "transactions": transactions,
            "admin": admin,
            TLS: secure,
        },
    )


def _aiokafka() -> TableClient:
    @cache
    def everything(address: str) -> None:
        asyncio.run(test_aiokafka.exercise(address))

    async def send(nodes: Nodes) -> None:
        producer = test_aiokafka.aiokafka.AIOKafkaProducer(
            bootstrap_servers=nodes.secure,
            security_protocol="SASL_SSL",
            ssl_context=ssl.create_default_context(cafile=nodes.authority),
            sasl_mechanism="PLAIN",
            sasl_plain_username="user",
            sasl_plain_password=PASSWORD,
        )
        async with producer:
            await producer.send_and_wait("aiokafka", b"v")

    columns = ("produce", "codecs", "group", "transactions", "admin")
    checks: dict[str, Callable[[Nodes], object]] = {
        name: lambda nodes: everything(nodes.plain) for name in columns
    }
    return TableClient(
        name=f"aiokafka {version('aiokafka')}",
        checks={**checks, TLS: lambda nodes: asyncio.run(send(nodes))},
    )


def _go(name: str) -> TableClient:
    def secure(nodes: Nodes) -> None:
        environment = {"KAFKA_CA": nodes.authority, "KAFKA_PASSWORD": PASSWORD}
        go_programs.run_checks(name, nodes.secure, "produce", environment=environment)

    checks: dict[str, Callable[[Nodes], object]] = {
        check: partial(lambda check, nodes: go_programs.run_checks(name, nodes.plain, check), check)
        for check in go_programs.CHECKS
    }
    titles = {"franz": "franz-go", "sarama": "sarama"}
    title = f"{titles[name]} {go_programs.run_checks(name, 'none').removeprefix('v')}"
    return TableClient(name=title, checks={**checks, TLS: secure})


def _java(release: str) -> TableClient:
    def tool(name: str, *words: str, text: str = "") -> str:
        command = ["java", *QUICK, "-cp", class_path(release), f"org.apache.kafka.tools.{name}"]
        return _run([*command, *words], text)

    def codecs(nodes: Nodes) -> None:
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            topic = f"java-{release}-{codec}"
            to = ("--bootstrap-server", nodes.plain, "--topic", topic)
            tool("ConsoleProducer", *to, "--compression-codec", codec, text=LINES)
            words = ("--from-beginning", "--max-messages", "100")
            read = tool("consumer.ConsoleConsumer", *to, *words)
            assert read.startswith(LINES), read

    def admin(nodes: Nodes) -> None:
        to = ("--bootstrap-server", nodes.plain, "--topic", f"java-{release}-admin")
        tool("TopicCommand", "--create", "--partitions", "3", *to)
        assert "PartitionCount: 3" in tool("TopicCommand", "--describe", *to)
        tool("TopicCommand", "--delete", *to)

    def secure(nodes: Nodes) -> None:
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": nodes.authority,
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{login} username="user" password="{PASSWORD}";',
        }
        words = [
            w for name, each in settings.items() for w in ("--producer-property", name + "=" + each)
        ]
        to = ("--bootstrap-server", nodes.secure, "--topic", f"java-{release}")
        tool("ConsoleProducer", *to, "--sync", *words, text=LINES)

    def produce(nodes: Nodes) -> None:
        kafka_tools.verifiable_clients(release, nodes.plain)

    checks: dict[str, Callable[[Nodes], object]] = {
        "produce": produce,
        "group": produce,
        "transactions": lambda nodes: kafka_tools.copier(release, nodes.plain),
    }
    if release == KAFKA:  # other tools of a release need jars of its broker
        checks |= {"codecs": codecs, "admin": admin, TLS: secure}
    return TableClient(name=f"Java client and tools {release}", checks=checks)


def _kcat() -> TableClient:
    def produce(
        nodes: Nodes, *words: str, codec: str = "none", topic: str = "kcat", address: str = ""
    ) -> None:
        common = ["kcat", "-q", "-b", address or nodes.plain, *words]
        _run([*common, "-P", "-t", topic, "-z", codec], LINES)
        assert _run([*common, "-C", "-t", topic, "-o", "beginning", "-e"]) == LINES

    def codecs(nodes: Nodes) -> None:
        for codec in ("gzip", "snappy", "lz4"):
            produce(nodes, codec=codec, topic=f"kcat-{codec}")

    def group(nodes: Nodes) -> None:
        produce(nodes, topic="kcat-group")
        words = ["-X", "auto.offset.reset=earliest", "-c", "100", "kcat-group"]
        assert _run(["kcat", "-q", "-b", nodes.plain, "-G", "kcat", *words]) == LINES

    def secure(nodes: Nodes) -> None:
        settings = ("security.protocol=sasl_ssl", "sasl.mechanism=PLAIN", "sasl.username=user")
        more = (f"sasl.password={PASSWORD}", f"ssl.ca.location={nodes.authority}")
        words = [word for each in (*settings, *more) for word in ("-X", each)]
        produce(nodes, *words, address=nodes.secure)

    said = _run(["kcat", "-V"]).split("Version ")[1].split()[0]
    checks = {"produce": produce, "codecs": codecs, "group": group, TLS: secure}
    return TableClient(name=f"kcat {said}", checks=checks)


def _tested(name: str, file: str, *columns: str) -> TableClient:
    """Return a client whose columns are what its test does."""

    @cache
    def test() -> None:
        _run([sys.executable, "-m", "pytest", "-n0", "-q", str(HERE / file)])

    return TableClient(name=name, checks=dict.fromkeys(columns, lambda _: test()))


def _run(command: list[str], text: str = "") -> str:
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout
