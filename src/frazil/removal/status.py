"""RuleStatus: what each retention rule will remove, and when. From file bounds: nothing is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from frazil.lake import cut_ms, cut_step_ms
from frazil.model import doc

if TYPE_CHECKING:
    from frazil.lake import Lake, TableFile
    from frazil.settings import RetentionRule

US_PER_MS = 1000


class RuleStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One retention rule."""

    table: str
    where: Annotated[str | None, doc("Condition; null for the rule of the table.")]
    age_s: Annotated[int, doc("How long rows are kept.")]
    cut_ms: Annotated[int, doc("Rows before this time have expired.")]
    oldest_ms: Annotated[int | None, doc("Time of the oldest row of the table; null if empty.")]
    due_rows: Annotated[int, doc("Rows of files that are older than the cut as a whole.")]
    next_ms: Annotated[
        int | None, doc("When the next rows expire; null if the table is empty, past if due.")
    ]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as the API has them."""
        return msgspec.structs.asdict(self)


def rule_statuses(lake: Lake, now_ms: int) -> list[RuleStatus]:
    """Return the rules and what the tables have for them."""
    view = lake.view.latest
    statuses = []
    for rule in lake.rules:
        table = None if view is None else view.tables.get(rule.table)
        statuses.append(_status(rule, () if table is None else table.files, now_ms))
    return statuses


def _status(rule: RetentionRule, files: tuple[TableFile, ...], now_ms: int) -> RuleStatus:
    cut = cut_ms(rule, now_ms)
    times = [file.time_min_us // US_PER_MS for file in files if file.time_min_us is not None]
    oldest = min(times, default=None)
    return RuleStatus(
        table=rule.table,
        where=rule.where,
        age_s=rule.age_ms // 1000,
        cut_ms=cut,
        oldest_ms=oldest,
        due_rows=sum(
            file.row_count
            for file in files
            if file.time_max_us is not None and file.time_max_us < cut * US_PER_MS
        ),
        next_ms=None if oldest is None else _expires_ms(rule, oldest),
    )


def _expires_ms(rule: RetentionRule, time_ms: int) -> int:
    """Return when a row of this time expires: the first moment at which the cut is after it."""
    step = cut_step_ms(rule)
    return (time_ms // step + 1) * step + rule.age_ms
