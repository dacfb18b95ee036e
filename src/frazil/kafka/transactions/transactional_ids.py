"""TransactionalIds: all transactional ids, and the one way to change them: durably."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.errors import storage_error
from frazil.kafka.groups.journal import Journal
from frazil.kafka.groups.timers import GroupTimer, GroupTimers
from frazil.kafka.lone_client import LoneClient
from frazil.kafka.transactions.metadata import TransactionMetadata
from frazil.kafka.transactions.records import transaction_key, transaction_record
from frazil.log import AppendResult
from frazil.model import SteadyTime
from frazil.settings import TransactionsConfig

COMPLETE_DELAY_MS = 500
"""How long the record of a completed transaction waits for a later one."""

Saved = Callable[[ErrorCode], None]
"""Called once: NONE when the change is durable, otherwise why it was not made."""


class Transactional:
    """A transactional id. Data only."""

    def __init__(self, metadata: TransactionMetadata) -> None:
        self.current = metadata
        """Durable, except for the end of a transaction whose markers are all written."""
        self.pending: TransactionMetadata | None = None
        """What it becomes once that is durable. Meanwhile other changes are refused."""
        self.is_forgotten = False
        self.when_settled: list[Callable[[], None]] = []
        """What waits until nothing is pending."""
        self.timeout: GroupTimer | None = None


class TransactionalIds:
    """Owned by one thread."""

    def __init__(
        self,
        config: TransactionsConfig,
        *,
        journal: Journal,
        timers: GroupTimers,
        time: SteadyTime,
        lone: LoneClient,
    ) -> None:
        self.config = config
        self.timers = timers
        self.time = time
        self._journal = journal
        self._lone = lone
        self._by_id: dict[str, Transactional] = {}
        self._by_producer: dict[int, Transactional] = {}

    def get(self, transactional_id: str) -> Transactional | None:
        return self._by_id.get(transactional_id)

    def of_producer(self, producer_id: int) -> Transactional | None:
        """Return whose producer id this is; None if it was given to a producer without one."""
        return self._by_producer.get(producer_id)

    def put(self, metadata: TransactionMetadata) -> Transactional:
        """Add an id that is new, or was read from the log."""
        entry = Transactional(metadata)
        self._by_id[metadata.transactional_id] = entry
        self._by_producer[metadata.producer_id] = entry
        return entry

    def __iter__(self) -> Iterator[Transactional]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def save(self, entry: Transactional, after: TransactionMetadata, saved: Saved) -> None:
        """Change an id once that is durable."""
        assert entry.pending is None
        entry.pending = after
        # An open transaction keeps the log from being trimmed: it must end even if that is full.
        self._journal.append(
            [transaction_record(after)],
            partial(self._written, entry, saved),
            frees_space=after.state.is_prepared,
            lone=self.lone(entry),
        )

    def lone(self, entry: Transactional) -> LoneClient | None:
        """Count a write for an id. None if it is to be queued."""
        return self._lone if self._lone.is_lone(entry) else None

    def _written(
        self, entry: Transactional, saved: Saved, result: AppendResult | Exception
    ) -> None:
        assert entry.pending is not None
        after, entry.pending = entry.pending, None
        if isinstance(result, Exception):
            saved(storage_error(result))
        else:
            self._apply(entry, after)
            saved(ErrorCode.NONE)
        _settle(entry)

    def complete(self, entry: Transactional, after: TransactionMetadata) -> None:
        """Take a completed transaction at once. Its record follows later, unless a busy producer
        makes another one needed before: this saves a sync per transaction. Without either, the
        markers are written again at start, where nothing can have followed them."""
        self._apply(entry, after)
        self.timers.after(COMPLETE_DELAY_MS, partial(self._write_completed, entry, after))

    def _write_completed(self, entry: Transactional, after: TransactionMetadata) -> None:
        if entry.current is after and entry.pending is None:
            self._journal.append([transaction_record(after)], _ignore)

    def _apply(self, entry: Transactional, after: TransactionMetadata) -> None:
        self._by_producer.pop(entry.current.producer_id, None)
        self._by_producer[after.producer_id] = entry
        entry.current = after

    def forget(self, entry: Transactional) -> None:
        """Remove an id that was not used for long."""
        entry.pending = entry.current

        def written(result: AppendResult | Exception) -> None:
            entry.pending = None
            if not isinstance(result, Exception):
                self.drop(entry)
            _settle(entry)

        self._journal.append([(transaction_key(entry.current.transactional_id), None)], written)

    def drop(self, entry: Transactional) -> None:
        """Remove an id that the log does not have."""
        entry.is_forgotten = True
        del self._by_id[entry.current.transactional_id]
        self._by_producer.pop(entry.current.producer_id, None)


def _settle(entry: Transactional) -> None:
    waiting, entry.when_settled = entry.when_settled, []
    for each in waiting:
        each()


def _ignore(_: AppendResult | Exception) -> None:
    """Nothing depends on the record: see `complete`."""
