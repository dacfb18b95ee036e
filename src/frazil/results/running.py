"""RunningQuery: a query that is running, wherever that is."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from frazil.errors import FrazilError


class RunningQuery(Protocol):
    """A query that is running, wherever that is. Read by one thread, stopped by any."""

    schema: pa.Schema
    is_cut: bool
    """Were there more rows than it has given?"""

    def next(self) -> pa.RecordBatch | None:
        """The next rows; None at the end. Raises what the run was stopped with."""

    def stop(self, error: FrazilError) -> None:
        """End it now: whoever waits in `next` gets this error, and so does who comes later."""

    def close(self) -> None:
        """Let go of everything it holds."""
