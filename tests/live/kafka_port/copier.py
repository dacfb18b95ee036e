"""Copies a topic to another one exactly once, as a program of its own: it can be killed.

python -m tests.live.kafka_port.copier HOST:PORT INPUT OUTPUT
"""

from __future__ import annotations

import os
import sys

from confluent_kafka import Consumer, KafkaException, Producer

COPIES_PER_TRANSACTION = 7
TIMEOUT_S = 30
GROUP = "copier"


def main(address: str, source: str, target: str) -> None:
    """Copy forever. On an error that a new start mends, leave."""
    common = {"bootstrap.servers": address, "log_level": 0}
    consumer = Consumer(
        {
            **common,
            "group.id": GROUP,
            "group.instance.id": "copier",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
        }
    )
    producer = Producer({**common, "transactional.id": "copier", "linger.ms": 0})
    producer.init_transactions(TIMEOUT_S)
    consumer.subscribe([source])
    try:
        while True:
            copy(consumer, producer, target)
    except KafkaException as error:
        sys.stderr.write(f"{error}\n")
        os._exit(1)  # librdkafka waits for ever to destroy a consumer that was fenced


def copy(consumer: Consumer, producer: Producer, target: str) -> None:
    """Copy some records, and commit them with the offsets of their originals."""
    received = consumer.consume(COPIES_PER_TRANSACTION, 0.5)
    for error in (message.error() for message in received):
        if error is not None and error.fatal():
            raise KafkaException(error)
    messages = [message for message in received if not message.error()]
    if not messages:
        return
    producer.begin_transaction()
    for message in messages:
        producer.produce(target, message.value(), partition=message.partition() or 0)
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT_S
    )
    producer.commit_transaction(TIMEOUT_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
