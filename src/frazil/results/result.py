"""Result: the rows of a query, as a stream."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from frazil.errors import FrazilError, TooLarge, Unavailable
from frazil.results.cancel import CancelToken
from frazil.results.html import html_of
from frazil.results.running import RunningQuery
from frazil.results.table_scan import TableScan

SHOWN_ROWS_MAX = 20
"""Rows a notebook shows."""


class Result:
    """Rows of a query. Read once, by one thread; `cancel` may be called from any.

    Iterate over Arrow batches as they arrive, or take all rows with `arrow`, `df`, `pl` or
    `fetchall`, or pass it to anything that reads Arrow streams. A result that is not read to its
    end counts as a running query: close it, or use it in `with`.

    A result has at most `query.rows_max` rows. When iterating, `is_cut` says that there were more.
    Methods that return all rows raise `TooLarge` instead, so that a part never passes for the
    whole.
    """

    def __init__(
        self,
        run: RunningQuery,
        cancel_token: CancelToken,
        *,
        rows_max: int,
        preface: pa.RecordBatch | None,
        on_close: Callable[[str], None],
        parts: Callable[[], list[TableScan]] = list,
    ) -> None:
        self.schema: pa.Schema = run.schema
        self.parts = parts
        """What is read of each table, computed on call; empty if unknown, as for a query on
        Spark."""
        self.is_cut = False
        self._run = run
        self._cancel_token = cancel_token
        self.rows_max = rows_max
        self._row_count = 0
        self._buffered: deque[pa.RecordBatch] = deque([preface] if preface is not None else [])
        self._on_close = on_close
        self._is_closed = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Each row is returned once, over all iterations."""
        while (batch := self._next()) is not None:
            yield batch

    def _next(self) -> pa.RecordBatch | None:
        return self._buffered.popleft() if self._buffered else self._read()

    def _read(self) -> pa.RecordBatch | None:
        """Return the next batch that has rows."""
        while not self._is_closed:
            try:
                batch = self._run.next()
            except FrazilError:
                self._close("error")
                raise
            if batch is None:
                self.is_cut = self._run.is_cut
                self._close("done")
            elif batch.num_rows:
                return self._cut(batch)
        return None

    def _cut(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        left = self.rows_max - self._row_count
        self._row_count += batch.num_rows
        if batch.num_rows > left:
            self.is_cut = True
            self._close("cut")
            batch = batch.slice(0, left)
        if batch.schema != self.schema:
            batch = pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
        return batch if batch.num_rows else None

    def _whole(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches. Raises `TooLarge` if there are more rows than the limit."""
        yield from self
        if self.is_cut:
            raise TooLarge(
                f"the result has more than {self.returned_count} rows, the limit of this query or "
                "query.rows_max; add a LIMIT, aggregate, or read it batch by batch"
            )

    @property
    def returned_count(self) -> int:
        """Rows returned so far."""
        return min(self._row_count, self.rows_max)

    def arrow(self) -> pa.Table:
        """Return all rows as one table."""
        return pa.Table.from_batches(list(self._whole()), self.schema)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as Python values; maps become dicts."""
        names = [str(i) for i in range(len(self.schema))]
        rows: list[tuple[Any, ...]] = []
        for batch in self._whole():
            plain = batch.rename_columns(names)
            rows += [tuple(row.values()) for row in plain.to_pylist(maps_as_pydicts="lossy")]
        return rows

    def df(self) -> Any:
        """Return all rows as a pandas DataFrame."""
        _library("pandas", "df")
        return self.arrow().to_pandas()

    def pl(self) -> Any:
        """Return all rows as a polars DataFrame."""
        return _library("polars", "pl").from_arrow(self.arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._whole())
        return reader.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook. They are kept for later reads."""
        while sum(batch.num_rows for batch in self._buffered) <= SHOWN_ROWS_MAX:
            batch = self._read()
            if batch is None:
                break
            self._buffered.append(batch)
        return html_of(list(self._buffered), self.schema, SHOWN_ROWS_MAX)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
        return f"Result({columns})"

    def cancel(self) -> None:
        """Cancel the query. Reading it further raises `Unavailable`."""
        self._cancel_token.cancel(Unavailable("the query was cancelled"))

    def close(self) -> None:
        """Stop the query if it still runs, and release its resources."""
        self._close("closed")

    def _close(self, outcome: str) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._cancel_token.detach()
            self._run.close()
            self._on_close(outcome)

    def __enter__(self) -> Result:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_is_closed"):
            self.close()


def _library(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unavailable(
            f".{method}() needs {name}, which is not installed: pip install {name}; .arrow() and "
            ".fetchall() work without it"
        ) from None
