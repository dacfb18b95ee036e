"""PartitionTransactions: the transactions of a partition, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.disk import is_full
from frazil.log.checkpoint import PartitionFiles, save_transactions
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.log.transactions.aborted_file import AbortedFile
from frazil.log.transactions.markers import Marker
from frazil.log.transactions.state import Transactions, TransactionStep
from frazil.log.watermarks import StablePoint
from frazil.metrics import Counter

FILES_SKIPPED = Counter(
    "frazil.log.aborted_files.skipped",
    "Files of aborted transactions not shortened because the disk was full.",
)


class PartitionTransactions:
    """Owned by the writer thread."""

    def __init__(self, files: PartitionFiles, transactions: Transactions) -> None:
        """Write the file of aborted transactions anew: recovery may have found others."""
        self._files = files
        self._transactions = transactions
        self._aborted_file = AbortedFile(files.disk, files.folder)
        if transactions.aborted.count:
            self._aborted_file.replace(transactions.aborted)

    @property
    def aborted(self) -> AbortedTransactions:
        return self._transactions.aborted

    @property
    def open_offsets(self) -> dict[int, int]:
        """First offset by producer id, of transactions without a marker."""
        return self._transactions.open_offsets

    def reserve(self, steps: Iterable[TransactionStep | None]) -> None:
        """Make room for what these steps abort. Call it before they are written."""
        count = sum(step is not None and step.marker is Marker.ABORT for step in steps)
        if count:
            self._aborted_file.reserve(self.aborted, count)

    def apply(self, steps: Iterable[TransactionStep | None]) -> None:
        """Take durable batches into account. Other processes find what they aborted in the file
        before the watermark file tells of it."""
        for step in steps:
            aborted = None if step is None else self._transactions.apply(step)
            if aborted is not None:
                self._aborted_file.add(aborted, self.aborted.count - 1)

    def stable_point(self, start_offset: int, durable_watermark: int) -> StablePoint:
        """Return how far transactions are decided. `drop_oldest` may have removed open ones."""
        offset = self._transactions.last_stable_offset(durable_watermark)
        return StablePoint(max(start_offset, offset), self.aborted.count)

    def save(self, end_offset: int) -> None:
        """Save a checkpoint, if there was a transaction."""
        if not self._transactions.is_empty:
            self._aborted_file.sync()
            save_transactions(self._files, self._transactions, end_offset)

    def forget_below(self, start_offset: int) -> None:
        """Forget aborted transactions that ended below. On a full disk the old file stays: it has
        more than is needed."""
        if not self._transactions.forget_below(start_offset):
            return
        try:
            self._aborted_file.replace(self.aborted)
        except OSError as error:
            if not is_full(error):
                raise
            FILES_SKIPPED.add()

    def close(self) -> None:
        self._aborted_file.close()
