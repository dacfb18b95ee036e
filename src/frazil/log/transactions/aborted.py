"""AbortedTransactions: the aborted transactions of one partition. Committed readers skip them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

FIRST = attrgetter("first_offset")
END = attrgetter("end_offset")


class AbortedTransaction(NamedTuple):
    """The producer's batches from `first_offset` up to its marker at `end_offset` do not count."""

    producer_id: int
    first_offset: int
    end_offset: int


class AbortedTransactions:
    """In the order of their markers. Extended by one thread; others see whole entries."""

    def __init__(self, entries: Iterable[AbortedTransaction] = (), first_number: int = 0) -> None:
        self.first_number = first_number
        """How many were forgotten because the log no longer has them."""
        self._entries: list[AbortedTransaction] = []
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for entry in entries:
            self.add(entry)

    @property
    def count(self) -> int:
        """How many there have been, with the forgotten ones."""
        return self.first_number + len(self._entries)

    def add(self, entry: AbortedTransaction) -> None:
        self._by_producer.setdefault(entry.producer_id, []).append(entry)
        self._entries.append(entry)

    def covers(self, producer_id: int, offset: int) -> bool:
        """Return whether a producer's transactional batch at `offset` was aborted."""
        return self.of_batch(producer_id, offset) is not None

    def of_batch(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """Return the transaction that a producer's batch at `offset` was part of; None if it was
        not aborted."""
        entries = self._by_producer.get(producer_id)
        if entries is None:
            return None
        at = bisect_right(entries, offset, key=FIRST) - 1
        return entries[at] if at >= 0 and offset < entries[at].end_offset else None

    def overlapping(self, begin: int, end: int) -> list[AbortedTransaction]:
        """Return those with batches in [begin, end), by first offset."""
        at = bisect_right(self._entries, begin, key=END)
        return sorted((e for e in self._entries[at:] if e.first_offset < end), key=FIRST)

    def from_number(self, number: int) -> list[AbortedTransaction]:
        """Return the entries from absolute number `number` on."""
        return self._entries[max(0, number - self.first_number) :]

    def above(self, start_offset: int) -> AbortedTransactions:
        """Return these without the ones that ended below `start_offset`."""
        at = bisect_right(self._entries, start_offset, key=END)
        return AbortedTransactions(self._entries[at:], self.first_number + at)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbortedTransactions):
            return NotImplemented
        return (self.first_number, self._entries) == (other.first_number, other._entries)

    __hash__ = None  # type: ignore[assignment] # it grows

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
