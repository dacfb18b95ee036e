"""RunningQuery: a query that is running, in this process or elsewhere."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from frazil.errors import FrazilError


class RunningQuery(Protocol):
    """A query in progress. Read by one thread, cancelled from any."""

    schema: pa.Schema
    is_cut: bool
    """Whether rows beyond the limit were left out."""

    def next(self) -> pa.RecordBatch | None:
        """Return the next batch, None at the end. Raises the error it was cancelled with."""

    def cancel(self, error: FrazilError) -> None:
        """Stop it now. A `next` that waits, and every later one, raises `error`."""

    def close(self) -> None:
        """Release everything it holds."""
