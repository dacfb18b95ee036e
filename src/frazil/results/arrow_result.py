"""Rows of an Arrow table, or of a query that runs elsewhere, as a Result."""

from __future__ import annotations

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.results.cancel import CancelToken
from frazil.results.result import Result
from frazil.results.running import RunningQuery


def result_of(table: pa.Table, rows_max: int) -> Result:
    """Return a result with the rows of `table`, at most `rows_max`."""
    return result_of_run(ArrowRun(table), rows_max)


def result_of_run(run: RunningQuery, rows_max: int) -> Result:
    """Return the result of a query that runs elsewhere."""
    cancel_token = CancelToken()
    cancel_token.attach(run)
    return Result(run, cancel_token, rows_max=rows_max, preface=None, on_close=lambda _: None)


class ArrowRun:
    """A RunningQuery over the batches of a table."""

    is_cut = False

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self._batches = iter(table.to_batches())
        self._error: FrazilError | None = None

    def next(self) -> pa.RecordBatch | None:
        if self._error is not None:
            raise self._error
        return next(self._batches, None)

    def cancel(self, error: FrazilError) -> None:
        self._error = error

    def close(self) -> None:
        self._batches = iter(())
