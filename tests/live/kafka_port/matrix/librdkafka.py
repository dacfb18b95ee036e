"""What confluent-kafka does with a node, one function per column."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

WAIT_S = 60
COUNT = 100
PROTOCOL = "group.protocol"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Settings = dict[str, str]


def send(settings: Settings, topic: str, values: list[bytes], codec: str = "none") -> None:
    more = {"enable.idempotence": True, "compression.type": codec}
    producer = Producer({**settings, **more})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_S) == 0


def read(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), WAIT_S)
        assert messages, f"{len(found)} of {count}"
        assert not any(message.error() for message in messages), messages[0].error()
        found += [message.value() or b"" for message in messages]
    return found


def consumer_of(settings: Settings, group: str) -> Consumer:
    more = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return Consumer({**settings, **more, "isolation.level": "read_committed"})


def produce(settings: Settings, topic: str = "rdkafka", codec: str = "none") -> None:
    values = [b"%d %s" % (number, bytes(200)) for number in range(COUNT)]
    send(settings, topic, values, codec)
    consumer = consumer_of(settings, "unused")
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert read(consumer, COUNT) == values
    consumer.close()


def codecs(settings: Settings) -> None:
    for codec in CODECS:
        produce(settings, f"rdkafka-{codec}", codec)


def group(settings: Settings, name: str = "rdkafka-group") -> None:
    """Read half of a topic as a member of a group, and the rest as the next one."""
    values = [b"%d" % number for number in range(COUNT)]
    send({key: value for key, value in settings.items() if key != PROTOCOL}, name, values)
    for part in (values[: COUNT // 2], values[COUNT // 2 :]):
        member = consumer_of(settings, name)
        member.subscribe([name])
        assert read(member, len(part)) == part
        member.commit(asynchronous=False)
        member.close()


def group_848(settings: Settings) -> None:
    group({**settings, PROTOCOL: "consumer"}, "rdkafka-group-848")


def transactions(settings: Settings) -> None:
    producer = Producer({**settings, "transactional.id": "rdkafka"})
    producer.init_transactions(WAIT_S)
    for number in range(4):
        producer.begin_transaction()
        producer.produce("rdkafka-transactions", b"%d" % number, partition=0)
        end = producer.abort_transaction if number % 2 else producer.commit_transaction
        end(WAIT_S)
    consumer = consumer_of(settings, "unused")
    consumer.assign([TopicPartition("rdkafka-transactions", 0, 0)])
    assert read(consumer, 2) == [b"0", b"2"]
    consumer.close()


def admin(settings: Settings) -> None:
    client = AdminClient({**settings})
    client.create_topics([NewTopic("rdkafka-admin", 3)])["rdkafka-admin"].result(WAIT_S)
    assert len(client.list_topics(timeout=WAIT_S).topics["rdkafka-admin"].partitions) == 3
    resource = ConfigResource("topic", "rdkafka-admin")
    configs = client.describe_configs([resource])[resource].result(WAIT_S)
    assert configs["cleanup.policy"].value == "delete"
    client.delete_topics(["rdkafka-admin"])["rdkafka-admin"].result(WAIT_S)
