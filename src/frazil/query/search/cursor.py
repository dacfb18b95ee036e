"""Cursor: where a row stands among all others by time, for pages that neither skip nor repeat.

Many rows have the same time; where they lie in the log tells them apart, for good.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from frazil.errors import Malformed
from frazil.query.search.filters import EPOCH, MICROSECOND

_WRITTEN = re.compile(r"(-?\d{1,19})-(\d{1,10})-(\d{1,19})-(\d{1,10})", re.ASCII)
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cursor:
    """The time of a row, and where in the log it comes from."""

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
    def parse(cls, written: str) -> Self:
        """What `str` made of a place."""
        found = _WRITTEN.fullmatch(written)
        numbers = [int(number) for number in found.groups()] if found else []
        most = (LONG_MAX, INT_MAX, LONG_MAX, INT_MAX)
        if not found or any(abs(n) > m for n, m in zip(numbers, most, strict=True)):
            raise Malformed(
                f"{written[:100]!r} is no place of a row; take one from an answer as it is"
            )
        return cls(time_us=numbers[0], partition=numbers[1], offset=numbers[2], row=numbers[3])

    def __str__(self) -> str:
        return f"{self.time_us}-{self.partition}-{self.offset}-{self.row}"

    @staticmethod
    def order(*, is_descending: bool) -> str:
        """How rows are sorted by their places."""
        way = "DESC" if is_descending else "ASC"
        return f"time {way}, _log_partition {way}, _offset {way}, _row {way}"

    def beyond(self, *, is_descending: bool) -> list[str]:
        """Conditions on rows that come behind this one. The first one, on the time alone, lets
        pieces be left out."""
        sign = "<" if is_descending else ">"
        return [
            f"time {sign}= {self._time}",
            f"(time {sign} {self._time} OR _log_partition {sign} {self.partition} "
            f"OR (_log_partition = {self.partition} AND (_offset {sign} {self.offset} "
            f"OR (_offset = {self.offset} AND _row {sign} {self.row}))))",
        ]

    def here(self) -> list[str]:
        """Conditions on the row itself."""
        return [
            f"time = {self._time}",
            f"_log_partition = {self.partition}",
            f"_offset = {self.offset}",
            f"_row = {self.row}",
        ]

    @property
    def _time(self) -> str:
        return f"to_timestamp_micros({self.time_us})"
