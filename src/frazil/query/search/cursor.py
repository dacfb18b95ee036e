"""Cursor: position of a row by time, for pages that neither skip nor repeat rows.

Rows with the same time are ordered by their position in the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from frazil.errors import Malformed
from frazil.query.search.filters import EPOCH, MICROSECOND

_CURSOR = re.compile(r"(-?\d{1,19})-(\d{1,10})-(\d{1,19})-(\d{1,10})", re.ASCII)
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cursor:
    """Time of a row and its position in the log."""

    time_us: int
    partition: int
    offset: int
    row: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        return cls(
            time_us=(row["time"] - EPOCH) // MICROSECOND,
            partition=row["_log_partition"],
            offset=row["_offset"],
            row=row["_row"],
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse what `str` returned."""
        match = _CURSOR.fullmatch(text)
        numbers = [int(number) for number in match.groups()] if match else []
        limits = (LONG_MAX, INT_MAX, LONG_MAX, INT_MAX)
        if not match or any(abs(n) > m for n, m in zip(numbers, limits, strict=True)):
            raise Malformed(f"{text[:100]!r} is not a cursor; copy it unchanged from a response")
        return cls(time_us=numbers[0], partition=numbers[1], offset=numbers[2], row=numbers[3])

    def __str__(self) -> str:
        return f"{self.time_us}-{self.partition}-{self.offset}-{self.row}"

    @staticmethod
    def order(*, is_descending: bool) -> str:
        """ORDER BY columns of a list."""
        direction = "DESC" if is_descending else "ASC"
        names = ("time", "_log_partition", "_offset", "_row")
        return ", ".join(f"{name} {direction}" for name in names)

    def after(self, *, is_descending: bool) -> list[str]:
        """Conditions for rows after this one. The first, on time alone, allows pruning."""
        sign = "<" if is_descending else ">"
        return [
            f"time {sign}= {self._time}",
            f"(time {sign} {self._time} OR _log_partition {sign} {self.partition} "
            f"OR (_log_partition = {self.partition} AND (_offset {sign} {self.offset} "
            f"OR (_offset = {self.offset} AND _row {sign} {self.row}))))",
        ]

    def at(self) -> list[str]:
        """Conditions for the row itself."""
        return [
            f"time = {self._time}",
            f"_log_partition = {self.partition}",
            f"_offset = {self.offset}",
            f"_row = {self.row}",
        ]

    @property
    def _time(self) -> str:
        return f"to_timestamp_micros({self.time_us})"
