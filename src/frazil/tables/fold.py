"""PartitionFold: follows one partition of a table's topic, and keeps its rows.

    step         read changes of the log, apply them, publish a new view
    seal         write the rows and deaths in memory to a file
    checkpoint   seal, then save the key index
    compact      rewrite files without what died below an offset

All files are derived from the log: after a crash the fold continues from what they have. Where the
log does not begin early enough any more, `seed_partition` makes the files from rows of the lake.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from frazil.disk import Disk, WriteBuffer
from frazil.errors import Malformed, OutOfRange, TooLarge, Unknown
from frazil.log import Record
from frazil.metrics import Counter
from frazil.settings import TablesConfig
from frazil.tables.change_log import ChangePartition, ChangeRecords
from frazil.tables.changes import Changes, Operation, decode_changes
from frazil.tables.compaction import choose_files, compacted_rows
from frazil.tables.definition import TableDefinition
from frazil.tables.keys.index_file import IndexPosition, write_index
from frazil.tables.keys.kernels import Longs
from frazil.tables.recovery import identity_of, recover_partition
from frazil.tables.rows.mapped_pages import MappedPages
from frazil.tables.rows.row_segment import empty_batch, merged, segment_of_batch, stored_schema
from frazil.tables.rows.segment_file import RowFileHeader, segment_path, write_rows
from frazil.tables.topic_feed import FeedCodec, Truncate, UnfitRecord, fed_changes
from frazil.tables.view import RowsView, view_of

logger = logging.getLogger(__name__)

MEASURE_SHARE = 0.01
"""Of the keys: after so many more deaths it is measured again what could be compacted."""
DEAD_CHANGES_KEPT = 100
"""The latest ones, with their reasons; the log has all of them."""

CHANGES = Counter("frazil.tables.applied.changes", "Changes applied to keyed tables, by table.")
DEAD = Counter("frazil.tables.dead.changes", "Changes that could not be applied, by table.")
COMPACTED = Counter("frazil.tables.compacted.bytes", "Row files rewritten, in bytes, by table.")


OnUnfit = Callable[[int, Record, str], None]
"""Called with a partition, a record of a feeding topic that is no change, and the reason."""


@dataclass(frozen=True, slots=True)
class DeadChange:
    """A change of the log that was not applied."""

    offset: int
    row: int
    """In its record."""
    reason: str


class PartitionFold:
    """Owned by one thread; `view` may be read by any."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        definition: TableDefinition,
        log: ChangePartition,
        config: TablesConfig,
        pages: MappedPages | None = None,
        codec: FeedCodec | None = None,
        on_unfit: OnUnfit | None = None,
    ) -> None:
        """Open the files. The first steps read the rest from the log. `codec` and `on_unfit` are
        for tables that a topic feeds."""
        self._disk = disk
        self._folder = folder
        self._config = config
        self._codec = codec
        self._on_unfit = on_unfit
        self.log = log
        feed = definition.feed
        self._begin_offset = 0 if feed is None else feed.starts[log.index]
        """The log had nothing before it when the table was created."""
        self._identity = identity_of(definition, log.index)
        self._pages = pages or MappedPages(config.mapped_bytes_max)
        recovered = recover_partition(
            disk, folder, definition, self._identity, log.view, self._pages
        )
        self.state = recovered.state
        self._files = recovered.files
        """The sealed files, in order."""
        self.is_index_loaded = recovered.index_offset >= 0
        """Whether the key index came from its file."""
        self.end_offset = self._sealed_offset = recovered.end_offset
        self._checkpointed_offset = recovered.index_offset
        self._unsaved_bytes = 0
        self._compacted_at = (-1, 0)
        """Files, and deaths below the horizon, when nothing was left to compact."""
        self._unfinished: tuple[int, int] | None = None
        """Files that a compaction failed to replace, or did not see that it had."""
        self.dead: deque[DeadChange] = deque(maxlen=DEAD_CHANGES_KEPT)
        self.dead_count = 0
        self._reader: ChangeRecords | None = None
        self._buffer = WriteBuffer()
        self.view: RowsView = view_of(self.state, self.end_offset)
        """The rows as of the last step."""

    @property
    def key_bytes(self) -> int:
        """Memory of the key index."""
        return self.state.index.size_bytes

    @property
    def file_bytes(self) -> int:
        """Size of all row files."""
        return sum(file.size_bytes for file in self._files)

    @property
    def file_count(self) -> int:
        return len(self._files)

    @property
    def first_offset(self) -> int:
        """The earliest offset as of which rows are known."""
        return self.state.deaths.horizon

    @property
    def needs_seed(self) -> bool:
        """Whether the log begins after what the files have: only the lake has what is missing."""
        return self.log.view.start_offset > max(self.end_offset, self._begin_offset)

    @property
    def lag(self) -> int:
        """Offsets that are durable and not applied yet."""
        return self.log.view.last_stable_offset - self.end_offset

    @property
    def sealed_offset(self) -> int:
        """Everything below is in files."""
        return self._sealed_offset

    @property
    def checkpointed_offset(self) -> int:
        """The saved key index is as of this offset; -1 if there is none."""
        return self._checkpointed_offset

    def step(self) -> int:
        """Apply the next changes of the log. Returns how many offsets were applied.

        Raises `Corrupt` or `OSError` if the log cannot be read, `OutOfRange` if it no longer has
        what the files lack.
        """
        if self._reader is None:
            self._reader = self.log.reader(max(self.end_offset, self._begin_offset))
        if self.needs_seed:
            raise OutOfRange(
                f"{self.log.topic}/{self.log.index} begins at {self.log.view.start_offset}; its "
                f"table needs the changes from {self.end_offset} on; seed it from the lake"
            )
        records = [
            record
            for record in self._reader.read(self._config.read_bytes)
            if record.offset >= self.end_offset
        ]
        groups = self._groups(records) if self._codec is None else self._fed(records, self._codec)
        for changes, offsets in groups:
            self._apply(changes, offsets)
        begin, self.end_offset = self.end_offset, self._reader.offset
        if self.end_offset > begin:
            self.view = view_of(self.state, self.end_offset)
        return self.end_offset - begin

    def _groups(self, records: Sequence[Record]) -> Iterator[tuple[Changes, Longs]]:
        """Yield the changes of adjacent records together, where operation and columns are the
        same."""
        waiting: list[tuple[Changes, int]] = []
        for record in records:
            try:
                changes = decode_changes(self.state.definition, record.value)
            except (Malformed, Unknown, TooLarge) as error:
                self._note_dead(record.offset, 0, str(error))
                continue
            if waiting and not _is_alike(waiting[0][0], changes):
                yield _joined(waiting)
                waiting = []
            waiting.append((changes, record.offset))
        if waiting:
            yield _joined(waiting)

    def _fed(self, records: Sequence[Record], codec: FeedCodec) -> Iterator[tuple[Changes, Longs]]:
        """Yield the changes of a feeding topic. Applied one after the other: a truncate deletes
        what the ones before it have made."""
        by_offset: dict[int, Record] = {}
        for each in fed_changes(self.state.definition, records, codec):
            if isinstance(each, UnfitRecord):
                self._note_dead(each.offset, 0, each.reason)
                if self._on_unfit is not None:
                    by_offset = by_offset or {record.offset: record for record in records}
                    self._on_unfit(self.log.index, by_offset[each.offset], each.reason)
            elif isinstance(each, Truncate):
                yield self._truncate(each.offset)
            else:
                yield each

    def _truncate(self, offset: int) -> tuple[Changes, Longs]:
        """Return the deletes of all rows."""
        definition = self.state.definition
        schema = pa.schema([column.field() for column in definition.key_columns])
        parts = list(view_of(self.state, offset).batches(schema.names))
        keys = pa.Table.from_batches(parts, schema) if parts else schema.empty_table()
        (batch,) = keys.combine_chunks().to_batches() or [empty_batch(schema)]
        changes = Changes(Operation.DELETE, definition.version, definition.key_columns, batch)
        return changes, np.full(batch.num_rows, offset, np.int64)

    def _apply(self, changes: Changes, offsets: Longs) -> None:
        state, before = self.state, self.state.deaths.count
        absent = state.apply(changes, offsets)
        died = state.deaths.between(before, state.deaths.count).rows
        # An update has read the whole row, others the key.
        columns = len(state.schema.names) if changes.operation is Operation.UPDATE else 1
        self._pages.used_rows(state.segments, died, columns)
        for position in absent.tolist():
            first = int(np.searchsorted(offsets, offsets[position]))
            self._note_dead(int(offsets[position]), position - first, "no row has this key")
        CHANGES.add(len(offsets) - len(absent), table=self.state.definition.name)

    def _note_dead(self, offset: int, row: int, reason: str) -> None:
        self.dead.append(DeadChange(offset, row, reason))
        self.dead_count += 1
        DEAD.add(table=self.state.definition.name)
        logger.debug("change not applied", extra={"offset": offset, "reason": reason})

    def maintain(self) -> bool:
        """Seal if much is in memory, checkpoint if much was sealed. Returns whether it did."""
        if self.state.open_bytes < self._config.seal_bytes:
            return False
        self.seal()
        if self._unsaved_bytes >= self._config.checkpoint_bytes:
            self.checkpoint()
        return True

    def seal(self) -> None:
        """Write everything in memory to a file. Raises `OSError`; nothing has changed then."""
        state = self.state
        deaths = state.deaths.open_part()
        opened = state.open_segments
        if not opened and not len(deaths.rows):
            return
        definition, version = state.definition, state.definition.version
        if opened:
            segment = merged(definition, opened)
        else:
            empty = empty_batch(stored_schema(definition))
            segment = segment_of_batch(definition, empty, state.row_count, version)
        header = RowFileHeader(
            identity=self._identity,
            begin_offset=self._sealed_offset,
            end_offset=self.end_offset,
            base_row=segment.base_row,
            end_row=segment.base_row + segment.batch.num_rows,
            base_death=state.deaths.sealed_count,
            end_death=state.deaths.count,
            row_count=segment.batch.num_rows,
            death_count=len(deaths.rows),
            definition=version,
        )
        path = segment_path(self._folder, self._sealed_offset)
        file = write_rows(self._disk, path, header, segment.batch, None, deaths, self._buffer)
        sealed = segment_of_batch(definition, file.batch, segment.base_row, version, segment.live)
        state.put_sealed(replace(sealed, mapped=file.mapped, location=file.location))
        with state.lock:
            state.deaths.seal(file.deaths)
        self._files.append(file)
        self._sealed_offset = self.end_offset
        self._unsaved_bytes += file.size_bytes
        self.view = view_of(state, self.end_offset)

    def compact(self, horizon: int) -> bool:
        """Rewrite the files whose rewriting saves most, without row versions that died below an
        offset; views as of earlier offsets can no longer be made. Returns whether there was
        something to do: then there may be more. Raises `OSError` or `Corrupt`; nothing has changed
        then, or only files that are not used any more are left.
        """
        horizon = min(horizon, self._sealed_offset)
        state, files = self.state, self._files
        # Measuring reads all deaths, so a few more since the last time are not worth it.
        dead = state.deaths.before(max(horizon, state.deaths.horizon))
        files_before, dead_before = self._compacted_at
        if files_before == len(files) and dead - dead_before < MEASURE_SHARE * len(state.index):
            return False
        sealed = state.segments[: state.sealed_segments]
        # The same files again: on disk the first one may cover the others by now, and a start would
        # take a file that is written across its end for one of those.
        chosen = self._unfinished or choose_files(
            files, sealed, state.deaths, horizon, self._config.seal_bytes
        )
        if chosen is None:
            self._compacted_at = (len(files), dead)
            return False
        definition = state.definition
        rows = compacted_rows(definition, files, sealed, state.deaths, chosen, horizon)
        header = rows.header
        if self._checkpointed_offset < header.horizon:
            # An older index has row versions that are about to go, and whose keys nobody knows.
            self.checkpoint()
        begin, end = self._unfinished = chosen
        path = segment_path(self._folder, header.begin_offset)
        file = write_rows(
            self._disk,
            path,
            header,
            rows.batch,
            rows.numbers,
            rows.deaths,
            self._buffer,
            is_read_back=True,
        )
        segment = None
        if file.batch.num_rows:
            version = header.definition
            left = segment_of_batch(definition, file.batch, header.base_row, version, rows.live)
            segment = replace(
                left, numbers=file.numbers, mapped=file.mapped, location=file.location
            )
        deaths = state.deaths.compacted(begin, end, file.deaths, header.horizon)
        state.put_compacted(header.base_row, header.end_row, segment, deaths)
        replaced, files[begin:end] = files[begin:end], [file]
        self._unfinished = None
        self.view = view_of(state, self.end_offset)
        self._buffer.release()
        COMPACTED.add(sum(each.size_bytes for each in replaced), table=definition.name)
        for each in replaced:
            self._pages.forget(each.mapped)
        # The new file is durable, and covers these: a start would remove them.
        for each in replaced[1:]:
            self._disk.unlink(segment_path(self._folder, each.header.begin_offset))
        return True

    def checkpoint(self) -> None:
        """Seal, then save the key index. A start then reads neither keys nor log."""
        self.seal()
        if self._checkpointed_offset == self._sealed_offset:
            return
        position = IndexPosition(
            identity=self._identity,
            offset=self._sealed_offset,
            row_count=self.state.row_count,
            death_count=self.state.deaths.count,
        )
        with self.state.lock:
            self.state.index.shrink()
        write_index(self._disk, self._folder, self.state.index, position)
        self._checkpointed_offset = self._sealed_offset
        self._unsaved_bytes = 0

    def release_memory(self) -> None:
        """Give back memory of mapped files, and of the last seal; later work takes it again."""
        self._buffer.release()
        self._pages.release_all()

    def change_definition(self, definition: TableDefinition) -> None:
        """Use a later version of the definition."""
        self.state.change_definition(definition)
        self.view = view_of(self.state, self.end_offset)

    def close(self) -> None:
        """Close the reader. What is in memory is read again from the log at the next start."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _is_alike(one: Changes, other: Changes) -> bool:
    return (one.operation, one.version, one.columns) == (
        other.operation,
        other.version,
        other.columns,
    )


def _joined(group: list[tuple[Changes, int]]) -> tuple[Changes, Longs]:
    first = group[0][0]
    counts = [changes.batch.num_rows for changes, _ in group]
    offsets: Longs = np.repeat(np.array([offset for _, offset in group], np.int64), counts)
    if len(group) == 1:
        return first, offsets
    batch = pa.concat_batches([changes.batch for changes, _ in group])
    return Changes(first.operation, first.version, first.columns, batch), offsets
