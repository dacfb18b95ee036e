"""KeyedWriter: makes log records of a caller's rows, one set per partition.

A write is acknowledged when it is durable in the log; its token says from which offsets on a view
has it. A large write is several portions, one after the other, so that rows of one key stay in
order. After an error some may be durable, and the same write may be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from frazil.errors import Rejected
from frazil.log import DIGEST_BYTES, Append, Log, Record, SourceStep, append_of_records
from frazil.model import Clock, MiB
from frazil.settings import TopicConfig
from frazil.tables.changes import BY_HEADER, Changes, Operation, conformed_rows, encode_changes
from frazil.tables.definition import TableDefinition
from frazil.tables.keys.kernels import MASK_32, Longs
from frazil.tables.keys.key_block import block_of, key_array

Token = dict[int, int]
"""Partition to the offset after the write: a view that ends there, or later, has it."""
KeyCheck = Callable[[int, pa.Array], None]
"""Called with a partition and canonical keys before they are written; raises to refuse them."""
PORTION_BYTES = 2 * MiB
"""About how many bytes of rows are written at once."""


def topic_config(definition: TableDefinition) -> TopicConfig:
    """Return the settings of a table's topic: nothing is removed before the lake has it."""
    return TopicConfig(partitions=definition.partitions, awaits_lake=True, may_expire_early=False)


def partitions_of(definition: TableDefinition, keys: pa.Array) -> Longs:
    """Return the partition of each canonical key."""
    low = block_of(keys).hashes(definition.seed) & MASK_32
    return low * definition.partitions >> 32


def table_appends(
    definition: TableDefinition,
    operation: Operation,
    rows: pa.RecordBatch | pa.Table,
    *,
    timestamp_ms: int,
    check_keys: KeyCheck | None = None,
    expects: Mapping[int, int] | None = None,
    digest: bytes | None = None,
    steps: Mapping[int, SourceStep] | None = None,
    by: str | None = None,
) -> list[tuple[int, Append]]:
    """Return what to append to which partition: one batch each. Raises `Malformed` or `TooLarge` if
    a row cannot be written, and what `check_keys` raises; then none is.

    `expects` has the offset where a partition must end for its rows to be appended. With a `digest`
    a repetition is not stored again. With `steps`, by partition, rows of other partitions are left
    out, and these are appended if their step continues the position of its source. `by` is who
    writes, for the history of rows.
    """
    if definition.feed is not None:
        raise Rejected(
            f"table {definition.name} is fed by topic {definition.feed.topic}; write there"
        )
    changes = conformed_rows(definition, operation, rows)
    keys = key_array([changes.batch[name] for name in definition.key])
    is_one = definition.partitions == 1 and len(keys) > 0
    owners = np.empty(0, np.int64) if is_one else partitions_of(definition, keys)
    appends: list[tuple[int, Append]] = []
    for partition in [0] if is_one else np.unique(owners).tolist():
        if steps is not None and partition not in steps:
            continue
        mine, mine_keys = changes, keys
        if not is_one:
            positions = pa.array(np.flatnonzero(owners == partition))
            batch = changes.batch.take(positions)
            mine = Changes(operation, changes.version, changes.columns, batch)
            mine_keys = keys.take(positions)
        if check_keys is not None and operation is Operation.UPSERT:
            check_keys(partition, mine_keys)
        records = [
            Record(offset=0, timestamp_ms=timestamp_ms, key=None, value=value)
            for value in encode_changes(mine)
        ]
        if by is not None and records:
            records[0] = replace(records[0], headers=((BY_HEADER, by.encode()),))
        append = append_of_records(
            records,
            digest=_content_digest(digest, records),
            step=None if steps is None else steps[partition],
            expects_offset=None if expects is None else expects.get(partition),
        )
        appends.append((partition, append))
    return appends


def _content_digest(digest: bytes | None, records: Sequence[Record]) -> bytes | None:
    """Return a digest of the records, too: other rows under the same digest are no repetition."""
    if digest is None:
        return None
    content = hashlib.blake2b(key=digest, digest_size=DIGEST_BYTES)
    for record in records:
        content.update(record.value or b"")
    return content.digest()


def portions_of(rows: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch | pa.Table]:
    """Yield the rows in portions, each of which fits into one batch of the log."""
    if rows.num_rows == 1:  # adding up `nbytes` takes longer than to encode one row
        yield rows
        return
    row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
    count = max(1, PORTION_BYTES // row_bytes)
    for begin in range(0, rows.num_rows, count):
        yield rows.slice(begin, count)


def portion_digest(digest: bytes | None, begin: int, rows: int) -> bytes | None:
    """Return the digest of a portion of a write. A write that is split otherwise the second time is
    stored again, rather than lost."""
    if digest is None:
        return None
    return hashlib.blake2b(b"%d %d" % (begin, rows), key=digest, digest_size=DIGEST_BYTES).digest()


class KeyedWriter:
    """Writes to one table. Any thread may use it."""

    def __init__(
        self,
        log: Log,
        definition: TableDefinition,
        *,
        clock: Clock,
        check_keys: KeyCheck | None = None,
    ) -> None:
        self.definition = definition
        self._log = log
        self._clock = clock
        self._check_keys = check_keys

    def upsert(self, rows: pa.RecordBatch | pa.Table) -> Token:
        """Put whole rows, in place of those with the same keys."""
        return self._write(Operation.UPSERT, rows)

    def update(self, rows: pa.RecordBatch | pa.Table) -> Token:
        """Set the given columns of rows that exist."""
        return self._write(Operation.UPDATE, rows)

    def delete(self, keys: pa.RecordBatch | pa.Table) -> Token:
        """Remove rows by key."""
        return self._write(Operation.DELETE, keys)

    def _write(self, operation: Operation, rows: pa.RecordBatch | pa.Table) -> Token:
        token: Token = {}
        for portion in portions_of(rows):
            token |= self._write_portion(operation, portion)
        return token

    def _write_portion(self, operation: Operation, rows: pa.RecordBatch | pa.Table) -> Token:
        appends = table_appends(
            self.definition,
            operation,
            rows,
            timestamp_ms=self._clock.wall_ms(),
            check_keys=self._check_keys,
        )
        topic = self.definition.topic
        if len(appends) == 1:  # no queue, no other thread
            ((partition, append),) = appends
            result = self._log.append_durably(topic, append, partition=partition)
            return {partition: result.end_offset}
        futures = [(p, self._log.append(topic, append, partition=p)) for p, append in appends]
        return {partition: future.result().end_offset for partition, future in futures}
