"""TableHandle: one keyed table, as `frazil.open(path).table(name)` returns it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pyarrow as pa

from frazil.errors import Malformed
from frazil.log import DIGEST_BYTES
from frazil.results import GivenRows, WriteToken, arrow_rows
from frazil.tables.changes import Operation
from frazil.tables.definition import TableDefinition
from frazil.tables.keyed_tables import KeyedTables
from frazil.tables.view import Key

BY = "python"
"""Who writes, in the history of rows."""


class TableHandle:
    """Any thread may use it. Reads see all writes that were durable when they began."""

    def __init__(self, tables: KeyedTables, name: str) -> None:
        self.name = name
        self._tables = tables

    @property
    def definition(self) -> TableDefinition:
        return self._tables.definition(self.name)

    def upsert(self, rows: GivenRows, *, idempotency_key: str | None = None) -> WriteToken:
        """Put whole rows, in place of those with the same keys. A column that is left out is null.
        Durable on return. A repetition with the same `idempotency_key` is not stored again."""
        return self._write(Operation.UPSERT, arrow_rows(rows), idempotency_key)

    def update(self, rows: GivenRows, *, idempotency_key: str | None = None) -> WriteToken:
        """Set some columns of rows that exist; the others keep their values. Updates of keys that
        do not exist are counted as `dead_changes`, and have no effect."""
        return self._write(Operation.UPDATE, arrow_rows(rows, same_names=True), idempotency_key)

    def delete(
        self, keys: Sequence[Key] | GivenRows, *, idempotency_key: str | None = None
    ) -> WriteToken:
        """Remove rows by key: a list of keys, tuples if the key has several columns, or rows with
        the key columns. Keys that do not exist have no effect."""
        return self._write(Operation.DELETE, self._key_rows(keys), idempotency_key)

    def get(self, key: Key) -> dict[str, object] | None:
        """Return the row of a key, a tuple if the key has several columns; None if there is
        none."""
        return self._tables.latest(self.name).get(key)

    def get_many(self, keys: Sequence[Key]) -> pa.Table:
        """Return the rows of the keys that exist, in the order of the keys."""
        return pa.Table.from_batches([self._tables.latest(self.name).get_many(keys)])

    def _key_rows(self, keys: Sequence[Key] | GivenRows) -> pa.Table:
        if isinstance(keys, list | tuple) and not any(isinstance(key, dict) for key in keys):
            return rows_of_keys(self.definition, keys)
        return arrow_rows(keys)

    def _write(self, operation: Operation, rows: pa.Table, key: str | None) -> WriteToken:
        digest = None if key is None else digest_of_key(self.definition, operation, key)
        offsets = self._tables.write(self.name, operation, rows, digest=digest, by=BY)
        return WriteToken(table=self.name, offsets=offsets)


def rows_of_keys(definition: TableDefinition, keys: Sequence[Key]) -> pa.Table:
    """Return keys as rows with the key columns. Raises `Malformed` if one cannot be a key."""
    columns = definition.key_columns
    if len(columns) == 1:
        parts: list[tuple[object, ...]] = [tuple(keys)]
    else:
        for key in keys:
            if not isinstance(key, tuple) or len(key) != len(columns):
                raise Malformed(f"a key of table {definition.name} is a tuple of {len(columns)}")
        parts = list(zip(*keys, strict=True)) if keys else [()] * len(columns)
    try:
        arrays = {
            column.name: pa.array(values, column.field().type)
            for column, values in zip(columns, parts, strict=True)
        }
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Malformed(f"not a key of table {definition.name}: {error}") from None
    return pa.table(arrays)


def digest_of_key(definition: TableDefinition, operation: Operation, key: str) -> bytes:
    """Return the digest of a write to a table, by the idempotency key of its sender."""
    text = f"{definition.table_id}/{operation.name}/{key}".encode()
    return hashlib.blake2b(text, digest_size=DIGEST_BYTES).digest()
