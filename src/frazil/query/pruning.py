"""Which pieces a query must read: those whose rows may fulfil its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.query.conditions import AS_TIME, Condition, Conditions, both, is_never

if TYPE_CHECKING:
    from frazil.hot import Piece

NS_PER_US = 1_000

OUTSIDE_TIME = "outside the time range"
OTHER_SERVICE = "without the service"
NOTHING = "no row can match"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The pieces to read of one table, and why the others are left out."""

    pieces: tuple[Piece, ...]
    piece_count: int
    row_count: int
    skipped: tuple[tuple[str, int], ...]
    """A reason, and how many pieces it left out."""

    def describe(self, table: str) -> str:
        """For EXPLAIN."""
        rows = sum(piece.row_count for piece in self.pieces)
        lines = [
            f"{table}: reads {len(self.pieces)} of {self.piece_count} pieces, "
            f"{rows} of {self.row_count} rows"
        ]
        lines += [f"  skips {count}: {reason}" for reason, count in self.skipped]
        return "\n".join(lines)


def prune(pieces: Sequence[Piece], conditions: Conditions) -> Kept:
    """Leave out every piece that certainly has no row which fulfils the conditions."""
    window = time_window(conditions)
    kept: list[Piece] = []
    skipped: Counter[str] = Counter()
    for piece in pieces:
        reason = _reason_to_skip(piece, conditions, window)
        if reason is None:
            kept.append(piece)
        else:
            skipped[reason] += 1
    return Kept(
        pieces=tuple(kept),
        piece_count=len(pieces),
        row_count=sum(piece.row_count for piece in pieces),
        skipped=tuple(skipped.items()),
    )


def _reason_to_skip(piece: Piece, conditions: Conditions, window: Condition) -> str | None:
    if piece.row_count == 0 or is_never(conditions):
        return NOTHING
    if _is_outside(piece, window):
        return OUTSIDE_TIME
    services = conditions.get("service_name", Condition()).values
    if services is not None and piece.services is not None and not services & piece.services:
        return OTHER_SERVICE
    for column, known in piece.filters.items():
        wanted = conditions.get(column, Condition()).values
        if wanted is not None and not any(map(known.may_hold, wanted)):
            return f"without the {column}"
    return None


def _is_outside(piece: Piece, window: Condition) -> bool:
    if piece.time_min_us is None or piece.time_max_us is None:
        return False
    is_before = window.low is not None and piece.time_max_us * NS_PER_US < window.low
    is_after = window.high is not None and piece.time_min_us * NS_PER_US > window.high
    return is_before or is_after


def time_window(conditions: Conditions) -> Condition:
    """Bounds of `time` in nanoseconds, also as far as `time_unix_nano` says.

    `time` is `time_unix_nano` cut to microseconds, unless that is 0: such rows have another time.
    Only a condition that leaves them out tells where the others are.
    """
    time = both(
        {"time": conditions.get("time", Condition())},
        {"time": conditions.get("time" + AS_TIME, Condition())},
    )["time"]
    sent = conditions.get("time_unix_nano", Condition())
    if sent.low is None or sent.low <= 0:
        return time
    low = sent.low - sent.low % NS_PER_US
    return Condition(
        low=low if time.low is None else max(low, time.low),
        high=min((high for high in (time.high, sent.high) if high is not None), default=None),
    )
