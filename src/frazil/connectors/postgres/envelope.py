"""Change events, as Debezium's connector for Postgres writes them in JSON without schemas.

    op        c(reate), u(pdate), d(elete), r(ead by the first copy), t(runcate)
    before    the row before: of a delete, and of an update under REPLICA IDENTITY FULL
    after     the row after
    source    where and when: commit time, transaction, LSN, schema, table

A change of a key is a delete and a create. A delete is followed by a record without value, so that
compaction forgets the key. A large value that did not change and is not known is
`__debezium_unavailable_value`, and named in `unchanged`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from frazil.connectors.postgres.json_values import PostgresType, ToJson, converter
from frazil.connectors.postgres.pgoutput import UNCHANGED, Cell, Cells, RelationColumn
from frazil.errors import Malformed
from frazil.log import Record

UNAVAILABLE = b'"__debezium_unavailable_value"'
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class EventMoment:
    """What the events of one transaction, or of one copy, have in common."""

    committed_at_us: int
    """Microseconds since 1970."""
    now_ms: int
    xid: int | None
    before_lsn: int
    """End of the transaction before; 0 if it is not known."""
    is_copy: bool = False


@dataclass(slots=True)
class EventEncoder:
    """Events of one table with these columns."""

    connector: str
    database: str
    schema: str
    table: str
    columns: Sequence[RelationColumn]
    key: Sequence[int]
    """Indexes of the key columns; empty if the table has no key."""
    types: Mapping[int, PostgresType]
    _names: list[bytes] = field(init=False)
    _fields: list[tuple[bytes, ToJson]] = field(init=False)
    _source: tuple[bytes, bytes, bytes] = field(init=False)
    _moment: EventMoment | None = field(init=False, default=None)
    _common: tuple[bytes, bytes, bytes] = field(init=False, default=(b"", b"", b""))

    def __post_init__(self) -> None:
        self._names = [msgspec.json.encode(column.name) for column in self.columns]
        self._fields = [
            (name + b":", converter(column.type_oid, self.types))
            for name, column in zip(self._names, self.columns, strict=True)
        ]
        of = [msgspec.json.encode(t) for t in (self.connector, self.database)]
        place = [msgspec.json.encode(t) for t in (self.schema, self.table)]
        self._source = (
            b'"source":{"connector":"postgresql","name":%b,' % of[0],
            b'"db":%b,' % of[1],
            b'"schema":%b,"table":%b,' % tuple(place),
        )

    def key_json(self, cells: Cells) -> bytes | None:
        """Return the key of a record; None if the table has none."""
        if not self.key:
            return None
        parts = []
        for index in self.key:
            name, to_json = self._fields[index]
            cell = cells[index]
            if not isinstance(cell, bytes):
                raise Malformed(
                    f"{self.schema}.{self.table}: the key column {self.columns[index].name} of a "
                    "change has no value"
                )
            parts.append(name + to_json(cell))
        return b"{%b}" % b",".join(parts)

    def row_json(self, cells: Cells | None) -> bytes:
        if cells is None:
            return b"null"
        parts = []
        for (name, to_json), cell in zip(self._fields, cells, strict=True):
            if cell is None:
                parts.append(name + b"null")
            elif cell is UNCHANGED:
                parts.append(name + UNAVAILABLE)
            else:
                parts.append(name + to_json(cell))
        return b"{%b}" % b",".join(parts)

    def read(self, cells: Cells, moment: EventMoment, lsn: int) -> Record:
        """The event of a row that the first copy has read."""
        value = self._event(b"r", b"null", self.row_json(cells), moment, lsn)
        return _record(self.key_json(cells), value, moment)

    def create(self, new: Cells, moment: EventMoment, lsn: int) -> Record:
        value = self._event(b"c", b"null", self.row_json(new), moment, lsn, self._unchanged(new))
        return _record(self.key_json(new), value, moment)

    def update(self, old: Cells | None, new: Cells, moment: EventMoment, lsn: int) -> Record:
        """The event of an update that leaves the key as it is."""
        unchanged = self._unchanged(new)
        value = self._event(b"u", self.row_json(old), self.row_json(new), moment, lsn, unchanged)
        return _record(self.key_json(new), value, moment)

    def delete(self, old: Cells, moment: EventMoment, lsn: int) -> list[Record]:
        """The event of a delete; and the record that makes compaction forget the key."""
        key = self.key_json(old)
        value = self._event(b"d", self.row_json(old), b"null", moment, lsn)
        record = _record(key, value, moment)
        return [record] if key is None else [record, _record(key, None, moment)]

    def truncate(self, moment: EventMoment, lsn: int) -> Record:
        return _record(None, self._event(b"t", b"null", b"null", moment, lsn), moment)

    def _unchanged(self, cells: Cells) -> bytes:
        if UNCHANGED not in cells:
            return b""
        names = [n for n, cell in zip(self._names, cells, strict=True) if cell is UNCHANGED]
        return b'"unchanged":[%b],' % b",".join(names)

    def _event(
        self,
        op: bytes,
        before: bytes,
        after: bytes,
        moment: EventMoment,
        lsn: int,
        unchanged: bytes = b"",
    ) -> bytes:
        if moment is not self._moment:
            self._common = self._common_parts(moment)
            self._moment = moment
        source, middle, end = self._common
        return b'{"before":%b,"after":%b,%b%d%b%d%b"op":"%b",%b' % (
            *(before, after, source, lsn, middle, lsn),
            *(b"}," + unchanged, op, end),
        )

    def _common_parts(self, moment: EventMoment) -> tuple[bytes, bytes, bytes]:
        """Return the parts of the events of a moment: up to the LSN in `sequence`, up to `lsn`, and
        the end."""
        at_us = moment.committed_at_us
        head, database, place = self._source
        before_lsn = b'\\"%d\\"' % moment.before_lsn if moment.before_lsn else b"null"
        source = b'%b"ts_ms":%d,"ts_us":%d,"snapshot":"%b",%b"sequence":"[%b,\\"' % (
            *(head, at_us // 1000, at_us, b"true" if moment.is_copy else b"false", database),
            before_lsn,
        )
        xid = b"null" if moment.xid is None else b"%d" % moment.xid
        middle = b'\\"]",%b"txId":%b,"lsn":' % (place, xid)
        return source, middle, b'"ts_ms":%d}' % moment.now_ms


def _record(key: bytes | None, value: bytes | None, moment: EventMoment) -> Record:
    return Record(offset=0, timestamp_ms=moment.committed_at_us // 1000, key=key, value=value)


def filled(new: Cells, old: Cells | None, *, is_full: bool) -> Cells:
    """Return the new row, with large values that did not change taken from the whole old one."""
    if old is None or not is_full or UNCHANGED not in new:
        return new
    pairs = zip(new, old, strict=True)
    return [before if cell is UNCHANGED else cell for cell, before in pairs]


def same_cells(one: Sequence[Cell], other: Sequence[Cell], indexes: Sequence[int]) -> bool:
    return all(one[index] == other[index] for index in indexes)
