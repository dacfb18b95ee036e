"""How far a source has got, as the log remembers it; and what may be acknowledged to the server.

Changes are ordered by the LSN of their commit and their number within the transaction, never by
their own LSN: transactions overlap in the server's log, and are sent in the order of commits.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2s
from typing import Self

import msgspec

from frazil.errors import Malformed

COPIED = -1
"""Rows copied so far, once all are."""
MARK_BYTES = 3
MARK_TEXT = 4
COLUMNS_MARKED_MAX = 120
"""A position has room for so many marks of columns."""


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    high, slash, low = text.partition("/")
    try:
        if slash and len(high) <= 8 and len(low) <= 8:
            return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        pass
    raise Malformed(f"{text!r} is no position in a log of Postgres")


def column_marks(names: Sequence[str]) -> str:
    """Return a short mark for each column name; nothing if there are too many. Positions keep them,
    so that a rename during a restart is noticed."""
    if len(names) > COLUMNS_MARKED_MAX:
        return ""
    digests = (blake2s(name.encode(), digest_size=MARK_BYTES).digest() for name in names)
    return "".join(urlsafe_b64encode(digest).decode() for digest in digests)


def split_marks(marks: str) -> set[str]:
    return {marks[at : at + MARK_TEXT] for at in range(0, len(marks), MARK_TEXT)}


class PostgresPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All changes of transactions that commit below `lsn` are in the topic, and the first `number`
    changes of the one that commits there."""

    system: str
    """Identifies the database cluster."""
    slot: str
    lsn: str
    number: int = 0
    end: str = "0/0"
    """End of the transaction; unless zero it is in the topic as a whole."""
    oid: int = 0
    """Of the table. Another one under this name is another table."""
    copied: int = COPIED
    """Rows of the first copy that are in the topic, while it goes on."""
    columns: str = ""

    @property
    def order(self) -> tuple[int, int]:
        return parse_lsn(self.lsn), self.number

    @property
    def reached(self) -> int:
        """How far the server's log is known to be in the topic, of what the server may forget."""
        return max(parse_lsn(self.lsn), parse_lsn(self.end))

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        try:
            position = msgspec.json.decode(data, type=cls)
            position.order, position.end  # noqa: B018 - both LSNs must parse
        except msgspec.MsgspecError as error:
            raise Malformed(f"a position is not one of a Postgres source: {error}") from None
        return position


class Acknowledgements:
    """Which LSN may be acknowledged: the end of the last transaction below which everything is
    durable in the topics."""

    def __init__(self) -> None:
        self.durable_lsn = 0
        self._waiting: deque[tuple[int, set[tuple[str, bytes]]]] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to become durable."""
        return not self._waiting

    def wait_for(self, batches: Iterable[tuple[str, bytes]], end_lsn: int) -> None:
        """After these (stream, position), everything up to `end_lsn` is durable; 0 if a transaction
        is not over."""
        self._waiting.append((end_lsn, set(batches)))
        self._advance()

    def durable(self, stream: str, position: bytes) -> None:
        """Everything of a stream is durable up to a position."""
        for index, (_, batches) in enumerate(self._waiting):
            if (stream, position) in batches:
                last = index
                break
        else:
            return
        for _, batches in list(self._waiting)[: last + 1]:
            for batch in [batch for batch in batches if batch[0] == stream]:
                batches.discard(batch)
        self._advance()

    def _advance(self) -> None:
        while self._waiting and not self._waiting[0][1]:
            end_lsn, _ = self._waiting.popleft()
            self.durable_lsn = max(self.durable_lsn, end_lsn)
