"""What clients sent, and what they were told. The judge compares it with what can be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from frazil.model import TopicPartition
from tests.torture.checker import Verdict

Decision = Literal["open", "commit_sent", "committed", "aborted"]
"""`open`: no commit was ever sent. `commit_sent`: it was, and its outcome is not known."""


@dataclass(slots=True, eq=False)
class SentRecord:
    """One record. Its value is its identity: no other has the same, except its twin's."""

    target: TopicPartition
    source: str
    number: int
    """Grows with each record of a source."""
    key: bytes | None
    value: bytes | None
    offset: int = -1
    """Where it is, once that was acknowledged."""

    @property
    def is_acknowledged(self) -> bool:
        return self.offset >= 0


@dataclass(slots=True, eq=False)
class SentTransaction:
    """All that belongs to one transaction."""

    source: str
    records: list[SentRecord] = field(default_factory=list)
    offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    """Offsets that were acknowledged, by group and partition."""
    decision: Decision = "open"

    @property
    def may_be_visible(self) -> bool:
        return self.decision in ("commit_sent", "committed")


@dataclass(slots=True, eq=False)
class History:
    """Everything of one seed."""

    verdict: Verdict
    plain: list[SentRecord] = field(default_factory=list)
    transactions: list[SentTransaction] = field(default_factory=list)
    commits: dict[tuple[str, TopicPartition], list[tuple[int, bool]]] = field(default_factory=dict)
    """Offsets that one source has sent for a group and partition, and whether they count for
    sure, in order."""
    _owners: dict[tuple[int, int], str] = field(default_factory=dict)
    _number: int = 0

    def record(
        self,
        target: TopicPartition,
        source: str,
        *,
        key: bytes | None = None,
        value: bytes | None = None,
        is_tombstone: bool = False,
    ) -> SentRecord:
        """Return a new record. Without a value it gets one of its own."""
        self._number += 1
        if value is None and not is_tombstone:
            value = b"%s:%d" % (source.encode(), self._number)
        return SentRecord(target, source, self._number, key, value)

    def begin(self, source: str) -> SentTransaction:
        transaction = SentTransaction(source)
        self.transactions.append(transaction)
        return transaction

    def told(self, producer_id: int, epoch: int, owner: str) -> None:
        """Note that a client was told its producer id and epoch: nobody else ever is."""
        known = self._owners.setdefault((producer_id, epoch), owner)
        if known != owner:
            self.verdict.add(
                "untrue", f"producer {producer_id} epoch {epoch} is {known}'s and {owner}'s"
            )

    def all_records(self) -> list[tuple[SentRecord, SentTransaction | None]]:
        found: list[tuple[SentRecord, SentTransaction | None]] = [(r, None) for r in self.plain]
        for transaction in self.transactions:
            found += [(record, transaction) for record in transaction.records]
        return found
