"""Tiers: the rows of a table at one moment, from the hot tier and the lake.

The hot tier's pieces are taken first, then the lake's view; rows that the view has are dropped
from the pieces. `frazil.lake.scan.view` explains why every row appears once. For topics other than
telemetry, `frazil.lake.read.topic_tables` takes the place of the hot tier.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import Malformed, OutOfRange, Unavailable, Unknown
from frazil.model import TopicPartition
from frazil.query.scan.as_of_rows import (
    keyed_snapshot,
    may_have_rows_between,
    piece_until,
    rows_between,
    snapshot_at,
    snapshot_by_version,
)
from frazil.query.scan.audit_table import audit_of
from frazil.query.scan.copy_history import copy_history_of
from frazil.query.scan.keyed_rows import KeyedScan, changes_scan, keyed_scan
from frazil.query.scan.keyed_tables import KeyedPins, KeyedViews, NoKeyedTables
from frazil.query.scan.pipe_history import pipe_history_of
from frazil.query.scan.snapshots_table import snapshots_of
from frazil.query.sql.as_of import COPY_HISTORY, PIPE_HISTORY, SNAPSHOTS, STATEMENT_AUDIT, AsOf
from frazil.query.sql.dialect import EngineText

if TYPE_CHECKING:
    from frazil.definitions import Audit, PipeHistory
    from frazil.hot import Piece, VisiblePieces
    from frazil.lake import LakeView, TableFile, TableView, TopicRows, TopicTables

OFFSET = "_offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRows:
    """Pieces and data files of one table, from both tiers."""

    pieces: tuple[Piece, ...] = ()
    files: tuple[TableFile, ...] = ()
    view: TableView | None = None
    """The snapshot that the data files belong to."""
    where: str | None = None
    """SQL filter on the rows of the data files; None to read all."""
    keyed: KeyedScan | None = None
    """What is read of a keyed table."""
    is_frozen: bool = False
    """Whether the data files are those of a keyed table: some of their rows may be dead."""

    @property
    def parts(self) -> tuple[Piece | TableFile, ...]:
        return (*self.pieces, *self.files)


class Tiers:
    """Finds the rows of tables. Thread-safe."""

    def __init__(
        self,
        snapshot: Callable[[], VisiblePieces],
        lake: LakeView | None,
        topics: TopicTables | None = None,
        audit: Audit | None = None,
        pipes: PipeHistory | None = None,
        keyed: KeyedViews | None = None,
    ) -> None:
        self._keyed = keyed or NoKeyedTables()
        self._audit = audit
        self._pipes = pipes
        self._snapshot = snapshot
        self._lake = lake
        self._topics = topics
        self._lock = threading.Lock()
        self._cut: WeakKeyDictionary[Piece, tuple[int, Piece]] = WeakKeyDictionary()
        """The rest of each piece that the lake has rows of; the same object each time, so that
        counts kept for it stay valid."""

    def rows(
        self,
        tables: Iterable[str],
        sql: EngineText,
        check: Callable[[], None] = lambda: None,
        pins: KeyedPins | None = None,
    ) -> dict[str, tuple[TierRows, ...]]:
        """Return the rows of these tables now, or at their AS OF time. Calls `check` between long
        steps. `Unavailable` if a tier cannot be read."""
        keyed = {} if pins is None else self._keyed_rows(tables, sql, pins)
        return {**keyed, **self._other_rows([t for t in tables if t not in keyed], sql, check)}

    def _keyed_rows(
        self, tables: Iterable[str], sql: EngineText, pins: KeyedPins
    ) -> dict[str, tuple[TierRows, ...]]:
        """Return the rows of keyed tables, and of `changes(…)`."""
        as_ofs = {as_of.name: as_of for as_of in sql.as_ofs}
        calls = {call.name: call for call in sql.changes}
        rows: dict[str, tuple[TierRows, ...]] = {}
        for name in tables:
            as_of = as_ofs.get(name)
            table = name if as_of is None else as_of.table
            if name in calls:
                rows[name] = (TierRows(keyed=changes_scan(pins, calls[name])),)
            elif table in pins.views:
                rows[name] = self._keyed_table(pins, table, as_of)
        return rows

    def _keyed_table(self, pins: KeyedPins, table: str, as_of: AsOf | None) -> tuple[TierRows, ...]:
        """Return the rows of a keyed table, from its segments or, if these no longer have them,
        from a snapshot of the lake."""
        if as_of is not None and as_of.version is not None:
            return (self._frozen(pins, table, as_of),)
        try:
            return (TierRows(keyed=keyed_scan(pins, table, as_of)),)
        except OutOfRange as error:
            if as_of is None or self._lake is None:
                raise
            try:
                return (self._frozen(pins, table, as_of),)
            except (Unavailable, Unknown) as other:
                raise OutOfRange(f"{error}; {other}") from None

    def _frozen(self, pins: KeyedPins, table: str, as_of: AsOf) -> TierRows:
        """Return the rows of a keyed table in a snapshot of the lake."""
        view = None if self._lake is None else self._lake.pin([table]).tables[table]
        table_id = str(pins.views[table].definition.table_id)
        if view is None or self._lake is None or view.table_id != table_id:
            raise Unavailable(f"the lake has no snapshot of table {table}")
        if as_of.version is not None:
            frozen = snapshot_by_version(self._lake, view, as_of.version)
        else:
            frozen = self._lake.at(table, keyed_snapshot(view, as_of).snapshot_id)
        return _lake_rows(frozen)

    def _other_rows(
        self, tables: list[str], sql: EngineText, check: Callable[[], None]
    ) -> dict[str, tuple[TierRows, ...]]:
        """Return the rows of all tables but keyed ones."""
        if not tables:
            return {}
        as_ofs = {as_of.name: as_of for as_of in sql.as_ofs}
        for as_of in as_ofs.values():
            if as_of.name in tables and as_of.offsets is not None:
                raise Malformed(f"{as_of.table} is not a keyed table: AS OF OFFSET is for those")
        bases = {name: as_ofs[name].table if name in as_ofs else name for name in tables}
        hot = self._snapshot()  # before the lake: see frazil.lake.scan.view
        view = None if self._lake is None else self._lake.pin()
        sources = {
            table: (tuple(hot.get(table, ())), None if view is None else view.tables.get(table))
            for table in set(bases.values()).difference(sql.topics)
        }
        others = {name for name, _ in sql.tables}
        for table in set(bases.values()).intersection(sql.topics):
            uses = [as_ofs.get(name) for name in tables if bases[name] == table]
            is_lake_only = all(as_of is not None and as_of.version is not None for as_of in uses)
            sources[table] = self._topic_rows(table, check, is_lake_only=is_lake_only)
        system = {
            SNAPSHOTS: self._snapshot_rows,
            STATEMENT_AUDIT: self._audit_rows,
            COPY_HISTORY: self._history_rows,
            PIPE_HISTORY: self._pipe_rows,
        }
        return {
            name: self._lake_table_rows(table, as_ofs.get(name))
            if table in others
            else (system[table](),)
            if table in system
            else self._table_rows(*sources[table], as_ofs.get(name))
            for name, table in bases.items()
        }

    def _lake_table_rows(self, table: str, as_of: AsOf | None) -> tuple[TierRows, ...]:
        """Return the rows of a table that does not come from the log: all are in the lake."""
        assert self._lake is not None, "a text with such tables comes from a node with a lake"
        view = self._lake.pin([table]).tables[table]
        if not view.schema.names:
            raise Unknown(f"table {table} was dropped meanwhile")
        if as_of is None:
            return (_lake_rows(view),)
        if as_of.time_us is None:
            assert as_of.version is not None
            return (_lake_rows(snapshot_by_version(self._lake, view, as_of.version)),)
        then = snapshot_at(view, as_of.time_us)
        if then is None:
            return (TierRows(view=view),)
        return (_lake_rows(self._lake.at(table, then.snapshot_id)),)

    def _table_rows(
        self, pieces: tuple[Piece, ...], view: TableView | None, as_of: AsOf | None
    ) -> tuple[TierRows, ...]:
        if as_of is None:
            return (self._now(pieces, view),)
        if as_of.time_us is not None:
            return self._at(pieces, view, as_of.time_us)
        assert as_of.version is not None
        return (_lake_rows(snapshot_by_version(self._lake, view, as_of.version)),)

    def _topic_rows(
        self, table: str, check: Callable[[], None], *, is_lake_only: bool
    ) -> tuple[tuple[Piece, ...], TableView | None]:
        """Return the rows of a topic that are only in the log, unless `is_lake_only`, and its lake
        view."""
        assert self._topics is not None, "a text with topics comes from a node that has them"
        rows = self._topics.lake_rows(table) if is_lake_only else self._topics.rows(table, check)
        return tuple(_pieces(rows)), rows.view

    def _snapshot_rows(self) -> TierRows:
        """Return the snapshots of all tables, also of those that no query has used yet."""
        names = [] if self._topics is None else self._topics.names()
        others = () if self._lake is None else self._lake.other_tables()
        view = None if self._lake is None else self._lake.pin([*names, *others])
        return _in_memory(SNAPSHOTS, snapshots_of(view))

    def _audit_rows(self) -> TierRows:
        """Return the statements that were sent."""
        entries = () if self._audit is None else self._audit.entries()
        return _in_memory(STATEMENT_AUDIT, audit_of(entries))

    def _history_rows(self) -> TierRows:
        """Return the files that tables were loaded from."""
        return _in_memory(COPY_HISTORY, copy_history_of(self._lake, self._keyed))

    def _pipe_rows(self) -> TierRows:
        """Return the runs of pipes."""
        runs = () if self._pipes is None else self._pipes.runs()
        return _in_memory(PIPE_HISTORY, pipe_history_of(runs))

    def _now(self, pieces: tuple[Piece, ...], view: TableView | None) -> TierRows:
        if view is None:
            return TierRows(pieces=pieces)
        return replace(_lake_rows(view), pieces=self._not_in_lake(pieces, view))

    def _at(
        self, pieces: tuple[Piece, ...], view: TableView | None, time_us: int
    ) -> tuple[TierRows, ...]:
        """Return the rows that were visible at a time: see as_of_rows.py."""
        now = self._now(pieces, view)
        now = replace(now, pieces=tuple(piece_until(piece, time_us) for piece in now.pieces))
        if view is None or view.snapshot_id is None:
            return (now,)
        then = snapshot_at(view, time_us)
        if then is not None and then.snapshot_id == view.snapshot_id:
            return (now,)
        since = {} if then is None else then.offsets or {}
        later = replace(
            now,
            files=tuple(f for f in now.files if may_have_rows_between(f, view, since, time_us)),
            where=rows_between(view, since, time_us),
        )
        if then is None:
            return (later,)
        assert self._lake is not None
        return _lake_rows(self._lake.at(view.name, then.snapshot_id)), later

    def _not_in_lake(self, pieces: Iterable[Piece], view: TableView) -> tuple[Piece, ...]:
        """Return the rows of the pieces at or above the lake's offsets."""
        kept = []
        for piece in pieces:
            boundary = view.offsets.get(TopicPartition(piece.topic, piece.partition), 0)
            if boundary <= piece.offset_begin:
                kept.append(piece)
            elif boundary < piece.offset_end:
                kept.append(self._rest(piece, boundary))
        return tuple(kept)

    def _rest(self, piece: Piece, boundary: int) -> Piece:
        with self._lock:
            known = self._cut.get(piece)
        if known is not None and known[0] == boundary:
            return known[1]
        rest = piece_from(piece, boundary)
        with self._lock:
            self._cut[piece] = (boundary, rest)
        return rest


def _in_memory(name: str, rows: pa.RecordBatch) -> TierRows:
    from frazil.hot import Piece

    return TierRows(pieces=(Piece(name=name, batches=(rows,), row_count=rows.num_rows),))


def _lake_rows(view: TableView) -> TierRows:
    if view.refusal is not None:
        raise Unavailable(view.refusal)
    return TierRows(files=view.files, view=view, is_frozen=view.table_id is not None)


def _pieces(rows: TopicRows) -> Iterator[Piece]:
    from frazil.hot import Piece

    for part in rows.tail:
        times = pc.min_max(part.batch.column("time").cast(pa.int64()))
        yield Piece(
            name="log",
            batches=(part.batch,),
            row_count=part.batch.num_rows,
            time_min_us=times["min"].as_py(),
            time_max_us=times["max"].as_py(),
            topic=rows.topic,
            partition=part.partition,
            offset_begin=part.begin,
            offset_end=part.end,
        )


def piece_from(piece: Piece, boundary: int) -> Piece:
    """Return the rows of a piece at or above an offset, with the statistics of the whole piece."""
    batches = tuple(
        rest for batch in piece.batches if (rest := batch_from(batch, boundary)).num_rows
    )
    return replace(
        piece,
        batches=batches,
        row_count=sum(batch.num_rows for batch in batches),
        offset_begin=boundary,
        from_offset=boundary,
    )


def batch_from(batch: pa.RecordBatch, boundary: int) -> pa.RecordBatch:
    """Return the rows of a batch at or above an offset; copies only a batch that has both."""
    offsets = batch.column(OFFSET)
    bounds = pc.min_max(offsets)
    if not batch.num_rows or bounds["min"].as_py() >= boundary:
        return batch
    if bounds["max"].as_py() < boundary:
        return batch.slice(0, 0)
    return batch.filter(pc.greater_equal(offsets, boundary))
