"""The decoder of pgoutput: what an encoder writes comes back, and nothing else is accepted."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Cells,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    OriginMessage,
    Relation,
    RelationColumn,
    TruncateMessage,
    TypeName,
    Update,
    decode,
)
from frazil.errors import Malformed

UINT64 = st.integers(0, 2**64 - 1)
OIDS = st.integers(0, 2**32 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8
)
CELLS = st.lists(st.one_of(st.none(), st.just(UNCHANGED), st.binary(max_size=9)), max_size=5)
COLUMNS = st.builds(RelationColumn, NAMES, OIDS, st.integers(-(2**31), 2**31 - 1), st.booleans())
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Begin, UINT64, TIMES, OIDS),
    st.builds(Commit, UINT64, UINT64, TIMES),
    st.builds(Insert, OIDS, CELLS),
    st.builds(Update, OIDS, CELLS, st.booleans(), CELLS),
    st.builds(Update, OIDS, st.none(), st.just(False), CELLS),
    st.builds(Delete, OIDS, CELLS, st.booleans()),
    st.builds(
        Relation,
        OIDS,
        NAMES,
        NAMES,
        st.sampled_from("dnfi"),
        st.lists(COLUMNS, max_size=4).map(tuple),
    ),
    st.builds(TruncateMessage, st.lists(OIDS, max_size=4).map(tuple), st.booleans(), st.booleans()),
    st.builds(LogicalMessage, st.booleans(), UINT64, NAMES, st.binary(max_size=9)),
    st.builds(OriginMessage, UINT64, NAMES),
    st.builds(TypeName, OIDS, NAMES, NAMES),
)


def _text(name: str) -> bytes:
    return name.encode() + b"\0"


def _cells(cells: Cells) -> bytes:
    parts = [struct.pack(">h", len(cells))]
    for cell in cells:
        if cell is None:
            parts.append(b"n")
        elif isinstance(cell, bytes):
            parts.append(b"t" + struct.pack(">i", len(cell)) + cell)
        else:
            parts.append(b"u")
    return b"".join(parts)


def encode(message: Message) -> bytes:
    """Write a message as the server does."""
    match message:
        case Begin():
            return b"B" + struct.pack(">QqI", *message)
        case Commit():
            return b"C\0" + struct.pack(">QQq", *message)
        case Insert():
            return b"I" + struct.pack(">I", message.oid) + b"N" + _cells(message.new)
        case Update():
            old = b""
            if message.old is not None:
                old = (b"O" if message.is_full else b"K") + _cells(message.old)
            return b"U" + struct.pack(">I", message.oid) + old + b"N" + _cells(message.new)
        case Delete():
            mark = b"O" if message.is_full else b"K"
            return b"D" + struct.pack(">I", message.oid) + mark + _cells(message.old)
        case Relation():
            head = struct.pack(">I", message.oid) + _text(message.schema) + _text(message.table)
            columns = b"".join(
                bytes((column.is_key,))
                + _text(column.name)
                + struct.pack(">Ii", column.type_oid, column.type_modifier)
                for column in message.columns
            )
            count = struct.pack(">h", len(message.columns))
            return b"R" + head + message.identity.encode() + count + columns
        case TruncateMessage():
            flags = message.is_cascade | message.restarts_identity << 1
            total = len(message.oids)
            return b"T" + struct.pack(f">IB{total}I", total, flags, *message.oids)
        case LogicalMessage():
            head = struct.pack(">BQ", message.is_transactional, message.lsn)
            size = struct.pack(">i", len(message.content))
            return b"M" + head + _text(message.prefix) + size + message.content
        case OriginMessage():
            return b"O" + struct.pack(">Q", message.lsn) + _text(message.name)
        case TypeName():
            return (
                b"Y" + struct.pack(">I", message.oid) + _text(message.schema) + _text(message.name)
            )


@given(MESSAGES)
def test_messages_come_back(message: Message) -> None:
    """What the server writes is what is read."""
    assert decode(encode(message)) == message


@given(MESSAGES, st.data())
def test_cut_messages_are_refused(message: Message, data: st.DataObject) -> None:
    """A message without its end, or with more behind it, is no message."""
    encoded = encode(message)
    end = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(Malformed):
        decode(encoded[:end])
    with pytest.raises(Malformed):
        decode(encoded + b"n")


@given(st.binary(max_size=60), st.sampled_from("BCIUDRTYMO"))
def test_any_bytes_are_read_or_refused(data: bytes, kind: str) -> None:
    """No bytes lead to another error, and what is read is what was written."""
    encoded = kind.encode() + data
    try:
        message = decode(encoded)
    except Malformed:
        return
    assert len(encode(message)) == len(encoded)


@pytest.mark.parametrize("count", [b"\xff\xff", b"\x7f\xff"])
def test_counts_are_bounded(count: bytes) -> None:
    """A row has no more columns than Postgres allows."""
    with pytest.raises(Malformed, match="columns"):
        decode(b"I\0\0\0\1N" + count)
    with pytest.raises(Malformed, match="TRUNCATE"):
        decode(b"T\x7f\xff\xff\xff\0")
