"""From messages of pgoutput to batches of change events, one stream per table. No I/O.

Each change has an order: the LSN of its transaction's commit, and its number among the changes of
its table in that transaction. After a restart the server sends again what was not acknowledged;
what a table already has is skipped by its order.

Batches end where transactions end, unless one is larger than a batch. The last change of a
transaction always comes with its end, so that what may be acknowledged is never ahead of all
positions in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from frazil.connectors.contract import SourceBatch
from frazil.connectors.postgres.envelope import EventEncoder, EventMoment, filled, same_cells
from frazil.connectors.postgres.json_values import PostgresType
from frazil.connectors.postgres.options import PostgresOptions
from frazil.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Cells,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    RelationColumn,
    TruncateMessage,
    Update,
)
from frazil.connectors.postgres.positions import (
    PostgresPosition,
    column_marks,
    lsn_text,
    split_marks,
)
from frazil.errors import Malformed, TooLarge
from frazil.log import Record
from frazil.model import Clock

logger = logging.getLogger(__name__)

POSTGRES_EPOCH_US = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970."""
BATCH_RECORDS_MAX = 10_000
RECORD_BYTES = 64
"""About what a record takes in a batch besides key and value."""


class Lookups(Protocol):
    """What the stream does not tell, from the catalog of the server."""

    def types(self, oids: Sequence[int]) -> Mapping[int, PostgresType]: ...

    def primary_key(self, oid: int) -> Sequence[str]: ...

    def row_now(
        self, relation: Relation, columns: Sequence[str], key: Mapping[str, bytes]
    ) -> Sequence[bytes | None] | None:
        """Values of columns as they are now; None if there is no such row any more."""


@dataclass(slots=True)
class TableStream:
    """A table whose rows were copied, and whose changes follow."""

    schema: str
    table: str
    topic: str
    oid: int
    order: tuple[int, int]
    """The last change that was put into a batch."""
    marks: str
    """Of the columns as of that change; see `column_marks`."""
    relation: Relation | None = None
    """The table as of the changes that follow."""
    is_checked: bool = False
    """Whether the columns were compared with those before."""
    encoder: EventEncoder | None = None
    records: list[Record] = field(default_factory=list)
    number: int = 0
    """Changes of this table so far in the transaction."""
    end_lsn: int = 0
    """End of the transaction of the last record; 0 until it is known."""

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class ReadyBatches:
    """Batches, and what may be acknowledged once they are durable; 0 if nothing more."""

    batches: Sequence[SourceBatch]
    end_lsn: int


class ChangeAssembler:
    """Reads one replication stream. What it has of open transactions is lost with it, and sent
    again to the next one."""

    def __init__(
        self,
        tables: Sequence[TableStream],
        *,
        connector: str,
        database: str,
        system: str,
        slot: str,
        options: PostgresOptions,
        lookups: Lookups,
        clock: Clock,
        batch_bytes: int,
        batch_bytes_max: int,
    ) -> None:
        self.unattached: dict[int, Relation] = {}
        """Tables that are wanted and were met for the first time: to be copied."""
        self.idle_lsn = 0
        """Up to here the server has sent everything, and it is in a batch if it is ours."""
        self._tables = {table.oid: table for table in tables}
        self._names = {table.name: table for table in tables}
        self._relations: dict[int, Relation] = {}
        self._connector = connector
        self._database = database
        self._system = system
        self._slot = slot
        self._options = options
        self._lookups = lookups
        self._clock = clock
        self._batch_bytes = batch_bytes
        self._batch_bytes_max = batch_bytes_max
        self._begin: Begin | None = None
        self._moment = EventMoment(0, 0, None, 0)
        self._before_lsn = 0
        self._touched: list[TableStream] = []
        self._bytes = 0
        self._records = 0
        self._end_lsn = 0
        self._ready: list[ReadyBatches] = []
        self._types: dict[int, PostgresType] = {}

    @property
    def is_between_transactions(self) -> bool:
        return self._begin is None

    @property
    def has_records(self) -> bool:
        """Whether something is in hand that `take` would return."""
        return self._records > 0 or bool(self._ready)

    @property
    def is_full(self) -> bool:
        return bool(self._ready) or self._bytes >= self._batch_bytes

    def take(self) -> list[ReadyBatches]:
        """Return what is in hand of whole transactions, and full batches of an open one."""
        if self._begin is None:
            self._flush()
        ready, self._ready = self._ready, []
        return ready

    def keepalive(self, lsn: int) -> None:
        """The server has sent everything below an LSN."""
        if self._begin is None:
            self.idle_lsn = max(self.idle_lsn, lsn)

    def handle(self, message: Message, lsn: int) -> None:
        """Take the next message, which the server's log has at `lsn`."""
        match message:
            case Insert() | Update() | Delete():
                self._change(message, lsn)
            case Begin():
                self._start(message)
            case Commit():
                self._commit(message)
            case Relation():
                self._relation(message)
            case TruncateMessage():
                for oid in message.oids:
                    self._on_table(oid, lambda table: self._truncated(table, lsn))
            case _:  # names of types, origins, messages of programs
                pass

    def _start(self, begin: Begin) -> None:
        if self._begin is not None:
            raise Malformed("the server began a transaction within another")
        self._begin = begin
        self._moment = EventMoment(
            begin.committed_at_us + POSTGRES_EPOCH_US,
            self._clock.wall_ms(),
            begin.xid,
            self._before_lsn,
        )

    def _commit(self, commit: Commit) -> None:
        if self._begin is None or commit.commit_lsn != self._begin.commit_lsn:
            raise Malformed("the server ended a transaction that it did not begin")
        for table in self._touched:
            table.end_lsn, table.number = commit.end_lsn, 0
        self._touched = []
        self._begin = None
        self._before_lsn = self._end_lsn = commit.end_lsn
        self.idle_lsn = max(self.idle_lsn, commit.end_lsn)
        if self._bytes >= self._batch_bytes or self._records >= BATCH_RECORDS_MAX:
            self._flush()

    def _change(self, message: Insert | Update | Delete, lsn: int) -> None:
        match message:
            case Insert():
                self._on_table(message.oid, lambda table: [self._inserted(table, message, lsn)])
            case Update():
                self._on_table(message.oid, lambda table: self._updated(table, message, lsn))
            case Delete():
                self._on_table(message.oid, lambda table: self._deleted(table, message, lsn))

    def _on_table(self, oid: int, records: Callable[[TableStream], Sequence[Record]]) -> None:
        """Add the records of one change, unless the table has it already."""
        if self._begin is None:
            raise Malformed("the server sent a change outside a transaction")
        table = self._tables.get(oid)
        if table is None:
            relation = self._relations.get(oid)
            if relation is None:
                raise Malformed(f"the server sent a change of a table ({oid}) that it did not name")
            if self._options.wants(relation.schema, relation.table):
                self.unattached[oid] = relation
            return
        if not table.number:
            self._touched.append(table)
        table.number += 1
        order = (self._begin.commit_lsn, table.number)
        if order <= table.order:
            return
        if not table.is_checked:
            self._check_columns(table)
        self._add(table, records(table), order)

    def _add(self, table: TableStream, records: Sequence[Record], order: tuple[int, int]) -> None:
        size = sum(RECORD_BYTES + len(r.key or b"") + len(r.value or b"") for r in records)
        if size > self._batch_bytes_max:
            raise TooLarge(
                f"a change of {table.name} in transaction {self._moment.xid} has {size} bytes as "
                f"an event, and a batch may have {self._batch_bytes_max}: raise "
                "log.batch_bytes_max, or leave the table out of TABLES"
            )
        if self._bytes + size > self._batch_bytes or self._records >= BATCH_RECORDS_MAX:
            self._flush()
        table.records.extend(records)
        table.order = order
        table.end_lsn = 0
        self._bytes += size
        self._records += len(records)

    def _flush(self) -> None:
        batches = []
        for table in self._tables.values():
            if not table.records:
                continue
            lsn, number = table.order
            position = PostgresPosition(
                system=self._system,
                slot=self._slot,
                lsn=lsn_text(lsn),
                number=number,
                end=lsn_text(table.end_lsn),
                oid=table.oid,
                columns=table.marks,
            )
            batches.append(
                SourceBatch(
                    records=table.records,
                    position=position.encode(),
                    topic=table.topic,
                    stream=table.name,
                )
            )
            table.records = []
        if batches:
            self._ready.append(ReadyBatches(batches, self._end_lsn))
        self._bytes = self._records = 0

    def _relation(self, relation: Relation) -> None:
        """Note how a table is from here on. It is compared with how it was once a change follows
        that the table does not have yet."""
        self._relations[relation.oid] = relation
        table = self._tables.get(relation.oid)
        if table is None:
            self._new_table(relation)
            return
        if (relation.schema, relation.table) != (table.schema, table.table):
            now = f"{relation.schema}.{relation.table}"
            if self._options.rename == "stop":
                raise Malformed(
                    f"{table.name} was renamed to {now}: rename it back, or create the source anew "
                    f"with RENAME='add', which takes {now} for a new table"
                )
            self._forget(table)
            return
        table.relation, table.is_checked, table.encoder = relation, False, None

    def _new_table(self, relation: Relation) -> None:
        """A table that was dropped and created again is another one."""
        before = self._names.get(f"{relation.schema}.{relation.table}")
        if before is not None:
            self._forget(before)

    def _forget(self, table: TableStream) -> None:
        """Let go of a table. What is in hand of it goes first."""
        self._flush()
        del self._tables[table.oid], self._names[table.name]

    def _check_columns(self, table: TableStream) -> None:
        """Compare the columns with those before, and stop if one may have been renamed."""
        relation = table.relation
        if relation is None:
            raise Malformed(f"the server sent a change of {table.name} before its columns")
        names = [column.name for column in relation.columns]
        marks = column_marks(names)
        if marks != table.marks and marks and table.marks:
            before, now = split_marks(table.marks), split_marks(marks)
            added = [name for name in names if column_marks([name]) not in before]
            gone = len(before - now)
            if added and gone and self._options.rename == "stop":
                raise Malformed(
                    f"{table.name} has lost {gone} column(s) and has the new {', '.join(added)}: "
                    "that may be a rename, and is not guessed. To take them for columns that were "
                    "dropped and added, create the source anew with RENAME='add'"
                )
            new = ", ".join(added) or "none"
            logger.info("columns of %s: new are %s, gone are %d", table.name, new, gone)
        table.marks, table.is_checked = marks, True

    def _encoder(self, table: TableStream) -> EventEncoder:
        if table.encoder is None:
            assert table.relation is not None
            table.encoder = self.encoder_of(table.relation)
        return table.encoder

    def encoder_of(self, relation: Relation) -> EventEncoder:
        """Return what makes events of a table's rows, as the table is now."""
        unknown = [c.type_oid for c in relation.columns if c.type_oid not in self._types]
        if unknown:
            self._types.update(self._lookups.types(unknown))
        return EventEncoder(
            self._connector,
            self._database,
            relation.schema,
            relation.table,
            relation.columns,
            key_indexes(relation, self._lookups.primary_key),
            self._types,
        )

    def _inserted(self, table: TableStream, message: Insert, lsn: int) -> Record:
        encoder = self._encoder(table)
        _check_width(table, encoder.columns, message.new)
        return encoder.create(message.new, self._moment, lsn)

    def _updated(self, table: TableStream, message: Update, lsn: int) -> Sequence[Record]:
        encoder = self._encoder(table)
        old = message.old
        _check_width(table, encoder.columns, message.new)
        if old is None or not encoder.key:
            whole = old if message.is_full else None
            new = filled(message.new, old, is_full=message.is_full)
            return [encoder.update(whole, new, self._moment, lsn)]
        _check_width(table, encoder.columns, old)
        new = filled(message.new, old, is_full=message.is_full)
        if same_cells(old, new, encoder.key):
            whole = old if message.is_full else None
            return [encoder.update(whole, new, self._moment, lsn)]
        new = self._known(table, encoder, new)
        created = encoder.create(new, self._moment, lsn)
        return [*encoder.delete(old, self._moment, lsn), created]

    def _known(self, table: TableStream, encoder: EventEncoder, new: Cells) -> Cells:
        """Return a row under a new key, with its large values: whoever reads the event does not
        have them under that key, and the server did not send them. They are read as they are now;
        if they changed since, or the row is gone, a later event says so."""
        missing = [index for index, cell in enumerate(new) if cell is UNCHANGED]
        if not missing or table.relation is None:
            return new
        names = [encoder.columns[index].name for index in missing]
        key = {
            encoder.columns[i].name: cell for i in encoder.key if isinstance(cell := new[i], bytes)
        }
        values = self._lookups.row_now(table.relation, names, key)
        if values is None:
            return new
        known = list(new)
        for index, value in zip(missing, values, strict=True):
            known[index] = value
        return known

    def _deleted(self, table: TableStream, message: Delete, lsn: int) -> Sequence[Record]:
        encoder = self._encoder(table)
        _check_width(table, encoder.columns, message.old)
        return encoder.delete(message.old, self._moment, lsn)

    def _truncated(self, table: TableStream, lsn: int) -> Sequence[Record]:
        return [self._encoder(table).truncate(self._moment, lsn)]


def key_indexes(relation: Relation, primary_key: Callable[[int], Sequence[str]]) -> Sequence[int]:
    """Return the columns of the replica identity. If that is the whole row, the primary key."""
    if relation.identity != "f":
        return [index for index, column in enumerate(relation.columns) if column.is_key]
    names = [column.name for column in relation.columns]
    key = primary_key(relation.oid)
    return [names.index(name) for name in key] if set(key) <= set(names) else []


def _check_width(table: TableStream, columns: Sequence[RelationColumn], cells: Cells) -> None:
    if len(cells) != len(columns):
        raise Malformed(
            f"the server sent {len(cells)} values for a row of {table.name}, which has "
            f"{len(columns)} columns"
        )
