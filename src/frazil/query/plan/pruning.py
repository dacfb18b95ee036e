"""Which pieces and files a query must read: those whose rows may fulfil its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from frazil.query.plan.predicates import AS_TIME, Conditions, Predicate, both, is_never

if TYPE_CHECKING:
    from frazil.hot import Piece
    from frazil.lake import TableFile
    from frazil.query.scan.tiers import TierRows

Bounds = tuple[int | str, int | str]

NS_PER_US = 1_000
TIMES = frozenset({"time", "ingest_time"})
"""Columns whose bounds are in microseconds; conditions on times are in nanoseconds."""

OUTSIDE_TIME = "outside the time range"
OTHER_SERVICE = "without the service"
OUTSIDE_LOG = "from elsewhere in the log"
NOTHING = "no row can match"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedScan:
    """What is to be read of one table, and why the rest is left out."""

    lots: tuple[TierRows, ...]
    piece_count: int
    file_count: int
    row_count: int
    skipped: tuple[tuple[str, int], ...]
    """A reason, and how many pieces and files it left out."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for lot in self.lots for piece in lot.pieces)

    @property
    def files(self) -> tuple[TableFile, ...]:
        return tuple(file for lot in self.lots for file in lot.files)

    @property
    def parts(self) -> tuple[Piece | TableFile, ...]:
        return tuple(part for lot in self.lots for part in lot.parts)

    @property
    def is_plain(self) -> bool:
        """Is it one lot, of which every row counts?"""
        return len(self.lots) == 1 and self.lots[0].where is None

    def describe(self, table: str) -> str:
        """For EXPLAIN."""
        rows = sum(part.row_count for part in self.parts)
        files = f" and {len(self.files)} of {self.file_count} files" if self.file_count else ""
        lines = [
            f"{table}: reads {len(self.pieces)} of {self.piece_count} pieces{files}, "
            f"{rows} of {self.row_count} rows"
        ]
        lines += [f"  skips {count}: {reason}" for reason, count in self.skipped]
        for lot in self.lots:
            if lot.view is not None and lot.view.snapshot_id is not None:
                limit = f", only rows with {lot.where}" if lot.where else ""
                lines.append(f"  lake: snapshot {lot.view.snapshot_id}{limit}")
        return "\n".join(lines)


def prune(lots: Sequence[TierRows], conditions: Conditions) -> PrunedScan:
    """Leave out whatever certainly has no row which fulfils the conditions."""
    window = time_window(conditions)
    skipped: Counter[str] = Counter()
    kept = []
    for lot in lots:
        pieces = [(piece, _reason_to_skip(piece, conditions, window)) for piece in lot.pieces]
        files = [(file, _reason_to_skip_file(file, conditions, window)) for file in lot.files]
        skipped.update(reason for _, reason in (*pieces, *files) if reason is not None)
        kept.append(
            replace(
                lot,
                pieces=tuple(piece for piece, reason in pieces if reason is None),
                files=tuple(file for file, reason in files if reason is None),
            )
        )
    return PrunedScan(
        lots=tuple(kept),
        piece_count=sum(len(lot.pieces) for lot in lots),
        file_count=sum(len(lot.files) for lot in lots),
        row_count=sum(part.row_count for lot in lots for part in lot.parts),
        skipped=tuple(skipped.items()),
    )


def _reason_to_skip(piece: Piece, conditions: Conditions, window: Predicate) -> str | None:
    if piece.row_count == 0 or is_never(conditions):
        return NOTHING
    if _is_outside(piece, window):
        return OUTSIDE_TIME
    if _is_elsewhere(piece, conditions):
        return OUTSIDE_LOG
    services = conditions.get("service_name", Predicate()).values
    if services is not None and piece.services is not None and not services & piece.services:
        return OTHER_SERVICE
    for column, known in piece.filters.items():
        wanted = conditions.get(column, Predicate()).values
        if wanted is not None and not any(map(known.may_hold, wanted)):
            return f"without the {column}"
    return None


def _is_elsewhere(piece: Piece, conditions: Conditions) -> bool:
    """Do all rows come from other offsets, or from another partition, than is asked for?"""
    if piece.offset_begin >= piece.offset_end:
        return False
    offsets = (piece.offset_begin, piece.offset_end - 1)
    partition = conditions.get("_log_partition", Predicate())
    return not (
        _may_fulfil(offsets, conditions.get("_offset", Predicate()), "_offset")
        and _may_fulfil((piece.partition, piece.partition), partition, "_log_partition")
    )


def _reason_to_skip_file(file: TableFile, conditions: Conditions, window: Predicate) -> str | None:
    if file.row_count == 0 or is_never(conditions):
        return NOTHING
    if _is_outside(file, window):
        return OUTSIDE_TIME
    for column, wanted in conditions.items():
        if column in file.empty or not _may_fulfil(file.bounds.get(column), wanted, column):
            return OTHER_SERVICE if column == "service_name" else f"without the {column}"
    return None


def _may_fulfil(bounds: Bounds | None, wanted: Predicate, column: str) -> bool:
    """May a value between these bounds be wanted?"""
    if bounds is None:
        return True
    least, greatest = bounds
    if isinstance(least, str) or isinstance(greatest, str):
        values = wanted.values
        return values is None or any(str(least) <= value <= str(greatest) for value in values)
    scale = NS_PER_US if column in TIMES else 1
    is_below = wanted.high is not None and least * scale > wanted.high
    is_above = wanted.low is not None and greatest * scale < wanted.low
    return not is_below and not is_above


def _is_outside(piece: Piece | TableFile, window: Predicate) -> bool:
    if piece.time_min_us is None or piece.time_max_us is None:
        return False
    is_before = window.low is not None and piece.time_max_us * NS_PER_US < window.low
    is_after = window.high is not None and piece.time_min_us * NS_PER_US > window.high
    return is_before or is_after


def time_window(conditions: Conditions) -> Predicate:
    """Bounds of `time` in nanoseconds, also as far as `time_unix_nano` says.

    `time` is `time_unix_nano` cut to microseconds, unless that is 0: such rows have another time.
    Only a condition that leaves them out tells where the others are.
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
