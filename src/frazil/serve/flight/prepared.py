"""PreparedStatements: handles of prepared texts, which expire when they are idle."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.errors import Overloaded, Unknown
from frazil.model import NS_PER_MS, Clock, Rand

IDLE_MS = 600_000
"""A handle that is not used for this long is closed."""
HANDLES_MAX = 4096
NUMBER_BYTES = 16


@dataclass(slots=True, kw_only=True)
class PreparedStatement:
    """A text, as the client has prepared it. Its values may be bound again and again."""

    text: str
    is_query: bool
    columns: pa.Schema
    """Of the rows; none for a statement."""
    parameters: pa.Schema
    rows: Sequence[pa.RecordBatch] = ()
    """Values that are bound."""
    used_ns: int = field(default=0)


class PreparedStatements:
    """Thread-safe. The handles of all clients."""

    def __init__(self, clock: Clock, rand: Rand) -> None:
        self._clock = clock
        self._rand = rand
        self._lock = threading.Lock()
        self._by_handle: OrderedDict[bytes, PreparedStatement] = OrderedDict()

    def add(self, statement: PreparedStatement) -> bytes:
        """Keep a statement. `Overloaded` if there are too many."""
        handle = self.new_number()
        with self._lock:
            self._expire()
            if len(self._by_handle) >= HANDLES_MAX:
                raise Overloaded(
                    f"{HANDLES_MAX} prepared statements are open; close some, or wait until idle "
                    f"ones are closed, {IDLE_MS // 60_000} minutes after their last use"
                )
            statement.used_ns = self._clock.monotonic_ns()
            self._by_handle[handle] = statement
        return handle

    def find(self, handle: bytes) -> PreparedStatement:
        """Return a statement, and note that it is used. `Unknown` if it is closed."""
        with self._lock:
            self._expire()
            statement = self._by_handle.get(handle)
            if statement is None:
                raise Unknown("this prepared statement is closed, or has expired; prepare it again")
            statement.used_ns = self._clock.monotonic_ns()
            self._by_handle.move_to_end(handle)
        return statement

    def take(self, handle: bytes) -> PreparedStatement | None:
        """Close a statement and return it; None if it is closed already."""
        with self._lock:
            return self._by_handle.pop(handle, None)

    def expire(self) -> None:
        """Close what was idle for too long."""
        with self._lock:
            self._expire()

    def new_number(self) -> bytes:
        return self._rand.getrandbits(8 * NUMBER_BYTES).to_bytes(NUMBER_BYTES, "big")

    @property
    def count(self) -> int:
        return len(self._by_handle)

    def _expire(self) -> None:
        oldest_ns = self._clock.monotonic_ns() - IDLE_MS * NS_PER_MS
        while self._by_handle:
            handle, statement = next(iter(self._by_handle.items()))
            if statement.used_ns > oldest_ns:
                return
            del self._by_handle[handle]
