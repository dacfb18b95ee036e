"""Messages of pgoutput, the plugin of Postgres for logical replication, as values. No I/O.

Protocol version 1: a transaction is sent once it has committed, whole and in the order of commits.
The server keeps large ones on its own disk until then. Values are texts, as output functions of
their types write them.

https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import Final, NamedTuple

from frazil.errors import Malformed

COLUMNS_MAX = 1664
"""Postgres allows no more columns in a row."""
RELATIONS_MAX = 100_000
"""In one TRUNCATE."""

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
UINT32 = struct.Struct(">I")
UINT64 = struct.Struct(">Q")
BEGIN = struct.Struct(">QqI")
COMMIT = struct.Struct(">BQQq")
TRUNCATE = struct.Struct(">IB")
MESSAGE = struct.Struct(">BQ")
COLUMN = struct.Struct(">Ii")

NULL, TOAST, TEXT = b"nut"
OLD_KEY, OLD_ROW, NEW_ROW = b"KON"
IS_KEY = 1
CASCADE, RESTART_IDENTITY = 1, 2


class Unchanged(Enum):
    """A large value that the server does not send, because it did not change."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Cell = bytes | None | Unchanged
"""A value as text; None is NULL."""
Cells = list[Cell]


class Begin(NamedTuple):
    """A transaction begins. Its position in the log of the server is known already."""

    commit_lsn: int
    committed_at_us: int
    """Microseconds since 2000."""
    xid: int


class Commit(NamedTuple):
    """A transaction ends. What is acknowledged is its end."""

    commit_lsn: int
    end_lsn: int
    committed_at_us: int


class RelationColumn(NamedTuple):
    """A column of a table, as of the changes that follow."""

    name: str
    type_oid: int
    type_modifier: int
    is_key: bool
    """Part of the replica identity."""


class Relation(NamedTuple):
    """A table, as of the changes that follow. Sent before the first of them, and after DDL."""

    oid: int
    schema: str
    table: str
    identity: str
    """Replica identity: d(efault), n(othing), f(ull) or i(ndex)."""
    columns: tuple[RelationColumn, ...]


class TypeName(NamedTuple):
    """The name of a type that is not built in."""

    oid: int
    schema: str
    name: str


class Insert(NamedTuple):
    """A row was inserted."""

    oid: int
    new: Cells


class Update(NamedTuple):
    """A row was updated."""

    oid: int
    old: Cells | None
    """The old row if the identity is full; old key columns, if they changed; else None."""
    is_full: bool
    new: Cells


class Delete(NamedTuple):
    """A row was deleted."""

    oid: int
    old: Cells
    """The row if the identity is full; else its key columns, the others None."""
    is_full: bool


class TruncateMessage(NamedTuple):
    """Tables were emptied."""

    oids: tuple[int, ...]
    is_cascade: bool
    restarts_identity: bool


class LogicalMessage(NamedTuple):
    """What `pg_logical_emit_message` has sent."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


class OriginMessage(NamedTuple):
    """The transaction was replicated to the server from another one."""

    lsn: int
    name: str


Message = (
    Begin
    | Commit
    | Relation
    | TypeName
    | Insert
    | Update
    | Delete
    | TruncateMessage
    | LogicalMessage
    | OriginMessage
)


def decode(data: bytes) -> Message:
    """Decode one message. Raises `Malformed` if it is not exactly one."""
    try:
        message, end = _decode(data)
    except (struct.error, IndexError):
        raise Malformed(f"a message of pgoutput ends too early, after {len(data)} bytes") from None
    except UnicodeDecodeError as error:
        raise Malformed(f"a name in a message of pgoutput is not UTF-8: {error.reason}") from None
    if end != len(data):
        raise Malformed(f"a message of pgoutput has {len(data)} bytes, of which {end} are known")
    return message


def _decode(data: bytes) -> tuple[Message, int]:
    kind = data[0:1]
    if kind == b"I":
        (oid,) = UINT32.unpack_from(data, 1)
        _expect(data[5], NEW_ROW)
        new, at = _cells(data, 6)
        return Insert(oid, new), at
    if kind == b"U":
        return _update(data)
    if kind == b"D":
        (oid,) = UINT32.unpack_from(data, 1)
        _expect(data[5], OLD_KEY, OLD_ROW)
        old, at = _cells(data, 6)
        return Delete(oid, old, data[5] == OLD_ROW), at
    if kind == b"B":
        return Begin(*BEGIN.unpack_from(data, 1)), 1 + BEGIN.size
    if kind == b"C":
        _, commit_lsn, end_lsn, committed_at = COMMIT.unpack_from(data, 1)
        return Commit(commit_lsn, end_lsn, committed_at), 1 + COMMIT.size
    return _decode_rare(kind, data)


def _decode_rare(kind: bytes, data: bytes) -> tuple[Message, int]:
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        return _truncate(data)
    if kind == b"Y":
        (oid,) = UINT32.unpack_from(data, 1)
        schema, at = _string(data, 5)
        name, at = _string(data, at)
        return TypeName(oid, schema or "pg_catalog", name), at
    if kind == b"M":
        flags, lsn = MESSAGE.unpack_from(data, 1)
        prefix, at = _string(data, 1 + MESSAGE.size)
        content, at = _sized(data, at)
        return LogicalMessage(flags & 1 == 1, lsn, prefix, content), at
    if kind == b"O":
        (lsn,) = UINT64.unpack_from(data, 1)
        name, at = _string(data, 9)
        return OriginMessage(lsn, name), at
    raise Malformed(f"pgoutput has sent a message of the unknown kind {kind!r}")


def _update(data: bytes) -> tuple[Message, int]:
    (oid,) = UINT32.unpack_from(data, 1)
    mark, at = data[5], 6
    _expect(mark, NEW_ROW, OLD_KEY, OLD_ROW)
    old: Cells | None = None
    if mark != NEW_ROW:
        old, at = _cells(data, at)
        _expect(data[at], NEW_ROW)
        at += 1
    new, at = _cells(data, at)
    return Update(oid, old, mark == OLD_ROW, new), at


def _relation(data: bytes) -> tuple[Message, int]:
    (oid,) = UINT32.unpack_from(data, 1)
    schema, at = _string(data, 5)
    table, at = _string(data, at)
    identity = chr(data[at])
    count, at = _count(data, at + 1)
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _string(data, at + 1)
        type_oid, modifier = COLUMN.unpack_from(data, at)
        at += COLUMN.size
        columns.append(RelationColumn(name, type_oid, modifier, flags & IS_KEY == IS_KEY))
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns)), at


def _truncate(data: bytes) -> tuple[Message, int]:
    count, flags = TRUNCATE.unpack_from(data, 1)
    if count > RELATIONS_MAX:
        raise Malformed(f"a TRUNCATE of {count} tables")
    end = 1 + TRUNCATE.size + count * UINT32.size
    oids = struct.unpack_from(f">{count}I", data, 1 + TRUNCATE.size)
    return TruncateMessage(oids, flags & CASCADE != 0, flags & RESTART_IDENTITY != 0), end


def _cells(data: bytes, at: int) -> tuple[Cells, int]:
    count, at = _count(data, at)
    cells: Cells = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == TEXT:
            cell, at = _sized(data, at)
            cells.append(cell)
        elif kind == NULL:
            cells.append(None)
        elif kind == TOAST:
            cells.append(UNCHANGED)
        else:
            raise Malformed(f"a value of the unknown kind {chr(kind)!r} in a message of pgoutput")
    return cells, at


def _count(data: bytes, at: int) -> tuple[int, int]:
    (count,) = INT16.unpack_from(data, at)
    if not 0 <= count <= COLUMNS_MAX:
        raise Malformed(f"a row of {count} columns in a message of pgoutput")
    return count, at + INT16.size


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    (size,) = INT32.unpack_from(data, at)
    at += INT32.size
    if not 0 <= size <= len(data) - at:
        raise Malformed(f"a value of {size} bytes with {len(data) - at} left")
    return data[at : at + size], at + size


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.find(b"\0", at)
    if end < 0:
        raise IndexError
    return data[at:end].decode(), end + 1


def _expect(mark: int, *valid: int) -> None:
    if mark not in valid:
        raise Malformed(f"a row is marked {chr(mark)!r} in a message of pgoutput")
