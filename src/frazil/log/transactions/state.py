"""Transactions: the open and aborted transactions of one partition."""

from __future__ import annotations

import struct
from typing import NamedTuple

from frazil.log.format.batch import BatchHeader
from frazil.log.transactions.aborted import AbortedTransaction, AbortedTransactions
from frazil.log.transactions.markers import Marker, marker_of

STATE = struct.Struct("<QQI")
"""Offset up to which the state counts, number of aborted transactions, number of open ones."""
OPEN = struct.Struct("<qq")
"""Producer id, first offset."""


class TransactionStep(NamedTuple):
    """What a batch does to its producer's transaction: extend it, or end it by a marker."""

    producer_id: int
    offset: int
    marker: Marker | None


def step_of(header: BatchHeader, base_offset: int, payload: bytes) -> TransactionStep | None:
    """Return what a batch does; None if it is part of no transaction."""
    if not header.is_transactional:
        return None
    if not header.is_control:
        return TransactionStep(header.producer_id, base_offset, None)
    marker = marker_of(payload)
    return None if marker is None else TransactionStep(header.producer_id, base_offset, marker)


class Transactions:
    """Owned by the writer thread."""

    def __init__(
        self,
        open_offsets: dict[int, int] | None = None,
        aborted: AbortedTransactions | None = None,
    ) -> None:
        self._open = open_offsets or {}
        """First offset by producer id, in the order of the offsets."""
        self.aborted = aborted or AbortedTransactions()

    def apply(self, step: TransactionStep) -> AbortedTransaction | None:
        """Take a durable batch into account. Returns the transaction that it aborted, if any."""
        if step.marker is None:
            self._open.setdefault(step.producer_id, step.offset)
            return None
        first_offset = self._open.pop(step.producer_id, None)
        if first_offset is None or step.marker is Marker.COMMIT:
            return None  # without batches here there is nothing to skip
        entry = AbortedTransaction(step.producer_id, first_offset, step.offset)
        self.aborted.add(entry)
        return entry

    @property
    def open_offsets(self) -> dict[int, int]:
        """First offset by producer id, of transactions without a marker."""
        return dict(self._open)

    def last_stable_offset(self, durable_watermark: int) -> int:
        """Return the first offset that is not decided."""
        return next(iter(self._open.values()), durable_watermark)

    @property
    def is_empty(self) -> bool:
        return not self._open and not self.aborted.count

    def forget_below(self, start_offset: int) -> bool:
        """Forget aborted transactions that ended below. Returns whether there were any."""
        kept = self.aborted.above(start_offset)
        is_changed = kept.first_number != self.aborted.first_number
        if is_changed:
            self.aborted = kept
        return is_changed

    def encode(self, end_offset: int) -> bytes:
        """Return the body of the checkpoint. Aborted transactions have a file of their own."""
        head = STATE.pack(end_offset, self.aborted.count, len(self._open))
        return head + b"".join(OPEN.pack(*each) for each in self._open.items())


def decode_state(data: bytes) -> tuple[int, int, dict[int, int]]:
    """Return the offset up to which the state counts, how many transactions had been aborted, and
    the open ones."""
    end_offset, aborted_count, open_count = STATE.unpack_from(data)
    entries = data[STATE.size : STATE.size + open_count * OPEN.size]
    return end_offset, aborted_count, dict(OPEN.iter_unpack(entries))
