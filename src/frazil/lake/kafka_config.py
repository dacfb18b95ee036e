"""What an operator may set for reading from Kafka. Only `frazil appender` does."""

from __future__ import annotations

import msgspec

from frazil.errors import Malformed
from frazil.model import Signal

OWN_SETTINGS = {
    "bootstrap.servers": "set lake.kafka.brokers instead",
    "metadata.broker.list": "set lake.kafka.brokers instead",
    "group.id": "set lake.kafka.group instead",
    "auto.offset.reset": "what is lost must be named: see lake.kafka.skip_lost",
    "check.crcs": "what is damaged must be found",
    "enable.auto.commit": "the tables say what they hold, and nobody else",
    "enable.auto.offset.store": "the tables say what they hold, and nobody else",
    "enable.partition.eof": "tasks would not find their end",
    "isolation.level": "what was aborted, or may yet be, has no place in a table",
}
"""Settings of the client that the promise hangs on, or that have a name of ours."""


class KafkaConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a Kafka that the tables are filled from."""

    brokers: str
    """Where to ask first: HOST:PORT, or some of them with commas between."""
    topics: dict[str, str] = msgspec.field(default_factory=dict)
    """Table to topic, where it is not the one that the OpenTelemetry Collector writes to."""
    group: str = "frazil"
    """Under this name of a consumer group Kafka's own tools see how far the tables are. Nobody
    reads it back."""
    skip_lost: bool = False
    """Go on when the broker does not have offsets any more that the tables miss. Otherwise that
    stops everything, until somebody has decided."""
    client: dict[str, str] = msgspec.field(default_factory=dict)
    """Any other setting of librdkafka: encryption, names and passwords."""

    def __post_init__(self) -> None:
        if not self.brokers.strip():
            raise Malformed("lake.kafka.brokers is empty; it must be HOST:PORT")
        if not self.group:
            raise Malformed("lake.kafka.group is empty; the client needs a name")
        tables = [signal.table for signal in Signal]
        for table in self.topics:
            if table not in tables:
                raise Malformed(
                    f"lake.kafka.topics has {table!r}; the tables are {', '.join(tables)}"
                )
        named = [self.topic_of(table) for table in tables]
        if len(set(named)) != len(named):
            raise Malformed(f"lake.kafka.topics gives two tables the same topic: {named}")
        for name, reason in OWN_SETTINGS.items():
            if name in self.client:
                raise Malformed(f"lake.kafka.client has {name}; {reason}")

    def topic_of(self, table: str) -> str:
        """Where the rows of a table come from."""
        (usual,) = (signal.topic for signal in Signal if signal.table == table)
        return self.topics.get(table, usual)

    def __repr__(self) -> str:
        """Without the client's settings: there are passwords among them."""
        return f"KafkaConfig(brokers={self.brokers!r}, group={self.group!r})"
