"""Tiers: the rows of a table at one moment, those of the hot tier and those of the lake.

The hot tier's pieces are taken first, then the lake's view; of the pieces count the rows that the
view does not hold. Why every row is there once: see `frazil.lake.scan.view`. For other topics than
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

from frazil.errors import Unavailable
from frazil.query.scan.as_of_rows import (
    may_have_come_between,
    piece_until,
    rows_between,
    snapshot_named,
    snapshot_then,
)
from frazil.query.scan.parquet_scan import ParquetScan
from frazil.query.scan.snapshots_table import snapshots_of
from frazil.query.scan.table_rows import TableRows
from frazil.query.sql.as_of import SNAPSHOTS, AsOf
from frazil.query.sql.dialect import EngineText

if TYPE_CHECKING:
    from frazil.hot import Piece, Snapshot
    from frazil.lake import LakeView, TableFile, TableView, TopicRows, TopicTables

OFFSET = "_offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRows:
    """Rows of one table, in both tiers."""

    pieces: tuple[Piece, ...] = ()
    files: tuple[TableFile, ...] = ()
    view: TableView | None = None
    """The snapshot that the files are of."""
    where: str | None = None
    """What a row of the files must fulfil; None when all count."""

    @property
    def parts(self) -> tuple[Piece | TableFile, ...]:
        return (*self.pieces, *self.files)


def rows_of(lots: Iterable[TierRows]) -> TableRows:
    """All rows of one table, for the engine."""
    lots = list(lots)
    return TableRows(
        batches=[batch for lot in lots for piece in lot.pieces for batch in piece.batches],
        scans=scans_of(lots),
        cold_schema=next((lot.view.schema for lot in lots if lot.view is not None), None),
    )


def scans_of(lots: Iterable[TierRows]) -> list[ParquetScan]:
    """The files among them."""
    return [
        ParquetScan(root=lot.view.root, paths=tuple(f.path for f in lot.files), where=lot.where)
        for lot in lots
        if lot.view is not None and lot.files
    ]


class Tiers:
    """Any thread may ask."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        lake: LakeView | None,
        topics: TopicTables | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._lake = lake
        self._topics = topics
        self._lock = threading.Lock()
        self._cut: WeakKeyDictionary[Piece, tuple[int, Piece]] = WeakKeyDictionary()
        """Pieces that the boundary lies in, so that what is known of the rest is kept with it."""

    def lots(
        self, tables: Iterable[str], spelled: EngineText, check: Callable[[], None] = lambda: None
    ) -> dict[str, tuple[TierRows, ...]]:
        """The rows of these tables at this moment, or at another. Calls `check` now and then where
        it takes long. `Unavailable` when some of them cannot be read."""
        tables = list(tables)
        if not tables:
            return {}
        others = {as_of.name: as_of for as_of in spelled.as_ofs}
        both = {name: others[name].table if name in others else name for name in tables}
        hot = self._snapshot()  # first: see frazil.lake.scan.view
        view = None if self._lake is None else self._lake.pin()
        found = {
            table: (tuple(hot.get(table, ())), None if view is None else view.tables.get(table))
            for table in set(both.values()).difference(spelled.topics)
        }
        for table in set(both.values()).intersection(spelled.topics):
            asked = [others.get(name) for name in tables if both[name] == table]
            is_cold = all(as_of is not None and as_of.version is not None for as_of in asked)
            found[table] = self._of_topic(table, check, is_cold=is_cold)
        return {
            name: (self._listed(),)
            if table == SNAPSHOTS
            else self._lots(*found[table], others.get(name))
            for name, table in both.items()
        }

    def _lots(
        self, pieces: tuple[Piece, ...], cold: TableView | None, as_of: AsOf | None
    ) -> tuple[TierRows, ...]:
        if as_of is None:
            return (self._now(pieces, cold),)
        if as_of.moment_us is not None:
            return self._then(pieces, cold, as_of.moment_us)
        assert as_of.version is not None
        return (_cold(snapshot_named(self._lake, cold, as_of.version)),)

    def _of_topic(
        self, table: str, check: Callable[[], None], *, is_cold: bool
    ) -> tuple[tuple[Piece, ...], TableView | None]:
        """The rows of a topic that are in the log only, unless only the lake is asked, and the
        lake's view of the others."""
        assert self._topics is not None, "who names topics has them"
        rows = self._topics.cold_rows(table) if is_cold else self._topics.rows(table, check)
        return tuple(_pieces(rows)), rows.view

    def _listed(self) -> TierRows:
        """The snapshots of all tables, also of those that nobody has asked for yet."""
        from frazil.hot import Piece

        topics = [] if self._topics is None else self._topics.names()
        rows = snapshots_of(None if self._lake is None else self._lake.pin(topics))
        return TierRows(pieces=(Piece(name=SNAPSHOTS, batches=(rows,), row_count=rows.num_rows),))

    def _now(self, pieces: tuple[Piece, ...], cold: TableView | None) -> TierRows:
        if cold is None:
            return TierRows(pieces=pieces)
        return replace(_cold(cold), pieces=self._above(pieces, cold))

    def _then(
        self, pieces: tuple[Piece, ...], cold: TableView | None, moment_us: int
    ) -> tuple[TierRows, ...]:
        """What was visible at another moment: see history.py."""
        now = self._now(pieces, cold)
        now = replace(now, pieces=tuple(piece_until(piece, moment_us) for piece in now.pieces))
        if cold is None or cold.snapshot_id is None:
            return (now,)
        then = snapshot_then(cold, moment_us)
        if then is not None and then.snapshot_id == cold.snapshot_id:
            return (now,)
        since = {} if then is None else then.offsets or {}
        later = replace(
            now,
            files=tuple(f for f in now.files if may_have_come_between(f, cold, since, moment_us)),
            where=rows_between(cold, since, moment_us),
        )
        if then is None:
            return (later,)
        assert self._lake is not None
        return _cold(self._lake.at(cold.name, then.snapshot_id)), later

    def _above(self, pieces: Iterable[Piece], cold: TableView) -> tuple[Piece, ...]:
        """What the lake does not hold."""
        kept = []
        for piece in pieces:
            boundary = cold.offsets.get((piece.topic, piece.partition), 0)
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


def _cold(view: TableView) -> TierRows:
    if view.refusal is not None:
        raise Unavailable(view.refusal)
    return TierRows(files=view.files, view=view)


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
    """The rows of a piece at or above an offset. What is known of all of them holds for these."""
    batches = tuple(
        rest for batch in piece.batches if (rest := batch_from(batch, boundary)).num_rows
    )
    return replace(
        piece,
        batches=batches,
        row_count=sum(batch.num_rows for batch in batches),
        offset_begin=boundary,
    )


def batch_from(batch: pa.RecordBatch, boundary: int) -> pa.RecordBatch:
    """The rows of a batch at or above an offset; only where both are there is something copied."""
    offsets = batch.column(OFFSET)
    found = pc.min_max(offsets)
    if not batch.num_rows or found["min"].as_py() >= boundary:
        return batch
    if found["max"].as_py() < boundary:
        return batch.slice(0, 0)
    return batch.filter(pc.greater_equal(offsets, boundary))
