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
from tests.live.kafka_port.matrix.table import GROUP_848, PLAIN, SCRAM

USER = "user"
PASSWORD = "a-token-of-the-node"
"""Of this user by SCRAM, and of any by PLAIN."""
MECHANISMS = {PLAIN: "PLAIN", SCRAM: "SCRAM-SHA-512"}
LOGIN_MODULES = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    SCRAM: "org.apache.kafka.common.security.scram.ScramLoginModule",
}
WAIT_S = 300
LINES = "".join(f"{number}\n" for number in range(100))
HERE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The address of a node, and of one with TLS and SASL whose authority is in a file."""

    plain: str
    secure: str
    authority: str


Check = Callable[[Nodes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableClient:
    """A client with its version, and the check of each column that it has."""

    name: str
    checks: Mapping[str, Check]


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


def _secure(check: Callable[[str, Nodes], object]) -> dict[str, Check]:
    """Return a check for each column with a login. It is given the column."""
    return {column: partial(check, column) for column in MECHANISMS}


def _librdkafka() -> TableClient:
    def settings(nodes: Nodes) -> dict[str, str]:
        return {"bootstrap.servers": nodes.plain, "log_level": "0"}

    def secure(column: str, nodes: Nodes) -> None:
        settings = {
            "bootstrap.servers": nodes.secure,
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": MECHANISMS[column],
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "ssl.ca.location": nodes.authority,
        }
        librdkafka.produce(settings, f"rdkafka-{MECHANISMS[column]}")

    columns = {
        "produce": librdkafka.produce,
        "codecs": librdkafka.codecs,
        "group": librdkafka.group,
        GROUP_848: librdkafka.group_848,
        "transactions": librdkafka.transactions,
        "admin": librdkafka.admin,
    }
    checks: dict[str, Check] = {
        name: partial(lambda check, nodes: check(settings(nodes)), check)
        for name, check in columns.items()
    }
    name = f"librdkafka {confluent_kafka.libversion()[0]} (confluent-kafka)"
    return TableClient(name=name, checks={**checks, **_secure(secure)})


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

    def secure(column: str, nodes: Nodes) -> None:
        produce(
            f"python-{MECHANISMS[column]}",
            nodes,
            bootstrap_servers=nodes.secure,
            security_protocol="SASL_SSL",
            ssl_cafile=nodes.authority,
            sasl_mechanism=MECHANISMS[column],
            sasl_plain_username=USER,
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
            **_secure(secure),
        },
    )


def _aiokafka() -> TableClient:
    @cache
    def everything(address: str) -> None:
        asyncio.run(test_aiokafka.exercise(address))

    async def send(column: str, nodes: Nodes) -> None:
        producer = test_aiokafka.aiokafka.AIOKafkaProducer(
            bootstrap_servers=nodes.secure,
            security_protocol="SASL_SSL",
            ssl_context=ssl.create_default_context(cafile=nodes.authority),
            sasl_mechanism=MECHANISMS[column],
            sasl_plain_username=USER,
            sasl_plain_password=PASSWORD,
        )
        async with producer:
            await producer.send_and_wait("aiokafka", b"v")

    columns = ("produce", "codecs", "group", "transactions", "admin")
    checks: dict[str, Check] = {name: lambda nodes: everything(nodes.plain) for name in columns}
    return TableClient(
        name=f"aiokafka {version('aiokafka')}",
        checks={**checks, **_secure(lambda column, nodes: asyncio.run(send(column, nodes)))},
    )


def _go(name: str) -> TableClient:
    def secure(column: str, nodes: Nodes) -> None:
        environment = {
            "KAFKA_CA": nodes.authority,
            "KAFKA_USER": USER,
            "KAFKA_PASSWORD": PASSWORD,
            "KAFKA_MECHANISM": MECHANISMS[column],
        }
        go_programs.run_checks(name, nodes.secure, "login", environment=environment)

    checks: dict[str, Check] = {
        GROUP_848 if check == "group-848" else check: partial(
            lambda check, nodes: go_programs.run_checks(name, nodes.plain, check), check
        )
        for check in go_programs.PROGRAMS[name]
    }
    titles = {"franz": "franz-go", "sarama": "sarama"}
    title = f"{titles[name]} {go_programs.run_checks(name, 'none').removeprefix('v')}"
    return TableClient(name=title, checks={**checks, **_secure(secure)})


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

    def secure(column: str, nodes: Nodes) -> None:
        login = f"{LOGIN_MODULES[column]} required"
        settings = {
            "linger.ms": "0",  # a second, if not set
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": nodes.authority,
            "sasl.mechanism": MECHANISMS[column],
            "sasl.jaas.config": f'{login} username="{USER}" password="{PASSWORD}";',
        }
        words = [
            w for name, each in settings.items() for w in ("--producer-property", name + "=" + each)
        ]
        topic = f"java-{MECHANISMS[column]}"
        to = ("--bootstrap-server", nodes.secure, "--topic", topic)
        tool("ConsoleProducer", *to, "--sync", *words, text=LINES)

    def produce(nodes: Nodes) -> None:
        kafka_tools.verifiable_clients(release, nodes.plain)

    def group_848(nodes: Nodes) -> None:
        kafka_tools.verifiable_clients(release, nodes.plain, ("--group-protocol", "consumer"))

    checks: dict[str, Check] = {
        "produce": produce,
        "group": produce,
        "transactions": lambda nodes: kafka_tools.copier(release, nodes.plain),
    }
    if release == KAFKA:  # other tools of a release need jars of its broker
        checks |= {"codecs": codecs, GROUP_848: group_848, "admin": admin, **_secure(secure)}
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

    def secure(column: str, nodes: Nodes) -> None:
        mechanism = MECHANISMS[column]
        settings = ("security.protocol=sasl_ssl", f"sasl.mechanism={mechanism}")
        login = (f"sasl.username={USER}", f"sasl.password={PASSWORD}")
        trust = (f"ssl.ca.location={nodes.authority}",)
        words = [word for each in (*settings, *login, *trust) for word in ("-X", each)]
        produce(nodes, *words, topic=f"kcat-{mechanism}", address=nodes.secure)

    said = _run(["kcat", "-V"]).split("Version ")[1].split()[0]
    checks = {"produce": produce, "codecs": codecs, "group": group, **_secure(secure)}
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
