"""IdExpiry: forgets transactional ids that were not used for long."""

from __future__ import annotations

from functools import partial

from frazil.kafka.transactions.transactional_ids import Transactional, TransactionalIds
from frazil.metrics import Counter

IDS_PER_STEP = 1_000
"""Ids looked at in one go, so that clients never wait long for their answers."""
PAUSE_MS = 20

EXPIRED = Counter("frazil.kafka.transaction.expired.ids", "Transactional ids that have expired.")


class IdExpiry:
    """Owned by one thread."""

    def __init__(self, ids: TransactionalIds) -> None:
        self._ids = ids

    def start(self) -> None:
        """Look at all ids, again and again."""
        self._ids.timers.after(self._ids.config.expiry_interval_ms, self._begin)

    def _begin(self) -> None:
        self._continue(list(self._ids))

    def _continue(self, entries: list[Transactional]) -> None:
        for _ in range(min(IDS_PER_STEP, len(entries))):
            entry = entries.pop()
            if self._is_expired(entry):
                EXPIRED.add()
                self._ids.forget(entry)
        if entries:
            self._ids.timers.after(PAUSE_MS, partial(self._continue, entries))
        else:
            self.start()

    def _is_expired(self, entry: Transactional) -> bool:
        current = entry.current
        if entry.is_forgotten or entry.pending is not None or current.state.is_open:
            return False
        return current.update_ms + self._ids.config.id_retention_ms <= self._ids.time.now_ms()
