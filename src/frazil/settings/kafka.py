"""KafkaConfig: settings of the Kafka source. Only `frazil appender` reads from Kafka."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import Signal, doc

OWN_SETTINGS = {
    "bootstrap.servers": "set lake.kafka.brokers instead",
    "metadata.broker.list": "set lake.kafka.brokers instead",
    "group.id": "set lake.kafka.group instead",
    "auto.offset.reset": "lost offsets must be reported: see lake.kafka.skip_lost",
    "check.crcs": "damaged records must be detected",
    "enable.auto.commit": "progress is kept in the tables only",
    "enable.auto.offset.store": "progress is kept in the tables only",
    "enable.partition.eof": "tasks need it to find the end of a partition",
    "isolation.level": "records of open or aborted transactions must not reach a table",
}
"""Client settings that exactly-once depends on, or that have a setting of our own."""


class KafkaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Kafka source of `frazil appender`. A node fills the tables from its own log instead."""

    brokers: Annotated[str, doc("Bootstrap brokers: HOST:PORT, separated by commas.")]
    topics: Annotated[
        dict[str, str],
        doc("Topic of a table, if different from the OpenTelemetry Collector's default."),
    ] = msgspec.field(default_factory=dict)
    group: Annotated[
        str, doc("Consumer group that shows the progress to Kafka's tools. Frazil never reads it.")
    ] = "frazil"
    tables: Annotated[
        str | None, doc("Folder of .sql files that define keyed tables to fill from topics.")
    ] = None
    skip_lost: Annotated[
        bool, doc("Continue when the broker has lost offsets that the tables miss. If off, stop.")
    ] = False
    client: Annotated[
        dict[str, str], doc("Any other librdkafka setting: encryption, user names, passwords.")
    ] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.brokers.strip():
            raise InvalidSetting(
                "lake.kafka.brokers is empty; it must be HOST:PORT", "lake.kafka.brokers"
            )
        if not self.group:
            raise InvalidSetting(
                "lake.kafka.group is empty; the client needs a name", "lake.kafka.group"
            )
        tables = [signal.table for signal in Signal]
        for table in self.topics:
            if table not in tables:
                raise InvalidSetting(
                    f"lake.kafka.topics contains {table!r}; the tables are {', '.join(tables)}",
                    f"lake.kafka.topics.{table}",
                )
        topics = [self.topic_of(table) for table in tables]
        if len(set(topics)) != len(topics):
            raise InvalidSetting(
                f"lake.kafka.topics gives two tables the same topic: {topics}", "lake.kafka.topics"
            )
        for name, reason in OWN_SETTINGS.items():
            if name in self.client:
                raise InvalidSetting(
                    f"lake.kafka.client contains {name}; {reason}", f"lake.kafka.client.{name}"
                )

    def topic_of(self, table: str) -> str:
        """Return the topic that the rows of a table are read from."""
        (default,) = (signal.topic for signal in Signal if signal.table == table)
        return self.topics.get(table, default)

    def __repr__(self) -> str:
        """Leave out the client settings, which may hold passwords."""
        return f"KafkaConfig(brokers={self.brokers!r}, group={self.group!r})"
