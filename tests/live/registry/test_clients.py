"""confluent-kafka's serializers over a real node: schemas by /registry, records by the Kafka port,
also after the node was killed."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.clients.node import Node
from tests.serve.kafka_node import WAIT_S, brokers, create, kafka_node

COUNT = 20
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}],
}
JSON_ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "who": {"type": "string"}},
    "required": ["id"],
    "additionalProperties": False,
}
Codec = tuple[Callable[..., bytes], Callable[..., Any], Callable[[int], Any]]
"""A serializer, its deserializer, and a value."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with kafka_node(tmp_path_factory.mktemp("registry") / "data") as started:
        yield started


Opener = Callable[[], SchemaRegistryClient]


@pytest.fixture
def new_client(node: Node) -> Iterator[Opener]:
    """Opens clients, each with caches of its own."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(SchemaRegistryClient({"url": f"{node.url}/registry"}))


def avro(client: SchemaRegistryClient) -> Codec:
    text = json.dumps(ORDER)
    return (
        AvroSerializer(client, text),
        AvroDeserializer(client),
        lambda number: {"id": number, "who": None if number % 2 else f"é{number}"},
    )


def json_schema(client: SchemaRegistryClient) -> Codec:
    text = json.dumps(JSON_ORDER)
    return (
        JSONSerializer(text, client),
        JSONDeserializer(None, schema_registry_client=client),
        lambda number: {"id": number, "who": f"é{number}"},
    )


def protobuf(client: SchemaRegistryClient) -> Codec:
    """A message whose file imports two others, of which one imports the other."""
    return (
        ProtobufSerializer(LogRecord, client),
        ProtobufDeserializer(LogRecord, {}, client),
        lambda number: LogRecord(time_unix_nano=number, severity_text=f"é{number}"),
    )


@pytest.mark.parametrize("codec", [avro, json_schema, protobuf])
def test_serializers_over_the_kafka_port(
    node: Node, new_client: Opener, codec: Callable[[SchemaRegistryClient], Codec]
) -> None:
    """What is serialized with one client is deserialized with another, which knows ids only."""
    topic = codec.__name__
    create(node, topic)
    context = SerializationContext(topic, MessageField.VALUE)
    serialize, _, value = codec(new_client())
    producer = Producer(brokers(node))
    for number in range(COUNT):
        producer.produce(topic, serialize(value(number), context))
    assert producer.flush(WAIT_S) == 0

    consumer = Consumer({**brokers(node), "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    _, deserialize, value = codec(new_client())
    messages = consumer.consume(COUNT, WAIT_S)
    consumer.close()
    assert [deserialize(each.value(), context) for each in messages] == [
        value(number) for number in range(COUNT)
    ]
    magic, schema_id = struct.unpack(">bI", (messages[0].value() or b"")[:5])
    registered = new_client().get_latest_version(f"{topic}-value")
    assert (magic, schema_id) == (0, registered.schema_id)


def test_what_the_client_library_asks(new_client: Opener) -> None:
    """Each method of confluent-kafka's client, once."""
    client, subject = new_client(), "all/of it"
    first = client.register_schema(subject, Schema('{"type": "int"}', "AVRO"))
    assert client.get_schema(first).schema_str == '"int"'
    assert client.lookup_schema(subject, Schema('"int"', "AVRO")).version == 1
    assert client.test_compatibility(subject, Schema('"long"', "AVRO"))
    assert not client.test_compatibility(subject, Schema('"string"', "AVRO"))
    with pytest.raises(SchemaRegistryError) as error:
        client.register_schema(subject, Schema('"string"', "AVRO"))
    assert (error.value.http_status_code, error.value.error_code) == (409, 409)
    client.set_compatibility(subject, "NONE")
    assert client.get_compatibility(subject) == "NONE"
    assert client.get_compatibility() == "BACKWARD"
    second = client.register_schema(subject, Schema('"string"', "AVRO"))
    assert client.get_versions(subject) == [1, 2]
    assert client.get_version(subject, 2).schema_id == second
    assert subject in client.get_subjects()
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
    assert client.delete_subject(subject, permanent=True)
    with pytest.raises(SchemaRegistryError) as error:
        client.get_versions(subject)
    assert (error.value.http_status_code, error.value.error_code) == (404, 40401)
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}


def test_a_killed_node_knows_its_schemas(node: Node, new_client: Opener) -> None:
    """Ids are the same after SIGKILL, and the next one is another."""
    schemas = [Schema(json.dumps(ORDER | {"name": f"R{n}"}), "AVRO") for n in range(3)]
    ids = [new_client().register_schema(f"s{n}", schemas[n]) for n in range(2)]
    node.kill()
    node.start()
    client = new_client()
    assert [client.register_schema(f"s{n}", schemas[n]) for n in range(2)] == ids
    assert client.register_schema("s2", schemas[2]) > max(ids)
