"""KafkaTables: the keyed tables that topics of a foreign Kafka feed, as the lake freezes them.

Everything happens on the lake's thread, in the order of a round: the table is taken over, its
offsets are read, and only then its fold is opened and brought to them and beyond. So no other
appender can change it in between.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from frazil.appender.definitions import resolve
from frazil.appender.fed_table import FedTable
from frazil.definitions import CreateTable
from frazil.disk import Disk
from frazil.errors import Unknown
from frazil.keyed_lake import seed_rows
from frazil.lake import (
    FrozenPosition,
    KafkaChanges,
    KeyedDefinition,
    Lake,
    PartitionChanges,
    frozen_table,
)
from frazil.model import NS_PER_MS, Clock, Rand, TopicPartition
from frazil.settings import TablesConfig

logger = logging.getLogger(__name__)

REFRESH_MS = 400
"""How old offsets of the cluster may be to decide whether a round is due."""


class KafkaTables:
    """A `KeyedSource`. Owned by the lake's thread; `close` belongs to the owner of the lake, after
    it was closed."""

    def __init__(
        self,
        statements: Sequence[CreateTable],
        source: KafkaChanges,
        lake: Lake,
        disk: Disk,
        config: TablesConfig,
        *,
        clock: Clock,
        rand: Rand,
    ) -> None:
        self._statements = statements
        self._source = source
        self._lake = lake
        self._disk = disk
        self._config = config
        self._clock = clock
        self._rand = rand
        self._tables: dict[str, FedTable] | None = None
        """None until the definitions are known, which needs the cluster and the catalog."""
        self._refreshed_ns: int | None = None
        self._is_full = False

    def tables(self) -> Sequence[KeyedDefinition]:
        return [table.lake_definition for table in self._resolved().values()]

    def _resolved(self) -> dict[str, FedTable]:
        if self._tables is None:
            self._source.refresh([statement.topic for statement in self._statements])
            found = [self._resolve(statement) for statement in self._statements]
            self._tables = {table.name: table for table in found}
        return self._tables

    def _resolve(self, statement: CreateTable) -> FedTable:
        topic = self._source.topic(statement.topic)
        places = [TopicPartition(topic.name, number) for number in topic.partitions]
        definition = resolve(
            statement,
            topic.uuid,
            [self._source.offsets(place).start_offset for place in places],
            self._disk,
            frozen_table(
                self._lake.catalog,
                self._lake.config,
                statement.name,
                topic.name,
                topic.identity,
            ),
            self._rand,
        )
        table = FedTable(
            self._disk,
            self._source,
            definition,
            topic.identity,
            seed_rows(self._lake),
            self._config,
            self._clock,
        )
        table.check_topic()
        return table

    def ends(self, definition: KeyedDefinition) -> Mapping[int, int]:
        table = self._table(definition.name)
        self._source.refresh([definition.topic])
        table.check_topic()
        return {
            number: self._source.offsets(place).last_stable_offset
            for number, place in enumerate(table.places())
        }

    def changes(
        self, name: str, begins: Mapping[int, FrozenPosition], bytes_max: int
    ) -> list[PartitionChanges]:
        changes = self._table(name).changes(begins, bytes_max)
        self._warn_if_full()
        return changes

    def pending_bytes(self, definition: KeyedDefinition, offsets: Mapping[int, int]) -> int:
        self._refresh_now_and_then()
        table = self._table(definition.name)
        table.check_topic()
        return sum(
            self._source.pending_bytes(place, offsets.get(number, 0))
            for number, place in enumerate(table.places())
        )

    def publish(self, definition: KeyedDefinition, partition: int, offset: int) -> None:
        self._table(definition.name).note_frozen(partition, offset)
        if offset:
            self._source.publish(TopicPartition(definition.topic, partition), offset)

    def _table(self, name: str) -> FedTable:
        table = self._resolved().get(name)
        if table is None:
            raise Unknown(f"there is no table {name}")
        return table

    def _refresh_now_and_then(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if self._refreshed_ns is None or now_ns - self._refreshed_ns > REFRESH_MS * NS_PER_MS:
            self._source.refresh([statement.topic for statement in self._statements])
            self._refreshed_ns = now_ns

    def _warn_if_full(self) -> None:
        """What is in the topics is applied in any case; nobody can be refused."""
        used = sum(table.key_bytes for table in self._resolved().values())
        is_full = used > self._config.key_bytes_max
        if is_full and not self._is_full:
            logger.warning(
                "keys of tables need more memory than tables.key_bytes_max",
                extra={"used": used, "key_bytes_max": self._config.key_bytes_max},
            )
        self._is_full = is_full

    def close(self) -> None:
        """Save all tables, unless the lake's thread may still use them."""
        if self._tables is not None and not self._lake.was_cut:
            for table in self._tables.values():
                table.save()
