"""A member of a group as a process of its own, so that it can be killed. It prints what it owns and
what it has committed, each with a time that all processes of this machine share:

    python -m tests.live.kafka_port.group_member ADDRESS GROUP SUBSCRIPTION [NAME=VALUE ...]
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException


def say(what: str, partitions: list[int], **more: Any) -> None:
    row = {"what": what, "partitions": partitions, "time": time.monotonic(), **more}
    sys.stdout.write(f"{json.dumps(row)}\n")
    sys.stdout.flush()


def main(address: str, group: str, subscription: str, *settings: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
            **dict(setting.split("=", 1) for setting in settings),
        }
    )
    is_stopped = False

    def stop(*_: object) -> None:
        nonlocal is_stopped
        is_stopped = True

    def owns(what: str) -> Any:
        return lambda _, partitions: say(what, [each.partition for each in partitions])

    signal.signal(signal.SIGTERM, stop)
    consumer.subscribe(
        [subscription], on_assign=owns("get"), on_revoke=owns("give"), on_lost=owns("lose")
    )
    while not is_stopped:
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        try:
            consumer.commit(message=message, asynchronous=False)
        except KafkaException as error:
            say("refused", [message.partition() or 0], reason=str(error))
            continue  # the record is read again
        say("commit", [message.partition() or 0], offset=message.offset())
    consumer.close()
    say("end", [])


if __name__ == "__main__":
    main(*sys.argv[1:])
