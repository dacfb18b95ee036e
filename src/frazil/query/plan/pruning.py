"""Pruning: which pieces and data files a query must read, by its predicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from frazil.query.plan.keyed_pruning import SegmentBounds, prune_keyed
from frazil.query.plan.predicates import (
    ANYTHING,
    AS_TIME,
    Conditions,
    Predicate,
    both,
    is_never,
)

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import TableFile
    from frazil.query.scan.keyed_rows import KeyedScan
    from frazil.query.scan.tiers import TierRows

Bounds = tuple[int | str, int | str]

NS_PER_US = 1_000
"""Bounds of times are in microseconds; predicates on times are in nanoseconds."""

OUTSIDE_TIME = "outside the time range"
OTHER_SERVICE = "without the service"
OUTSIDE_LOG = "from elsewhere in the log"
NOTHING = "no row can match"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedScan:
    """What a query reads of one table, and why the rest is skipped."""

    tier_rows: tuple[TierRows, ...]
    piece_count: int
    file_count: int
    row_count: int
    skipped: tuple[tuple[str, int], ...]
    """Each reason with the number of pieces and data files it skipped."""
    segment_count: int = 0
    """Row segments, of a keyed table."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for rows in self.tier_rows for piece in rows.pieces)

    @property
    def files(self) -> tuple[TableFile, ...]:
        return tuple(file for rows in self.tier_rows for file in rows.files)

    @property
    def parts(self) -> tuple[Piece | TableFile, ...]:
        return tuple(part for rows in self.tier_rows for part in rows.parts)

    @property
    def keyed(self) -> KeyedScan | None:
        """What is read of a keyed table; None for any other."""
        return next((rows.keyed for rows in self.tier_rows if rows.keyed is not None), None)

    @property
    def read_count(self) -> int:
        """Pieces, row segments and data files that are read."""
        return len(self.parts) + (0 if self.keyed is None else len(self.keyed.parts))

    @property
    def total_count(self) -> int:
        """Pieces, row segments and data files that there are."""
        return self.piece_count + self.file_count + self.segment_count

    def describe(self, table: str) -> str:
        """Return the lines that EXPLAIN shows."""
        keyed = self.keyed
        if keyed is not None:
            line = (
                f"{table}: reads {len(keyed.parts)} of {self.segment_count} row segments, "
                f"{keyed.row_count} of {self.row_count} rows, {keyed.note}"
            )
            return "\n".join([line, *(f"  skips {n}: {why}" for why, n in self.skipped)])
        rows = sum(part.row_count for part in self.parts)
        files = f" and {len(self.files)} of {self.file_count} files" if self.file_count else ""
        lines = [
            f"{table}: reads {len(self.pieces)} of {self.piece_count} pieces{files}, "
            f"{rows} of {self.row_count} rows"
        ]
        lines += [f"  skips {count}: {reason}" for reason, count in self.skipped]
        for tier_rows in self.tier_rows:
            if tier_rows.view is not None and tier_rows.view.snapshot_id is not None:
                limit = f", only rows with {tier_rows.where}" if tier_rows.where else ""
                lines.append(f"  lake: snapshot {tier_rows.view.snapshot_id}{limit}")
        return "\n".join(lines)


def prune(
    tier_rows: Sequence[TierRows], conditions: Conditions, bounds: SegmentBounds | None = None
) -> PrunedScan:
    """Skip pieces, row segments and data files that cannot have a matching row. `bounds` are those
    of row segments that are known."""
    if len(tier_rows) == 1 and tier_rows[0].keyed is not None:
        return _prune_keyed(tier_rows[0], conditions, bounds or SegmentBounds())
    if any(rows.is_frozen for rows in tier_rows):
        conditions = ANYTHING  # columns of users may have the names of ours, and other meanings
    window = time_window(conditions)
    skipped: Counter[str] = Counter()
    kept = []
    for rows in tier_rows:
        pieces = [(piece, _reason_to_skip(piece, conditions, window)) for piece in rows.pieces]
        files = [
            (file, _reason_to_skip_file(file, _applicable(rows, file, conditions), window))
            for file in rows.files
        ]
        skipped.update(reason for _, reason in (*pieces, *files) if reason is not None)
        kept.append(
            replace(
                rows,
                pieces=tuple(piece for piece, reason in pieces if reason is None),
                files=tuple(file for file, reason in files if reason is None),
            )
        )
    return PrunedScan(
        tier_rows=tuple(kept),
        piece_count=sum(len(rows.pieces) for rows in tier_rows),
        file_count=sum(len(rows.files) for rows in tier_rows),
        row_count=sum(part.row_count for rows in tier_rows for part in rows.parts),
        skipped=tuple(skipped.items()),
    )


def _applicable(rows: TierRows, file: TableFile, conditions: Conditions) -> Conditions:
    """Leave out conditions on promoted columns that a file lacks: its statistics are of a column
    that queries do not read."""
    if rows.view is None or conditions.keys().isdisjoint(rows.view.promoted):
        return conditions
    unfilled = rows.view.unfilled(file)
    return {name: each for name, each in conditions.items() if name not in unfilled}


def _prune_keyed(rows: TierRows, conditions: Conditions, bounds: SegmentBounds) -> PrunedScan:
    assert rows.keyed is not None
    kept, skipped = prune_keyed(rows.keyed, conditions, bounds)
    return PrunedScan(
        tier_rows=(replace(rows, keyed=kept),),
        piece_count=0,
        file_count=0,
        row_count=rows.keyed.row_count,
        skipped=tuple(skipped.items()),
        segment_count=len(rows.keyed.parts),
    )


def _reason_to_skip(piece: Piece, conditions: Conditions, window: Predicate) -> str | None:
    if piece.row_count == 0 or is_never(conditions):
        return NOTHING
    if _is_outside(piece, window):
        return OUTSIDE_TIME
    if _is_outside_log(piece, conditions):
        return OUTSIDE_LOG
    services = conditions.get("service_name", Predicate()).values
    if services is not None and piece.services is not None and not services & piece.services:
        return OTHER_SERVICE
    for column, bloom in piece.filters.items():
        values = conditions.get(column, Predicate()).values
        if values is not None and not any(map(bloom.may_hold, values)):
            return f"without the {column}"
    return None


def _is_outside_log(piece: Piece, conditions: Conditions) -> bool:
    """Return whether no row of the piece has a matching offset and partition."""
    if piece.offset_begin >= piece.offset_end:
        return False
    offsets = (piece.offset_begin, piece.offset_end - 1)
    partition = conditions.get("_log_partition", Predicate())
    return not (
        _may_match(offsets, conditions.get("_offset", Predicate()))
        and _may_match((piece.partition, piece.partition), partition)
    )


def _reason_to_skip_file(file: TableFile, conditions: Conditions, window: Predicate) -> str | None:
    if file.row_count == 0 or is_never(conditions):
        return NOTHING
    if _is_outside(file, window):
        return OUTSIDE_TIME
    for column, predicate in conditions.items():
        scale = NS_PER_US if column in file.times else 1
        if column in file.empty or not _may_match(file.bounds.get(column), predicate, scale):
            return OTHER_SERVICE if column == "service_name" else f"without the {column}"
    return None


def _may_match(bounds: Bounds | None, predicate: Predicate, scale: int = 1) -> bool:
    """Return whether a value within these bounds may match. `scale`: nanoseconds of a unit of the
    bounds, for times."""
    if bounds is None:
        return True
    least, greatest = bounds
    if isinstance(least, str) or isinstance(greatest, str):
        values = predicate.values
        return values is None or any(str(least) <= value <= str(greatest) for value in values)
    is_below = predicate.high is not None and least * scale > predicate.high
    is_above = predicate.low is not None and greatest * scale < predicate.low
    return not is_below and not is_above


def _is_outside(piece: Piece | TableFile, window: Predicate) -> bool:
    if piece.time_min_us is None or piece.time_max_us is None:
        return False
    is_before = window.low is not None and piece.time_max_us * NS_PER_US < window.low
    is_after = window.high is not None and piece.time_min_us * NS_PER_US > window.high
    return is_before or is_after


def time_window(conditions: Conditions) -> Predicate:
    """Return the bounds of `time` in nanoseconds, using predicates on `time_unix_nano` as well.

    `time` is `time_unix_nano` truncated to microseconds, unless that is 0: such rows have another
    time. So only a lower bound above 0 says anything about `time`.
    """
    time = both(
        {"time": conditions.get("time", Predicate())},
        {"time": conditions.get("time" + AS_TIME, Predicate())},
    )["time"]
    sent = conditions.get("time_unix_nano", Predicate())
    if sent.low is None or sent.low <= 0:
        return time
    low = sent.low - sent.low % NS_PER_US
    return Predicate(
        low=low if time.low is None else max(low, time.low),
        high=min((high for high in (time.high, sent.high) if high is not None), default=None),
    )
