"""Appends the rows of a load, portion by portion: each is a step of a copy (`SourceStep`).

All loads of a table are one source, whose position in each partition is a load and a portion of it.
So the log has each portion once, in order, and knows which one is next, after any crash.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa

from frazil.errors import Conflict, Corrupt, Overloaded, TooLarge
from frazil.log import Append, AppendResult, SourceStep
from frazil.tables.changes import Operation
from frazil.tables.definition import TableDefinition
from frazil.tables.keys.key_block import key_array
from frazil.tables.load_files import PENDING_HINT, PendingLoad
from frazil.tables.owner import TableOwner
from frazil.tables.writer import KeyCheck, Token, partitions_of, table_appends

SOURCE = "copy"
POSITION = struct.Struct("<16sQ")
"""Id of the load, number of the portion."""
NONE = -1


@dataclass(frozen=True, slots=True)
class _Reached:
    """How far a partition is."""

    position: bytes | None
    end_offset: int = 0

    def portion_of(self, load: PendingLoad) -> int:
        """Return the last portion of a load that the log has; -1 if it has none."""
        load_id, number = (b"", NONE) if self.position is None else POSITION.unpack(self.position)
        return number if load_id.hex() == load.load_id else NONE


def last_portions(
    definition: TableDefinition,
    portions: Callable[[], Iterable[pa.RecordBatch]],
    check_keys: KeyCheck,
    has_room: Callable[[int, int], bool],
    batch_bytes_max: int,
) -> dict[int, int]:
    """Return the last portion with rows of each partition. Raises `Overloaded` if the keys are too
    many, and `TooLarge` if a portion is not a batch of the log. `has_room`: whether so many new
    keys of a partition fit in any case."""
    found: dict[int, int] = {}
    counts: dict[int, int] = {}
    largest: pa.RecordBatch | None = None
    for number, rows in enumerate(portions()):
        if largest is None or rows.nbytes > largest.nbytes:
            largest = rows
        for partition, keys in _keys_by_partition(definition, rows):
            found[partition] = number
            counts[partition] = counts.get(partition, 0) + len(keys)
    for partition, count in counts.items():
        if not has_room(partition, count):
            check_keys(partition, _distinct_keys(definition, portions(), partition))
    if largest is not None:
        appends = table_appends(definition, Operation.UPSERT, largest, timestamp_ms=0)
        size = max(append.size_bytes for _, append in appends)
        if size > batch_bytes_max:
            raise TooLarge(f"a row takes {size} bytes in the log; the limit is {batch_bytes_max}")
    return found


def _keys_by_partition(
    definition: TableDefinition, rows: pa.RecordBatch
) -> Iterator[tuple[int, pa.Array]]:
    keys = key_array([rows[name] for name in definition.key])
    owners = partitions_of(definition, keys)
    for partition in np.unique(owners).tolist():
        yield partition, keys.take(pa.array(np.flatnonzero(owners == partition)))


def _distinct_keys(
    definition: TableDefinition, portions: Iterable[pa.RecordBatch], partition: int
) -> pa.Array:
    parts = [
        keys.unique()
        for rows in portions
        for owner, keys in _keys_by_partition(definition, rows)
        if owner == partition
    ]
    return pa.concat_arrays(parts).unique()


def check_known(
    log: TableOwner, definition: TableDefinition, known: Collection[str] | None
) -> None:
    """Raise `Conflict` if the log has rows of a load that the ledger does not know: files of it
    could be loaded twice. Raise `PositionMismatch` if the log has lost the position. With None,
    any load is known."""
    for partition in range(definition.partitions):
        found = log.source_position(definition.topic, SOURCE, partition=partition)
        if found is None or found.position is None:
            continue
        load_id = POSITION.unpack(found.position)[0].hex()
        if known is not None and load_id not in known:
            raise Conflict(
                f"the log of table {definition.name} has rows of load {load_id}, which is not in "
                "its copy_history: that was lost, or the folder was restored from a backup that "
                "was taken during the load. Files of that load could be loaded twice; FORCE=true "
                "loads files all the same"
            )


def append_load(
    log: TableOwner,
    definition: TableDefinition,
    topic_id: UUID | None,
    load: PendingLoad,
    portions: Callable[[], Iterable[pa.RecordBatch]],
    *,
    now_ms: Callable[[], int],
    check: Callable[[], None],
    pause: Callable[[Overloaded, int], None],
) -> Token:
    """Append what the log does not have of a load. Returns the token of its rows. Raises `Corrupt`
    if rows are missing that it needs, and what appending does: then it can be called again. `check`
    raises to interrupt it, between two portions; `pause` waits before a portion is sent again, for
    the first time (0) or a later one, or raises."""
    reached = {
        partition: _reached(log, definition, partition)
        for partition in range(definition.partitions)
    }

    def open_partitions(number: int) -> list[int]:
        return [
            partition
            for partition, last in load.last_portions.items()
            if reached[partition].portion_of(load) < number <= last
        ]

    def missing() -> list[int]:
        return [last for last in load.last_portions.values() if open_partitions(last)]

    if missing():
        for number, rows in enumerate(portions()):
            steps = {
                partition: SourceStep(
                    SOURCE,
                    0,
                    reached[partition].position,
                    POSITION.pack(bytes.fromhex(load.load_id), number),
                )
                for partition in open_partitions(number)
            }
            if not steps:
                continue
            check()
            waiting = dict(
                table_appends(
                    definition,
                    Operation.UPSERT,
                    rows,
                    timestamp_ms=now_ms(),
                    steps=steps,
                    by=SOURCE,
                )
            )
            attempt = 0
            while waiting:
                error = _append(log, definition.topic, topic_id, waiting, steps, reached)
                if error is not None:
                    pause(error, attempt)
                    attempt += 1
    if missing():
        raise Corrupt(
            path=f"the rows of load {load.load_id} of table {definition.name}",
            position=missing()[0],
            expected="more rows",
            found="the end of its files",
            hint=PENDING_HINT,
        )
    return {partition: reached[partition].end_offset for partition in load.last_portions}


def _reached(log: TableOwner, definition: TableDefinition, partition: int) -> _Reached:
    found = log.source_position(definition.topic, SOURCE, partition=partition)
    return _Reached(None) if found is None else _Reached(found.position, found.end_offset)


def _append(
    log: TableOwner,
    topic: str,
    topic_id: UUID | None,
    waiting: dict[int, Append],
    steps: dict[int, SourceStep],
    reached: dict[int, _Reached],
) -> Overloaded | None:
    """Append to all partitions at once, and wait. What is durable is not waiting any more. Returns
    why some still are."""
    sent: list[tuple[int, Future[AppendResult]]] = []
    refused: Overloaded | None = None
    for partition, append in waiting.items():
        try:
            future = log.append(topic, append, partition=partition, topic_id=topic_id)
        except Overloaded as error:
            refused = error
            break
        sent.append((partition, future))
    for partition, future in sent:
        try:
            result = future.result()
        except Overloaded as error:
            refused = error
            continue
        reached[partition] = _Reached(steps[partition].position, result.end_offset)
        del waiting[partition]
    return refused
