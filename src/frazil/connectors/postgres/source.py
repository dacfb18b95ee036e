"""PostgresSource: tables of a database as change events, each table in a topic of its own.

    open      publication, then slot; what the log knows is compared with the slot
    poll      first rows of tables that are new, as of one moment; then changes as they commit
    commit    what is durable in all topics is acknowledged to the server, which then forgets it

While nothing is to be told for a while, how far the server was read is noted in a topic as well,
and acknowledged after that: the server never forgets what no position covers, and its log does not
grow because our tables are at rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import msgspec

from frazil.connectors.contract import BATCH_BYTES, ConnectorContext, KnownPosition, SourceBatch
from frazil.connectors.postgres.catalog import Catalog, PublishedTable, SlotState
from frazil.connectors.postgres.changes import ChangeAssembler, TableStream
from frazil.connectors.postgres.options import PostgresOptions
from frazil.connectors.postgres.pgoutput import decode
from frazil.connectors.postgres.positions import (
    COPIED,
    Acknowledgements,
    PostgresPosition,
    lsn_text,
)
from frazil.connectors.postgres.replication import Keepalive, ReplicationConnection
from frazil.connectors.postgres.snapshot import TableCopy, copy_tables
from frazil.connectors.postgres.topics import progress_topic, slot_of, topic_of
from frazil.errors import Malformed, Rejected, Unavailable
from frazil.log import Record

logger = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000
PROGRESS_S = 10.0
"""How far the server was read is noted this often while there is nothing else."""
STATUS_S = 0.1
ASK_S = 5.0
DISCOVER_S = 10.0
ACTIVE_S = 30.0
"""A slot may be active for a moment after the process before has died."""
ACTIVE_PAUSE_S = 0.2
RECEIVED_MAX = 20_000
"""Messages of one poll."""


class PostgresSource:
    """A source of TYPE postgres. All methods are called by one thread."""

    def __init__(self, options: PostgresOptions, context: ConnectorContext) -> None:
        self._options = options
        self._context = context
        self._application = f"frazil {context.name}"
        self._slot = options.slot or slot_of(context.name)
        self._publication = options.publication or self._slot
        self._batch_bytes = min(BATCH_BYTES, context.batch_bytes_max)
        self._catalog: Catalog | None = None
        self._replication: ReplicationConnection | None = None
        self._reader: ChangeAssembler | None = None
        self._system = self._database = ""
        self._streams: dict[str, TableStream] = {}
        self._topics: dict[str, str] = {}
        """Topic to the table whose it is."""
        self._copies: list[TableCopy] = []
        self._copying: Iterator[Sequence[SourceBatch]] | None = None
        self._found: tuple[int, list[TableCopy]] = (0, [])
        """New tables, and the LSN that was written when they were found."""
        self._ignored: set[int] = set()
        self._acks = Acknowledgements()
        self._is_creating = False
        self._active_at = 0.0
        self._timeout_s = 0.0
        self._sent_lsn = 0
        self._status_at = self._asked_at = self._progress_at = self._discovered_at = 0.0

    def open(self, known: Sequence[KnownPosition]) -> None:
        """Connect, and go on behind these positions. Raises `Rejected` if changes are missing."""
        context = self._context
        self._catalog = Catalog(context.connection, self._application)
        self._catalog.check_server()
        self._replication = ReplicationConnection(context.connection, self._application)
        self._system, _, wal_lsn, self._database = self._replication.identify()
        published = self._catalog.publish(self._publication, self._options)
        positions = {place.stream: PostgresPosition.decode(place.position) for place in known}
        ours = {name: at for name, at in positions.items() if at.slot == self._slot}
        self._check_system(ours)
        slot = self._catalog.slot(self._slot)
        if slot is None:
            self._check_new_slot(ours)
            self._replication.begin_create(self._slot, is_temporary=False)
            self._is_creating = True
        else:
            self._check_slot(slot, ours, wal_lsn)
        self._acks.durable_lsn = slot.confirmed_lsn if slot is not None else 0
        topics = {place.stream: place.topic for place in known}
        for name, at in ours.items():
            if name and at.copied == COPIED:
                schema, _, table = name.partition(".")
                stream = TableStream(schema, table, topics[name], at.oid, at.order, at.columns)
                self._streams[name] = stream
                self._topics[stream.topic] = name
        new = [table for table in published if table.name not in self._streams]
        self._copies = [self._copy_of(table, has_records=table.name in positions) for table in new]
        self._check_published(published)
        self._progress_at = self._discovered_at = self._now()

    def _check_system(self, ours: dict[str, PostgresPosition]) -> None:
        for at in ours.values():
            if at.system != self._system:
                raise Rejected(
                    f"the log has changes of the database cluster {at.system}, and this is "
                    f"{self._system}: another server, or one that was made anew. To copy it from "
                    "its beginning, create the source with another SLOT"
                )

    def _check_new_slot(self, ours: dict[str, PostgresPosition]) -> None:
        if ours:
            last = lsn_text(max(at.reached for at in ours.values()))
            raise Rejected(
                f"slot {self._slot} is gone: changes since {last} are not known. Was it dropped, "
                "or a standby promoted? To copy all tables anew, create the source with another "
                "SLOT"
            )

    def _check_slot(self, slot: SlotState, ours: dict[str, PostgresPosition], wal_lsn: int) -> None:
        name = self._slot
        if slot.plugin != "pgoutput" or slot.database != self._database:
            raise Rejected(
                f"slot {name} is of plugin {slot.plugin} in database {slot.database}: create the "
                "source with another SLOT"
            )
        if slot.wal_status == "lost":
            raise Rejected(
                f"slot {name} is invalid: the server has removed changes that were not read "
                "(max_slot_wal_keep_size). Drop it, and create the source with another SLOT"
            )
        reached = max((at.reached for at in ours.values()), default=0)
        if ours and slot.confirmed_lsn > reached:
            raise Rejected(
                f"slot {name} is at {lsn_text(slot.confirmed_lsn)}, and the log has changes up to "
                f"{lsn_text(reached)}: those between are missing. Does another program read the "
                "slot, or was the log restored from a backup? To copy all tables anew, create the "
                "source with another SLOT"
            )
        if reached > wal_lsn:
            raise Rejected(
                f"the log has changes up to {lsn_text(reached)}, and the server is at "
                f"{lsn_text(wal_lsn)}: it was restored, or a standby promoted that did not have "
                "them. To copy all tables anew, create the source with another SLOT"
            )

    def _check_published(self, published: Sequence[PublishedTable]) -> None:
        """Stop if a table that is followed exists, but is not published any more."""
        oids = {table.relation.oid for table in published}
        gone = [stream for stream in self._streams.values() if stream.oid not in oids]
        existing = self._open_catalog().existing([stream.oid for stream in gone])
        for stream in gone:
            if existing.get(stream.oid) == (stream.schema, stream.table):
                raise Rejected(
                    f"{stream.name} is not in publication {self._publication} any more, so its "
                    "changes are not sent: add it again, and create the source with another SLOT "
                    "to copy it anew"
                )

    def _copy_of(self, table: PublishedTable, *, has_records: bool) -> TableCopy:
        topic = topic_of(self._context.topic, table.relation.schema, table.relation.table)
        owner = self._topics.setdefault(topic, table.name)
        if owner != table.name:
            raise Malformed(
                f"{owner} and {table.name} would both go to topic {topic}, and each table needs "
                "one of its own: use {schema} and {table} in its name"
            )
        return TableCopy(table, topic, has_records)

    def poll(self, timeout_s: float) -> Sequence[SourceBatch]:
        """Return what is new; () if nothing comes within this time."""
        self._timeout_s = timeout_s
        if self._is_creating:
            assert self._replication is not None
            if self._replication.created(timeout_s) is None:
                return ()  # the server waits for open transactions
            self._is_creating = False
        if self._copying is None and self._copies:
            self._copying = self._copy(self._copies)
            self._copies = []
        if self._copying is not None:
            batches = next(self._copying, None)
            if batches is not None:
                return batches
            self._copying = None
            return ()
        if self._reader is None and not self._start():
            return ()
        return self._stream()

    def _copy(self, copies: Sequence[TableCopy]) -> Iterator[Sequence[SourceBatch]]:
        """Copy tables as of one moment, on connections of its own."""
        catalog = self._open_catalog()
        encoder_of = self._new_reader().encoder_of
        encoders = {copy.table.relation.oid: encoder_of(copy.table.relation) for copy in copies}
        name = f"{self._slot[:50]}_copy"
        with ReplicationConnection(self._context.connection, self._application) as connection:
            connection.begin_create(name, is_temporary=True)
            while (moment := connection.created(self._timeout_s)) is None:
                yield ()
            names = ", ".join(copy.table.name for copy in copies)
            logger.info("copying %s as of %s", names, lsn_text(moment.consistent_lsn))
            for stream, batch in copy_tables(
                catalog,
                copies,
                moment,
                encoders=encoders,
                system=self._system,
                slot_name=self._slot,
                clock=self._context.clock,
                batch_bytes=self._batch_bytes,
                batch_bytes_max=self._context.batch_bytes_max,
                again=self._copies,
            ):
                if stream is not None:
                    self._streams[stream.name] = stream
                self._acks.wait_for([(batch.stream, batch.position)], 0)
                yield (batch,)

    def _new_reader(self) -> ChangeAssembler:
        return ChangeAssembler(
            list(self._streams.values()),
            connector=self._context.name,
            database=self._database,
            system=self._system,
            slot=self._slot,
            options=self._options,
            lookups=self._open_catalog(),
            clock=self._context.clock,
            batch_bytes=self._batch_bytes,
            batch_bytes_max=self._context.batch_bytes_max,
        )

    def _start(self) -> bool:
        """Begin to stream; not yet while the slot is used. The server goes on behind what was
        acknowledged; what is in hand since is skipped."""
        slot = self._open_catalog().slot(self._slot)
        if slot is not None and slot.is_active:
            self._active_at = self._active_at or self._now()
            if self._now() - self._active_at > ACTIVE_S:
                raise Unavailable(f"slot {self._slot} is used by another program")
            self._context.clock.sleep(min(ACTIVE_PAUSE_S, self._timeout_s))
            return False
        if self._replication is None:
            self._replication = ReplicationConnection(self._context.connection, self._application)
        self._replication.start(self._slot, self._acks.durable_lsn, self._publication)
        self._reader, self._active_at = self._new_reader(), 0.0
        return True

    def _stream(self) -> Sequence[SourceBatch]:
        reader = self._open_reader()
        self._receive(reader)
        batches: list[SourceBatch] = []
        for ready in reader.take():
            pairs = [(batch.stream, batch.position) for batch in ready.batches]
            self._acks.wait_for(pairs, ready.end_lsn)
            batches += ready.batches
        now = self._now()
        if not batches:
            batches += self._progress(reader, now)
        self._send_status(now)
        if reader.is_between_transactions:
            self._discover(reader, now)
        return batches

    def _receive(self, reader: ChangeAssembler) -> None:
        """Take what the server has sent. Waits only while nothing is in hand that can go on."""
        assert self._replication is not None
        deadline = self._now() + self._timeout_s
        for _ in range(RECEIVED_MAX):
            can_go_on = reader.is_between_transactions and reader.has_records
            left = 0.0 if can_go_on else deadline - self._now()
            received = self._replication.receive(min(left, ASK_S))
            if received is None:
                if can_go_on or deadline - self._now() <= 0:
                    return
                self._send_status(self._now())
                continue
            if isinstance(received, Keepalive):
                reader.keepalive(received.lsn)
                if received.wants_reply:
                    self._status_at = 0.0
                if not reader.has_records:
                    return
                continue
            reader.handle(decode(received.data), received.lsn)
            if reader.is_full or (reader.unattached and reader.is_between_transactions):
                return

    def _progress(self, reader: ChangeAssembler, now: float) -> list[SourceBatch]:
        """Note how far the server was read, if nothing else does."""
        lsn = reader.idle_lsn
        if not (reader.is_between_transactions and self._acks.is_empty):
            return []
        if lsn <= self._acks.durable_lsn:
            return []
        if now - self._progress_at < PROGRESS_S:
            return []
        self._progress_at = now
        position = PostgresPosition(
            system=self._system, slot=self._slot, lsn=lsn_text(lsn), end=lsn_text(lsn)
        ).encode()
        self._acks.wait_for([("", position)], lsn)
        topic = progress_topic(self._context.topic, self._context.name)
        return [SourceBatch(records=[self._message(lsn)], position=position, topic=topic)]

    def _message(self, lsn: int) -> Record:
        """Return an event `m`, which readers of change events skip."""
        now_ms = self._context.clock.wall_ms()
        name = self._context.name
        source = {"connector": "postgresql", "name": name, "db": self._database, "lsn": lsn}
        message = {"transactional": False, "prefix": "frazil.progress", "content": ""}
        value = {"source": source, "op": "m", "message": message, "ts_ms": now_ms}
        return Record(
            offset=0,
            timestamp_ms=now_ms,
            key=msgspec.json.encode({"prefix": "frazil.progress", "name": name}),
            value=msgspec.json.encode(value),
        )

    def _discover(self, reader: ChangeAssembler, now: float) -> None:
        """Look for tables that are new; copy those once everything before them was read."""
        if reader.unattached:
            self._attach_met(reader)
            return
        lsn, copies = self._found
        if copies:
            if reader.idle_lsn >= lsn:
                self._found = (0, [])
                self._end_stream(copies)
            return
        if now - self._discovered_at < DISCOVER_S:
            return
        self._discovered_at = now
        catalog = self._open_catalog()
        published = catalog.publish(self._publication, self._options)
        self._check_published(published)
        copies = self._new_tables(published)
        if copies:
            self._found = (catalog.wal_lsn(), copies)

    def _attach_met(self, reader: ChangeAssembler) -> None:
        """Copy the tables that the stream has told of; not those that are gone again."""
        published = self._open_catalog().publish(self._publication, self._options)
        met = set(reader.unattached) - self._ignored
        copies = [c for c in self._new_tables(published) if c.table.relation.oid in met]
        self._ignored |= met - {copy.table.relation.oid for copy in copies}
        reader.unattached.clear()
        if copies:
            self._end_stream(copies)

    def _new_tables(self, published: Sequence[PublishedTable]) -> list[TableCopy]:
        oids = {stream.oid for stream in self._streams.values()}
        return [
            self._copy_of(table, has_records=table.name in self._streams)
            for table in published
            if table.relation.oid not in oids
        ]

    def _end_stream(self, copies: list[TableCopy]) -> None:
        assert self._replication is not None
        self._replication.close()
        self._replication = self._reader = None
        self._copies = copies

    def _send_status(self, now: float) -> None:
        """Acknowledge what is durable, and ask how far the server is, now and then."""
        if self._replication is None or self._reader is None:
            return
        lsn = self._acks.durable_lsn
        asks = now - self._asked_at >= ASK_S
        is_due = now - self._status_at >= STATUS_S and (lsn > self._sent_lsn or not self._status_at)
        if not (asks or is_due):
            return
        now_us = self._context.clock.wall_ms() * 1000
        self._replication.send_status(lsn, now_us=now_us, wants_reply=asks)
        self._sent_lsn, self._status_at = lsn, now
        if asks:
            self._asked_at = now

    def commit(self, stream: str, position: bytes) -> None:
        """Everything of the stream up to this position is durable."""
        self._acks.durable(stream, position)

    def close(self) -> None:
        """Close the connections. The slot stays: the server keeps what was not acknowledged."""
        if self._copying is not None:
            self._copying = None
        for connection in (self._replication, self._catalog):
            if connection is not None:
                connection.close()
        self._replication = self._catalog = self._reader = None

    def _now(self) -> float:
        return self._context.clock.monotonic_ns() / NS_PER_S

    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            raise Unavailable("the source is closed")
        return self._catalog

    def _open_reader(self) -> ChangeAssembler:
        if self._reader is None:
            raise Unavailable("the source is closed")
        return self._reader
